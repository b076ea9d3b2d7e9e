"""Parses a page's wikitext into elements, anchors, tables, infoboxes and categories, and counts the skipped content.

The steps are in MediaWiki's order: comments and extension tags, braces, HTML, tables, quotes, links, blocks. The
tokenizer reads the body, the cells and the infobox values in one pass, as one string, so that the same code finds the
links in all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter

from msgspec.structs import replace
from mwparserfromhell.parser import ParserError

from kbsource.elements import Anchor, Element, Infobox, Table
from kbsource.records import Loss, TemplateUse
from kbsource.rows import Row
from kbsource.site import Site
from kbsource.titles import TargetParser
from kbsource.wikitext.brackets import CutText, lift_numbers, match_brackets, without_stray_blocks, without_stray_marks
from kbsource.wikitext.dependencies import Dependencies
from kbsource.wikitext.expander import Definitions, Expander, Invoke
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.lines import mark_lines, strip_quotes, tidy
from kbsource.wikitext.markers import (
    BLOCK,
    DELETE,
    EQUALS,
    FRAGMENT,
    LINE,
    NUMBER,
    PLACE,
    PRE,
    SAID,
    TEMPLATE_LINK,
    as_read,
    single_spaces,
    unliteral,
)
from kbsource.wikitext.page_builder import CellText, build_blocks, split_cells
from kbsource.wikitext.preparation import PagePreparation, drop_addresses
from kbsource.wikitext.reference_texts import NoteKinds, ReferenceReader
from kbsource.wikitext.references import ParsedReferences, References
from kbsource.wikitext.tags import decode_references
from kbsource.wikitext.templates import LostText, find_rule
from kbsource.wikitext.walk import Walker

# Markup of every other kind than links, quotes and character references. A line without it takes the fast path.
_STRUCTURE = re.compile(r"\|[-+]|[{}<\n\x00\x01\x03-\x07\x0b-\x0d\x1c-\x1f]|__|~~~")
_LINE_STARTS = frozenset("=*#:;- ")

# A template strips the newlines around an argument, which may move a marker from the beginning of a line into the
# middle.
_STRAY_PRE = re.compile(f"{PRE}(?<=[^\n]{PRE})")  # the pattern begins with the marker, so that it is searched fast
# Markers that later steps neither insert nor read. The pipe's is missing: it is replaced in every text, and searching
# for a null byte is slow.
_LEAKED = (EQUALS, LINE, SAID, NUMBER, "\r", DELETE)
_NO_TARGET = re.compile(rf"\[\[{TEMPLATE_LINK}(?=[][|{{}}<>\n{PLACE}])")


def _without_leaks(text: str, losses: Counter[str]) -> str:
    """Removes the markers that an earlier step left in the text by mistake, and counts them."""
    n_leaked = 0
    for mark in _LEAKED:
        if mark in text:
            n_leaked += text.count(mark)
            text = text.replace(mark, "")
    if n_leaked:
        losses["control_character"] += n_leaked
        text = single_spaces(text)
    return text


class ParsedText(Row):
    """The content of a page's wikitext.

    Links are not yet resolved: they have their title as written (empty for the page itself) and no page id. The header
    of a table is still among its rows, as the first.
    """

    elements: tuple[Element, ...]
    anchors: tuple[Anchor, ...] = ()
    categories: tuple[str, ...] = ()
    template_categories: tuple[str, ...] = ()
    category_sort_keys: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    infoboxes: tuple[Infobox, ...] = ()
    templates: tuple[TemplateUse, ...] = ()
    losses: tuple[Loss, ...] = ()
    is_disambiguation: bool = False
    #: text lost in templates, by name and outcome
    lost: dict[tuple[str, str], LostText] = {}  # noqa: RUF012 (a compiled class takes no ``field``)
    #: visible characters shown by templates outside other templates, by name and outcome; templates whose output is
    #: empty are not listed
    shown: Mapping[tuple[str, str], int] = {}
    references: ParsedReferences | None = None  #: None if not requested
    dependencies: frozenset[str] | None = None  #: the page's dependencies, see ``Dependencies``; None if not recorded


class WikitextParser:
    """Parses a wiki's pages. It holds caches; create one per process.

    ``definitions`` is used to expand templates; ``invoke``, ``exists`` and ``dependencies`` are passed to
    ``Expander``. With ``is_direct``, plain and hidden links are read without mwparserfromhell, which is faster and
    gives the same result.

    With ``has_references``, references are read too; the rest of the result is the same. If the references of a page
    cannot be read, the page has none, and ``failed`` counts it.
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
        dependencies: Dependencies | None = None,
    ) -> None:
        self._dependencies = dependencies or Dependencies(site)
        self._read_reference: ReferenceReader | None = None
        if has_references:
            self._note_kind = NoteKinds(site.lang, definitions, self._dependencies)
            self._read_reference = ReferenceReader(site.lang, self.plain, self._note_kind, self._dependencies)
        self._trail = site.language_facts.link_trail_pattern()
        self._prefix = site.language_facts.link_prefix_pattern()
        self._targets = TargetParser(site)
        self._page = PageFacts(site.lang, site=site, exists=exists)
        self._is_direct = is_direct
        self._expander: Expander | None = None
        if definitions is not None:
            rules = find_rule(site.lang)
            self._expander = Expander(
                definitions, site, rules, invoke=invoke, exists=exists, dependencies=self._dependencies
            )

    def parse(
        self,
        wikitext: str,
        *,
        title: str,
        timestamp: str = "",
        is_from_xml: bool = False,
        leave_out_references: bool = False,
    ) -> ParsedText:
        """Returns the parsed page. ``leave_out_references`` treats its references as unreadable.

        ``timestamp`` is the time at which the revision was saved, in ISO 8601; templates such as ``{{age}}`` use it as
        the current time. With ``is_from_xml``, the text is not searched for control characters, which XML forbids.
        """
        n_controls = 0
        if not is_from_xml or DELETE in wikitext:
            wikitext, n_controls = as_read(wikitext)  # from here on, control characters are markers
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
        self._dependencies.names.clear()
        work = PagePreparation(page, self._expander, references)
        if n_controls:
            work.losses["control_character"] += n_controls
        return self._parse(wikitext, work, references)

    def plain(self, wikitext: str) -> str:
        """Returns the text of a wikitext fragment on one line. Templates are rendered by the rules only."""
        if _STRUCTURE.search(wikitext):
            return self.plain_structure(wikitext)
        losses: Counter[str] = Counter()
        text = decode_references(drop_addresses(wikitext, losses) if "[http" in wikitext else wikitext)
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
        """Returns the same as ``plain``, through all steps of the parser."""
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
        text = _without_leaks(text, losses)
        numbers: list[tuple[int, int]] = []
        is_marked = TEMPLATE_LINK in text
        if is_marked:
            text = _NO_TARGET.sub("[[", text)
        if references is not None:  # the next steps receive the same text as without references
            text, numbers = lift_numbers(text)
        cut, lifted = self._match(text, losses, numbers)
        if is_marked:
            cut = without_stray_marks(cut)
        if BLOCK in text:
            cut = without_stray_blocks(cut)
        gaps: list[tuple[int, int]] | None = [] if lifted else None
        walked = self._walker(losses).walk(cut, gaps)
        shown, links = walked.text, walked.links
        cells: list[CellText] = []
        if fragments:
            shown, links, cells = split_cells(shown, links)
        if references is not None and gaps is not None:
            marks = references.mark_links(shown, lifted, gaps)
            links = sorted([*links, *marks], key=itemgetter(0))
        blocks = build_blocks(shown, links, title=work.title)
        anchors = blocks.anchors if references is None else references.take_places(blocks.anchors, blocks.elements)
        tables, infoboxes = work.assemble(cells, blocks.places, walked.hidden_places)
        return ParsedText(
            elements=tuple(blocks.elements),
            anchors=tuple(anchors),
            categories=tuple(walked.categories),
            template_categories=tuple(name for name, is_made in walked.categories.items() if is_made),
            category_sort_keys=tuple(map(walked.sort_keys.__getitem__, walked.categories)),
            tables=tables,
            infoboxes=infoboxes,
            templates=tuple(
                [TemplateUse(name, outcome, count) for (name, outcome), count in sorted(work.templates.items())]
            ),
            losses=tuple([Loss(kind, count) for kind, count in sorted(losses.items()) if count]),
            is_disambiguation=work.is_disambiguation(),
            lost=work.lost,
            shown=work.shown,
            references=None
            if references is None or self._read_reference is None
            else references.rows(blocks.elements, self._read_reference),
            dependencies=frozenset(self._dependencies.names),
        )


PAGE_FAULTS = (ParserError, ArithmeticError, LookupError, ValueError, RecursionError)
"""Errors that the parser may raise because of a page's content. Any other error is a defect and must stop the job."""
FAILED_REFERENCES = ParsedReferences((), (), Counter(failed=1))
"""The result for a page whose references cannot be read."""

_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,255}\|)?([^\[\]|\n]{1,1000})\]\]")
_TAG = re.compile(r"<[^<>\n]{0,500}>")
_MARKUP = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+|''+|\{\||\|\}|\|\|+|<ref")
_HEADING = re.compile(r"(={1,6})\s*(.*?)\s*=+$")


def extract_fallback(wikitext: str, *, title: str) -> ParsedText:
    """Extracts a page that the parser cannot read: removes markup characters, and returns the title, the headings, and
    every other line that contains a letter as a paragraph.

    Templates, tables and references appear in the text as written, which the page's ``parse_status`` reports. Links,
    tables and categories are not collected. ``losses`` counts the page under ``fallback``.
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
