"""A page's wikitext -> wikitext with nothing in it but text, links, quotes and lines; tables and infoboxes apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from kbsource.languages import Language
from kbsource.wikitext.blocks import TextCell
from kbsource.wikitext.expansion.braces import expand_braces
from kbsource.wikitext.expansion.expander import Expander
from kbsource.wikitext.extensions import strip_extensions
from kbsource.wikitext.functions import citations
from kbsource.wikitext.html_tags import decode_references, replace_tags
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants, remove_switches
from kbsource.wikitext.markers import (
    ANY_CONTROL,
    CUT,
    EQUALS,
    LINE,
    PIPE,
    PLACE,
    SAID,
    holds_controls,
    without_marks,
)
from kbsource.wikitext.tables import RawTable, cut_tables
from kbsource.wikitext.templates import (
    WORDS_ALONE,
    LostText,
    Template,
    TemplateRenderer,
    is_in_sentence,
    lost_text,
    mark_links,
    normalise_template_name,
    split_template,
    visible_chars,
)

_NOTHING = f"{CUT}{LINE} \n"
_PLACE_LINE = re.compile(f"{PLACE}[TI][0-9]+")
_PLACE_TO_SETTLE = re.compile(f"({PLACE}[TI][0-9]+)\n? *")
_UNSETTLED = re.compile(f"[<&_~{{{PIPE}{EQUALS}{PLACE}{LINE}]")  # what _settle looks for
# A list item that begins with the description of a work is read; elsewhere such a template fills a reference.
_LISTED_WORK = re.compile(r"(\n[*#:]+[ \t]*\{\{)(?=[ \t]*[Cc]it(?:e[ _][\w ]+|ation)[ \t\n]*\|)")
_SAID = re.compile(f"{SAID}([^{SAID}]*){SAID}")
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


class PagePreparation:
    """The state of one page while it is prepared for the tokenizer.

    Attributes:
        losses: pieces that are not carried over, by kind.
        templates: uses by name and outcome.
        lost: what is lost of templates, likewise.
        shown: visible characters that templates show, likewise; see ``ParsedText``.
    """

    def __init__(self, renderer: TemplateRenderer, facts: Language, expander: Expander | None) -> None:
        self._renderer = renderer
        self._facts = facts
        self._expansion = expander.on_page(renderer.page) if expander is not None else None
        self.losses: Counter[str] = Counter()
        self.templates: Counter[tuple[str, str]] = Counter()
        self.lost: dict[tuple[str, str], LostText] = {}
        self.shown: Counter[tuple[str, str]] = Counter()
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
        if LINE in text:
            text = text.replace(f"\n{LINE}", "\n").removeprefix(LINE).replace(LINE, "\n")
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
            if fixed[1] == "unknown":
                if self._expansion is not None and (text := self._expand(inner, fixed[0], depth)) is not None:
                    return text
                if not depth and WORDS_ALONE.fullmatch(inner):
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
        if self._expansion is not None and self._renderer.yields(template.name):
            expanded = self._expand(inner, template.name, depth, has_rule=True)
            if expanded is not None:
                return expanded
        rendering = self._renderer.render(template)
        if rendering.outcome == "infobox":
            if _HEADING_IN_TEMPLATE.search(inner):
                return self._leave_out(inner, template.name, "infobox")
            self.templates[template.name, "rendered"] += 1
            text = _as_argument(rendering.wikitext) if depth else rendering.wikitext
            return self._add_infobox(template) + text
        if rendering.outcome != "rendered":
            if rendering.outcome == "unknown" and self._expansion is not None:
                expanded = self._expand(inner, template.name, depth)
                if expanded is not None:
                    return expanded
            return self._leave_out(inner, template.name, rendering.outcome)
        self.templates[template.name, "rendered"] += 1
        text = rendering.wikitext
        if not text and not rendering.is_block:
            return CUT
        if "[[" in text and text.count("[[") > inner.count("[["):
            text = mark_links(text, inner)
        if "'" in text and template.name[0] != "#":
            text = _apart(text)
        if not depth:
            self.shown[template.name, "rendered"] += visible_chars(text)
        if rendering.is_block:
            text = f"\n\n{text}\n\n"
        return _as_argument(text) if depth else text

    def _expand(self, inner: str, name: str, depth: int, *, has_rule: bool = False) -> str | None:
        """Gives what a template shows by its definition; None where there is none, nothing comes of it, or it hits a
        limit and there is a rule."""
        if self._expansion is None or ("\n==" in inner and _HEADING_IN_TEMPLATE.search(inner)):
            return None
        outcome, text, is_infobox, n_modules = self._expansion.expand(inner, name)
        if has_rule and (outcome in ("unknown", "bound") or not (is_infobox or text.strip(_NOTHING))):
            return None
        self.losses["module"] += n_modules
        if outcome == "unknown":
            return None
        if outcome == "bound":
            return self._leave_out(inner, name, outcome)
        self.templates[name, outcome] += 1
        if not depth and (is_infobox or text.strip(_NOTHING)):
            self.shown[name, outcome] += visible_chars(text)
        if PLACE in inner:  # of infoboxes in the arguments that it does not show
            text += "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner) if place not in text)
        box = ""
        if is_infobox and (template := split_template(_unmarked(inner), self._facts.code)) is not None:
            box = self._add_infobox(template)
        return box + (_as_argument(text) if depth else text) or CUT

    def _add_infobox(self, template: Template) -> str:
        fields = [(without_marks(name).strip(), value) for name, value in template.named.items() if value]
        self._infoboxes.append((template.name, fields))
        return f"\n{PLACE}I{len(self._infoboxes) - 1}\n"

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


def _apart(text: str) -> str:
    """Gives what a rule shows so that apostrophes at its ends join none beside it: a template's are inside of a tag."""
    before = CUT if text[0] == "'" else ""
    return f"{before}{text}{CUT}" if text[-1] == "'" else before + text


def _own_line(place: re.Match[str]) -> str:
    """Gives a place on a line of its own; the blanks behind it go, or the next line would be preformatted."""
    is_begun = place.start() > 0 and place.string[place.start() - 1] != "\n"
    return f"\n{place[1]}\n" if is_begun else f"{place[1]}\n"


def _unmarked(text: str) -> str:
    """Gives what stands between braces with the pipes and equals signs that came out of templates as plain ones."""
    return text.replace(PIPE, "|").replace(EQUALS, "=")


def _as_argument(text: str) -> str:
    """Gives what came out of a template so that one around it takes no pipe or equals sign of it for its own."""
    return text.replace("|", PIPE).replace("=", EQUALS)
