"""Reads the content of a reference: its text as readers see it, its citation, and the source that a shortened note
names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from kbsource.numerals import unescape
from kbsource.wikitext.braces import expand_braces
from kbsource.wikitext.citations import find_note, is_citation, note_names, read_citation, read_link, read_text
from kbsource.wikitext.dependencies import Dependencies
from kbsource.wikitext.expander import Definitions
from kbsource.wikitext.functions.arguments import Template
from kbsource.wikitext.identifiers import SCHEMES
from kbsource.wikitext.markers import (
    CUT,
    EQUALS,
    NUMBERED,
    PIPE,
    has_numbers,
    literal,
    mark_numbers,
    mark_separators,
    number_mark,
    unmark_separators,
    without_marks,
    without_numbers,
)
from kbsource.wikitext.reference_rows import Citation
from kbsource.wikitext.tags import strip_extensions
from kbsource.wikitext.templates import normalise_template_name, split_template, unmarked

# A URL ends at a marker for cut or replaced text, and at quotes that make it bold or italic.
_ADDRESS = r"(?:[^\s\[\]<>\"{}|'\x00-\x1f]|'(?!'))+"
_LINK = re.compile(
    rf"\[((?i:(?:https?|ftp):)?//{_ADDRESS})(?:(?=[\x00-\x1f ]|'')([^\]\n]*))?\]"
    rf"|((?i:\b(?:https?|ftp)://){_ADDRESS})"
)
# Source: handleExternalLinks and makeFreeExternalLink of MediaWiki 1.43's Parser.
_ADDRESS_END = re.compile(r"&(?:lt|gt|nbsp|#[xX]0*(?:3[CcEe]|[Aa]0)|#0*(?:60|62|160));")
# Source: cleanUrl of its Sanitizer.
_NOT_IN_ADDRESS = re.compile(r"[\[\]<>\"\x00-\x20\x7f]")
_STOPS = ",;\\.:!?"
# Every match begins with one of few characters, which makes the search many times as fast.
_MARKUP = re.compile(r"[\[\]{}<>&'_\x00-\x1f](?:(?<=[^'_])|(?<=')'|(?<=_)_)")
_YEAR = re.compile(r"(?<!\d)\d{4}[a-z]?(?![\da-z])")
_LAST_NAMES = tuple(
    "last surname author-last author nom apellidos apellido nachname cognome editor-last último sobrenome achternaam "
    "efternamn nazwisko autor autore auteur editor".split()
)
_YEARS = ("year", "date", "publication-date", *"année año fecha anno data jahr ano jaar datum rok год".split())
_PAGES = ("p", "pp", "page", "pages", "loc", "at", "location", "passage", "s", "str", "с")
_ANCHORS = ("sfnref", "harvid")
_NO_NOTES = ("refbegin", "refend", "cnote", "notefoot")  # templates around a list of notes, which are not footnotes
_MOST_HEADS = 1 << 14  # maximum number cached per process
_MOST_NAMES = 4  # a shortened note names at most four authors
_MOST_AUTHORS = 6

Key = tuple[tuple[str, ...], str]
"""Key by which shortened notes find a source: up to four family names, case-folded, and the year."""


class ReferenceText(NamedTuple):
    """The text, citations and further sources of a reference."""

    text: str = ""
    template: str | None = None  #: first citation template in it, in normal form
    citation: Citation | None = None  #: from the template, else the first link, else identifiers in the text
    short: Key | None = None  #: for a shortened note, the key of its source
    works: tuple[Template, ...] = ()  #: the citation templates in it, which shortened notes may refer to
    doubts: tuple[str, ...] = ()
    #: template name (None for a link) and citation of each further source
    further: tuple[tuple[str | None, Citation], ...] = ()


class ReferenceReader:
    """Reads a wiki's references.

    Args:
        plain: converts wikitext to text.
        kind_of: returns the reference kind of a template, as ``NoteKinds`` does.
        dependencies: records the dependencies of ``plain`` and ``kind_of``.
    """

    def __init__(
        self, lang: str, plain: Callable[[str], str], kind_of: Callable[[str], str | None], dependencies: Dependencies
    ) -> None:
        self._lang, self._parse, self._kind_of, self._dependencies = lang, plain, kind_of, dependencies
        self._read = lru_cache(maxsize=1 << 12)(self._as_text)

    def _plain(self, wikitext: str) -> str:
        text, names = self._read(wikitext)
        self._dependencies.names |= names
        return text

    def _as_text(self, wikitext: str) -> tuple[str, frozenset[str]]:
        if not _MARKUP.search(wikitext):
            return " ".join(wikitext.split()), frozenset()
        return self._dependencies.apart(lambda: self._parse(wikitext))

    def __call__(self, content: str) -> ReferenceText:
        """Reads a reference from its wikitext."""
        if "<" in content:
            content = strip_extensions(content, Counter())
        return self.sole_citation(content) or self.by_steps(content)

    def by_steps(self, content: str) -> ReferenceText:
        """Reads any wikitext without extension tags, step by step. ``sole_citation`` is a faster way for most
        references.
        """
        # The citations that are not inside another citation, and their texts, by number.
        found: dict[int, tuple[Template, Citation, str]] = {}
        n_found = 0
        short: list[Key] = []
        doubts: list[str] = []

        def on_template(inner: str, depth: int) -> str:
            nonlocal n_found
            head = inner.partition("|")[0]
            kind = self._kind_of(head)
            template = split_template(inner, self._lang) if kind not in (None, "anchor") else None
            if kind is None or template is None:
                return mark_separators(f"{{{{{inner}}}}}")
            if has_numbers(inner):
                template = split_template(without_numbers(inner), self._lang) or template
            if PIPE in inner or EQUALS in inner:
                template = unmarked(template)
            if kind == "work":
                citation = self._citation(template)
                if citation is None:
                    return CUT
                for number in mark_numbers(inner):  # citations in its values are part of it
                    found.pop(number, None)
                shown = CUT + number_mark(n_found) + mark_separators(literal(citation_text(citation)))
                found[n_found] = template, citation, shown
                n_found += 1
                return shown
            if kind in ("short", "short_text"):
                if key := short_key(template):
                    short.append(key)
                return mark_separators(literal(short_text(template)))
            if kind.startswith("doubt:"):
                doubts.append(kind[6:])
            return CUT

        expanded = expand_braces(
            content,
            on_template=on_template,
            on_parameter=lambda inner: mark_separators(f"{{{{{{{inner}}}}}}}"),
            on_broken=lambda: None,
        )
        wikitext = unmark_separators(without_numbers(expanded))
        text = self._plain(wikitext)
        cited: list[tuple[str | None, Citation]] = []
        known: set[str] = set()  # URLs already seen, as returned by _bare
        for template, source, _ in found.values():
            addresses = {_bare(url) for url in (source.url, source.archive_url) if url}
            if not (source.archive_url and cited and not known.isdisjoint(addresses)):  # an archived copy
                cited.append((template.name, source))
            known |= addresses
        if "//" in wikitext:
            expanded = _cut_citations(expanded, {number: shown for number, (_, _, shown) in found.items()})
            cited += [(None, link) for link in self._links(unmark_separators(without_numbers(expanded)), known)]
        text = text or (cited[0][1].url if cited else None) or ""
        if not cited and (named := read_text(text)) is not None:
            cited = [(None, named)]
        name, citation = cited[0] if cited else (None, None)
        works = tuple(template for template, _, _ in found.values())
        return ReferenceText(text, name, citation, short[0] if short else None, works, tuple(doubts), tuple(cited[1:]))

    def _links(self, wikitext: str, known: set[str]) -> Iterator[Citation]:
        """Finds the sources that external links point to. A link to an archived copy of a source adds no source.

        Args:
            known: URLs of known sources, as returned by ``_bare``. Their links are skipped, and new URLs are added.
        """
        for link in _LINK.finditer(wikitext):
            written = link[1] or link[3]
            if "&" in written:
                written = unescape(_ADDRESS_END.split(written, maxsplit=1)[0])
                written = _NOT_IN_ADDRESS.sub(lambda found: f"%{ord(found[0]):02X}", written)
            source = read_link(written if link[1] else _without_stops(written), self._plain(link[2] or ""))
            address = _bare(source.url or link[0])
            if address not in known:
                yield source
            known.add(address)

    def sole_citation(self, content: str) -> ReferenceText | None:
        """Reads a reference that consists of a single citation template, without parsing its text. Returns None for
        other references, and if parsing might give another result.
        """
        if content[:2] != "{{" or content.find("{{", 1) >= 0 or content.find("}}") != len(content) - 2:
            return None
        if self._kind_of(content[2:-2].partition("|")[0]) != "work":
            return None
        template = split_template(content[2:-2], self._lang)
        citation = None if template is None else self._citation(template)
        if template is None or citation is None:
            return None
        text = citation_text(citation)
        is_plain = text.isprintable() and text[:1] != "-"  # spaces are the only white space, and it is no list item
        return ReferenceText(" ".join(text.split()), template.name, citation, None, (template,)) if is_plain else None

    def _citation(self, template: Template) -> Citation | None:
        arguments = template.named
        if template.positional:
            arguments = {str(place): value for place, value in enumerate(template.positional, 1)} | arguments
        return read_citation(template.name, arguments, language=self._lang, plain=self._plain)


class NoteKinds:
    """Returns the reference kind of a template, from the text before its first pipe, or None.

    In addition to the kinds of ``find_note`` there are ``work`` (a citation), ``tag`` (a footnote or list written as
    ``{{#tag:…}}``) and ``anchor`` (the name by which shortened notes refer to a source). With ``definitions``, a
    redirect or copy of a known template has the kind of that template.
    """

    def __init__(self, lang: str, definitions: Definitions | None, dependencies: Dependencies) -> None:
        self._lang, self._definitions, self._dependencies = lang, definitions, dependencies
        self._by_source: dict[str, str] = {}
        for name, kind in note_names(lang).items() if definitions is not None else ():
            if definitions is not None and (source := definitions.source(normalise_template_name(name, lang))):
                self._by_source.setdefault(source, kind)
        self._known: dict[str, tuple[str | None, frozenset[str]]] = {}

    def __call__(self, head: str) -> str | None:
        if head not in self._known:
            if len(self._known) >= _MOST_HEADS:
                self._known.clear()
            self._known[head] = self._dependencies.apart(lambda: self._found(head))
        kind, names = self._known[head]
        self._dependencies.names |= names
        return kind

    def target(self, name: str) -> str:
        """Returns the name of a template after redirects, from its name in normal form."""
        if self._definitions is None:
            return name
        self._dependencies.template(name)
        return self._definitions.target(name)

    def _found(self, head: str) -> str | None:
        bare = head.strip().lower()
        if bare.startswith("#tag:"):
            return "tag" if bare[5:].strip() in ("ref", "references") else None
        if len(head) > 200 or bare[:1] == "#" or not bare:
            return None
        name = self.target(normalise_template_name(head, self._lang))
        if name.casefold().startswith(_ANCHORS):
            return "anchor"
        if name.casefold().startswith(_NO_NOTES):
            return None
        if (kind := find_note(name, self._lang)) is not None:
            return kind
        if is_citation(name, self._lang):
            return "work"
        if self._definitions is None:
            return None
        if not (source := self._definitions.source(name)):
            return None
        self._dependencies.same_source(source)
        return self._by_source.get(source)


def _cut_citations(text: str, shown: dict[int, str]) -> str:
    """Returns the text without its citations, so that their URLs are not read as further sources.

    ``shown`` contains the text of each citation by its number.
    """
    pieces, position = [], 0
    for mark in NUMBERED.finditer(text) if shown else ():
        citation = shown.get(mark_numbers(mark[0])[0])
        if citation is not None and text.startswith(citation, mark.start() - 1):
            pieces.append(text[position : mark.start()])
            position = mark.start() - 1 + len(citation)
    return "".join((*pieces, text[position:]))


def _without_stops(address: str) -> str:
    """Returns a URL from running text without the punctuation after it.

    Source: makeFreeExternalLink of MediaWiki 1.39's Parser.
    """
    return address.rstrip(_STOPS if "(" in address else f"{_STOPS})")


def _bare(address: str) -> str:
    """Returns a URL for comparison: without scheme, ``www`` and the slash at its end."""
    return address.partition("//")[2].removeprefix("www.").rstrip("/")


def citation_text(citation: Citation) -> str:
    """Returns a citation as in a bibliography: ``Smith, John (2001). Title. Work 3 (2): 5. Publisher.``"""
    persons = citation.authors or citation.editors
    shown = "; ".join(persons[:_MOST_AUTHORS]) + ("; et al." if len(persons) > _MOST_AUTHORS else "")
    date = citation.date_text
    head = f"{shown} ({date})" if shown and date else shown
    numbers = f"{citation.volume or ''}{f' ({citation.issue})' if citation.issue else ''}".strip()
    pages = citation.pages if citation.work else _with_sign(citation.pages or "")
    place = ": ".join(filter(None, (numbers, pages)))
    work = " ".join(filter(None, (citation.work, place)))
    parts = [head, citation.chapter and f'"{citation.chapter}"', citation.title, work, citation.publisher]
    if date and not shown:
        parts.append(date)
    parts.append(citation.quote and f'"{citation.quote}"')
    shown = " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)
    return (
        shown
        or citation.url
        or next((f"{name.upper()} {value}" for name in SCHEMES if (value := getattr(citation, name))), "")
    )


def _with_sign(pages: str) -> str:
    """Returns pages as readers see them: ``p. 5``, ``pp. 7–9``."""
    if not pages[:1].isdecimal():
        return pages
    return f"pp. {pages}" if re.search(r"\d\s*[-–,]\s*\d", pages) else f"p. {pages}"


def _short_parts(template: Template) -> tuple[list[str], str]:
    """Returns the names and the year of a shortened note."""
    values = template.filled()
    if not values:  # a note with several sources: the first is read
        values = [template.named[name] for number in "1234" if template.named.get(name := f"1a{number}")]
        values += [year for year in (template.named.get("1y"),) if year]
    values = [" ".join(without_marks(value).split()) for value in values]
    if len(values) > 1 and _YEAR.search(values[-1]):
        return values[:-1], values[-1]
    return values, ""


def short_text(template: Template) -> str:
    """Returns a shortened note as readers see it: ``Smith & Lee 2001, p. 5``."""
    names, year = _short_parts(template)
    if len(names) > 3:
        names = [f"{names[0]} et al."]
    shown = " & ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    pages = cited_pages(template)
    return ", ".join(filter(None, (" ".join(filter(None, (shown, year))), _with_sign(pages))))


# The name of a shortened note consists of its arguments. Synonyms of argument names, and arguments without influence:
_SAME_ARGUMENTS = {"page": "p", "pages": "pp", "at": "loc", "location": "loc"}
_NOT_IN_NAME = frozenset({"ps", "postscript", "ref", "mode"})


def short_name(template: Template) -> str:
    """Returns the name of a shortened note. Notes with the same name (same authors, year and pages) are one footnote.

    The name does not depend on the template, its style or spaces. Source: Module:Footnotes of English Wikipedia, which
    names the footnote after its arguments.

    >>> short_name(Template("Sfn", ("Smith", " 2001"), {"p": "5"})) == short_name(
    ...     Template("Sfnp", ("Smith", "2001"), {"page": "5", "ps": "."})
    ... )
    True
    """
    values = [" ".join(value.split()) for value in template.filled()]
    named = {_SAME_ARGUMENTS.get(name, name): value for name, value in template.named.items() if value}
    values += [f"{name}={' '.join(named[name].split())}" for name in sorted(named.keys() - _NOT_IN_NAME)]
    return without_marks("{{" + "|".join(values))


def short_key(template: Template) -> Key | None:
    """Returns the key of the source that a shortened note such as "Smith 2001, p. 5" refers to; None if the note has no
    author or year.
    """
    names, year = _short_parts(template)
    found = _YEAR.search(year)
    return (tuple(name.casefold() for name in names[:_MOST_NAMES]), found[0]) if names and found else None


def full_keys(template: Template) -> list[Key]:
    """Returns the keys by which shortened notes may refer to the work in a citation template.

    The keys are its authors with the year, the last word of the first author with the year, and the names in its
    ``ref`` argument.
    """
    named = {name.casefold(): value for name, value in template.named.items() if value}
    year = next((found[0] for name in _YEARS if (found := _YEAR.search(named.get(name, "")))), None)
    names: list[str] = []
    for base in _LAST_NAMES:
        values = (named.get(f"{base}1") or named.get(base), *(named.get(f"{base}{number}") for number in "234"))
        if names := [_family_name(value) for value in values if value]:
            break
    keys = [] if year is None or not names else [(tuple(names[:_MOST_NAMES]), year)]
    if keys and " " in names[0] and year is not None:
        keys.append(((names[0].rpartition(" ")[2],), year))
    head, *parts = (part.strip() for part in unmark_separators(named.get("ref", "")).strip("{}").split("|"))
    if head.casefold() in _ANCHORS and parts:
        *parts, year = parts
        year = found[0] if (found := _YEAR.search(year)) else None
    else:
        parts = [head] if head else []
    return [*keys, (tuple(name.casefold() for name in parts[:_MOST_NAMES]), year)] if year and parts else keys


def _family_name(written: str) -> str:
    name = " ".join(without_marks(written).replace("[", "").replace("]", "").rpartition("|")[2].split())
    return name.partition(",")[0].casefold()


def cited_pages(template: Template, number: int = 1) -> str:
    """Returns the pages that a note cites. If the note has several references, ``number`` selects one."""
    numbered = [f"{name}{number}" for name in _PAGES] if number > 1 else []
    value = template.argument(0, *(numbered or (*_PAGES, "1p", "1pp", "page1", "p1")))
    return " ".join(without_marks(value).split())
