"""Third step: HTML tags and character references. Tags leave, their content stays; tables become wikitext tables.

Source: https://www.mediawiki.org/wiki/Help:HTML_in_wikitext (the tags that MediaWiki lets through).
"""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import lru_cache

from kbsource.wikitext.functions.measures.numbers import raise_text
from kbsource.wikitext.markers import CUT, LITERAL_OF, unliteral

MAX_LIST_DEPTH = 100
"""Lists within lists go no deeper in a release: what is deeper stands at this depth."""

_INLINE = frozenset(
    """abbr b bdi bdo big cite code data del dfn em font i ins kbd mark q rb rbc rp rt rtc ruby s samp small span
    strike strong sub sup time tt u var wbr link meta tvar""".split()
)
_BLOCK = frozenset("p div center blockquote ul ol dl section article aside figure figcaption caption_".split())
_TABLE = {"table": "\n{|", "tr": "\n|-", "caption": "\n|+", "td": "\n|", "th": "\n!"}
_DROPPED_TABLE_PARTS = frozenset({"tbody", "thead", "tfoot", "colgroup", "col"})

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s[^<>]*)?)(?:/\s*)?>")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?\s*(\d+)", re.IGNORECASE)
# What is raised, but for what holds another one; a note of more characters is no exponent.
_RAISED = re.compile(r"<sup(?:\s[^<>]*)?>((?:[^<>\n]|<(?!/?sup[\s>])[^<>\n]*>){1,60})</sup\s*>", re.IGNORECASE)
_BASE_ENDS = frozenset(")]}'>")
_GREEK = re.compile("[\u0370-\u03ff]")
_INNER_TAG = re.compile(r"<[^<>]*>")
# Words that are set small and high and read on the line: ordinals and abbreviations of several languages.
_HIGH_WORDS = frozenset(
    """st nd rd th d er re ere ère e eme ème es o os a as c r rs t te me mes lle lles gr tm sm""".split()
)
_AMPERSAND = LITERAL_OF["&"]
_LESS_THAN = LITERAL_OF["<"]


def replace_tags(text: str, losses: Counter[str]) -> str:
    """Gives the text without HTML tags; ``<`` that opens no known tag becomes a plain character.

    Inline tags leave a neutral marker, block tags a paragraph break, ``<br>`` a space, ``<li>`` a list line,
    ``<h2>`` a heading line, and HTML tables become the same table in wikitext.
    """
    if "<" not in text:
        return text
    if "</sup" in text or "</SUP" in text:
        text = _RAISED.sub(_raised, text)
    list_markers: list[str] = []

    def replace(match: re.Match[str]) -> str:
        closing, name, attributes = match.groups()
        name = name.lower()
        if name in _INLINE:
            return CUT
        if name == "br":
            return " "
        if name in ("ul", "ol"):
            if closing:
                del list_markers[-1:]
            else:
                list_markers.append("*" if name == "ul" else "#")
            return "\n"
        if name in _BLOCK:
            return "\n\n"
        if name == "hr":
            return "\n----\n"
        if name in ("li", "dt", "dd"):
            if closing:
                return "\n"
            marker = {"dt": ";", "dd": ":"}.get(name) or "".join(list_markers[:MAX_LIST_DEPTH]) or "*"
            return f"\n{marker} "
        if len(name) == 2 and name[0] in "hH" and name[1] in "123456":
            marks = "=" * int(name[1])
            return f" {marks}\n" if closing else f"\n{marks} "
        if name in _TABLE:
            if closing:
                return "\n|}\n" if name == "table" else ""
            if name == "table":
                losses["html_table"] += 1
                return "\n{|\n"
            spans = " ".join(f"{key}={value}" for key, value in _SPAN.findall(attributes))
            return _TABLE[name] + (f" {spans} | " if spans else " ") if name != "tr" else "\n|-\n"
        if name in _DROPPED_TABLE_PARTS:
            return ""
        return _LESS_THAN + match.group()[1:]

    return _TAG.sub(replace, text).replace("<", _LESS_THAN)


def _raised(match: re.Match[str]) -> str:
    """Gives what is raised as superscript characters, or as ``^(…)``, so that 10<sup>18</sup> does not read 1018.

    Words stay: 19<sup>th</sup>; so does what holds links, templates or no letter or digit: marks of notes.
    """
    content, start = match[1], match.start()
    before = match.string[start - 1 : start]
    shown = _INNER_TAG.sub("", content)
    plain = unliteral(html.unescape(shown)).replace("''", "").replace("\u2013", "-").strip()
    if not plain or plain.casefold() in _HIGH_WORDS or any(mark in plain for mark in "[]{}|"):
        return match.group()
    raised = raise_text("".join(plain.split()))
    if raised != plain:
        return raised
    is_word = len(plain) > 1 and plain.isalpha() and (plain.isascii() or not before.isdigit())
    if (is_word and not _GREEK.search(plain)) or not any(map(str.isalnum, plain)):
        return match.group()
    return f"^({shown.strip()})" if before.isalnum() or before in _BASE_ENDS else match.group()


def decode_references(text: str) -> str:
    """Gives the text with character references decoded, once; what they stand for is never taken for markup.

    No-break spaces become plain spaces: they are shown alike, and evidence is found by its words.
    """
    if "&" not in text:
        return text
    return _REFERENCE.sub(lambda match: _decode(match[0]), text).replace("&", _AMPERSAND)


@lru_cache(maxsize=1 << 12)
def _decode(reference: str) -> str:
    decoded = html.unescape(reference)
    if decoded == reference:
        return _AMPERSAND + reference[1:]
    if decoded in "\u00a0\n\t":
        return " "
    if len(decoded) == 1:
        if decoded in LITERAL_OF:
            return LITERAL_OF[decoded]
        if decoded < " ":
            return ""
        return decoded
    if decoded.endswith(";"):  # &notin-like prefixes that html.unescape takes without their semicolon
        return _AMPERSAND + reference[1:]
    return decoded
