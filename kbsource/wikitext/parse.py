"""Wikitext of one page -> elements, anchors, tables, infoboxes, categories, and counts of what was left out.

The order of the steps is MediaWiki's own: comments and extension tags, braces, HTML, tables, quotes, links, blocks.
Everything that is shown as text, the body as well as cells and infobox values, goes through the tokenizer once, in
one string, so that one piece of code decides what text and links are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbsource.languages import Language
from kbsource.records import Element, Loss, TemplateUse
from kbsource.site import Site
from kbsource.titles import TargetParser
from kbsource.wikitext.blocks import RawAnchor, TextCell, build_blocks, build_cells
from kbsource.wikitext.brackets import match_brackets, without_stray_marks
from kbsource.wikitext.expansion.definitions import Definitions, Invoke
from kbsource.wikitext.expansion.expander import Expander
from kbsource.wikitext.lines import mark_lines, tidy
from kbsource.wikitext.markers import (
    FRAGMENT,
    PLACE,
    PRE,
    TEMPLATE_LINK,
)
from kbsource.wikitext.prepare import PagePreparation, ParsedInfobox, ParsedTable
from kbsource.wikitext.quotes import strip_quotes
from kbsource.wikitext.templates import (
    LostText,
    TemplateRenderer,
    find_rule,
)
from kbsource.wikitext.walk import Walker

# The newlines around a template's argument are stripped off, so a mark may end up within a line.
_STRAY_PRE = re.compile(f"{PRE}(?<=[^\n]{PRE})")  # begins with the mark, which is found faster than any character
_NO_TARGET = re.compile(rf"\[\[{TEMPLATE_LINK}(?=[][|{{}}<>\n{PLACE}])")


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What the wikitext of one page says, links not yet looked up.

    Attributes:
        lost: what is lost of templates, by name and outcome.
        shown: visible characters that templates show where they stand within no other, by name and outcome; none of
            those is here that leave nothing at all.
    """

    elements: tuple[Element, ...]
    anchors: tuple[RawAnchor, ...]
    categories: tuple[str, ...]
    template_categories: tuple[str, ...]
    tables: tuple[ParsedTable, ...]
    infoboxes: tuple[ParsedInfobox, ...]
    templates: tuple[TemplateUse, ...]
    losses: tuple[Loss, ...]
    is_disambiguation: bool
    lost: dict[tuple[str, str], LostText] = field(default_factory=dict)
    shown: Mapping[tuple[str, str], int] = field(default_factory=dict)


class WikitextParser:
    """Parses pages of one wiki. Holds caches; make one for each process.

    Args:
        site: the wiki: language, namespaces, first-letter rule.
        is_direct: whether plain and hidden links are read off without mwparserfromhell; the result is the same.
        definitions: templates of the dump, by which those are worked out that no rule knows; None leaves them out.
        invoke, exists: see ``Expander``.
    """

    def __init__(
        self,
        site: Site,
        *,
        is_direct: bool = True,
        definitions: Definitions | None = None,
        invoke: Invoke | None = None,
        exists: Callable[[str], bool] | None = None,
    ) -> None:
        self._language: Language = site.language_facts
        self._trail = self._language.link_trail_pattern()
        self._targets = TargetParser(site)
        self._renderer = TemplateRenderer(site.lang)
        self._is_direct = is_direct
        self._expander: Expander | None = None
        if definitions is not None:
            rules = find_rule(site.lang)
            self._expander = Expander(definitions, site, rules, invoke=invoke, exists=exists)

    def parse(self, wikitext: str, *, title: str, timestamp: str = "", is_from_xml: bool = False) -> ParsedText:
        """Gives what the page says.

        Args:
            wikitext: source of the page.
            is_from_xml: it came out of an XML document, which can hold no control characters: they are not looked for.
            title: title of the page, with spaces.
            timestamp: when the revision was saved, ISO 8601; what ``{{age}}`` and its kin take as now.
        """
        renderer = self._renderer.with_page(title, timestamp)
        work = PagePreparation(renderer, self._language, self._expander)
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
        is_marked = TEMPLATE_LINK in text
        if is_marked:
            text = _NO_TARGET.sub("[[", text)
        cut = match_brackets(text, losses)
        walked = walker.walk(without_stray_marks(cut) if is_marked else cut)
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
        )
