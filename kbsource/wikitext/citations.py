"""Turns a citation template, or a link to a source, into fields: pure functions over ``rules/citations.toml``.

By language, that file lists the citation templates, and the slot that each of their parameters fills; its header
explains its format. This module implements what is the same in all languages: how slots become fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from kbsource.numerals import unescape
from kbsource.wikitext.functions.foreign import language_names, language_nouns
from kbsource.wikitext.identifiers import (
    MAX_CHARS,
    SCHEMES,
    citation_rules,
    identifiers_in,
    identifiers_of_address,
    read_archive_address,
    read_identifiers,
)
from kbsource.wikitext.iso_dates import sure_date
from kbsource.wikitext.markers import CUT, LITERALS, unliteral, without_marks
from kbsource.wikitext.reference_rows import Citation

_FOLDED = re.compile(r"[\s_-]+")
_NUMBER = re.compile(r"\d{1,4}")  # there is no author 10000
_LONGEST_NAME = 60  # maximum length of a parameter's name in characters; longer names are shortened in their loss
_SHORTEST_BORROWED = 5  # minimum length of an English name that another language may use; shorter names are ambiguous


def _fold(name: str) -> str:
    """Returns a name normalised for comparison: without letter case, spaces, hyphens and underscores."""
    return _FOLDED.sub("", name).casefold()


class _Words:
    """The vocabulary of a language: its own names first, then the English ones."""

    def __init__(self, language: str) -> None:
        rules = citation_rules()
        base = language.partition("-")[0]
        sections = [section for section in dict.fromkeys((language, base, "en")) if section != "simple"]
        #: kind and own slots of a template's parameters, by its folded name
        self.templates: dict[str, tuple[str, dict[str, str]]] = {}
        self.slots: dict[str, str] = {}  #: slots of parameters, by folded name with ``#`` in place of its number
        self.notes: dict[str, str] = {}  #: results of ``find_note``, by folded name
        self.written_notes: dict[str, str] = {}  #: the same by name as written
        for section in sections:
            forms = [
                (form["names"], form["kind"], form["slots"]) for form in rules["form"] if form["language"] == section
            ]
            forms += [(names, kind, {}) for kind, names in rules["templates"].get(section, {}).items()]
            for names, kind, slots in forms:
                own = {name: slot for slot, written in slots.items() for name in written.split()}
                for name in names:
                    self.templates.setdefault(_fold(name), (kind, own))
            for slot, written in rules["parameters"].get(section, {}).items():
                for name in written.split():
                    self.slots.setdefault(name, slot)
                    self.slots.setdefault(name.replace("#", ""), slot)
            self._add_notes(section, is_borrowed=section == "en" and len(sections) > 1)
        for scheme in SCHEMES:
            self.slots.setdefault(scheme, scheme)
            for name in rules["identifiers"][scheme]:
                self.templates.setdefault(_fold(name), ("identifier", {"1": scheme}))
        #: canonical status by folded value
        self.statuses = {_fold(value): status for status, values in rules["statuses"].items() for value in values}

    def _add_notes(self, section: str, *, is_borrowed: bool) -> None:
        rules = citation_rules()
        short = frozenset(map(_fold, rules["borrowed"]["names"]))
        for part, prefix in (("notes", ""), ("doubts", "doubt:")):
            for kind, names in rules[part].get(section, {}).items():
                for written in names:
                    name = _fold(written)
                    if not is_borrowed or len(name) >= _SHORTEST_BORROWED or name in short:
                        self.notes.setdefault(name, prefix + kind)
                        self.written_notes.setdefault(written, prefix + kind)


_words = cache(_Words)


@cache
def _language_codes(language: str) -> dict[str, str]:
    """Returns the codes of languages by their names in a language and in English, in lower case."""
    base = language.partition("-")[0]
    codes = {code: code for code in language_names("en")}
    for named in (language_names("en"), language_nouns(base), language_names(base)):
        codes.update((name.casefold(), code) for code, name in named.items())
    return codes


@lru_cache(maxsize=1 << 14)
def _template(name: str, language: str) -> tuple[str, dict[str, str]] | None:
    """Returns kind and own slots of a citation template; None for other templates."""
    found = _words(language).templates.get(_fold(name))
    return found if found is not None and found[0] != "none" else None


@lru_cache(maxsize=1 << 14)
def _slot(name: str, language: str) -> tuple[str | None, int]:
    """Returns the slot that a parameter fills (None if unknown) and its number, 1 by default."""
    slots = _words(language).slots
    folded = _fold(name)
    number = None if folded in slots else _NUMBER.search(folded)
    if number is None:
        return slots.get(folded), 1
    return slots.get(_NUMBER.sub("#", folded, count=1)), int(number[0])


@lru_cache(maxsize=1 << 14)
def slot_of(parameter: str, language: str) -> str | None:
    """Returns the slot that a citation parameter fills; None if it is unknown. For the place of publication, which has
    no slot, it returns ``place``.

    >>> slot_of("trans-title", "en"), slot_of("Verlagsort", "de")
    ('trans_title', 'place')
    """
    is_place = _fold(parameter) in citation_rules()["shown_in_lists"]["place"].split()
    return "place" if is_place else _slot(parameter, language)[0]


def is_citation(name: str, language: str) -> bool:
    """Returns whether ``read_citation`` reads a template of this name."""
    return _template(name, language) is not None


@lru_cache(maxsize=1 << 14)
def find_note(name: str, language: str) -> str | None:
    """Returns the reference kind of a template that is not a citation, or None.

    ``short`` makes a footnote that names a source by author and year; ``short_text`` names it in the text; ``pages``
    adds pages to a reference marker; ``reuse`` repeats footnotes by name; ``note`` makes a footnote of its text;
    ``list`` shows the footnotes; ``doubt:MARK`` is a cleanup tag that questions the sentence or its source.

    >>> find_note("Sfn", "en"), find_note("Citation needed", "en"), find_note("Infobox", "en")
    ('short', 'doubt:citation_needed', None)
    """
    return _words(language).notes.get(_fold(name))


def note_names(language: str) -> Mapping[str, str]:
    """Returns everything that ``find_note`` knows, by name as written."""
    return _words(language).written_notes


# Written so that every match begins with one of few characters, which is searched many times as fast.
_MARKUP = re.compile(r"[\[\]{}<>&'h\x00-\x1f](?:(?<=[^'h])|(?<=')'|(?<=h)ttps?:)")
_ADDRESS = re.compile(r"(?i)(?:(?:https?|ftp):|(?<![^\[\s]))//[^\s\[\]<>\"{}|\x00-\x1f]+")
_NAME = re.compile(r"\s*\(\(([^()]*)\)\)|[^,]+")
_YEAR = re.compile(r"\d{4}")
_DATE_PARTS = {prefix: (f"{prefix}day", f"{prefix}month", f"{prefix}year") for prefix in ("", "access_")}
_SCHEMES = frozenset(SCHEMES)
_FURTHER = frozenset(("subtitle", "vauthors", "authors", "coauthors", "veditors", "editors"))
_PEOPLE = frozenset(("last", "first", "author", "editor_last", "editor_first", "editor_author"))


def read_citation(
    name: str, arguments: Mapping[str, str], *, language: str, plain: Callable[[str], str]
) -> Citation | None:
    """Returns the fields of a use of a citation template; None if the language has no such citation template.

    Args:
        name: template name in normal form.
        arguments: wikitext by parameter; unnamed ones have the names ``"1"``, ``"2"``, ….
        language: code of the wiki.
        plain: turns wikitext into plain text; called only if there is markup.

    >>> read_citation("Cite web", {"url": "//a.org", "first": "Ann", "last": "Lee"}, language="en", plain=str).authors
    ('Lee, Ann',)
    """
    template = _template(name, language)
    return None if template is None else _Reader(language, plain).read(*template, arguments)


def read_listed_work(name: str, arguments: Mapping[str, str], *, language: str) -> Citation | None:
    """Returns, as wikitext, the fields of a citation that an item of a bibliography shows; None if the language has no
    such citation template.

    Identifiers, addresses and dates in normal form are left out, and no losses are recorded.
    """
    template = _template(name, language)
    return None if template is None else _Reader(language, str).read_shown(*template, arguments)


class _Reader:
    """Reads a use of a citation template. Every argument becomes a field or a loss, or is one of those that are left
    out on purpose.
    """

    __slots__ = ("language", "losses", "people", "plain", "values")

    def __init__(self, language: str, plain: Callable[[str], str]) -> None:
        self.language = language
        self.plain = plain
        self.losses: list[str] = []
        self.values: dict[str, str] = {}  #: wikitext by slot, until a field takes it
        self.people: dict[str, dict[int, str]] = {}  #: wikitext by slot and number

    def read(self, kind: str, own: dict[str, str], arguments: Mapping[str, str]) -> Citation:
        kind = self._sort(kind, own, arguments)
        fields: dict[str, Any] = self._dates()
        fields.update(self._addresses(fields.get("archive_date")))
        fields.update(self._identifiers(fields.get("url")))
        self._add_texts(fields)
        if self.values:
            self._rest(fields)
        if not any(fields.values()):
            self.losses.append("nothing_stated")
        return Citation(kind=kind, losses=tuple(sorted(self.losses)), **fields)

    def read_shown(self, kind: str, own: dict[str, str], arguments: Mapping[str, str]) -> Citation:
        kind = self._sort(kind, own, arguments)
        fields: dict[str, Any] = {}
        if date := self._written_date("", "publication_date"):
            fields["date_text"] = date
        self._add_texts(fields)
        self._add_further(fields)
        return Citation(kind=kind, **fields)

    def _add_texts(self, fields: dict[str, Any]) -> None:
        """Reads the texts and the numbered persons."""
        values = self.values
        for field, slots in citation_rules()["fields"].items():
            for slot in slots:
                if slot in values:
                    if text := self._text(values.pop(slot)):
                        fields[field] = text
                    break
        if self.people:
            fields["authors"], fields["editors"] = tuple(self._people("")), tuple(self._people("editor_"))

    def _add_further(self, fields: dict[str, Any]) -> None:
        """Reads a subtitle, and persons listed in one argument, which few citations have."""
        if _FURTHER.isdisjoint(self.values):
            return
        if subtitle := self._text(self._take("subtitle")):
            fields["title"] = f"{fields['title']}: {subtitle}" if "title" in fields else subtitle
        for field, names, *slots in (
            ("authors", "vauthors", "authors", "coauthors"),
            ("editors", "veditors", "editors"),
        ):
            fields[field] = (*fields.get(field, ()), *self._lists(names, *slots))

    def _rest(self, fields: dict[str, Any]) -> None:
        """Reads slots that few citations have, and records the losses of all that no field took."""
        self._add_further(fields)
        if named := self._text(self._take("language")).strip("()").casefold():
            codes = _language_codes(self.language)
            self._put(fields, "language", codes.get(named) or codes.get(named.partition("-")[0]))
        self.losses += [f"unused_parameter:{slot}" for slot in self.values]

    def _sort(self, kind: str, own: dict[str, str], arguments: Mapping[str, str]) -> str:
        """Puts the non-empty arguments into their slots, and returns the kind, which may depend on them."""
        values, people, language = self.values, self.people, self.language
        for name, value in arguments.items():
            value = value.strip()
            if not value:
                continue
            slot, number = _slot(name, language) if len(name) <= _LONGEST_NAME else (None, 1)
            if own:
                slot = own.get(_fold(name), slot)
            if slot == "left_out":
                continue
            if slot is None:
                self.losses.append(f"unknown_parameter:{without_marks(name).strip()[:_LONGEST_NAME]}")
            elif slot in _PEOPLE:
                if people.setdefault(slot, {}).setdefault(number, value) != value:
                    self.losses.append(f"unused_parameter:{slot}")
            elif slot not in values:
                values[slot] = value
            elif slot in _SCHEMES and len(values[slot]) <= MAX_CHARS:
                values[slot] += f", {value}"
            elif values[slot] != value:
                self.losses.append(f"unused_parameter:{slot}")
        rules = citation_rules()
        if kind == "other":
            kind = next((kind for slot, kind in rules["kind_of_slot"].items() if slot in values), kind)
        if kind not in rules["series_is_work"]:
            values.pop("series", None)
        return kind

    def _take(self, *slots: str) -> str:
        """Removes the first filled slot, and returns its content."""
        for slot in slots:
            if slot in self.values:
                return self.values.pop(slot)
        return ""

    def _text(self, wikitext: str) -> str:
        if not wikitext or not _MARKUP.search(wikitext):
            return wikitext
        text = " ".join(self.plain(wikitext).split())
        if not text:
            self.losses.append("invisible_value")
        return text

    def _people(self, prefix: str) -> list[str]:
        """Returns the numbered persons of a role, in order."""
        family, given = self.people.get(f"{prefix}last", {}), self.people.get(f"{prefix}first", {})
        whole = self.people.get(f"{prefix}author", {})
        persons: list[str] = []
        if not (family or given or whole):
            return persons
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
        """Returns persons listed in one argument; those in ``names`` are in Vancouver style, with family name and
        initials.
        """
        persons: list[str] = []
        if listed := self._text(self._take(names)):
            persons.extend(name for match in _NAME.finditer(listed) if (name := (match[1] or match[0]).strip()))
        for slot in slots:
            persons.extend(_parted(self._text(self._take(slot)), ";"))
        return persons

    def _dates(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        if text := self._written_date("", "publication_date"):
            fields["date_text"] = text
            if date := sure_date(text, self.language):
                fields["date"] = date
        for field, text in (
            ("access_date", self._written_date("access_")),
            ("archive_date", self._text(self._take("archive_date"))),
        ):
            if text:
                self._put(fields, field, sure_date(text, self.language))
        return fields

    def _written_date(self, prefix: str, *others: str) -> str:
        """Returns a date as written, assembled if year, month and day are separate arguments."""
        text = self._text(self._take(f"{prefix}date", *others))
        names = _DATE_PARTS[prefix]
        if self.values.keys().isdisjoint(names):
            return text
        day, month, year = [self._text(self._take(name)) for name in names]
        if not text:
            if month.isdecimal() and year.isdecimal():
                return "-".join([year, month.zfill(2), *([day.zfill(2)] if day else [])])
            return " ".join(filter(None, (day, month, year)))
        if year and not _YEAR.search(text):
            text = f"{text} {year}"
        said = zip(names, (day, month, year), strict=True)
        self.losses.extend(f"unused_parameter:{name}" for name, part in said if part not in text)
        return text

    def _put(self, fields: dict[str, str], field: str, value: str | None) -> None:
        """Fills a field, or records that the value does not have the required form."""
        if value is None:
            self.losses.append(f"{field}_form")
        else:
            fields[field] = value

    def _addresses(self, archive_date: str | None) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for field, slots in (("url", ("url", "chapter_url")), ("archive_url", ("archive_url",))):
            if text := self._take(*slots):
                self._put(fields, field, self._address(text))
        if "url" not in fields and (found := self._address(self.values.get("title", ""))):
            fields["url"] = found
        stamp = self._take("wayback")
        if stamp.isdecimal() and "url" in fields:
            fields.setdefault("archive_url", f"https://web.archive.org/web/{stamp}/{fields['url']}")
        if status := self._text(self._take("url_status")):
            self._put(fields, "url_status", _words(self.language).statuses.get(_fold(status)))
        if self._take("dead_since"):
            fields["url_status"] = "dead"
        fields = _with_archive(fields)
        if archive_date and fields.get("archive_date", archive_date) != archive_date:
            self.losses.append("unused_parameter:archive_date")  # the date in the address is more reliable
        return fields

    def _address(self, wikitext: str) -> str | None:
        """Returns the first address in a value, possibly a link's."""
        text = self.plain(wikitext) if "{{" in wikitext else wikitext
        text = unescape(text) if "&" in text else text
        if "//" not in text or (found := _ADDRESS.search(text)) is None:
            return None
        return f"https:{found[0]}" if found[0].startswith("//") else found[0]

    def _identifiers(self, url: str | None) -> dict[str, str]:
        fields: dict[str, str] = {}
        for scheme in [slot for slot in self.values if slot in _SCHEMES]:
            found, wrong = read_identifiers(scheme, unescape(_with_literals(self.values.pop(scheme))))
            fields.update((scheme, identifier) for identifier in found[:1])
            self.losses += wrong + [f"unused_parameter:{scheme}"] * (len(found) > 1)
        if text := self._take("id"):
            named = identifiers_in(unescape(_with_literals(text)))
            fields = named | fields
            self.losses += [] if named else ["unused_parameter:id"]
        return identifiers_of_address(url) | fields if url else fields


_AROUND_LITERALS = re.compile(f"{CUT}(?=[{LITERALS}])|(?<=[{LITERALS}]){CUT}")


def _with_literals(wikitext: str) -> str:
    """Returns a value with its literal characters restored, because ``<nowiki>`` around brackets separates nothing."""
    return wikitext if wikitext.isprintable() else unliteral(_AROUND_LITERALS.sub("", wikitext))


def _parted(text: str, sign: str) -> list[str]:
    return [part for part in map(str.strip, text.split(sign)) if part]


def _with_archive(fields: dict[str, Any]) -> dict[str, Any]:
    """Separates the address of an archived copy from the address of its source."""
    archived = read_archive_address(fields.get("archive_url") or fields.get("url") or "")
    if archived is not None:
        if "archive_url" not in fields:
            fields["archive_url"] = fields.pop("url")
        fields.setdefault("url", archived.url)
        if date := sure_date(archived.date or "", "en"):  # some addresses contain impossible days such as 99
            fields["archive_date"] = date
    return fields


def read_link(url: str, label: str = "") -> Citation:
    """Returns the fields of a plain external link, including the identifiers in its address, such as a DOI. For a link
    to a web archive, these are the fields of the archived address.

    >>> link = read_link("http://web.archive.org/web/20200102030405/http://example.org/", "Example")
    >>> link.title, link.url, link.archive_date
    ('Example', 'http://example.org/', '2020-01-02')
    """
    fields = _with_archive({"url": f"https:{url}" if url.startswith("//") else url})
    fields |= identifiers_of_address(fields["url"]) if fields["url"] else {}
    return Citation(kind="link", title=" ".join(label.split()) or None, **fields)


def read_text(text: str) -> Citation | None:
    """Returns the identifiers that running text names (``ISBN 0-306-40615-2``), or None."""
    named: dict[str, Any] = identifiers_in(text)
    return Citation(kind="identifier", **named) if named else None
