"""Finds identifiers of publications (DOI, ISBN, …) in text and in URLs, and reads the URLs of web archives.

Forms and check digits: https://www.doi.org/the-identifier/resources/handbook, ISO 2108 (ISBN), ISO 3297 (ISSN),
https://info.arxiv.org/help/arxiv_identifier.html, https://en.wikipedia.org/wiki/Help:Citation_Style_1#Identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from kbsource.wikitext.functions.arguments import read_rules

MAX_CHARS = 400
"""Number of characters of a text that are searched for identifiers. Every identifier is shorter than this."""
_HYPHEN = r"[- \u00a0\u2010-\u2015\u2212.]"
_HYPHENS = re.compile(_HYPHEN)
_NUMBER = re.compile(r"(?<![0-9])0*([1-9][0-9]{0,11})(?![0-9])")
# A DOI may contain paired brackets, such as <1661::AID-SIM968> (from a SICI) or [0223:TDOTA] (from the AMS).
_DOI_PART = r"[^\s\"<>\[\]{}|\x00-\x1f]|<(?=[0-9])[^\s\"<>{}|\x00-\x1f]*>|\[[^\s\"<>\[\]{}|\x00-\x1f]*\]"
# ISBNs from before 1970 have nine digits.
_FORMS: dict[str, re.Pattern[str]] = {
    "doi": re.compile(rf"10\.[0-9]{{4,9}}(?:\.[0-9]+)*(?:/|%2[Ff])(?:{_DOI_PART})+"),
    "isbn": re.compile(rf"(?<![0-9])(?:97[89]{_HYPHEN}?)?[0-9](?:{_HYPHEN}?[0-9]){{7,8}}{_HYPHEN}?[0-9Xx](?![0-9])"),
    "issn": re.compile(rf"(?<![0-9])[0-9]{{4}}{_HYPHEN}?[0-9]{{3}}[0-9Xx](?![0-9])"),
    "pmid": _NUMBER,
    "pmc": _NUMBER,
    "arxiv": re.compile(r"(?<![\w.])([A-Za-z-]{2,20}(?:\.[A-Z]{2})?/[0-9]{7}|[0-9]{4}\.[0-9]{4,5})(?:v[0-9]+)?(?!\w)"),
    "oclc": _NUMBER,
    "jstor": re.compile(r"\A(?:10\.[0-9]+/)?(?=[\w.]*[0-9])[\w.]+\Z"),
    "s2cid": _NUMBER,
    "bibcode": re.compile(r"(?<!\w)[12][0-9]{3}[\w.&]{14}[A-Z.:](?!\w)"),
    "hdl": re.compile(r"(?<![\w.])[0-9]{4}[\w.]*/[^\s\"<>\[\]{}|\x00-\x1f]+"),
}
SCHEMES = tuple(_FORMS)


def read_identifiers(scheme: str, text: str) -> tuple[list[str], list[str]]:
    """Returns the distinct identifiers of a scheme in a short text, in normal form and in order, and the faults found.

    In normal form, a DOI is in lower case without prefix, an ISBN has 13 digits, an ISSN has a hyphen, a number has no
    leading zeros, and an arXiv id has no version. The faults of ISBNs are ``isbn_check``, once for each wrong check
    digit, and ``isbn_form``, if there is no identifier or the text is too long to be read completely. Faults of other
    schemes are named likewise.

    >>> read_identifiers("isbn", "0-306-40615-2 (hbk), 0-306-40615-3")
    (['9780306406157'], ['isbn_check'])
    """
    normal = _NORMAL.get(scheme)
    found: list[str] = []
    wrong: list[str] = []
    for match in _FORMS[scheme].finditer(text[:MAX_CHARS].strip()):
        written = match[match.re.groups and 1]
        identifier = normal(written) if normal else written
        if identifier is None:
            wrong.append(f"{scheme}_check")
        elif identifier not in found:
            found.append(identifier)
    if len(text) > MAX_CHARS or not (found or wrong):
        wrong.append(f"{scheme}_form")
    return found, wrong


def _isbn(written: str) -> str | None:
    digits = _HYPHENS.sub("", written).upper()
    if len(digits) == 13:
        return digits if digits[-1] == _thirteenth(digits) else None
    digits = digits.zfill(10)
    if len(digits) > 10 or _sum_down(digits) % 11:
        return None
    return f"978{digits[:9]}{_thirteenth('978' + digits)}"


def _thirteenth(digits: str) -> str:
    """Returns the check digit of an ISBN-13 from its first twelve digits."""
    return str(-sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits[:12])) % 10)


def _sum_down(signs: str) -> int:
    """Returns the weighted sum of digits, where X is ten. The last digit has the weight 1, the one before it 2, and so
    on. The sum of a valid ISBN-10 or ISSN is a multiple of 11.
    """
    return sum((10 if sign == "X" else int(sign)) * (len(signs) - place) for place, sign in enumerate(signs))


def _issn(written: str) -> str | None:
    signs = _HYPHENS.sub("", written).upper()
    return None if _sum_down(signs) % 11 else f"{signs[:4]}-{signs[4:]}"


def _doi(written: str) -> str:
    doi = unquote(written).rstrip(".,;:'\u2019\u201d").lower()
    return doi if "(" in doi else doi.rstrip(")")


_NORMAL: dict[str, Callable[[str], str | None]] = {"isbn": _isbn, "issn": _issn, "doi": _doi}
_NAMED = re.compile(rf"\b((?ai:{'|'.join(SCHEMES)}))(?:-1[03])?(?:[:=|][\s\u00a0]?|[\s\u00a0])")
_UNNAMED = re.compile(r"[|{}<>\[\]\n]")
_NO_DOI = re.compile(r"[|{}\s]")
_LONGEST_ISBN = 24  # in characters, with hyphens and the separators between name and number


def identifiers_in(text: str) -> dict[str, str]:
    """Returns the first identifier of each scheme that a text names (``PMID 123``, ``{{doi|10.1/x}}``), by scheme.

    >>> identifiers_in("pp. 3-9, ISBN 0-306-40615-2, {{doi|10.1000/182}}")
    {'isbn': '9780306406157', 'doi': '10.1000/182'}
    """
    named: dict[str, str] = {}
    for match in _NAMED.finditer(text):
        scheme = match[1].lower()
        end = _NO_DOI if scheme == "doi" else _UNNAMED
        behind = end.split(text[match.end() : match.end() + MAX_CHARS], maxsplit=1)[0]
        behind = behind[:_LONGEST_ISBN] if scheme == "isbn" else "".join(behind.split(maxsplit=1)[:1])
        if scheme not in named and (found := read_identifiers(scheme, behind)[0]):
            named[scheme] = found[0]
    return named


@cache
def citation_rules() -> dict[str, Any]:
    """Returns the rules in ``rules/citations.toml``."""
    return read_rules("citations")


@cache
def _addresses() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Returns the pattern of the URLs that end in an identifier, with one group per scheme, and the pattern of the URLs
    of web archives.
    """
    rules = citation_rules()
    prefixes = "|".join(f"(?P<{scheme}>{form})" for scheme, form in rules["addresses"].items())
    archives = "|".join(rules["archives"]["forms"])
    return re.compile(rf"(?i)(?:https?:)?//(?:{prefixes})"), re.compile(rf"(?i)(?:https?:)?//(?:{archives})")


def identifiers_of_address(url: str) -> dict[str, str]:
    """Returns the identifier in a URL (``https://doi.org/10.1/x``) by scheme; empty if there is none."""
    match = _addresses()[0].match(url)
    if match is None or (scheme := match.lastgroup) is None:
        return {}
    found = read_identifiers(scheme, url[match.end() :].partition("?")[0].partition("#")[0])[0]
    return {scheme: found[0]} if found else {}


class ArchiveAddress(NamedTuple):
    """The information in the URL of a copy in a web archive."""

    url: str | None  #: URL of the original; None if the copy's URL does not contain it
    date: str | None  #: ISO date of the copy; None if its URL does not contain it


def read_archive_address(url: str) -> ArchiveAddress | None:
    """Returns the information in the URL of a copy in a web archive; None for other URLs.

    >>> read_archive_address("https://web.archive.org/web/20200102030405/http://example.org/")
    ArchiveAddress(url='http://example.org/', date='2020-01-02')
    """
    match = _addresses()[1].match(url)
    if match is None:
        return None
    stamp = (match["wayback"] or match["today"] or "").replace(".", "")
    date = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}" if len(stamp) >= 8 else None
    source = url[match.end() :] if match["code"] is None else ""
    source = unquote(source) if match["query"] is not None else source
    return ArchiveAddress((source if "//" in source[:10] else f"http://{source}") if source else None, date)
