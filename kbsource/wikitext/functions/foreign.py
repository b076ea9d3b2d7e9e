"""Text in other languages and scripts, transliterations, and the languages' names."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    argument,
    filled,
    is_true,
    link,
    padded,
    shown,
    stripped,
)
from kbsource.wikitext.markers import APOSTROPHE

_NON_LATIN = frozenset(
    """ab ady am ar arc arz as av awa az-cyrl ba be bg bn bo ce ckb cop cv dv dz el fa gez got grc gu he hi hy hyw ii
    inc ja ka kk km kn ko ks ky lo lzh mai mk ml mn mni mr my myv nan ne new os otk pa pal pnt ps ru sa sat sd si sux
    syr ta te tg th ti tig tt ug uk ur wuu xmf yi yue zh""".split()
)


@cache
def language_names(lang: str) -> dict[str, str]:
    """Gives names of languages by code in the given language; none where there are no data."""
    text = resources.files("kbsource.wikitext").joinpath("rules/language_names.toml").read_text("utf-8")
    data: dict[str, dict[str, str]] = tomllib.loads(text)
    return data.get("en" if lang == "simple" else lang) or data.get(lang.partition("-")[0], {})


def lang(template: Template, page: PageFacts, *, position: int = 2) -> str:
    """Gives the text of ``{{lang|fr|texte}}``, in italics where the script is Latin as the template sets it."""
    values = template.positional
    code = argument(template, 1, "code").lower()
    text = values[position - 1].strip("\n") if len(values) >= position else argument(template, 0, "text", "texte", "1")
    text = text if text.strip() else argument(template, 0, "text", "texte")
    translit = template.named.get("translit", "")
    meaning = template.named.get("lit", "")
    text = _italic(text, code, template, page) if page.lang == "en" else text
    if translit:
        text += f", ''{translit}''"
    return f"{text}, {APOSTROPHE}{meaning}{APOSTROPHE}" if meaning else text


def _italic(text: str, code: str, template: Template, page: PageFacts) -> str:
    """Gives Latin-script text in italics, unless it has some already or asks for none."""
    wish = template.named.get("italic", "") or template.named.get("italics", "")
    if wish in ("no", "unset", "off", "invert", "default") or "''" in text or not text.strip():
        return text
    base = code.partition("-")[0]
    if "latn" not in code and (base in _NON_LATIN or not _is_latin(text)):
        return text
    if (
        wish != "yes"
        and template.name not in ("Lang", "Transl", "Transliteration")
        and not template.name.startswith("Lang-")
    ):
        return text
    return f"''{text}''"


def _is_latin(text: str) -> bool:
    """Says whether the first letter is of the Latin script (with its extensions)."""
    first = next((character for character in text if character.isalpha()), "")
    return bool(first) and (first < "\u0250" or "\u1e00" <= first <= "\u1eff")


def lang_xx(template: Template, page: PageFacts, *, code: str = "") -> str:
    """Gives ``French: ''texte''`` from ``{{lang-fr|texte}}`` or ``{{langx|fr|texte}}``, with sound and gloss."""
    values = stripped(template)
    if not code:
        if template.name.startswith("Lang-"):
            code = template.name[5:]
        elif values:
            code, values = values[0], values[1:]
    name = template.named.get("label", "") or language_names(page.lang).get(code.lower(), "")
    name = name or language_names(page.lang).get(code.lower().partition("-")[0], "")
    text = values[0] if values else argument(template, 0, "text", "1")
    if page.lang == "en":
        text = _italic(text, code.lower(), Template("Lang", (), template.named), page)
    translit = (
        template.named.get("translit", "") or template.named.get("tr", "") or (values[1] if len(values) > 1 else "")
    )
    meaning = template.named.get("lit", "") or (values[2] if len(values) > 2 else "")
    pieces = [text]
    if translit:
        pieces.append(f"''{translit}''" if "''" not in translit else translit)
    if meaning:
        pieces.append(f"'{meaning}'" if page.lang in ("en", "simple") else f"«{meaning}»")
    body = ", ".join(piece for piece in pieces if piece)
    no_label = template.named.get("label", "") in ("none", "no") or template.named.get("link", "") == "none"
    if no_label or not name:
        return body
    mark = "：" if page.lang == "zh" else ": "
    if page.lang in ("ru", "uk", "bg", "be"):
        mark = " "
    return f"{link_to_language(name, page.lang)}{mark}{body}"


def link_to_language(name: str, lang_code: str) -> str:
    """Gives the language's name as the templates link it: English ones to ``French language``."""
    if lang_code in ("en", "simple"):
        return name if name.endswith("language") else link(f"{name} language", name)
    return name


def transliteration(template: Template, page: PageFacts) -> str:
    """Gives the text of ``{{transl|ar|ALA|text}}``, the last argument, in italics."""
    values = filled(template)
    if not values:
        return ""
    text = values[-1]
    return f"''{text}''" if page.lang == "en" and "''" not in text and len(values) > 1 else text


def native_name(template: Template, page: PageFacts) -> str:
    """Gives ``Principat d'Andorra (Catalan)`` from ``{{native name|ca|…}}``."""
    code, text = argument(template, 1), argument(template, 2)
    name = language_names(page.lang).get(code.lower(), "")
    tag = template.named.get("paren", "")
    if not name or tag in ("omit", "off", "no"):
        return text or shown(template)
    return f"{text} ({link_to_language(name, page.lang)})"


def language_tag(template: Template, page: PageFacts, *, code: str) -> str:
    """Gives the name of a language in brackets, as ``{{in lang|fr}}`` and ``{{fr icon}}`` do."""
    codes = filled(template) if code == "" else [code]
    names = [language_names(page.lang).get(one.lower()) or autonym(one) for one in codes]
    return f"(in {' and '.join(names)})" if page.lang in ("en", "simple") else f"({', '.join(names)})"


def language_name(template: Template, page: PageFacts) -> str:
    """Gives the name of a language by its code: ``{{ISO 639 name|fr}}``, in the page's language."""
    code = argument(template, 1).lower()
    return language_names(page.lang).get(code) or autonym(code)


def name_in(template: Template, page: PageFacts) -> str:
    """Gives ``français`` for ``{{#language:fr}}``, ``French`` for ``{{#language:fr|en}}``."""
    code = argument(template, 1).lower()
    return language_names(argument(template, 2).lower()).get(code) or autonym(code)


def autonym(code: str) -> str:
    """Gives the name of a language in itself; its code where that is not known."""
    return language_names("autonyms").get(code, code)


def nihongo(template: Template, page: PageFacts, *, order: str = "english") -> str:
    """Gives ``Tokyo (東京, ''Tōkyō'')``: English, kanji and kana, rōmaji, extra words.

    ``order`` is ``english`` for ``{{nihongo}}``, ``romaji`` for ``{{nihongo3}}``, ``kanji`` for ``{{nihongo2}}``.
    """
    values = padded(template, 5)
    english, kanji, romaji, extra, extra2 = values[:5]
    extra = template.named.get("extra", "") or extra
    extra2 = template.named.get("extra2", "") or extra2
    if order == "kanji":
        return english
    romaji_text = f"''{romaji}''" if romaji and "''" not in romaji else romaji
    if order == "romaji":
        head, inside = romaji_text or english, [kanji, english if romaji else "", extra]
    else:
        head, inside = english or romaji_text, [kanji, romaji_text if english else "", extra]
    brackets = ", ".join(value for value in inside if value)
    text = f"{head} ({brackets})" if brackets and head else head or brackets
    return f"{text} {extra2}" if extra2 else text


def chinese(template: Template, page: PageFacts) -> str:
    """Gives ``{{zh|s=…|t=…|p=…|l=…}}``: ``simplified Chinese: 汉语; traditional Chinese: 漢語; pinyin: ''Hànyǔ''``."""
    named = template.named
    labels = is_true(named.get("labels", "yes"))
    pieces: list[str] = []
    for key, label in _CHINESE_PARTS:
        value = named.get(key, "")
        if not value:
            continue
        if key == "l":
            value = f"'{value}'"
        elif key not in ("c", "s", "t", "sc", "tc") and "''" not in value:
            value = f"''{value}''"
        pieces.append(f"{label}: {value}" if labels else value)
    return "; ".join(pieces) or shown(template)


_CHINESE_PARTS = (
    ("c", "Chinese"),
    ("s", "simplified Chinese"),
    ("t", "traditional Chinese"),
    ("hp", "Hanyu Pinyin"),
    ("p", "pinyin"),
    ("tp", "Tongyong Pinyin"),
    ("w", "Wade–Giles"),
    ("g", "Gwoyeu Romatzyh"),
    ("mps", "MPS II"),
    ("j", "Jyutping"),
    ("cy", "Cantonese Yale"),
    ("sl", "Sidney Lau"),
    ("poj", "Pe̍h-ōe-jī"),
    ("tl", "Tâi-lô"),
    ("buc", "Bàng-uâ-cê"),
    ("l", "lit."),
    ("first", ""),
)


def chinese_link(
    template: Template,
    page: PageFacts,
    *,
    target: int = 1,
    foreign: int = 2,
    label: int = 3,
) -> str:
    """Gives the local title of ``{{tsl|en|Foreign|本地}}``, ``{{link-en|本地|Foreign|显示}}`` as a link."""
    local = argument(template, target) or argument(template, foreign)
    return link(local, argument(template, label, default=local)) if local else shown(template)


def korean(template: Template, page: PageFacts) -> str:
    """Gives ``{{korean|hangul=한글|hanja=漢字|rr=…|mr=…}}`` as labelled pieces."""
    named = template.named
    labels = (("hangul", "Korean"), ("hanja", "Hanja"), ("rr", "RR"), ("mr", "MR"), ("lit", "lit."))
    pieces = [f"{label}: {named[key]}" for key, label in labels if named.get(key)]
    values = stripped(template)
    pieces.extend(f"{label}: {value}" for value, (_, label) in zip(values, labels, strict=False) if value)
    return "; ".join(pieces)
