"""Parses a page's wikitext into elements, anchors, tables, infoboxes, categories, and counts of what was left
out.

The order of the steps is MediaWiki's own: comments and extension tags, braces, HTML, tables, quotes, links, blocks. All
text (the body, cells and infobox values) goes through the tokenizer once, in one string, so that one piece of code
determines text and links.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from mwparserfromhell.parser import ParserError

from kbsource.records import Element, Loss, TemplateUse
from kbsource.site import Site
from kbsource.titles import TargetParser
from kbsource.wikitext.asked import Asked
from kbsource.wikitext.blocks import LINK_OF_LINES, RawAnchor, RawTable, TextCell, build_blocks, build_cells, cut_tables
from kbsource.wikitext.braces import expand_braces
from kbsource.wikitext.brackets import CutText, lift_numbers, match_brackets, without_stray_blocks, without_stray_marks
from kbsource.wikitext.expander import Definitions, Expander, Invoke, PageExpander
from kbsource.wikitext.functions import inline
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.conditions import ERROR
from kbsource.wikitext.lines import (
    VARIANT_LANGS,
    choose_variants,
    end_paragraphs,
    mark_lines,
    remove_switches,
    strip_quotes,
    tidy,
)
from kbsource.wikitext.markers import (
    ANY_PLACE,
    BLOCK,
    BREAK,
    CUT,
    CUTS,
    EQUALS,
    FRAGMENT,
    LINE,
    NUMBER,
    NUMBERED,
    PIPE,
    PLACE,
    PRE,
    SAID,
    TEMPLATE_LINK,
    as_read,
    cut_out,
    has_numbers,
    mark_separators,
    single_spaces,
    unliteral,
    unmark_separators,
    without_marks,
    without_numbers,
)
from kbsource.wikitext.reference_texts import NoteKinds, ReferenceReader
from kbsource.wikitext.references import ParsedReferences, Place, References
from kbsource.wikitext.tags import decode_references, replace_tags, strip_extensions
from kbsource.wikitext.templates import (
    WORDS_ALONE,
    LostText,
    find_rule,
    fixed_outcomes,
    is_in_sentence,
    lost_text,
    mark_links,
    normalise_template_name,
    render,
    split_at_pipes,
    split_template,
    unmarked,
    visible_chars,
)
from kbsource.wikitext.walk import Walker

_NOTHING = f"{CUTS}{LINE} \n"
_CUT_BLOCKS = CUTS + BLOCK
_BLANK_NAME = f"{CUTS}{PIPE}: _\n"  # characters that do not make a template name
_PLACE_LINE = re.compile(f"{PLACE}[TI][0-9]+")
_PLACE_TO_SETTLE = re.compile(f"({PLACE}[TI][0-9]+)\n? *")
_PLACE_SHOWN = re.compile(f"({ANY_PLACE.pattern})\n?")
_CUTS_IN_A_ROW = re.compile(f"{CUT}{CUT}+")
_UNSETTLED = re.compile(f"[<&_~{{{PIPE}{EQUALS}{PLACE}{LINE}{NUMBER}{BLOCK}]")  # characters that _settle processes
# A list item that begins with the description of a work is rendered; elsewhere such a template belongs to a reference.
_LISTED_WORK = re.compile(r"(\n[*#:]+[ \t]*\{\{)(?=[ \t]*[Cc]it(?:e[ _][\w ]+|ation)[ \t\n]*\|)")
_MONEY_IN_BRACKETS = re.compile(rf"\([^()\n{NUMBER}]{{0,200}}{NUMBER}[^()\n]{{0,200}}\)")
_MONEY_WITHOUT_NUMBER = re.compile(rf"[^(,;{NUMBER}]*{NUMBER}(?=[ ,;.)])(?! ?[0-9])[^,;)]*")
_SAID = re.compile(f"{SAID}([^{SAID}]*){SAID}")
# An external link up to the end of its address, if no space ends the address; includes the bracket if it has no label.
_ADDRESS = re.compile(
    r"\[https?://(?:\[[0-9A-Fa-f:.]+\])?+[^\s\[\]\"<>']*+(?:'[^\s\[\]\"<>']++)*+(?:\]|(?=[\[\"<]|''|[^\S \n]))"
)
# An external link whose label contains block elements: its address shows nothing, and it may end on another line.
_BLOCK_TAG = "(?ai:table|div|p|center|blockquote|ul|ol|dl|hr|h[1-6])\\b"
_REST_OF_BLOCKS = (
    rf"//[^\s\[\]<>\"|\x00-\x1f]++((?:[^\[\]\n<{BLOCK}]|<(?!{_BLOCK_TAG}))*+[<{BLOCK}]"
    r"(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\])*+)\]"
)
_LABEL_OF_BLOCKS = re.compile(rf"\[https?:{_REST_OF_BLOCKS}")
_RELATIVE_LABEL_OF_BLOCKS = re.compile(rf"\[{_REST_OF_BLOCKS}")
# A reference to a space, which does not end an address.
_BLANK_IN_ADDRESS = re.compile(r"(\[https?://[^\s\[\]<>\"&]*+)&(?:nbsp|#(?:x20|32|160|x[aA]0));")
_FRACTION = re.compile("[0-9]+[⁄/][0-9]+")
_FRACTION_AFTER_NUMBER = re.compile(rf"(?<=[0-9]){CUT}{CUT}(?=[0-9]+[⁄/][0-9])")
_LONGEST_LABEL = 500
_OPENED_ARGUMENT = re.compile(r"\A[^|\n\[\]]*\|[^\n\[\]]*=[ \t]*(?=\n)")
# Structure that a line of text with only links, quotes and character references does not contain or begin with.
_STRUCTURE = re.compile(r"\|[-+]|[{}<\n\x00\x01\x03-\x07\x0b-\x0d\x1c-\x1f]|__|~~~")
_LINE_STARTS = frozenset("=*#:;- ")
_HEADING_IN_TEMPLATE = re.compile(r"\n==[^=\n][^\n]*==[ \t]*\n")


class ParsedCell(NamedTuple):
    """A table cell before its links are resolved."""

    content: TextCell
    is_header: bool
    colspan: int
    rowspan: int


class ParsedTable(NamedTuple):
    """A table before its links are resolved; fields as in records.Table."""

    element: int
    caption: str | None
    rows: tuple[tuple[ParsedCell, ...], ...]


class ParsedInfobox(NamedTuple):
    """An infobox before its links are resolved; ``fields`` are (name, value) in order."""

    element: int
    name: str
    fields: tuple[tuple[str, TextCell], ...]


class PagePreparation:
    """The state of a page while it is prepared for the tokenizer; counts are as in ``ParsedText``."""

    def __init__(
        self,
        page: PageFacts,
        expander: Expander | None,
        references: References | None = None,
    ) -> None:
        self._page = page
        self.title = page.title
        self._fixed_outcome = fixed_outcomes(page.lang)
        self._find_rule = find_rule(page.lang)
        self._references = references
        self._expander = expander
        self._facts = page.site.language_facts
        self._expansion = PageExpander(expander, page) if expander is not None else None
        self.losses: Counter[str] = Counter()
        self.templates: Counter[tuple[str, str]] = Counter()
        self.lost: dict[tuple[str, str], LostText] = {}
        self.shown: Counter[tuple[str, str]] = Counter()
        self._switches: set[str] = set()
        self._infoboxes: list[tuple[str, list[tuple[str, str]]]] = []
        self._tables: list[RawTable] = []
        self._has_blocks = self._has_fractions = False

    def prepare(self, wikitext: str) -> str:
        """Returns the body with everything but links, quotes and lines resolved; collects tables and infoboxes."""
        references = self._references
        text = strip_extensions(wikitext, self.losses, references)
        if self._facts.code in VARIANT_LANGS:
            text = choose_variants(text)
        text = _LISTED_WORK.sub(rf"\1{CUT}", "\n" + text)[1:]
        on_template = self._on_template if references is None else self._on_noted
        text = expand_braces(text, on_template=on_template, on_parameter=self._on_parameter, on_broken=self._on_broken)
        if references is not None:
            references.set_order(text)
        if SAID in text:
            text = _SAID.sub(self._said, text)
        text = self._settle(text)
        return text.replace(BREAK, " ") if BREAK in text else text

    def _said(self, use: re.Match[str]) -> str:
        """Returns the words that an unknown template wraps inside a sentence; elsewhere only a cut."""
        inner, numbers = without_numbers(use[1]), "".join(NUMBERED.findall(use[1]))  # numbers in its name
        head, _, words = inner.partition("|")
        name = normalise_template_name(head, self._facts.code)
        if not is_in_sentence(use):
            return self._leave_out(inner, name, "unknown") + numbers
        self.templates[name, "unknown"] += 1
        return words.strip() + numbers

    def _settle(self, text: str) -> str:
        if NUMBER in text:  # in brackets, a currency sign without its number is removed with the words around it
            text = _MONEY_IN_BRACKETS.sub(lambda found: _MONEY_WITHOUT_NUMBER.sub(cut_out, found[0]), text)
            text = text.replace(NUMBER, CUT)
        if LINE in text:
            text = text.replace(f"\n{LINE}", "\n").removeprefix(LINE).replace(LINE, "\n")
        text = unmark_separators(text)
        if PLACE in text:
            text = _PLACE_TO_SETTLE.sub(_own_line, text)
        if "[http" in text:
            text = _ADDRESS.sub(partial(_address, losses=self.losses), text)
            text = _LABEL_OF_BLOCKS.sub(rf"{CUT}\1{CUT}", text)
            if "&" in text:
                text = _BLANK_IN_ADDRESS.sub(r"\1%20", text)
        if "[//" in text:
            text = _RELATIVE_LABEL_OF_BLOCKS.sub(rf"{CUT}\1{CUT}", text)
        if self._has_fractions:
            text = _FRACTION_AFTER_NUMBER.sub("+", text)
        if ERROR in text:
            text = text.replace(ERROR, CUT)
        text = decode_references(replace_tags(text, self.losses))
        text = remove_switches(text, self.losses, self._switches, self._facts.switch_pattern())
        if BLOCK not in text:
            return cut_tables(text, self._tables, self.losses)
        self._has_blocks = True
        return end_paragraphs(cut_tables(text, self._tables, self.losses))

    def _on_noted(self, inner: str, depth: int) -> str:
        """Returns the result of ``_on_template`` with the numbers of references in the use, and its own number if it
        makes one.

        If the use shows anything but a cut, numbers keep their position if they pass through the expansion unchanged.
        Otherwise they follow the output, unless they would separate text that belongs together there.
        """
        assert self._references is not None
        kind = self._references.kind_of(inner.partition("|")[0])
        is_numbered = has_numbers(inner)
        n_boxes = len(self._infoboxes)
        shown = self._on_template(without_numbers(inner) if is_numbered else inner, depth)
        if len(self._infoboxes) > n_boxes:
            self._references.add_box(f"I{n_boxes}", inner)
            return shown
        if kind is None and not is_numbered:
            return shown
        numbers = inner
        if kind is not None and (template := split_template(inner, self._facts.code)) is not None:
            is_shown = bool(shown.strip(_CUT_BLOCKS))
            numbers = self._references.template(kind, unmarked(template), inner, is_shown=is_shown)
        elif not shown.strip(_CUT_BLOCKS):
            self._references.hide(inner)
        elif CUT in shown and without_numbers(numbered := self._worked_out_again(inner, depth)) == shown:
            return numbered
        if not has_numbers(numbers):
            return shown
        if shown[:1] == CUT and not shown.strip(CUT + BLOCK):
            return cut_out(numbers) + _CUTS_IN_A_ROW.sub(CUT, shown)[1:]
        return shown + "".join(NUMBERED.findall(numbers)) if shown[-1:].isalnum() else shown

    def _worked_out_again(self, inner: str, depth: int) -> str:
        """Returns the result of ``_on_template`` without counting anything or charging the page's budget."""
        again = PagePreparation(self._page, self._expander)
        again._infoboxes = self._infoboxes[:]
        return again._on_template(inner, depth)

    def _on_template(self, inner: str, depth: int) -> str:
        is_listed = inner[:1] == CUT  # see _LISTED_WORK
        fixed = None if is_listed else self._fixed_outcome(inner.partition("|")[0])
        if fixed is not None:
            name, outcome, ends_paragraph = fixed
            if outcome == "unknown":
                if self._expansion is not None and (text := self._expand(inner, name, depth)) is not None:
                    return text
                if not depth and WORDS_ALONE.fullmatch(inner):
                    return f"{SAID}{inner}{SAID}"
            left = self._leave_out(inner, name, outcome)
            return left + BLOCK if ends_paragraph and not depth else left
        template = split_template(inner, self._facts.code)
        if template is None:
            self.losses["broken_markup"] += 1
            text = inner if inner.partition("|")[0].strip(_BLANK_NAME) else CUT
            return mark_separators(text) if depth else text
        if PIPE in inner or EQUALS in inner:
            template = unmarked(template)
        if is_listed and (work := inline.whole(template)):
            self.templates[template.name, "rendered"] += 1
            return mark_separators(work) if depth else work
        if self._expansion is not None and self._find_rule(template.name).yields:
            expanded = self._expand(inner, template.name, depth, has_rule=True)
            if expanded is not None:
                return expanded
        rendering = render(template, self._page)
        if rendering.outcome == "infobox":
            if _has_heading(inner):
                return self._leave_out(inner, template.name, "infobox")
            self.templates[template.name, "rendered"] += 1
            text = mark_separators(rendering.wikitext) if depth else rendering.wikitext
            return self._add_infobox(template) + text
        if rendering.outcome != "rendered":
            if rendering.outcome == "unknown" and self._expansion is not None:
                expanded = self._expand(inner, template.name, depth)
                if expanded is not None:
                    return expanded
            return self._leave_out(inner, template.name, rendering.outcome)
        self.templates[template.name, "rendered"] += 1
        text = rendering.wikitext
        if PLACE in text:
            text = _with_places(text, inner)
        if not text and not rendering.is_block:
            return CUT
        if "[[" in text and text.count("[[") > inner.count("[["):
            text = mark_links(text, inner)
        if "'" in text and template.name[0] != "#":
            text = _apart(text)
        elif text[-1:].isdigit() and _FRACTION.fullmatch(text):
            self._has_fractions = True
            text = f"{CUT}{CUT}{text}"  # separates it from a number before it, because it is added to that number
        if not depth:
            self.shown[template.name, "rendered"] += visible_chars(_without_places(text))
        if rendering.is_block:  # an empty block keeps the list after it at the beginning of a line
            text = f"\n\n{text}\n\n" if text else f"{CUT}\n\n"
        return mark_separators(text) if depth else text

    def _expand(self, inner: str, name: str, depth: int, *, has_rule: bool = False) -> str | None:
        """Returns the expansion of a template by its definition; None if it has no definition or result, or if it
        exceeds a limit and there is a rule.
        """
        if self._expansion is None or _has_heading(inner):
            return None
        outcome, text, is_infobox, n_modules, n_refs = self._expansion.expand(inner, name)
        if has_rule and (outcome in ("unknown", "bound") or not (is_infobox or text.strip(_NOTHING))):
            return None
        self.losses["module"] += n_modules
        if self._references is not None:
            self._references.count("in_definition", n_refs)
        if outcome == "unknown":
            return None
        if outcome == "bound":
            return self._leave_out(inner, name, outcome)
        self.templates[name, outcome] += 1
        if not depth and (is_infobox or text.strip(_NOTHING)):
            self.shown[name, outcome] += visible_chars(_without_places(text))
        if PLACE in inner:
            text = _with_places(text, inner)
            shown = set(_PLACE_LINE.findall(text))
            text += "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner) if place not in shown)
        box = ""
        if is_infobox and (template := split_template(inner, self._facts.code)) is not None:
            box = self._add_infobox(unmarked(template))
        return box + (mark_separators(text) if depth else text) or CUT

    def _add_infobox(self, template: Template) -> str:
        unnamed = [(str(number), value) for number, value in enumerate(template.positional, 1) if value.strip(_NOTHING)]
        fields = unnamed + [(without_marks(name).strip(), value) for name, value in template.named.items() if value]
        self._infoboxes.append((template.name, fields))
        return f"\n{PLACE}I{len(self._infoboxes) - 1}\n"

    def _leave_out(self, inner: str, name: str, outcome: str) -> str:
        """Counts a template that shows nothing. Infoboxes and tables inside it keep their position.

        A template that contains a section heading was never closed, and its closing braces belong to another one: its
        text stays.
        """
        if _has_heading(inner):
            self.losses["broken_markup"] += 1
            return _OPENED_ARGUMENT.sub("", inner)
        self.templates[name, outcome] += 1
        if "|" in inner:
            lost = lost_text(_without_places(inner), self.lost.get((name, outcome)))
            if lost is not None:
                self.lost[name, outcome] = lost
        if PLACE in inner:
            return "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner)) or CUT
        return CUT

    def _on_parameter(self, inner: str) -> str:
        self.losses["parameter"] += 1
        return next(islice(split_at_pipes(inner), 1, None), "")

    def _on_broken(self) -> None:
        self.losses["broken_markup"] += 1

    def fragments(self) -> list[str]:
        """Returns the wikitext of all cells and values, in the order that ``assemble`` expects their texts."""
        # Values may contain tables of their own, which come after the body's: process them first.
        values = [
            self._settle(value) if _UNSETTLED.search(value) or self._has_fractions else value
            for _, fields in self._infoboxes
            for _, value in fields
        ]
        cells: list[str] = []
        for table in self._tables:
            if table.caption is not None:
                cells.append(table.caption)
            cells.extend(cell.text for row in table.rows for cell in row)
        if self._has_blocks:
            cells = [end_paragraphs(cell) if BLOCK in cell else cell for cell in cells]
        return cells + values

    def assemble(
        self, cells: list[TextCell], places: dict[str, int], hidden_places: set[str]
    ) -> tuple[tuple[ParsedTable, ...], tuple[ParsedInfobox, ...]]:
        """Returns the tables and infoboxes with the texts of their fragments, each with its position in the body.

        Those at ``hidden_places`` are left out, with the tables nested in them, which follow them and have no position.
        """
        taken = iter(cells)
        tables: list[ParsedTable] = []
        place = 0
        is_hidden = False
        for number, table in enumerate(self._tables):
            place = places.get(f"T{number}", place)
            is_hidden = f"T{number}" in hidden_places or (is_hidden and f"T{number}" not in places)
            caption = None if table.caption is None else next(taken).text or None
            rows = [
                tuple([ParsedCell(next(taken), cell.is_header, cell.colspan, cell.rowspan) for cell in row])
                for row in table.rows
            ]
            kept = tuple([row for row in rows if row])
            if (kept or caption) and not is_hidden:
                self._put(f"T{number}", table.numbers, Place(table=len(tables)), place)
                tables.append(ParsedTable(place, caption, kept))
        infoboxes: list[ParsedInfobox] = []
        for number, (name, fields) in enumerate(self._infoboxes):
            values = tuple((field, next(taken)) for field, _ in fields)
            place = places.get(f"I{number}", 0)
            self._put(f"I{number}", (), Place(infobox=number), place)
            infoboxes.append(ParsedInfobox(place, name, tuple(value for value in values if value[1].text)))
        return tuple(tables), tuple(infoboxes)

    def _put(self, name: str, notes: Sequence[int], place: Place, element: int) -> None:
        if self._references is not None:
            own = self._references.boxes.get(name, [])
            self._references.places.update(dict.fromkeys([*notes, *own], place))
            self._references.above[place] = element

    def is_disambiguation(self) -> bool:
        """Returns whether a behaviour switch or a template of the language's family marks the page as a
        disambiguation page.
        """
        if self._switches & self._facts.disambiguation_words:
            return True
        names = self._facts.disambiguation_templates
        return any(name in names for name, _ in self.templates)


def _has_heading(inner: str) -> bool:
    """Returns whether a use contains a section heading outside of file captions."""
    if "\n==" not in inner or not _HEADING_IN_TEMPLATE.search(inner):
        return False
    return "[[" not in inner or _HEADING_IN_TEMPLATE.search(LINK_OF_LINES.sub("", inner)) is not None


def _with_places(shown: str, inner: str) -> str:
    """Returns a template's output with the placeholders of infoboxes in it at the ends of lines; placeholders
    altered by a function are removed.
    """
    places = {*_PLACE_LINE.findall(inner)}
    return _PLACE_SHOWN.sub(lambda place: f"{place[1]}\n" if place[1] in places else "", shown)


def _without_places(text: str) -> str:
    return ANY_PLACE.sub("", text) if PLACE in text else text


def _apart(text: str) -> str:
    """Returns a rule's output, protected so that apostrophes at its ends do not join adjacent ones; in MediaWiki a
    tag separates them.
    """
    before = CUT if text[0] == "'" else ""
    return f"{before}{text}{CUT}" if text[-1] == "'" else before + text


def _address(found: re.Match[str], losses: Counter[str]) -> str:
    """Removes a link without a label; otherwise separates the address from the label by a space. Inside a link's
    label it is text.
    """
    if found[0][-1] != "]":
        return f"{found[0]} "
    before = found.string[max(found.start() - _LONGEST_LABEL, 0) : found.start()].rpartition("\n")[2]
    if "|" in (label := before.rpartition("[[")[2]) and "[[" in before and "]]" not in label:
        return found[0]
    losses["external_link_unlabelled"] += 1
    return cut_out(found)


def _own_line(place: re.Match[str]) -> str:
    """Returns a placeholder on a line of its own, without the spaces after it, which would make the next line
    preformatted.
    """
    is_begun = place.start() > 0 and place.string[place.start() - 1] != "\n"
    return f"\n{place[1]}\n" if is_begun else f"{place[1]}\n"


# The newlines around a template's argument are stripped, so a marker may end up within a line.
_STRAY_PRE = re.compile(f"{PRE}(?<=[^\n]{PRE})")  # begins with the marker, which is found faster than any character
# Markers that no later step makes or reads. Pipes are unmarked everywhere, and searching for a null byte is slow.
_LEAKED = (EQUALS, LINE, SAID, NUMBER, "\r")
_NO_TARGET = re.compile(rf"\[\[{TEMPLATE_LINK}(?=[][|{{}}<>\n{PLACE}])")


def _without_leaks(text: str, losses: Counter[str]) -> str:
    """Returns the text without placeholders left by an earlier step, which are counted."""
    n_leaked = 0
    for mark in _LEAKED:
        if mark in text:
            n_leaked += text.count(mark)
            text = text.replace(mark, "")
    if n_leaked:
        losses["control_character"] += n_leaked
        text = single_spaces(text)
    return text


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The content of a page's wikitext, with links not yet resolved."""

    elements: tuple[Element, ...]
    anchors: tuple[RawAnchor, ...] = ()
    categories: tuple[str, ...] = ()
    template_categories: tuple[str, ...] = ()
    tables: tuple[ParsedTable, ...] = ()
    infoboxes: tuple[ParsedInfobox, ...] = ()
    templates: tuple[TemplateUse, ...] = ()
    losses: tuple[Loss, ...] = ()
    is_disambiguation: bool = False
    #: text lost in templates, by name and outcome
    lost: dict[tuple[str, str], LostText] = field(default_factory=dict)
    #: visible characters shown by templates outside other templates, by name and outcome; templates that leave nothing
    #: at all are not listed
    shown: Mapping[tuple[str, str], int] = field(default_factory=dict)
    references: ParsedReferences | None = None  #: None if not requested
    asked: frozenset[str] | None = None  #: dependencies on the snapshot, see ``Asked``; None if not recorded


class WikitextParser:
    """Parses a wiki's pages. It holds caches; create one per process.

    With ``is_direct``, plain and hidden links are read without mwparserfromhell; the result is the same.
    ``definitions`` are used to expand templates without a rule; ``invoke``, ``exists`` and ``asked`` are as for
    ``Expander``.

    ``has_references`` changes nothing else in the result. A page whose references cannot be read has none, which is
    counted as ``failed``.
    """

    def __init__(
        self,
        site: Site,
        *,
        is_direct: bool = True,
        definitions: Definitions | None = None,
        invoke: Invoke | None = None,
        exists: Callable[[str], bool] | None = None,
        has_references: bool = False,
        asked: Asked | None = None,
    ) -> None:
        self._asked = asked or Asked(site)
        self._read_reference: ReferenceReader | None = None
        if has_references:
            self._note_kind = NoteKinds(site.lang, definitions, self._asked)
            self._read_reference = ReferenceReader(site.lang, self.plain, self._note_kind, self._asked)
        self._trail = site.language_facts.link_trail_pattern()
        self._prefix = site.language_facts.link_prefix_pattern()
        self._targets = TargetParser(site)
        self._page = PageFacts(site.lang, site=site, exists=exists)
        self._is_direct = is_direct
        self._expander: Expander | None = None
        if definitions is not None:
            rules = find_rule(site.lang)
            self._expander = Expander(definitions, site, rules, invoke=invoke, exists=exists, asked=self._asked)

    def parse(
        self,
        wikitext: str,
        *,
        title: str,
        timestamp: str = "",
        is_from_xml: bool = False,
        leave_out_references: bool = False,
    ) -> ParsedText:
        """Returns the parsed page; with ``leave_out_references``, as a page whose references cannot be read.

        ``is_from_xml``: XML cannot contain control characters, so they are not searched for. ``timestamp`` is the time
        at which the revision was saved, ISO 8601; templates such as ``{{age}}`` use it as the current time.
        """
        n_controls = 0
        if not is_from_xml:
            wikitext, n_controls = as_read(wikitext)  # without characters that represent structure from here on
        page = PageFacts(self._page.lang, title, timestamp, self._page.site, self._page.exists)
        if self._read_reference is None:
            return self._parse_page(wikitext, page, n_controls)
        references = None if leave_out_references else References(self._note_kind)
        try:
            parsed = self._parse_page(wikitext, page, n_controls, references)
        except PAGE_FAULTS:
            if references is None:
                raise
            references, parsed = None, self._parse_page(wikitext, page, n_controls)
        return replace(parsed, references=FAILED_REFERENCES) if references is None else parsed

    def _parse_page(
        self, wikitext: str, page: PageFacts, n_controls: int, references: References | None = None
    ) -> ParsedText:
        self._asked.names.clear()
        work = PagePreparation(page, self._expander, references)
        work.losses["control_character"] += n_controls
        return self._parse(wikitext, work, references)

    def plain(self, wikitext: str) -> str:
        """Returns the text of some wikitext on one line; templates are rendered only by the rules."""
        if _STRUCTURE.search(wikitext):
            return self.plain_structure(wikitext)
        losses: Counter[str] = Counter()
        text = _ADDRESS.sub(partial(_address, losses=losses), wikitext) if "[http" in wikitext else wikitext
        text = decode_references(text)
        if text[:1] in _LINE_STARTS:
            return self.plain_structure(wikitext)
        text = tidy(strip_quotes(text), has_prefixes=self._prefix is not None)
        if "[" not in text and "]" not in text:
            return unliteral(text).strip()
        return self._walker(losses).walk(self._match(text, losses)[0]).text.strip()

    def _walker(self, losses: Counter[str]) -> Walker:
        trail, prefix = self._trail, self._prefix
        return Walker(self._targets, trail=trail, prefix=prefix, losses=losses, is_direct=self._is_direct)

    def _match(
        self, text: str, losses: Counter[str], numbers: list[tuple[int, int]] | None = None
    ) -> tuple[CutText, list[tuple[int, int, int | None]]]:
        return match_brackets(text, losses, self._is_file, numbers, has_prefixes=self._prefix is not None)

    def _is_file(self, written: str) -> bool:
        return self._targets.parse(unliteral(written.removeprefix(TEMPLATE_LINK))).kind == "file"

    def plain_structure(self, wikitext: str) -> str:
        """Returns the result of ``plain``, with all steps that a page goes through."""
        parsed = self._parse(wikitext, PagePreparation(self._page, None))
        return " ".join(element.text for element in parsed.elements[1:])

    def _parse(self, wikitext: str, work: PagePreparation, references: References | None = None) -> ParsedText:
        body = work.prepare(wikitext)
        fragments = work.fragments()
        text = FRAGMENT.join((body, *fragments)) if fragments else body
        losses = work.losses
        if PRE in text:  # lines that a template has joined
            text = _STRAY_PRE.sub("", text)
        text = tidy(strip_quotes(mark_lines(text)), has_prefixes=self._prefix is not None)
        if PRE in text:
            text = _STRAY_PRE.sub("", text)
        walker = self._walker(losses)
        text = _without_leaks(text, losses)
        numbers: list[tuple[int, int]] = []
        is_marked = TEMPLATE_LINK in text
        if is_marked:
            text = _NO_TARGET.sub("[[", text)
        if references is not None:  # the following steps see the text of a page without references
            text, numbers = lift_numbers(text)
        cut, lifted = self._match(text, losses, numbers)
        if is_marked:
            cut = without_stray_marks(cut)
        if BLOCK in text:
            cut = without_stray_blocks(cut)
        walked = walker.walk(cut)
        shown, links = walked.text, walked.links
        cells: list[TextCell] = []
        if fragments:
            end = shown.index(FRAGMENT)
            n_links = bisect_left(links, (end,))
            cells = build_cells(shown, end + len(FRAGMENT), links[n_links:])
            shown, links = shown[:end], links[:n_links]
        if references is not None:
            marks = references.mark_links(shown, lifted, walker.gaps)
            links = sorted([*links, *marks], key=itemgetter(0))
        blocks = build_blocks(shown, links, title=work.title)
        anchors = blocks.anchors if references is None else references.take_places(blocks.anchors, blocks.elements)
        tables, infoboxes = work.assemble(cells, blocks.places, walked.hidden_places)
        return ParsedText(
            elements=tuple(blocks.elements),
            anchors=tuple(anchors),
            categories=tuple(walked.categories),
            template_categories=tuple(name for name, is_made in walked.categories.items() if is_made),
            tables=tables,
            infoboxes=infoboxes,
            templates=tuple(
                TemplateUse(name, outcome, count) for (name, outcome), count in sorted(work.templates.items())
            ),
            losses=tuple(Loss(kind, count) for kind, count in sorted(losses.items()) if count),
            is_disambiguation=work.is_disambiguation(),
            lost=work.lost,
            shown=work.shown,
            references=None
            if references is None or self._read_reference is None
            else references.rows(blocks.elements, self._read_reference),
            asked=frozenset(self._asked.names),
        )


PAGE_FAULTS = (ParserError, ArithmeticError, LookupError, ValueError, RecursionError)
"""Errors that the parser may raise because of a page's content. Anything else is a defect that must stop the job."""
FAILED_REFERENCES = ParsedReferences((), (), Counter(failed=1))
"""The references of a page whose references cannot be read."""

_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,255}\|)?([^\[\]|\n]{1,1000})\]\]")
_TAG = re.compile(r"<[^<>\n]{0,500}>")
_MARKUP = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+|''+|\{\||\|\}|\|\|+|<ref")
_HEADING = re.compile(r"(={1,6})\s*(.*?)\s*=+$")


def extract_fallback(wikitext: str, *, title: str) -> ParsedText:
    """Returns title, headings and every other line that contains a letter as a paragraph, with markup characters
    removed.

    Nothing is rendered or resolved, so templates, tables and references appear in the text as written; the page's
    parse_status says so. Links, tables and categories are not collected; ``losses`` counts the page under ``fallback``.
    """
    wikitext, _ = as_read(wikitext)
    elements = [Element("title", 1, None, "", (), title)]
    path: list[tuple[int, str]] = []
    for line in wikitext.splitlines():
        text = " ".join(_MARKUP.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", line))).split())
        if not any(character.isalnum() for character in text[:10_000]):
            continue
        if line.startswith("=") and (heading := _HEADING.match(text)) and heading.group(2):
            level = len(heading.group(1))
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, heading.group(2)))
            kind, text = "heading", heading.group(2)
        else:
            kind, level = "paragraph", 0
        elements.append(Element(kind, level, None, "", tuple(name for _, name in path), text))
    return ParsedText(tuple(elements), losses=(Loss("fallback", 1),))
