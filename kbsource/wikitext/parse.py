"""Wikitext of one page -> elements, anchors, tables, infoboxes, categories, and counts of what was left out.

The order of the steps is MediaWiki's own: comments and extension tags, braces, HTML, tables, quotes, links, blocks.
Everything that is shown as text, the body as well as cells and infobox values, goes through the tokenizer once, in
one string, so that one piece of code decides what text and links are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from kbsource.languages import Language
from kbsource.records import Element, Loss, TemplateUse
from kbsource.site import Site
from kbsource.titles import TargetParser
from kbsource.wikitext.blocks import RawAnchor, TextCell, build_blocks, build_cells
from kbsource.wikitext.braces import expand_braces
from kbsource.wikitext.brackets import match_brackets
from kbsource.wikitext.extensions import strip_extensions
from kbsource.wikitext.functions import citations
from kbsource.wikitext.html_tags import decode_references, replace_tags
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants, mark_lines, remove_switches, tidy
from kbsource.wikitext.markers import (
    ANY_CONTROL,
    CUT,
    EQUALS,
    FRAGMENT,
    PIPE,
    PLACE,
    PRE,
    SAID,
    holds_controls,
    without_marks,
)
from kbsource.wikitext.quotes import strip_quotes
from kbsource.wikitext.tables import RawTable, cut_tables
from kbsource.wikitext.templates import (
    WORDS_ALONE,
    LostText,
    TemplateRenderer,
    is_in_sentence,
    lost_text,
    normalise_template_name,
    split_template,
)
from kbsource.wikitext.walk import Walker

_PLACE_LINE = re.compile(f"{PLACE}[TI][0-9]+")
_PLACE_TO_SETTLE = re.compile(f"({PLACE}[TI][0-9]+)\n? *")
_UNSETTLED = re.compile(f"[<&_~{{{PIPE}{EQUALS}{PLACE}]")  # what _settle looks for
# A list item that begins with the description of a work is read; elsewhere such a template fills a reference.
_LISTED_WORK = re.compile(r"(\n[*#:]+[ \t]*\{\{)(?=[ \t]*[Cc]it(?:e[ _][\w ]+|ation)[ \t\n]*\|)")
_SAID = re.compile(f"{SAID}([^{SAID}]*){SAID}")
# The newlines around a template's argument are stripped off, so a mark may end up within a line.
_STRAY_PRE = re.compile(f"{PRE}(?<=[^\n]{PRE})")  # begins with the mark, which is found faster than any character
_UNLABELLED = re.compile(r"\[https?://[^\s\[\]\"<>]+\]")
_OPENED_ARGUMENT = re.compile(r"\A[^|\n\[\]]*\|[^\n\[\]]*=[ \t]*(?=\n)")
_HEADING_IN_TEMPLATE = re.compile(r"\n==[^=\n][^\n]*==[ \t]*\n")


class ParsedCell(NamedTuple):
    """A table cell before its links are looked up."""

    content: TextCell
    is_header: bool
    colspan: int
    rowspan: int


class ParsedTable(NamedTuple):
    """A table before its links are looked up; fields as in records.Table."""

    element: int
    caption: str | None
    rows: tuple[tuple[ParsedCell, ...], ...]


class ParsedInfobox(NamedTuple):
    """An infobox before its links are looked up; ``fields`` are (name, value) in order."""

    element: int
    name: str
    fields: tuple[tuple[str, TextCell], ...]


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What the wikitext of one page says, links not yet looked up; ``lost`` by name and outcome of templates."""

    elements: tuple[Element, ...]
    anchors: tuple[RawAnchor, ...]
    categories: tuple[str, ...]
    tables: tuple[ParsedTable, ...]
    infoboxes: tuple[ParsedInfobox, ...]
    templates: tuple[TemplateUse, ...]
    losses: tuple[Loss, ...]
    is_disambiguation: bool
    lost: dict[tuple[str, str], LostText] = field(default_factory=dict)


class WikitextParser:
    """Parses pages of one wiki. Holds caches; make one for each process.

    Args:
        site: the wiki: language, namespaces, first-letter rule.
        is_direct: whether plain and hidden links are read off without mwparserfromhell; the result is the same.
    """

    def __init__(self, site: Site, *, is_direct: bool = True) -> None:
        self._language: Language = site.language_facts
        self._trail = self._language.link_trail_pattern()
        self._targets = TargetParser(site)
        self._renderer = TemplateRenderer(site.lang)
        self._is_direct = is_direct

    def parse(self, wikitext: str, *, title: str, timestamp: str = "", is_from_xml: bool = False) -> ParsedText:
        """Gives what the page says.

        Args:
            wikitext: source of the page.
            is_from_xml: it came out of an XML document, which can hold no control characters: they are not looked for.
            title: title of the page, with spaces.
            timestamp: when the revision was saved, ISO 8601; what ``{{age}}`` and its kin take as now.
        """
        work = _Page(self._renderer.with_page(title, timestamp), self._language)
        if not is_from_xml:
            wikitext = work.without_controls(wikitext)
        body = work.prepare(wikitext)
        fragments = work.fragments()
        text = FRAGMENT.join((body, *fragments)) if fragments else body
        losses = work.losses
        if PRE in text:  # what a template has put on one line
            text = _STRAY_PRE.sub("", text)
        text = tidy(strip_quotes(mark_lines(text)))
        if PRE in text:
            text = _STRAY_PRE.sub("", text)
        walker = Walker(self._targets, trail=self._trail, losses=losses, is_direct=self._is_direct)
        walked = walker.walk(match_brackets(text, losses))
        shown, links = walked.text, walked.links
        cells: list[TextCell] = []
        if fragments:
            end = shown.index(FRAGMENT)
            n_links = bisect_left(links, (end,))
            cells = build_cells(shown, end + len(FRAGMENT), links[n_links:])
            shown, links = shown[:end], links[:n_links]
        blocks = build_blocks(shown, links, title=title)
        tables, infoboxes = work.assemble(cells, blocks.places)
        return ParsedText(
            elements=tuple(blocks.elements),
            anchors=tuple(blocks.anchors),
            categories=tuple(dict.fromkeys(walked.categories)),
            tables=tables,
            infoboxes=infoboxes,
            templates=tuple(
                TemplateUse(name, outcome, count) for (name, outcome), count in sorted(work.templates.items())
            ),
            losses=tuple(Loss(kind, count) for kind, count in sorted(losses.items()) if count),
            is_disambiguation=work.is_disambiguation(),
            lost=work.lost,
        )


class _Page:
    """The state of one page while it is prepared for the tokenizer."""

    def __init__(self, renderer: TemplateRenderer, facts: Language) -> None:
        self._renderer = renderer
        self._facts = facts
        self.losses: Counter[str] = Counter()
        self.templates: Counter[tuple[str, str]] = Counter()
        self.lost: dict[tuple[str, str], LostText] = {}
        self._switches: set[str] = set()
        self._infoboxes: list[tuple[str, list[tuple[str, str]]]] = []
        self._tables: list[RawTable] = []

    def without_controls(self, wikitext: str) -> str:
        """Gives wikitext without the characters that stand for structure in what follows."""
        if holds_controls(wikitext):
            wikitext, n_controls = ANY_CONTROL.subn("", wikitext)
            self.losses["control_character"] += n_controls
        return wikitext

    def prepare(self, wikitext: str) -> str:
        """Gives the body with everything but links, quotes and lines resolved; collects tables and infoboxes."""
        if "\r" in wikitext:
            wikitext = wikitext.replace("\r\n", "\n").replace("\r", "\n")
        text = strip_extensions(wikitext, self.losses)
        if self._facts.code in VARIANT_LANGS:
            text = choose_variants(text)
        text = _LISTED_WORK.sub(rf"\1{CUT}", "\n" + text)[1:]
        text = expand_braces(
            text, on_template=self._on_template, on_parameter=self._on_parameter, on_broken=self._on_broken
        )
        if SAID in text:
            text = _SAID.sub(self._said, text)
        return self._settle(text)

    def _said(self, use: re.Match[str]) -> str:
        """Gives the words that an unknown template wraps inside of a sentence, nothing elsewhere."""
        head, _, words = use[1].partition("|")
        name = normalise_template_name(head, self._facts.code)
        if not is_in_sentence(use):
            return self._leave_out(use[1], name, "unknown")
        self.templates[name, "unknown"] += 1
        return words.strip()

    def _settle(self, text: str) -> str:
        if PIPE in text:
            text = text.replace(PIPE, "|")
        if EQUALS in text:
            text = text.replace(EQUALS, "=")
        if PLACE in text:
            text = _PLACE_TO_SETTLE.sub(_own_line, text)
        if "[http" in text:
            text, n_links = _UNLABELLED.subn(CUT, text)
            self.losses["external_link_unlabelled"] += n_links
        text = decode_references(replace_tags(text, self.losses))
        text = remove_switches(text, self.losses, self._switches)
        return cut_tables(text, self._tables, self.losses)

    def _on_template(self, inner: str, depth: int) -> str:
        is_listed = inner[:1] == CUT  # see _LISTED_WORK
        fixed = None if is_listed else self._renderer.fixed_outcome(inner.partition("|")[0])
        if fixed is not None:
            if fixed[1] == "unknown" and not depth and WORDS_ALONE.fullmatch(inner):
                return f"{SAID}{inner}{SAID}"
            return self._leave_out(inner, *fixed)
        template = split_template(inner, self._facts.code)
        if template is None:
            self.losses["broken_markup"] += 1
            return CUT
        if PIPE in inner or EQUALS in inner:
            template = template._replace(
                positional=tuple(value.replace(PIPE, "|").replace(EQUALS, "=") for value in template.positional),
                named={key: value.replace(PIPE, "|").replace(EQUALS, "=") for key, value in template.named.items()},
            )
        if is_listed and (work := citations.whole(template)):
            self.templates[template.name, "rendered"] += 1
            return _as_argument(work) if depth else work
        rendering = self._renderer.render(template)
        if rendering.outcome == "infobox":
            if _HEADING_IN_TEMPLATE.search(inner):
                return self._leave_out(inner, template.name, "infobox")
            fields = [(without_marks(name).strip(), value) for name, value in template.named.items() if value]
            self.templates[template.name, "rendered"] += 1
            self._infoboxes.append((template.name, fields))
            text = _as_argument(rendering.wikitext) if depth else rendering.wikitext
            return f"\n{PLACE}I{len(self._infoboxes) - 1}\n{text}"
        if rendering.outcome != "rendered":
            return self._leave_out(inner, template.name, rendering.outcome)
        self.templates[template.name, "rendered"] += 1
        text = rendering.wikitext
        if rendering.is_block:
            text = f"\n\n{text}\n\n"
        elif not text:
            return CUT
        return _as_argument(text) if depth else text

    def _leave_out(self, inner: str, name: str, outcome: str) -> str:
        """Counts a template that shows nothing. Infoboxes and tables inside it keep their place.

        One that holds a section heading was never closed, and its closer is another's: its text stays.
        """
        if "\n==" in inner and _HEADING_IN_TEMPLATE.search(inner):
            self.losses["broken_markup"] += 1
            return _OPENED_ARGUMENT.sub("", inner)
        self.templates[name, outcome] += 1
        if "|" in inner:
            lost = lost_text(inner, self.lost.get((name, outcome)))
            if lost is not None:
                self.lost[name, outcome] = lost
        if PLACE in inner:
            return "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner)) or CUT
        return CUT

    def _on_parameter(self, inner: str) -> str:
        self.losses["parameter"] += 1
        return inner.partition("|")[2]

    def _on_broken(self) -> None:
        self.losses["broken_markup"] += 1

    def fragments(self) -> list[str]:
        """Gives the wikitext of all cells and values in the order that ``assemble`` takes them back."""
        # Values may hold tables of their own, which come after the body's: settle them first.
        values = [
            self._settle(value) if _UNSETTLED.search(value) else value
            for _, fields in self._infoboxes
            for _, value in fields
        ]
        cells: list[str] = []
        for table in self._tables:
            if table.caption is not None:
                cells.append(table.caption)
            cells.extend(cell.text for row in table.rows for cell in row)
        return cells + values

    def assemble(
        self, cells: list[TextCell], places: dict[str, int]
    ) -> tuple[tuple[ParsedTable, ...], tuple[ParsedInfobox, ...]]:
        """Gives the tables and infoboxes with the texts of their fragments, each with its place in the body."""
        taken = iter(cells)
        tables: list[ParsedTable] = []
        place = 0
        for number, table in enumerate(self._tables):
            place = places.get(f"T{number}", place)
            caption = None if table.caption is None else next(taken).text or None
            rows = [
                tuple([ParsedCell(next(taken), cell.is_header, cell.colspan, cell.rowspan) for cell in row])
                for row in table.rows
            ]
            kept = tuple([row for row in rows if row])
            if kept or caption:
                tables.append(ParsedTable(place, caption, kept))
        infoboxes: list[ParsedInfobox] = []
        for number, (name, fields) in enumerate(self._infoboxes):
            values = tuple((field, next(taken)) for field, _ in fields)
            place = places.get(f"I{number}", 0)
            infoboxes.append(ParsedInfobox(place, name, tuple(value for value in values if value[1].text)))
        return tuple(tables), tuple(infoboxes)

    def is_disambiguation(self) -> bool:
        """Says whether a behaviour switch or a template of the language's family marks the page."""
        if self._switches & self._facts.disambiguation_words:
            return True
        names = self._facts.disambiguation_templates
        return any(name in names for name, _ in self.templates)


def _own_line(place: re.Match[str]) -> str:
    """Gives a place on a line of its own; the blanks behind it go, or the next line would be preformatted."""
    is_begun = place.start() > 0 and place.string[place.start() - 1] != "\n"
    return f"\n{place[1]}\n" if is_begun else f"{place[1]}\n"


def _as_argument(text: str) -> str:
    """Gives what came out of a template so that one around it takes no pipe or equals sign of it for its own."""
    return text.replace("|", PIPE).replace("=", EQUALS)
