"""A use of a citation template, or a link to a source, as fields: pure functions over ``rules/citations.toml``.

That file says by language which templates cite what, and which of their parameters fills which slot; its head says how.
Here stands what is the same in all languages: how slots become fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple

from kbsource.numerals import unescape
from kbsource.rows import Row
from kbsource.wikitext.functions.arguments import read_rules
from kbsource.wikitext.functions.foreign import language_names, language_nouns
from kbsource.wikitext.identifiers import (
    SCHEMES,
    IdentifierError,
    identifiers_in,
    identifiers_of_address,
    isbns_in,
    read_archive_address,
    read_identifier,
)
from kbsource.wikitext.iso_dates import sure_date

KINDS = (
    "web", "news", "book", "journal", "magazine", "encyclopaedia", "conference", "thesis", "report", "press-release",
    "av-media", "episode", "podcast", "interview", "speech", "map", "sign", "mailing-list", "newsgroup", "social-media",
    "preprint", "patent", "court", "law", "dataset", "software", "game", "comic", "identifier", "link", "other",
)  # fmt: skip
"""What a citation cites: ``identifier`` what an identifier alone names, ``link`` what an address alone does, ``other``
what a template for all kinds does not tell."""


class Citation(Row):
    """One citation of a source, as an editor wrote it."""

    kind: Annotated[str, "what is cited, one of kbsource.wikitext.citations.KINDS"]
    title: Annotated[str | None, "title; of a part of a book that of the book, of an article its own"] = None
    chapter: Annotated[str | None, "title of the part that is cited"] = None
    authors: Annotated[tuple[str, ...], "authors in order, `Family, Given` or as written"] = ()
    editors: Annotated[tuple[str, ...], "editors, likewise"] = ()
    date_text: Annotated[str | None, "date as written"] = None
    date: Annotated[str | None, "`2004`, `2004-05` or `2004-05-06`, as far as the text leaves no doubt"] = None
    work: Annotated[str | None, "periodical, site, proceedings or other whole that holds it"] = None
    publisher: Annotated[str | None, "publisher"] = None
    language: Annotated[str | None, "language code, where exactly one is named"] = None
    volume: Annotated[str | None, "volume as written"] = None
    issue: Annotated[str | None, "issue or number as written"] = None
    pages: Annotated[str | None, "pages, or another place in it, as written"] = None
    quote: Annotated[str | None, "quoted words"] = None
    url: Annotated[str | None, "address of the source"] = None
    archive_url: Annotated[str | None, "address of a copy in a web archive"] = None
    archive_date: Annotated[str | None, "ISO day of the copy, as stated or as its address says"] = None
    url_status: Annotated[str | None, "live | dead | usurped | unfit | deviated, where stated"] = None
    access_date: Annotated[str | None, "ISO date when an editor read it"] = None
    doi: Annotated[str | None, "DOI, lower case, without prefix"] = None
    isbn: Annotated[str | None, "ISBN, 13 digits; its check digit is right"] = None
    issn: Annotated[str | None, "ISSN with hyphen; its check digit is right"] = None
    pmid: Annotated[str | None, "PubMed number"] = None
    pmc: Annotated[str | None, "PubMed Central number, without PMC"] = None
    arxiv: Annotated[str | None, "arXiv identifier, without version"] = None
    oclc: Annotated[str | None, "OCLC number"] = None
    jstor: Annotated[str | None, "JSTOR identifier"] = None
    s2cid: Annotated[str | None, "Semantic Scholar corpus number"] = None
    bibcode: Annotated[str | None, "ADS bibcode"] = None
    hdl: Annotated[str | None, "handle"] = None
    #: ``unknown_parameter:NAME``, ``unused_parameter:SLOT`` (another one came first), ``FIELD_form`` (not of its form),
    #: ``isbn_check``, ``issn_check``, ``nothing_stated``
    losses: Annotated[tuple[str, ...], "what was not carried over, sorted"] = ()


class _Words(NamedTuple):
    """The vocabulary of one language: its own names first, then the English ones."""

    templates: dict[str, tuple[str, dict[str, str]]]  #: kind and own slots of parameters, by folded name
    slots: dict[str, str]  #: slot by folded name of a parameter, ``#`` for its number; ``""``: left out knowingly
    statuses: dict[str, str]  #: status of an address by folded value
    languages: dict[str, str]  #: code by folded name or code
    notes: dict[str, str]  #: kind of a shortened note, or ``doubt:…``, by folded name


_FOLDED = re.compile(r"[\s_-]+")
_NUMBER = re.compile(r"\d+")
_LONGEST_NAME = 60  # characters of a name that a loss is called by
_SHORTEST_BORROWED = 5  # signs of an English name that another language takes: shorter ones mean anything
_LONGEST_NUMBER = 4  # digits; author 10000 is none


def _fold(name: str) -> str:
    """A name as it is compared: without letter case, blanks, hyphens and underscores."""
    return _FOLDED.sub("", name).casefold()


@cache
def _words(language: str) -> _Words:
    data = read_rules("citations")
    base = language.partition("-")[0]
    sections = [section for section in dict.fromkeys((language, base, "en")) if section != "simple"]
    short = frozenset(map(_fold, data["borrowed"]["names"]))
    words = _Words({}, {}, {}, {}, {})
    for section in sections:
        for kind, names in data["templates"].get(section, {}).items():
            for name in names:
                words.templates.setdefault(_fold(name), (kind, {}))
        for entry in data["form"]:
            if entry["language"] == section:
                own = {name: _slot_name(slot) for slot, names in entry["slots"].items() for name in names.split()}
                for name in entry["names"]:
                    words.templates.setdefault(_fold(name), (entry["kind"], own))
        for slot, names in data["parameters"].get(section, {}).items():
            for name in names.split():
                words.slots.setdefault(name, _slot_name(slot))
                words.slots.setdefault(name.replace("#", ""), _slot_name(slot))
        is_own = section != "en" or sections == ["en"]
        for part, prefix in (("notes", ""), ("doubts", "doubt:")):
            for kind, names in data[part].get(section, {}).items():
                for name in map(_fold, names):
                    if is_own or len(name) >= _SHORTEST_BORROWED or name in short:
                        words.notes.setdefault(name, prefix + kind)
    for scheme in SCHEMES:
        words.slots.setdefault(scheme, scheme)
        for name in data["identifiers"][scheme]:
            words.templates.setdefault(_fold(name), ("identifier", {"1": scheme}))
    for status, values in data["statuses"].items():
        words.statuses.update(dict.fromkeys(map(_fold, values), status))
    for names in (language_names("en"), language_nouns(base), language_names(base)):
        words.languages.update((name.casefold(), code) for code, name in names.items())
    words.languages.update((code, code) for code in language_names("en"))
    return words


def _slot_name(slot: str) -> str:
    return "" if slot == "left_out" else slot


@lru_cache(maxsize=1 << 14)
def _template(name: str, language: str) -> tuple[str, dict[str, str]] | None:
    """Kind and own slots of a citation template; None for another."""
    found = _words(language).templates.get(_fold(name))
    return found if found is not None and found[0] != "none" else None


@lru_cache(maxsize=1 << 14)
def _slot(name: str, language: str) -> tuple[str | None, int]:
    """The slot that a parameter fills and its number, 1 where it has none; None for an unknown one."""
    slots = _words(language).slots
    folded = _fold(name)
    if folded in slots:
        return slots[folded], 1
    number = _NUMBER.search(folded)
    if number is None or len(number[0]) > _LONGEST_NUMBER:
        return None, 1
    return slots.get(f"{folded[: number.start()]}#{folded[number.end() :]}"), int(number[0])


def argument_slot(template: str, name: str, language: str) -> str | None:
    """The slot of ``rules/citations.toml`` that an argument fills; None for an unknown one, "" for one left out."""
    found = _template(template, language)
    own = found[1].get(_fold(name)) if found is not None else None
    return _slot(name, language)[0] if own is None else own


def is_citation(name: str, language: str) -> bool:
    """Whether ``read_citation`` reads a template of this name."""
    return _template(name, language) is not None


@lru_cache(maxsize=1 << 14)
def find_note(name: str, language: str) -> str | None:
    """What a template is to the reader of references besides a citation; None for nothing.

    ``short`` makes a footnote that names a source by author and year, ``short_text`` names it in the text, ``pages``
    gives pages behind a mark, ``reuse`` repeats footnotes by name, ``note`` makes a footnote of its text, ``list``
    shows the footnotes; ``doubt:MARK`` doubts the sentence or its source.

    >>> find_note("Sfn", "en"), find_note("Citation needed", "en"), find_note("Infobox", "en")
    ('short', 'doubt:citation_needed', None)
    """
    return _words(language).notes.get(_fold(name))


_MARKUP = re.compile(r"[\[\]{}<>&\x00-\x1f]|''|https?:")
_ADDRESS = re.compile(r"(?i)(?:https?:|ftp:)?//[^\s\[\]<>\"{}|\x00-\x1f]+")
_NAME = re.compile(r"\s*\(\(([^()]*)\)\)|[^,]+")
_LONGEST_ISBN = 17  # characters of one with its hyphens
_YEAR = re.compile(r"\d{4}")
# Fields by the slots that fill them, the first that says something counts.
_FIELDS: dict[str, tuple[str, ...]] = {
    "title": ("title", "script_title", "trans_title"),
    "chapter": ("chapter", "script_chapter", "trans_chapter"),
    "work": (
        "book_title",
        "encyclopaedia",
        "journal",
        "newspaper",
        "magazine",
        "work",
        "website",
        "conference",
        "series",
    ),
    "publisher": ("publisher", "agency"),
    "volume": ("volume",),
    "issue": ("issue",),
    "pages": ("pages", "page", "at"),
    "quote": ("quote", "trans_quote"),
}
_PEOPLE = frozenset(("last", "first", "author", "editor_last", "editor_first", "editor_author"))
_SERIES_HOLDS = frozenset(
    ("episode", "podcast", "av-media", "interview", "comic", "speech")
)  # kinds with a series as work
# What a template for all kinds cites, by the slots that are filled; the first counts.
_KIND_BY_SLOT = (
    ("patent", "patent"), ("degree", "thesis"), ("conference", "conference"), ("encyclopaedia", "encyclopaedia"),
    ("newspaper", "news"), ("magazine", "magazine"), ("journal", "journal"), ("isbn", "book"), ("chapter", "book"),
    ("issn", "journal"), ("issue", "journal"), ("publisher", "book"), ("url", "web"),
)  # fmt: skip


def read_citation(
    name: str, arguments: Mapping[str, str], *, language: str, plain: Callable[[str], str]
) -> Citation | None:
    """The fields of one use of a citation template; None where the template is none of the language's.

    Args:
        name: Name of the template in normal form.
        arguments: Wikitext by parameter; those without name by ``"1"``, ``"2"``, ….
        language: Code of the wiki.
        plain: Turns wikitext into plain text; it is asked where there is markup only.

    >>> read_citation("Cite web", {"url": "//a.org", "first": "Ann", "last": "Lee"}, language="en", plain=str).authors
    ('Lee, Ann',)
    """
    template = _template(name, language)
    return None if template is None else _Reader(template, language, plain).read(arguments)


class _Reader:
    """Reads one use. Every argument ends in a field, in a loss, or was left out knowingly."""

    __slots__ = ("kind", "language", "losses", "own", "people", "plain", "values")

    def __init__(self, template: tuple[str, dict[str, str]], language: str, plain: Callable[[str], str]) -> None:
        self.kind, self.own = template
        self.language = language
        self.plain = plain
        self.losses: list[str] = []
        self.values: dict[str, str] = {}  #: wikitext by slot, as long as no field took it
        self.people: dict[str, dict[int, str]] = {}  #: wikitext by slot and number

    def read(self, arguments: Mapping[str, str]) -> Citation:
        self._sort(arguments)
        values = self.values
        kind = self.kind
        if kind == "other":
            kind = next((kind for slot, kind in _KIND_BY_SLOT if slot in values), kind)
        if kind not in _SERIES_HOLDS:
            values.pop("series", None)
        fields: dict[str, Any] = self._dates()
        fields.update(self._addresses(fields.get("archive_date")))
        fields.update(self._identifiers(fields.get("url")))
        for field, slots in _FIELDS.items():
            if text := self._text(self._take(slots)):
                fields[field] = text
        if subtitle := self._text(self._take(("subtitle",))):
            fields["title"] = f"{fields['title']}: {subtitle}" if "title" in fields else subtitle
        fields["authors"] = (*self._people(""), *self._lists("vauthors", "authors", "coauthors"))
        fields["editors"] = (*self._people("editor_"), *self._lists("veditors", "editors"))
        if named := self._text(self._take(("language",))):
            codes = _words(self.language).languages
            named = named.strip("()").casefold()
            self._put(fields, "language", codes.get(named) or codes.get(named.partition("-")[0]))
        self.losses.extend(f"unused_parameter:{slot}" for slot in values)
        if not any(fields.values()):
            self.losses.append("nothing_stated")
        return Citation(kind=kind, losses=tuple(sorted(self.losses)), **fields)

    def _sort(self, arguments: Mapping[str, str]) -> None:
        """Puts the arguments that say something into their slots."""
        for name, value in arguments.items():
            value = value.strip()
            if not value:
                continue
            own = self.own.get(_fold(name)) if self.own else None
            slot, number = _slot(name, self.language) if own is None else (own, 1)
            if slot is None:
                self.losses.append(f"unknown_parameter:{name.strip()[:_LONGEST_NAME]}")
            elif slot in _PEOPLE:
                self.people.setdefault(slot, {}).setdefault(number, value)
            elif slot and self.values.setdefault(slot, value) != value:
                self.losses.append(f"unused_parameter:{slot}")

    def _take(self, slots: tuple[str, ...]) -> str:
        """What the first filled slot holds; it is empty then."""
        for slot in slots:
            if slot in self.values:
                return self.values.pop(slot)
        return ""

    def _text(self, wikitext: str) -> str:
        return " ".join(self.plain(wikitext).split()) if _MARKUP.search(wikitext) else wikitext

    def _people(self, prefix: str) -> list[str]:
        """The numbered persons of a role, in order."""
        family, given, whole = (self.people.get(f"{prefix}{slot}", {}) for slot in ("last", "first", "author"))
        persons: list[str] = []
        for number in sorted({*family, *given, *whole}):
            if number in family or number in given:
                names = [family.get(number) or whole.get(number, ""), given.get(number, "")]
                persons.append(", ".join(filter(None, map(self._text, names))))
                if number in family and whole.get(number, family[number]) != family[number]:
                    self.losses.append(f"unused_parameter:{prefix}author")
            else:
                persons.extend(_parted(self._text(whole[number]), ";"))
        return [person for person in persons if person]

    def _lists(self, names: str, *slots: str) -> list[str]:
        """Persons that one argument lists; those of ``names`` in the style of Vancouver, family name and initials."""
        persons: list[str] = []
        if listed := self._text(self._take((names,))):
            persons.extend(name for match in _NAME.finditer(listed) if (name := (match[1] or match[0]).strip()))
        for slot in slots:
            persons.extend(_parted(self._text(self._take((slot,))), ";"))
        return persons

    def _dates(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        if text := self._written_date("", "publication_date"):
            fields["date_text"] = text
            if date := sure_date(text, self.language):
                fields["date"] = date
        for field, text in (
            ("access_date", self._written_date("access_")),
            ("archive_date", self._text(self._take(("archive_date",)))),
        ):
            if text:
                self._put(fields, field, sure_date(text, self.language))
        return fields

    def _written_date(self, prefix: str, *others: str) -> str:
        """A date as written, put together where year, month and day are arguments of their own."""
        text = self._text(self._take((f"{prefix}date", *others)))
        parts = {part: self._text(self._take((f"{prefix}{part}",))) for part in ("day", "month", "year")}
        day, month, year = parts.values()
        if not text:
            if month.isdecimal() and year.isdecimal():
                return "-".join([year, month.zfill(2), *([day.zfill(2)] if day else [])])
            return " ".join(filter(None, (day, month, year)))
        if year and not _YEAR.search(text):
            text = f"{text} {year}"
        self.losses.extend(f"unused_parameter:{prefix}{part}" for part, said in parts.items() if said not in text)
        return text

    def _put(self, fields: dict[str, str], field: str, value: str | None) -> None:
        """Fills a field, or says that what was written for it is not of its form."""
        if value is None:
            self.losses.append(f"{field}_form")
        else:
            fields[field] = value

    def _addresses(self, archive_date: str | None) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        title = self.values.get("title", "")
        for field, text in (
            ("url", self._take(("url", "chapter_url"))),
            ("archive_url", self._take(("archive_url",))),
        ):
            if text:
                self._put(fields, field, self._address(text))
        if "url" not in fields and "//" in title and (found := self._address(title)):
            fields["url"] = found
        stamp = self._take(("wayback",))
        if stamp.isdecimal() and "url" in fields:
            fields.setdefault("archive_url", f"https://web.archive.org/web/{stamp}/{fields['url']}")
        if status := self._text(self._take(("url_status",))):
            known = _words(self.language).statuses.get(_fold(status))
            self._put(fields, "url_status", known)
        if self._take(("dead_since",)):
            fields["url_status"] = "dead"
        fields = _with_archive(fields)
        if archive_date and fields.get("archive_date", archive_date) != archive_date:
            self.losses.append("unused_parameter:archive_date")  # the address knows better
        return fields

    def _address(self, wikitext: str) -> str | None:
        """The first address in a value; it may be that of a link."""
        text = self.plain(wikitext) if "{{" in wikitext else wikitext
        found = _ADDRESS.search(unescape(text) if "&" in text else text)
        if found is None:
            return None
        return f"https:{found[0]}" if found[0].startswith("//") else found[0]

    def _identifiers(self, url: str | None) -> dict[str, str]:
        fields: dict[str, str] = {}
        for scheme in SCHEMES:
            if scheme in self.values:
                text = self.values.pop(scheme)
                try:
                    fields[scheme] = read_identifier(scheme, unescape(text) if "&" in text else text)
                except IdentifierError as error:
                    self.losses.append(f"{scheme}_{error}")
                if scheme == "isbn" and len(text) > _LONGEST_ISBN and len(isbns_in(text)) > 1:
                    self.losses.append("unused_parameter:isbn")
        if text := self._take(("id",)):
            named = identifiers_in(text)
            if not named:
                self.losses.append("unused_parameter:id")
            fields = named | fields
        return identifiers_of_address(url) | fields if url else fields


def _parted(text: str, sign: str) -> list[str]:
    return [part for part in map(str.strip, text.split(sign)) if part]


def _with_archive(fields: dict[str, Any]) -> dict[str, Any]:
    """Addresses with those of the copy and of the source told apart."""
    url, archive_url = fields.get("url"), fields.get("archive_url")
    archived = read_archive_address(archive_url or url or "")
    if archived is not None:
        if archive_url is None:
            fields["archive_url"] = url
            fields["url"] = archived.url
        elif url is None:
            fields["url"] = archived.url
        if archived.date is not None:
            fields["archive_date"] = archived.date
    return fields


def read_link(url: str, label: str = "") -> Citation:
    """The fields of a plain external link: addresses of archives with what they hold, identifiers that addresses hold.

    >>> link = read_link("http://web.archive.org/web/20200102030405/http://example.org/", "Example")
    >>> link.title, link.url, link.archive_date
    ('Example', 'http://example.org/', '2020-01-02')
    """
    fields = _with_archive({"url": f"https:{url}" if url.startswith("//") else url})
    fields |= identifiers_of_address(fields["url"]) if fields["url"] else {}
    return Citation(kind="link", title=" ".join(label.split()) or None, **fields)


def read_text(text: str) -> Citation | None:
    """The identifiers that running text names (``ISBN 0-306-40615-2``); None where there are none."""
    named: dict[str, Any] = identifiers_in(text)
    return Citation(kind="identifier", **named) if named else None
