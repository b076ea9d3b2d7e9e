"""Pronunciations: IPA texts, the keys of {{IPAc-en}}, respelled syllables."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, stripped
from kbsource.wikitext.functions.foreign import language_names, link_to_language
from kbsource.wikitext.functions.measures.numbers import NBSP

_LEADS = {
    "lang": "",
    "pron": "pronounced ",
    "pronounced": "pronounced ",
    "local": "locally ",
    "ipa": "IPA: ",
    "also": "also ",
    "us": "US: ",
    "uk": "UK: ",
    "small": "",
    "generic": "",
    "only": "",
    "": "",
}


@cache
def _diaphonemes() -> dict[str, str]:
    """Gives the IPA of every key of {{IPAc-en}}: "sh" -> "ʃ"; keys that are IPA already stand for themselves."""
    text = resources.files("kbsource.wikitext").joinpath("rules/ipa.toml").read_text("utf-8")
    return dict(tomllib.loads(text)["keys"])


def english_ipa(template: Template, page: PageFacts) -> str:
    """Gives ``/ˌæləˈbæmə/``. Source: https://en.wikipedia.org/wiki/Template:IPAc-en"""
    keys = _diaphonemes()
    lead = ""
    sounds: list[str] = []
    for value in template.positional:
        key = value.strip()
        if not sounds and key.lower() in (
            "pron",
            "uk",
            "us",
            "lang",
            "local",
            "alsouk",
            "also",
            "ipa",
            "uklang",
            "uslang",
        ):
            lead += {"pron": "pronounced ", "uk": "UK: ", "us": "US: ", "also": "also ", "local": "locally "}.get(
                key.lower(), ""
            )
            continue
        sounds.append(" " if key == "_" or (not key and value) else keys.get(key, key))
    text = "".join(sounds).strip()
    return f"{lead}/{text}/" if text else lead.strip()


def foreign_ipa(template: Template, page: PageFacts, *, code: str = "") -> str:
    """Gives ``French pronunciation: [alɛ̃ kɔn]`` from ``{{IPA-fr|alɛ̃ kɔn}}``, or with the lead that is asked for."""
    values = stripped(template)
    code = code or template.name.partition("-")[2]
    name = language_names(page.lang).get(code.lower(), "")
    text = values[0] if values else ""
    if not text:
        return ""
    lead = values[1].lower() if len(values) > 1 else ""
    words = _LEADS.get(lead)
    if lead == "" and name and page.lang in ("en", "simple"):
        words = f"{link_to_language(name, page.lang)} pronunciation: "
    elif lead == "lang" and name:
        words = f"{link_to_language(name, page.lang)}: "
    return f"{words if words is not None else ''}[{text}]"


def ipa(template: Template, page: PageFacts) -> str:
    """Gives the text of ``{{IPA|…}}``; with a language code in front, ``{{IPA|fr|…}}``, in brackets behind the name."""
    values = filled(template)
    if len(values) > 1 and values[0].lower() in language_names("en"):
        return foreign_ipa(Template(f"IPA-{values[0]}", tuple(values[1:]), {}), page)
    return values[0] if values else ""


def respelling(template: Template, page: PageFacts) -> str:
    """Gives ``ə-GLEE-teez``: syllables joined with hyphens, words parted by ``_``."""
    text = ""
    for value in stripped(template):
        if value == "_":
            text = text.rstrip("-") + " "
        elif value:
            text += value + "-"
    return text.rstrip("-").strip()


def pronunciation(template: Template, page: PageFacts) -> str:
    """Gives the shown text of a pronunciation with a sound file, the name of the file left out."""
    named = template.named
    text = argument(template, 2) or named.get("ipa", "") or named.get("IPA", "")
    return text if not text.lower().endswith((".ogg", ".oga", ".wav", ".mp3")) else ""


def bracketed(template: Template, page: PageFacts, *, opening: str, closing: str) -> str:
    """Gives all arguments one behind the other between brackets: ``⟨a⟩``, ``[a]``, ``/a/``."""
    text = "".join(value for value in stripped(template) if value)
    return f"{opening}{text}{closing}" if text else ""


def pronounced(template: Template, page: PageFacts) -> str:
    """Gives ``pronounced [x]`` of one argument."""
    text = argument(template, 1)
    return f"pronounced{NBSP}[{text}]" if text else ""
