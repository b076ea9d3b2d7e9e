"""RawPage -> Page: the two steps that the build takes for every article."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mwparserfromhell.parser import ParserError

from kbsource.records import Anchor, Cell, CellLink, Infobox, InfoboxField, Page, RawPage, Table
from kbsource.site import Site
from kbsource.titles import Target, permanent_url
from kbsource.wikitext.blocks import RawLink
from kbsource.wikitext.expansion.definitions import Definitions, Invoke
from kbsource.wikitext.fallback import extract_fallback
from kbsource.wikitext.parse import ParsedText, WikitextParser
from kbsource.wikitext.prepare import ParsedInfobox, ParsedTable

# What one page's content can make the parser raise. Anything else is a defect that must stop the job.
_PAGE_FAULTS = (ParserError, ArithmeticError, LookupError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page whose wikitext is parsed and whose links are not yet looked up.

    Attributes:
        raw: the page as read.
        text: what its wikitext says.
        status: ``ok`` or the fallback that was taken; becomes ``Page.parse_status``.
    """

    raw: RawPage
    text: ParsedText
    status: str


class FoundTitle(Protocol):
    """Where a title leads: the article's title and id (None when there is none), the section redirects name."""

    @property
    def title(self) -> str: ...
    @property
    def page_id(self) -> int | None: ...
    @property
    def fragment(self) -> str | None: ...


class TitleResolver(Protocol):
    """Looks up titles in normal form; ``kbsource.index.title_index.TitleIndex`` is one."""

    def resolve(self, title: str) -> FoundTitle: ...
    def redirects_to(self, page_id: int) -> tuple[str, ...]: ...


class Properties(Protocol):
    """What page_props says of a page; ``kbsource.index.page_props.PageProps`` is one."""

    def qid(self, page_id: int) -> str | None: ...
    def is_disambiguation(self, page_id: int) -> bool: ...


class PageParser:
    """Parses the articles of one wiki. Holds caches; make one for each process."""

    def __init__(
        self,
        site: Site,
        *,
        definitions: Definitions | None = None,
        invoke: Invoke | None = None,
        exists: Callable[[str], bool] | None = None,
    ) -> None:
        """Makes a parser; its arguments are those of ``WikitextParser``."""
        self._parser = WikitextParser(site, definitions=definitions, invoke=invoke, exists=exists)

    def parse(self, raw: RawPage) -> ParsedPage:
        """Gives the parsed page; one that the parser cannot finish is extracted as ``fallback_error``."""
        try:
            text = self._parser.parse(raw.text, title=raw.title, timestamp=raw.timestamp, is_from_xml=True)
        except _PAGE_FAULTS:
            return self.parse_fallback(raw, "fallback_error")
        return ParsedPage(raw, text, "ok")

    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage:
        """Gives the page by the simplest extraction, marked with ``status``."""
        return ParsedPage(raw, extract_fallback(raw.text, title=raw.title), status)


def resolve_page(parsed: ParsedPage, resolver: TitleResolver, properties: Properties | None, site: Site) -> Page:
    """Gives the page as it is released: every link looked up, redirects followed.

    Args:
        parsed: the parsed page.
        resolver: the title index of the same dump.
        properties: Wikidata ids and disambiguation marks, if page_props was given.
        site: the wiki, for the address.
    """
    raw, text = parsed.raw, parsed.text
    page_id, title = raw.page_id, raw.title
    resolve = resolver.resolve

    def look_up(target: Target) -> tuple[str, str | None, int | None]:
        if not target.title:
            return title, target.fragment, page_id
        if target.namespace:
            return target.title, target.fragment, None
        found = resolve(target.title)
        return found.title, target.fragment or found.fragment, found.page_id

    anchors: list[Anchor] = []
    for element, start, end, shown, target, written, is_made in text.anchors:
        _, namespace, wanted, fragment, _ = target
        if wanted and not namespace:  # as look_up does, without the call: nearly all targets are such
            found = resolve(wanted)
            found_title, found_id = found.title, found.page_id
            fragment = fragment or found.fragment
        else:
            found_title, fragment, found_id = look_up(target)
        anchors.append(Anchor(element, start, end, shown, found_title, fragment, found_id, written, is_made))

    def links(raw_links: tuple[RawLink, ...]) -> tuple[CellLink, ...]:
        if not raw_links:
            return ()
        return tuple(CellLink(start, end, *look_up(target)) for start, end, target in raw_links)

    def table(parsed_table: ParsedTable) -> Table:
        rows = tuple(
            tuple(
                Cell(content.text, is_header, colspan, rowspan, links(content.links))
                for content, is_header, colspan, rowspan in row
            )
            for row in parsed_table.rows
        )
        header: tuple[str, ...] = ()
        if rows and all(cell.is_header for cell in rows[0]) and len(rows) > 1:
            header = tuple(cell.text for cell in rows[0])
            rows = rows[1:]
        return Table(parsed_table.element, parsed_table.caption, header, rows)

    def infobox(parsed_infobox: ParsedInfobox) -> Infobox:
        fields = tuple(
            InfoboxField(name, content.text, links(content.links)) for name, content in parsed_infobox.fields
        )
        return Infobox(parsed_infobox.element, parsed_infobox.name, fields)

    return Page(
        page_id=page_id,
        title=title,
        qid=properties.qid(page_id) if properties else None,
        is_disambiguation=text.is_disambiguation or (properties is not None and properties.is_disambiguation(page_id)),
        revision_id=raw.revision_id,
        parent_revision_id=raw.parent_revision_id,
        timestamp=raw.timestamp,
        url=permanent_url(site, title, raw.revision_id),
        elements=text.elements,
        anchors=tuple(anchors),
        categories=text.categories,
        template_categories=text.template_categories,
        redirects=resolver.redirects_to(page_id),
        tables=tuple(table(one) for one in text.tables),
        infoboxes=tuple(infobox(one) for one in text.infoboxes),
        templates=text.templates,
        losses=text.losses,
        parse_status=parsed.status,
    )
