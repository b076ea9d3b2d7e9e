"""Identifiers of publications in normal form, in text and in addresses, and addresses of archives.

Forms and check digits: https://www.doi.org/the-identifier/resources/handbook, ISO 2108 (ISBN), ISO 3297 (ISSN),
https://info.arxiv.org/help/arxiv_identifier.html, https://en.wikipedia.org/wiki/Help:Citation_Style_1#Identifiers;
addresses: https://en.wikipedia.org/wiki/Help:Archiving_a_source. As of 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

_LONGEST = 400  # characters; no identifier is longer with what may stand around it
_HYPHEN = r"[- \u00a0\u2010-\u2015\u2212.]"
_NOT_A_SIGN = re.compile(f"{_HYPHEN}+")
_ISBN = re.compile(rf"(?<!\d)(?:97[89]{_HYPHEN}?)?\d(?:{_HYPHEN}?\d){{8}}{_HYPHEN}?[\dXx](?!\d)")
_SBN = re.compile(rf"(?<!\d)\d(?:{_HYPHEN}?\d){{7}}{_HYPHEN}?[\dXx](?!\d)")  # ISBN of nine digits, before 1970
_ISSN = re.compile(rf"(?<!\d)\d{{4}}{_HYPHEN}?\d{{3}}[\dXx](?!\d)")
_DOI = re.compile(r"10\.\d{4,9}(?:\.\d+)*/[^\s\"<>\[\]{}|\x00-\x1f]+")
_ARXIV = re.compile(r"(?<![\w.])([A-Za-z-]{2,20}(?:\.[A-Z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?(?!\w)")
_NUMBER = re.compile(r"(?<!\d)0*([1-9]\d{0,11})(?!\d)")
_JSTOR = re.compile(r"(?:10\.\d+/)?[\w.]+")
_BIBCODE = re.compile(r"(?<!\w)[12]\d{3}[\w.&]{14}[A-Z.:](?!\w)")
_HANDLE = re.compile(r"(?<![\w.])\d[\w.]*/[^\s\"<>\[\]{}|\x00-\x1f]+")


class IdentifierError(ValueError):
    """A text holds no identifier of the scheme; the reason is ``form``, or ``check`` for a wrong check digit."""


def read_identifier(scheme: str, text: str) -> str:
    """The first identifier of a scheme (a key of ``SCHEMES``) in a text, in normal form.

    >>> read_identifier("isbn", "ISBN 0-306-40615-2"), read_identifier("doi", "https://doi.org/10.1000/ABC")
    ('9780306406157', '10.1000/abc')

    Raises:
        IdentifierError: There is none, or its check digit is wrong.
    """
    return SCHEMES[scheme](text[:_LONGEST].strip())


def _found(form: re.Pattern[str], text: str) -> str:
    found = form.search(text)
    if found is None:
        raise IdentifierError("form")
    return found[found.re.groups and 1]


def _isbn(text: str) -> str:
    found = _ISBN.search(text) or _SBN.search(text)
    digits = _NOT_A_SIGN.sub("", found[0]).upper() if found else ""
    if not digits:
        raise IdentifierError("form")
    if len(digits) == 13:
        if digits[-1] != _last_of_13(digits):
            raise IdentifierError("check")
        return digits
    digits = digits.zfill(10)
    if sum(weight * _value(sign) for weight, sign in zip(range(10, 0, -1), digits, strict=True)) % 11:
        raise IdentifierError("check")
    return f"978{digits[:9]}{_last_of_13('978' + digits)}"


def _last_of_13(digits: str) -> str:
    """The thirteenth digit, by the twelve before it."""
    return str(-sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits[:12])) % 10)


def _value(sign: str) -> int:
    return 10 if sign == "X" else int(sign)


def _issn(text: str) -> str:
    signs = _NOT_A_SIGN.sub("", _found(_ISSN, text)).upper()
    if sum(weight * _value(sign) for weight, sign in zip(range(8, 0, -1), signs, strict=True)) % 11:
        raise IdentifierError("check")
    return f"{signs[:4]}-{signs[4:]}"


def _doi(text: str) -> str:
    doi = _found(_DOI, unquote(text) if "%" in text else text).rstrip(".,;:'\u2019\u201d").lower()
    return doi.rstrip(")") if "(" not in doi else doi


def _whole(form: re.Pattern[str]) -> Callable[[str], str]:
    """What reads a text that is the identifier and nothing else."""

    def read(text: str) -> str:
        if not form.fullmatch(text):
            raise IdentifierError("form")
        return text

    return read


def _first(form: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: _found(form, text)


SCHEMES: dict[str, Callable[[str], str]] = {
    "doi": _doi,
    "isbn": _isbn,
    "issn": _issn,
    "pmid": _first(_NUMBER),
    "pmc": _first(_NUMBER),
    "arxiv": _first(_ARXIV),
    "oclc": _first(_NUMBER),
    "jstor": _whole(_JSTOR),
    "s2cid": _first(_NUMBER),
    "bibcode": _first(_BIBCODE),
    "hdl": _first(_HANDLE),
}
"""What reads an identifier out of a short text, by scheme: DOI in lower case without prefix, ISBN as 13 digits, ISSN
with its hyphen, numbers without leading zeros, arXiv without version."""

_NAMED = re.compile(
    r"(?i)\b(doi|isbn|issn|pmid|pmc|arxiv|oclc|jstor|s2cid|bibcode|hdl)(?:-1[03])?(?:[:=|][\s\u00a0]?|[\s\u00a0])"
)
_UNNAMED = re.compile(r"[|{}<>\[\]\n]")
_LONGEST_ISBN = 24  # characters, with hyphens and what stands between the name and the number
_IN_ADDRESS = re.compile(
    r"(?i)https?://(?:www\.|dx\.)?(?:(?P<doi>doi\.org)/|(?P<arxiv>arxiv\.org)/(?:abs|pdf)/"
    r"|(?P<pmid>(?:www\.)?ncbi\.nlm\.nih\.gov/pubmed|pubmed\.ncbi\.nlm\.nih\.gov)/"
    r"|(?P<pmc>(?:www\.)?ncbi\.nlm\.nih\.gov/pmc/articles|pmc\.ncbi\.nlm\.nih\.gov/articles)/(?:PMC)?"
    r"|(?P<jstor>jstor\.org/stable)/|(?P<hdl>hdl\.handle\.net)/|(?P<oclc>worldcat\.org/oclc)/"
    r"|(?P<s2cid>api\.semanticscholar\.org)/CorpusID:)(?P<id>[^?#]+)"
)


def isbns_in(text: str) -> tuple[str, ...]:
    """The different ISBN of a short text, in order; those with a wrong check digit are none."""
    found: dict[str, None] = {}
    for match in _ISBN.finditer(text[:_LONGEST]):
        named: dict[str, str] = {}
        _keep(named, "isbn", match[0])
        found.update(dict.fromkeys(named.values()))
    return tuple(found)


def identifiers_in(text: str) -> dict[str, str]:
    """The identifiers that a text names (``PMID 123``, ``{{doi|10.1/x}}``), by scheme; the first of each.

    >>> identifiers_in("pp. 3-9, ISBN 0-306-40615-2, {{doi|10.1000/182}}")
    {'isbn': '9780306406157', 'doi': '10.1000/182'}
    """
    found: dict[str, str] = {}
    for match in _NAMED.finditer(text):
        behind = _UNNAMED.split(text[match.end() : match.end() + _LONGEST], maxsplit=1)[0]
        scheme = match[1].lower()
        _keep(found, scheme, behind[:_LONGEST_ISBN] if scheme == "isbn" else "".join(behind.split(maxsplit=1)[:1]))
    return found


def identifiers_of_address(url: str) -> dict[str, str]:
    """The identifier that an address holds (``https://doi.org/10.1/x``), by scheme; at most one."""
    found: dict[str, str] = {}
    match = _IN_ADDRESS.match(url)
    if match is not None:
        _keep(found, next(scheme for scheme in SCHEMES if scheme in match.re.groupindex and match[scheme]), match["id"])
    return found


def _keep(found: dict[str, str], scheme: str, text: str) -> None:
    """Adds an identifier that stands in running text; what is none there is nothing that anybody claimed."""
    if scheme not in found:
        try:
            found[scheme] = read_identifier(scheme, text)
        except IdentifierError:
            return


class Archived(NamedTuple):
    """What an address of an archive says."""

    url: str | None  #: the address that was archived; None where it does not say
    date: str | None  #: ISO day of the copy; None where it does not say


_ARCHIVES = re.compile(
    r"(?i)(?:https?:)?//(?:"
    r"(?:[\w-]+\.)?archive\.org/(?:web/)?(?P<wayback>\d{4,14})\d*(?:[a-z]{2}_)?\*?/"
    r"|archive\.(?:today|is|ph|li|vn|fo|md)/(?:(?P<today>\d{4}\.?\d\d\.?\d\d)[-\d]*/|(?P<code>\w{4,6}(?:[?#/]|$))|(?P<newest>newest|o/\w+)/)"
    r"|(?:www\.)?webcitation\.org/(?P<webcite>\w+)(?:\?url=)?"
    r"|(?:www\.)?(?:perma\.cc|ghostarchive\.org/archive|megalodon\.jp)/(?P<other>.)"
    r"|archive\.wikiwix\.com/cache/(?:index2?\.php)?\?url=(?P<wikiwix>))"
)


def read_archive_address(url: str) -> Archived | None:
    """What an address says of a copy in a web archive; None where it leads to none.

    >>> read_archive_address("https://web.archive.org/web/20200102030405/http://example.org/")
    Archived(url='http://example.org/', date='2020-01-02')
    """
    match = _ARCHIVES.match(url)
    if match is None:
        return None
    rest = url[match.end() :]
    if match["wikiwix"] is not None or match["webcite"]:
        rest = unquote(rest)
    stamp = (match["wayback"] or match["today"] or "").replace(".", "")
    date = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}" if len(stamp) >= 8 else None
    if match["code"] or match["other"] or not rest:
        return Archived(None, date)
    return Archived(rest if "//" in rest[:10] else f"http://{rest}", date)
