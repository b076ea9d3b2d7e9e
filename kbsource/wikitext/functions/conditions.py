"""Parser functions and magic words: choices, letter case, strings, names of the page.

Arguments are already expanded, except in choices, which expand only the arguments they use.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions and Help:Magic_words.
"""

from __future__ import annotations

import html
import re
import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from kbsource.numerals import read_int, unescape
from kbsource.site import CANONICAL_NAMESPACES, Site
from kbsource.titles import split_namespace
from kbsource.wikitext.functions.arguments import PageFacts, Template, read_rules
from kbsource.wikitext.functions.inflection import inflect, plural_form
from kbsource.wikitext.functions.numbers import expression_value, number_text
from kbsource.wikitext.markers import BLANKS, CUT, TEMPLATE_LINK, literal, without_marks
from kbsource.wikitext.tags import is_opaque_tag, strip_extensions

_TAG_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_QUOTED = re.compile(r"([\"'])(.*)\1", re.DOTALL)
_LONGEST_REPLACED = 1000  # $wgPFStringLengthLimit of the extension
_LONGEST_PADDING = 500  # MediaWiki's own limit
_LIST_SIGNS = ("*", "#", ":", ";")
_MOST_PARTS = 25  # of a title; also MediaWiki's limit
_LONGEST_NUMBER = 6  # digits of a namespace number, with the sign


ERROR = '<strong class="error">!</strong>'
"""Replaces an error message: ``#iferror`` detects it, and readers do not see it."""

Parts = Sequence[tuple[Any, Any]]
"""Name (None if unnamed) and value of every argument but the first, in the form that ``Read`` expands."""
Read = Callable[[Any], str]

_NUMERIC = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LONGEST_INTEGER = 18  # number of digits that PHP compares digit by digit
_ERROR_TAG = re.compile(r"""<(?:strong|span|p|div)\s[^<>]*?class=["']?(?:[^"'<>]*\s)?error["'\s>]""", re.IGNORECASE)


_REFERENCE = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_WHITE_SPACE = " \t\n\r\0\x0b"  # white space that PHP strips; a no-break space is not included


def _decoded(reference: re.Match[str]) -> str:
    return unescape(reference[0])


def is_error(text: str) -> bool:
    """Returns whether a text contains an error message, as ``#iferror`` detects it."""
    return ERROR in text or ("error" in text and _ERROR_TAG.search(text) is not None)


def is_same(first: str, second: str) -> bool:
    """Returns whether two texts are equal, as numbers or as text, with character references decoded."""
    if first == second:
        return True
    if "&" in first or "&" in second:
        first, second = (_REFERENCE.sub(_decoded, text).strip(_WHITE_SPACE) for text in (first, second))
        if first == second:
            return True
    if not (_NUMERIC.fullmatch(first) and _NUMERIC.fullmatch(second)):
        return False
    if max(len(first), len(second)) <= _LONGEST_INTEGER and first.isdecimal() and second.isdecimal():
        return int(first) == int(second)
    return float(first) == float(second)


def stripped_argument(parts: Parts, number: int, read: Read) -> str:
    """Returns an argument with its name, stripped; empty if missing."""
    if number >= len(parts):
        return ""
    key, value = parts[number]
    return (read(value) if key is None else f"{read(key)}={read(value)}").strip(BLANKS)


def if_filled(first: str, parts: Parts, read: Read) -> str:
    """Returns the second argument if the first is not empty, else the third."""
    return stripped_argument(parts, 0 if first else 1, read)


def if_equal(first: str, parts: Parts, read: Read) -> str:
    """Returns the third argument if the first two are equal, as numbers or as text, else the fourth."""
    return stripped_argument(parts, 1 if is_same(first, stripped_argument(parts, 0, read)) else 2, read)


def if_expression(first: str, parts: Parts, read: Read) -> str:
    """Returns the second argument if the expression is true, else the third; an error if it is not an expression."""
    value = expression_value(first) if first else 0.0
    return ERROR if value is None else stripped_argument(parts, 0 if value else 1, read)


def if_error(first: str, parts: Parts, read: Read) -> str:
    """Returns the second argument if the first contains an error message. Otherwise returns the third, or the first if
    there is no third."""
    if is_error(first):
        return stripped_argument(parts, 0, read)
    return stripped_argument(parts, 1, read) if len(parts) > 1 else first


@cache
def _default_words() -> frozenset[str]:
    return frozenset(read_rules("magic")["default_words"])


def switch(first: str, parts: Parts, read: Read) -> str:
    """Returns the value of the case that equals the first argument, falling through cases without a value."""
    is_found = is_default = False
    default_words = _default_words()
    default: Any = None
    last = ""
    for key, value in parts:
        if key is None:
            last = read(value).strip(BLANKS)
            is_found = is_found or is_same(last, first)
            is_default = is_default or last.casefold() in default_words
            continue
        name = read(key).strip(BLANKS)
        if is_found or is_same(name, first):
            return read(value).strip(BLANKS)
        if is_default or name.casefold() in default_words:
            default = value
            is_default = False
    if parts and parts[-1][0] is None and last.casefold() not in default_words:
        return last
    return read(default).strip(BLANKS) if default is not None else ""


CHOICES: dict[str, Callable[[str, Parts, Read], str]] = {
    "#if": if_filled,
    "#ifeq": if_equal,
    "#ifexpr": if_expression,
    "#iferror": if_error,
    "#switch": switch,
}
"""Choices by canonical name; each receives its stripped first argument, the others, and a function that expands one."""


def choice(template: Template, page: PageFacts) -> str:
    """Returns the argument selected by a parser function such as ``#if``, whose arguments are already expanded."""
    first, *others = template.positional or ("",)
    return CHOICES[template.name](first.strip(BLANKS), [_named(value) for value in others], str)


def _named(argument: str) -> tuple[str | None, str]:
    name, equals, value = argument.partition("=")
    return (name, value) if equals else (None, argument)


def if_exists(template: Template, page: PageFacts) -> str:
    """Returns the second argument if the page exists, which is assumed if it is unknown; else the third."""
    values = template.padded(3)
    is_there = bool(values[0]) and (page.exists is None or page.exists(values[0]))
    return values[1] if is_there else values[2]


def expression(template: Template, page: PageFacts) -> str:
    """Returns the value of an expression; an error if it is not an expression."""
    text = template.argument(1)
    value = expression_value(text)
    return number_text(value) if value is not None else ERROR if text else ""


def pad(template: Template, page: PageFacts, *, left: bool) -> str:
    """Returns the argument padded to a length with zeros or another text."""
    values = template.padded(3)
    text, filler = values[0], without_marks(values[2]) or "0"
    wanted = min(read_int(values[1]) or 0, _LONGEST_PADDING)
    missing = wanted - len(text)
    if missing <= 0:
        return text
    padding = (filler * (missing // len(filler) + 1))[:missing]
    return padding + text if left else text + padding


def plural(template: Template, page: PageFacts) -> str:
    """Returns the form of a word for a number: ``{{plural:2|год|года|лет}}``."""
    values = template.padded(1)
    return plural_form(values[0], values[1 : len(template.positional)], page.lang)


def tag(template: Template, page: PageFacts) -> str | None:
    """Returns the text that MediaWiki shows for a tag with this content and these attributes,
    ``{{#tag:poem|a|lang=en}}``; None if it shows nothing.

    Source: CoreParserFunctions::tagObj of MediaWiki 1.39.
    """
    name = template.name.partition(":")[2].strip().lower()
    content, *others = template.positional or ("",)
    if not _TAG_NAME.fullmatch(name):
        return f"{literal(f'<{name}>')}{content}{literal(f'</{name}>')}"
    attributes = "".join(_attribute(*argument.partition("=")) for argument in others)
    if is_opaque_tag(name):  # links in it are not links
        content = content.replace(f"[[{TEMPLATE_LINK}", "[[")
    end = "/>" if not template.positional else f">{content}</{name}>"
    left = strip_extensions(f"<{name}{attributes}{end}", Counter())
    return left if left.strip(CUT) else None


def _attribute(name: str, equals: str, value: str) -> str:
    """Returns an attribute as written in a tag, without quotation marks around its value."""
    name, value = name.strip(), value.strip()
    if not equals or not name or any(sign in name for sign in "\"'<>/= \t\n"):
        return ""
    quoted = _QUOTED.fullmatch(value)
    return f' {name}="{html.escape(quoted[2] if quoted else value)}"'


def page_name(template: Template, page: PageFacts, *, part: str = "page", is_encoded: bool = False) -> str:
    """Returns the title of the page, or of the page named by the argument, or a part of it.

    ``part``: ``page`` is the title without its namespace, ``full`` with it; ``root``, ``base`` and ``sub`` are parts of
    its path; ``talk`` and ``subject`` are the corresponding pages.
    """
    number, name = split_namespace(template.argument(1).replace("_", " ") or page.title, page.site)
    if part == "root":
        name = name.partition("/")[0]
    elif part == "sub":
        name = name.rpartition("/")[2]
    elif part == "base":
        name = name.rpartition("/")[0] or name
    elif part != "page":
        prefix = namespace_text(_relative(number, part), page.site)
        name = f"{prefix}:{name}" if prefix else name
    if is_encoded:
        name = _encoded(name)
    name = name.replace("''", "&#39;&#39;") if "''" in name else name  # prevents it from being read as markup
    return f"&#{ord(name[0])};{name[1:]}" if name[:1] in _LIST_SIGNS else name


def namespace_of_page(template: Template, page: PageFacts, *, part: str = "full", is_encoded: bool = False) -> str:
    """Returns the namespace of a title (default: this page), or of the corresponding talk or subject page."""
    number = split_namespace(template.argument(1).replace("_", " ") or page.title, page.site)[0]
    if part == "number":
        return str(number)
    name = namespace_text(_relative(number, part), page.site)
    return _encoded(name) if is_encoded else name


def namespace_name(template: Template, page: PageFacts, *, is_encoded: bool = False) -> str:
    """Returns the name of a namespace from its number or one of its names; another text is returned as it is."""
    written = template.argument(1)
    plain = written.replace("_", " ").casefold()
    number = read_int(written)
    number = page.site.namespace_by_name.get(plain) if number is None else number
    if number is None:
        return written
    name = namespace_text(number, page.site)
    return _encoded(name) if is_encoded else name


def namespace_text(number: int, site: Site) -> str:
    """Returns the wiki's own name of a namespace; empty if unknown."""
    return site.namespaces.get(number) or CANONICAL_NAMESPACES.get(number, ("",))[0]


def _relative(number: int, part: str) -> int:
    """Returns the number of the corresponding talk or subject namespace."""
    if number < 0:
        return number
    return number | 1 if part == "talk" else number & ~1 if part == "subject" else number


def _encoded(title: str) -> str:
    return urllib.parse.quote(title.replace(" ", "_"), safe="/:(),!*'@;~$-._")


def fact_of_site(template: Template, page: PageFacts, *, fact: str) -> str:
    """Returns a fact about the wiki: ``name``, ``server``, ``host`` or ``lang``."""
    site = page.site
    server = f"{'http:' if site.base_url.startswith('http:') else ''}//{site.host}"
    return {"name": site.name or "Wikipedia", "server": server, "host": site.host, "lang": page.lang}[fact]


def page_address(template: Template, page: PageFacts, *, is_local: bool = False) -> str:
    """Returns the address of a page with its query, ``{{fullurl:X|action=edit}}``; a local address begins after the
    host.
    """
    values = template.padded(2)
    title = _encoded(values[0])
    path = f"/w/index.php?title={title}&{values[1]}" if values[1] else f"/wiki/{title}"
    return path if is_local else f"//{page.site.host}{path}"


def url_encoded(template: Template, page: PageFacts) -> str:
    """Returns the argument with percent escapes."""
    style = template.argument(2).upper()
    text = without_marks(template.argument(1))
    if style == "WIKI":
        return _encoded(text)
    return urllib.parse.quote(text, safe="") if style == "PATH" else urllib.parse.quote_plus(text)


def replaced(template: Template, page: PageFacts) -> str:
    """Returns the first argument with the second replaced by the third."""
    values = [*template.positional, "", "", ""]
    if max(map(len, values)) > _LONGEST_REPLACED:
        return values[0].strip()
    return values[0].strip().replace(values[1] or " ", values[2])


def part_of_text(template: Template, page: PageFacts) -> str:
    """Returns a part of a text by start and length: ``{{#sub:text|2|3}}``; negative numbers count from the end."""
    values = template.padded(3)
    text = values[0]
    start, size = (read_int(value) or 0 for value in values[1:3])
    return text[start:][: size or None]


def place_of_text(template: Template, page: PageFacts) -> str:
    """Returns where the second text is in the first, from an offset on: ``{{#pos:abcabc|c|4}}``; empty if not found."""
    text, wanted, start = _searched(template)
    place = text.find(wanted, max(start, 0)) if start is not None and start <= len(text) else -1
    return str(place) if place >= 0 else ""


def last_place_of_text(template: Template, page: PageFacts) -> str:
    """Returns the last position of the second text in the first; -1 if not found."""
    text, wanted, _ = _searched(template)
    return str(text.rfind(wanted))


def count_of_text(template: Template, page: PageFacts) -> str:
    """Returns the number of occurrences of the second text in the first."""
    text, wanted, _ = _searched(template)
    return str(text.count(wanted))


def exploded(template: Template, page: PageFacts) -> str:
    """Returns one of the parts into which a separator divides a text: ``{{#explode:a-b-c|-|1}}``; negative numbers
    count from the end.
    """
    text, separator, number = _searched(template)
    limit = read_int(template.argument(4)) or 0
    pieces = text.split(separator, limit - 1 if limit > 0 else -1)
    return pieces[number] if number is not None and -len(pieces) <= number < len(pieces) else ""


def _searched(template: Template) -> tuple[str, str, int | None]:
    """Returns a text, the text to search for (a space by default), and a number (None if it is not a number)."""
    text, wanted, number = template.padded(3)[:3]
    if max(len(text), len(wanted)) > _LONGEST_REPLACED:
        return "", " ", 0
    return text, wanted or " ", read_int(number or "0")


def title_parts(template: Template, page: PageFacts) -> str:
    """Returns some of the parts of a title between its slashes: ``{{#titleparts:A/B/C|2|1}}``; the last may contain
    slashes.
    """
    values = template.padded(3)
    parts = values[0].split("/", _MOST_PARTS - 1)
    count, first = (read_int(value) or 0 for value in values[1:3])
    return "/".join(parts[first - (first > 0) :][: count or None])


def grammar(template: Template, page: PageFacts) -> str:
    """Returns the word of ``{{grammar:case|word}}`` in that case, if there is a rule for it."""
    return inflect(template.argument(2), template.argument(1), page.lang)


def gendered(template: Template, page: PageFacts) -> str:
    """Returns the form of ``{{gender:user|he|she|they}}`` for an unknown person: the third, else the first."""
    return template.argument(4 if len(template.positional) > 3 else 2)
