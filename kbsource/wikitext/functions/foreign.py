"""Text in other languages and scripts, transliterations, and the names of languages."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import pairwise

from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    is_true,
    read_rules,
    read_section,
    sections,
    table,
    wikitext_link,
)
from kbsource.wikitext.functions.numbers import NBSP, format_number, parse_number
from kbsource.wikitext.markers import APOSTROPHE

_NON_LATIN = frozenset(
    """ab ady am ar arc arz as av awa az-cyrl ba be bg bn bo ce ckb cop cv dv dz el fa gez got grc gu he hi hy hyw ii
    inc ja ka kk km kn ko ks ky lo lzh mai mk ml mn mni mr my myv nan ne new os otk pa pal pnt ps ru sa sat sd si sux
    syr ta te tg th ti tig tt ug uk ur wuu xmf yi yue zh""".split()
)


@cache
def language_names(lang: str) -> dict[str, str]:
    """Returns names of languages by code in the given language, as they are written before a word; empty if there is
    no data.
    """
    data: dict[str, dict[str, str]] = read_rules("language_names")
    names = data.get("en" if lang == "simple" else lang) or data.get(lang.partition("-")[0], {})
    if not names:
        return {}
    nouns = language_nouns(lang)  # names of more languages
    if lang.partition("-")[0] == "de":  # the adjective
        nouns = {code: noun.lower() for code, noun in nouns.items() if noun.endswith("isch")}
    return nouns | names


def lang(template: Template, page: PageFacts) -> str:
    """Returns the text of ``{{lang|fr|texte}}``, in italics for Latin script, as the template sets it."""
    values = template.positional
    code = template.argument(1, "code").lower()
    text = values[1].strip("\n") if len(values) > 1 else template.argument(0, "text", "texte", "1")
    text = text if text.strip() else template.argument(0, "text", "texte")
    translit = template.named.get("translit", "")
    meaning = template.named.get("lit", "")
    text = _italic(text, code, template, page) if page.lang == "en" else text
    if translit:
        text += f", ''{translit}''"
    elif page.lang == "fr" and (translit := template.named.get("trans", "")):
        text += f"{NBSP}/ ''{translit}''"
    return f"{text}, {APOSTROPHE}{meaning}{APOSTROPHE}" if meaning else text


def _italic(text: str, code: str, template: Template, page: PageFacts) -> str:
    """Returns Latin-script text in italics, unless it already has some or the use requests none."""
    wish = template.named.get("italic", "") or template.named.get("italics", "")
    if wish in ("no", "unset", "off", "invert", "default") or "''" in text or not text.strip():
        return text
    base = code.partition("-")[0]
    if "latn" not in code and (base in _NON_LATIN or not _is_latin(text)):
        return text
    is_language = template.name in ("Lang", "Transl", "Transliteration") or template.name.startswith("Lang-")
    return f"''{text}''" if is_language or wish == "yes" else text


def _is_latin(text: str) -> bool:
    """Returns whether the first letter belongs to the Latin script (with its extensions)."""
    first = next((character for character in text if character.isalpha()), "")
    return bool(first) and (first < "\u0250" or "\u1e00" <= first <= "\u1eff")


def lang_xx(template: Template, page: PageFacts, *, code: str = "") -> str:
    """Returns ``French: ''texte''`` from ``{{lang-fr|texte}}`` or ``{{langx|fr|texte}}``, with transliteration and
    gloss.
    """
    values = template.stripped()
    if not code:
        if template.name.startswith("Lang-"):
            code = template.name[5:]
        elif values:
            code, values = values[0], values[1:]
    name = template.named.get("label", "") or language_names(page.lang).get(code.lower(), "")
    name = name or language_names(page.lang).get(code.lower().partition("-")[0], "")
    text = values[0] if values else template.argument(0, "text", "1")
    if page.lang == "en":
        text = _italic(text, code.lower(), Template("Lang", (), template.named), page)
    is_english = page.lang in ("en", "simple")
    translit = template.argument(0, "translit", "tr", "r") or "".join(values[1:2])
    meaning = template.named.get("lit", "") or "".join(values[2:3])
    pieces = [text]
    if translit:
        lead = "romanized: " if is_english else ""
        pieces.append(f"{lead}''{translit}''" if "''" not in translit else f"{lead}{translit}")
    if is_english and (sounds := template.named.get("p", "")):
        pieces.append(f"IPA: [{sounds}]")
    if meaning:
        pieces.append(f"lit. '{meaning}'" if is_english else f"«{meaning}»")
    body = ", ".join(piece for piece in pieces if piece)
    no_label = template.named.get("label", "") in ("none", "no") or template.named.get("link", "") == "none"
    if no_label or not name:
        return body
    mark = "：" if page.lang == "zh" else ": "
    if page.lang in ("ru", "uk", "bg", "be"):
        mark = " "
    return f"{link_to_language(name, page.lang)}{mark}{body}"


def link_to_language(name: str, lang_code: str) -> str:
    """Returns the language's name as the templates link it: English names to ``French language``."""
    if lang_code in ("en", "simple"):
        return name if name.endswith("language") else wikitext_link(f"{name} language", name)
    return name


def transliteration(template: Template, page: PageFacts) -> str:
    """Returns the text of ``{{transl|ar|ALA|text}}``, the last argument, in italics."""
    values = template.filled()
    if not values:
        return ""
    text = values[-1]
    return f"''{text}''" if page.lang == "en" and "''" not in text and len(values) > 1 else text


def native_name(template: Template, page: PageFacts) -> str:
    """Returns ``Principat d'Andorra (Catalan)`` from ``{{native name|ca|…}}``."""
    code, text = template.argument(1), template.argument(2)
    name = language_names(page.lang).get(code.lower(), "")
    tag = template.named.get("paren", "")
    if not name or tag in ("omit", "off", "no"):
        return text or template.shown()
    return f"{text} ({link_to_language(name, page.lang)})"


def language_icon(template: Template, page: PageFacts) -> str:
    """Returns the name of a language in brackets for a template named after its code: ``{{ref-en}}``."""
    code = template.name.rpartition("-")[2].lower()
    return f"({language_names(page.lang).get(code) or autonym(code)})"


def language_tag(template: Template, page: PageFacts) -> str:
    """Returns the names of languages in brackets, as ``{{in lang|fr}}`` does."""
    names = [language_names(page.lang).get(code.lower()) or autonym(code) for code in template.filled()]
    return f"(in {' and '.join(names)})" if page.lang in ("en", "simple") else f"({', '.join(names)})"


def language_name(template: Template, page: PageFacts) -> str:
    """Returns the name of a language in the page's language, from its code: ``{{ISO 639 name|fr}}``."""
    code = template.argument(1).lower()
    return language_names(page.lang).get(code) or autonym(code)


def name_in(template: Template, page: PageFacts) -> str:
    """Returns ``français`` for ``{{#language:fr}}``, ``French`` for ``{{#language:fr|en}}``."""
    code = (template.argument(1) or page.lang).lower()
    inside = template.argument(2).lower()
    return name_of_language(code, inside) or name_of_language(own_code(code), inside) or tagged_code(code)


@cache
def _codes() -> tuple[dict[str, str], dict[str, str]]:
    """Returns the public codes (BCP 47) of languages whose code in MediaWiki differs, and the codes of MediaWiki by
    public code.
    """
    tags: dict[str, str] = table("language_tags", "language_names")
    return tags, {tag.lower(): code for code, tag in tags.items()}


def own_code(code: str) -> str:
    """Returns MediaWiki's code of a language from its public code, in lower case."""
    return _codes()[1].get(code, code)


def tagged_code(code: str) -> str:
    """Returns the public code of a language as BCP 47 writes it.

    >>> tagged_code("de-formal"), tagged_code("zh-hant-tw")
    ('de-x-formal', 'zh-Hant-TW')
    """
    parts = _codes()[0].get(code, code).split("-")
    out = [parts[0].lower()]
    for before, part in pairwise(parts):
        is_private = before.lower() == "x"
        out.append(part if is_private else {2: part.upper(), 4: part.capitalize()}.get(len(part), part.lower()))
    return "-".join(out)


def public_code(template: Template, page: PageFacts) -> str:
    """Returns the public code of a language, ``{{#bcp47:sr-ec}}``; by default for the page's language."""
    return tagged_code((template.argument(1) or page.lang).lower())


def name_of_language(code: str, inside: str) -> str | None:
    """Returns the name of a language in another language, or in itself if ``inside`` is empty or has no name for it;
    None if unknown.

    >>> name_of_language("de", "ru"), name_of_language("de", "")
    ('немецкий', 'Deutsch')
    """
    return language_nouns(inside).get(code) or language_names("autonyms").get(code)


def language_nouns(lang: str) -> dict[str, str]:
    """Returns names of languages by code in another language, as ``{{#language:}}`` has them; empty if there is no
    data.
    """
    written = sections("language_nouns")
    own = "en" if lang == "simple" else lang
    return _nouns(own if own in written else lang.partition("-")[0])


@lru_cache(maxsize=64)
def _nouns(section: str) -> dict[str, str]:
    names = " ".join(read_section("language_nouns", section).get("names", "").split())
    pairs = (entry.partition(" ") for entry in names.split("; "))
    return {code: name for code, _, name in pairs if name}


# Source: languages/messages of MediaWiki 1.39, $rtl.
_RIGHT_TO_LEFT = frozenset(
    """ar arc ary arz azb bcc bgn bqi ckb dv fa glk he khw kk-arab ks ks-arab ku-arab lki lrc luz mzn nqo pnb ps sd sdh
    skr skr-arab ug yi ur""".split()
)


def is_right_to_left(lang: str) -> bool:
    """Returns whether a language is written from right to left."""
    return lang in _RIGHT_TO_LEFT


def direction(template: Template, page: PageFacts) -> str:
    """Returns ``rtl`` or ``ltr`` for a language code, ``{{#dir:fa}}``; by default for the page's language."""
    code = (template.argument(1) or page.lang).lower()
    return "rtl" if is_right_to_left(own_code(code) if template.argument(2).lower() == "bcp47" else code) else "ltr"


def autonym(code: str) -> str:
    """Returns the name of a language in itself; its code if the name is unknown."""
    return language_names("autonyms").get(code, code)


def nihongo(template: Template, page: PageFacts, *, order: str = "english") -> str:
    """Returns ``Tokyo (東京, ''Tōkyō'')``: English, kanji and kana, rōmaji, extra words.

    ``order`` is ``english`` for ``{{nihongo}}``, ``romaji`` for ``{{nihongo3}}``, ``kanji`` for ``{{nihongo2}}``.
    """
    if order == "kanji":
        return template.argument(1, "kanji")
    english, kanji = template.argument(1, "english"), template.argument(2, "kanji", "kana")
    romaji = template.argument(3, "romaji", "rōmaji", "hepburn")
    extra = template.named.get("extra", "") or template.argument(4)
    extra2 = template.named.get("extra2", "") or template.argument(5)
    romaji_text = f"''{romaji}''" if romaji and "''" not in romaji else romaji
    if order == "romaji":
        head, inside = romaji_text or english, [kanji, english if romaji else "", extra]
    else:
        head, inside = english or romaji_text, [kanji, romaji_text if english else "", extra]
    brackets = ", ".join(value for value in inside if value)
    text = f"{head} ({brackets})" if brackets and head else head or brackets
    return f"{text} {extra2}" if extra2 else text


def last_words_of_name(template: Template, page: PageFacts) -> str:
    """Returns the template's own name without its first word: ``Milan`` for ``{{Calcio Milan}}``."""
    return template.name.partition(" ")[2]


def chinese(template: Template, page: PageFacts) -> str:
    """Returns ``simplified Chinese: 汉语; pinyin: ''Hànyǔ''`` for ``{{zh|s=…|p=…}}``, with other forms likewise."""
    named = template.named
    labels = is_true(named.get("labels", "yes"))
    pieces: list[str] = []
    for key, label in table("chinese_parts").items():
        value = named.get(key, "")
        if not value:
            continue
        if key == "l":
            value = f"'{value}'"
        elif key not in ("c", "s", "t", "sc", "tc") and "''" not in value:
            value = f"''{value}''"
        pieces.append(f"{label}: {value}" if labels else value)
    if not pieces and template.name == "Lang-zh":
        return lang_xx(template, page)
    return "; ".join(pieces) or template.shown()


_IPA_LEADS = dict.fromkeys(("lang", "alsouk", "ipa", "uklang", "uslang"), "") | {
    "pron": "pronounced ", "uk": "UK: ", "us": "US: ", "also": "also ", "local": "locally ",
}  # fmt: skip


def english_ipa(template: Template, page: PageFacts) -> str:
    """Returns ``/ˌæləˈbæmə/``. Source: https://en.wikipedia.org/wiki/Template:IPAc-en"""
    keys = table("keys", "ipa")  # other arguments are already IPA
    lead = ""
    sounds: list[str] = []
    for value in template.positional:
        key = value.strip()
        if not sounds and key.lower() in _IPA_LEADS:
            lead += _IPA_LEADS[key.lower()]
            continue
        sounds.append(" " if key == "_" or (not key and value) else keys.get(key, key))
    text = "".join(sounds).strip()
    return f"{lead}/{text}/" if text else lead.strip()


_SOUND_FILES = (".ogg", ".oga", ".opus", ".flac", ".wav", ".mp3")


def foreign_ipa(template: Template, page: PageFacts) -> str:
    """Returns ``French pronunciation: [alɛ̃ kɔn]`` from ``{{IPA-fr|alɛ̃ kɔn}}``, or with the requested introduction."""
    values = template.stripped()
    name = language_names(page.lang).get(template.name.partition("-")[2].lower(), "")
    text = values[0] if values else ""
    if not text:
        return ""
    lead = values[1].lower() if len(values) > 1 and not values[1].lower().endswith(_SOUND_FILES) else ""
    words = table("ipa_leads").get(lead)
    variety = table("ipa_varieties").get(f"{template.name.partition('-')[2].lower()}-{lead}")
    if variety and page.lang in ("en", "simple"):
        words = f"{variety}: "
    if lead == "" and name and page.lang in ("en", "simple"):
        words = f"{link_to_language(name, page.lang)} pronunciation: "
    elif lead == "lang" and name:
        words = f"{link_to_language(name, page.lang)}: "
    if "label" in template.named:
        words = f"{template.named['label']} ".lstrip(" ")
    return f"{words if words is not None else ''}[{text}]"


def ipa(template: Template, page: PageFacts) -> str:
    """Returns the text of ``{{IPA|…}}``; with a language code first, ``{{IPA|fr|…}}``, in brackets after the
    language's name.
    """
    values = template.filled()
    if len(values) > 1 and values[0].lower() in language_names("en"):
        return foreign_ipa(Template(f"IPA-{values[0]}", tuple(values[1:]), template.named), page)
    return values[0] if values else ""


def respelling(template: Template, page: PageFacts) -> str:
    """Returns ``ə-GLEE-teez``: syllables joined by hyphens, words separated at ``_``."""
    text = ""
    for value in template.stripped():
        if value == "_":
            text = text.rstrip("-") + " "
        elif value:
            text += value + "-"
    return text.rstrip("-").strip()


def pronunciation(template: Template, page: PageFacts) -> str:
    """Returns the text of a pronunciation with a sound file, without the file name."""
    named = template.named
    text = template.argument(2) or named.get("ipa", "") or named.get("IPA", "")
    return text if not text.lower().endswith(_SOUND_FILES) else ""


def own_name(template: Template, page: PageFacts) -> str:
    """Returns the name of the template itself, followed by the arguments: ``{{1er|mai}}``, ``{{XIXe siècle}}``."""
    return NBSP.join([template.name, *template.filled()])


def french_century(template: Template, page: PageFacts, *, word: str = "siècle", before_christ: bool = False) -> str:
    """Returns ``XIXe siècle``, ``XVIIe et XVIIIe siècles``, ``XIe au XIIIe siècle``.

    Source: https://fr.wikipedia.org/wiki/Modèle:S and Modèle:S2-, Modèle:Sp-.
    """
    pieces: list[str] = []
    joints = 0
    for value in template.filled():
        if value in ("e", "er", "ère"):
            continue
        if value == "s":
            joints += 1
            continue
        if value.isalpha() and value.isupper() and set(value) <= set("IVXLC"):
            if pieces and pieces[-1] not in ("et", "au", "ou", "-", "à"):
                pieces.append("et")
                joints += 1
            pieces.append(value + ("er" if value == "I" else "e"))
        else:
            pieces.append(value)
    text = " ".join(pieces).replace(" - ", "-")
    if not word:
        return text
    ending = "s" if joints else ""
    christ = f" av.{NBSP}J.-C." if before_christ else ""
    return f"{text}{NBSP}{word}{ending}{christ}" if text else ""


def spanish_century(template: Template, page: PageFacts) -> str:
    """Returns ``siglo V a. C.`` for ``{{siglo|V|a|s}}``, and only the number for ``{{siglo|XX}}``.

    Source: https://es.wikipedia.org/wiki/Plantilla:Siglo
    """
    number, side, word = template.padded(3)[:3]
    word = {"s": "siglo", "ss": "siglos"}.get(word.lower(), "")
    side = {"a": f"a.{NBSP}C.", "d": f"d.{NBSP}C."}.get(side.lower(), "")
    return NBSP.join(filter(None, (word, number, side))) if number else ""


def hours(template: Template, page: PageFacts) -> str:
    """Returns ``18 h 30``, with seconds ``18 min 30 s``: ``{{heure|18|30}}``, ``{{durée|1|2|3}}``."""
    values = template.stripped()
    is_hour_and_minutes = [bool(value) for value in [*values, ""][:3]] == [True, True, False]
    units = ("h", "" if is_hour_and_minutes else "min", "s")
    pieces = (f"{value}{NBSP}{unit}".rstrip(NBSP) for value, unit in zip(values, units, strict=False) if value)
    return NBSP.join(pieces)


def inserted(template: Template, page: PageFacts) -> str:
    """Returns a phrase between dashes, without the closing dash at the end of the sentence: ``{{incise|…|stop}}``."""
    values = template.filled()
    if not values:
        return ""
    text = f"–{NBSP}{values[0]}"
    return text if len(values) > 1 and values[1].lower() in ("stop", "fin") else f"{text}{NBSP}–"


def in_language(
    template: Template,
    page: PageFacts,
    *,
    code: str = "",
    word: str = "en ",
    mark: str = " ",
    italic: bool = True,
    translit: bool = False,
) -> str:
    """Returns the language's name and the text: ``en allemand : Österreich``, ``englisch water``; with ``translit``,
    then its transliteration: ``in russo: Москва, Moskva``.
    """
    values = template.filled()
    if not code and template.name.startswith("Lang-"):
        code = template.name[5:]
    if not code and values:
        code, values = values[0], values[1:]
    name = language_names(page.lang).get(code.lower(), "")
    text = " ".join(values[:1])
    if not text and not word:
        return name
    if not name or not text:
        return text
    separator = f"{NBSP}: " if page.lang == "fr" else mark
    meaning = template.named.get("de", "") if page.lang == "de" else ""
    shown_text = text if "''" in text or not italic else f"''{text}''"
    if translit and (latin := template.argument(0, "translit", "tr") or "".join(values[1:2])):
        shown_text += f", {latin}" if "''" in latin else f", ''{latin}''"
    return f"{word}{name}{separator}{shown_text}{f' ‚{meaning}‘' if meaning else ''}"


def language_by_own_name(template: Template, page: PageFacts) -> str:
    """Returns a language's name and a text for a template whose name is the language code and a suffix:
    ``{{enS|water}}``.
    """
    return in_language(template, page, code=template.name[:-1].lower(), word="")


def work(template: Template, page: PageFacts) -> str:
    """Returns an entry of a list of works: title, year, comment."""
    named = template.named
    title = named.get("titre", "") or named.get("title", "") or template.argument(1)
    year = named.get("année", "") or named.get("year", "")
    text = f"{year} : {title}" if year and title else title or year
    comment = named.get("commentaire", "")
    return f"{text}. {comment}" if comment else text


def temperature(template: Template, page: PageFacts) -> str:
    """Returns ``0,85 °C`` from value and unit."""
    values = template.filled()
    if not values:
        return ""
    unit = values[1] if len(values) > 1 else "°C"
    return f"{format_number(values[0], page.lang)}{NBSP}{unit}"


def elevation(template: Template, page: PageFacts) -> str:
    """Returns ``2962 m ü. NHN`` from a height and the code of the reference level."""
    values = template.filled()
    if not values:
        return ""
    level = values[1].upper() if len(values) > 1 else ""
    words = {"DE": " ü. NHN", "DE-NN": " ü. NN", "DE-HN": " ü. HN", "AT": " ü. A.", "CH": " ü. M.", "IT": " s.l.m."}
    number = parse_number(values[0], page.lang)
    text = number.shown if number is not None and len(values[0]) > 4 else values[0]
    return f"{text}{NBSP}m{words.get(level) or words.get(level.partition('-')[0], '')}"


def invisible(template: Template, page: PageFacts) -> str | None:
    """Returns nothing, because these digits only align numbers in a column."""
    return None
