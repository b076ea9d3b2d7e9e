"""The second pass of a build: parses every article and resolves its links (RawPage -> Page), chunk by chunk."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple, replace

from kbsource.columns import schema_of
from kbsource.errors import RecordError
from kbsource.html.reading import HtmlReader, extract_html_fallback
from kbsource.identity import title_hash
from kbsource.index.definition_store import DefinitionStore
from kbsource.index.mapped_files import local_index
from kbsource.index.page_props import PageProps
from kbsource.index.title_index import Resolution, TitleIndex, Unresolved
from kbsource.index.title_index_build import DROPPED_FILE, dropped_sources
from kbsource.pages.base import BaseRelease, RecordedPage
from kbsource.pages.shards import FALLBACKS_NAMED, TemplateCounts
from kbsource.pages.spread_tables import spread
from kbsource.pages.staging import raw_pages, text_sizes
from kbsource.records import (
    Anchor,
    BadRecord,
    Cell,
    CellLink,
    Infobox,
    InfoboxField,
    Loss,
    Page,
    PageDependencies,
    RawPage,
    ReferenceCount,
    ShownUse,
    Table,
    instant,
)
from kbsource.release.pages.writing import BatchRow, PageFaultError, PageGroups, check_page
from kbsource.rows import Row
from kbsource.runtime.chunks import Work
from kbsource.site import Site
from kbsource.titles import permanent_url, split_namespace
from kbsource.wikitext.dependencies import Dependencies
from kbsource.wikitext.lua_modules import LuaModules
from kbsource.wikitext.parse import (
    FAILED_REFERENCES,
    PAGE_FAULTS,
    ParsedText,
    WikitextParser,
    extract_fallback,
)
from kbsource.wikitext.reference_rows import PageWithReferences
from kbsource.wikitext.references import ParsedReferences

PARSER = "kbsource.pages.articles:PageParser"
HTML_PARSER = "kbsource.pages.articles:HtmlPageParser"
FALLBACK = "fallback_"
"""Prefix of the parse statuses other than ``ok``."""
LINKS_AT_ONCE = 1024
"""Number of links that are looked up together. The pages that contain them stay in memory until then."""
_DETAIL_CHARS = 1000


class ParsedPage(Row):
    """A page whose wikitext is parsed, but whose links are not yet resolved."""

    raw: RawPage  #: the page as read from the dump
    text: ParsedText  #: the result of parsing its wikitext
    status: str  #: ``ok`` or the fallback that was used; becomes ``Page.parse_status``


class TitleResolver(Protocol):
    """Looks up titles in normal form."""

    def resolve(self, title: str) -> Resolution: ...
    def redirects_to(self, page_id: int) -> tuple[str, ...]: ...


class BatchResolver(TitleResolver, Protocol):
    """Looks up many titles at once; ``kbsource.index.title_index.TitleIndex`` implements it."""

    def resolve_all(self, titles: Iterable[str]) -> dict[str, Resolution]: ...


class PageParser:
    """Parses a wiki's articles. It holds caches; create one per process."""

    def __init__(self, site: Site, **further: Any) -> None:
        """Creates a parser. The arguments are the same as for ``WikitextParser``."""
        self._parser = WikitextParser(site, **further)

    def parse(self, raw: RawPage, *, leave_out_references: bool = False) -> ParsedPage:
        """Returns the parsed page. If the parser fails, the page is extracted with the status ``fallback_error``."""
        try:
            text = self._parser.parse(
                raw.text,
                title=raw.title,
                timestamp=raw.timestamp,
                is_from_xml=True,
                leave_out_references=leave_out_references,
            )
        except PAGE_FAULTS:
            return self.parse_fallback(raw, "fallback_error")
        return ParsedPage(raw, text, "ok")

    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage:
        """Returns the page from the fallback extraction, with ``status``."""
        return ParsedPage(raw, extract_fallback(raw.text, title=raw.title), status)


class HtmlPageParser:
    """Parses a wiki's articles from their rendered HTML. It holds caches; create one per process."""

    def __init__(self, site: Site, *, has_references: bool = False) -> None:
        self._reader = HtmlReader(site, has_references=has_references)

    def parse(self, raw: RawPage, *, leave_out_references: bool = False) -> ParsedPage:
        """Returns the parsed page. If the parser fails, the page is extracted with the status ``fallback_error``."""
        try:
            text = self._reader.parse(raw.text, title=raw.title, leave_out_references=leave_out_references)
        except (*PAGE_FAULTS, RecordError):
            return self.parse_fallback(raw, "fallback_error")
        return ParsedPage(raw, text, "ok")

    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage:
        """Returns the page from the fallback extraction, with ``status``."""
        return ParsedPage(raw, extract_html_fallback(raw.text, title=raw.title), status)


def resolve_page(
    parsed: ParsedPage,
    resolver: TitleResolver,
    properties: PageProps | None,
    site: Site,
    *,
    spreads_tables: bool = False,
) -> Page:
    """Returns the page as it will be in the release. Every link is looked up in the index of the same dump, and
    redirects are followed.

    Without ``properties``, the page has no item, and only its wikitext can mark it as a disambiguation page. With
    ``spreads_tables``, cells are repeated in all rows and columns that they cover.
    """
    raw, text = parsed.raw, parsed.text
    page_id, title = raw.page_id, raw.title
    resolve = resolver.resolve

    def look_up(wanted: str, fragment: str | None) -> tuple[str, str | None, int | None]:
        if not wanted:
            return title, fragment, page_id
        if ":" in wanted and split_namespace(wanted, site)[0]:
            return wanted, fragment, None
        found = resolve(wanted)
        return found.title, fragment or found.fragment, found.page_id

    anchors: list[Anchor] = []
    for anchor in text.anchors:
        wanted, fragment = anchor.target_title, anchor.target_fragment
        if wanted and ":" not in wanted:  # inlined from look_up for speed: nearly all targets are of this kind
            found = resolve(wanted)
            found_title, found_id = found.title, found.page_id
            fragment = fragment or found.fragment
        else:
            found_title, fragment, found_id = look_up(wanted, fragment)
        place = anchor.element, anchor.start, anchor.end, anchor.text
        anchors.append(Anchor(*place, found_title, fragment, found_id, anchor.written_target, anchor.from_template))

    def resolved(links: tuple[CellLink, ...]) -> tuple[CellLink, ...]:
        return tuple(
            [CellLink(link.start, link.end, *look_up(link.target_title, link.target_fragment)) for link in links]
        )

    n_unspread = 0

    def table(parsed_table: Table) -> Table:
        nonlocal n_unspread
        rows = tuple(
            [
                tuple(
                    [
                        Cell(cell.text, cell.is_header, cell.colspan, cell.rowspan, resolved(cell.links))
                        if cell.links
                        else cell
                        for cell in row
                    ]
                )
                for row in parsed_table.rows
            ]
        )
        if spreads_tables:
            spread_rows = spread(rows)
            n_unspread += spread_rows is None
            rows = rows if spread_rows is None else spread_rows
        header: tuple[str, ...] = ()
        if rows and all(cell.is_header for cell in rows[0]) and len(rows) > 1:
            header = tuple(cell.text for cell in rows[0])
            rows = rows[1:]
        return Table(parsed_table.element, parsed_table.caption, header, rows)

    def infobox(box: Infobox) -> Infobox:
        fields = [
            InfoboxField(field.name, field.text, resolved(field.links)) if field.links else field
            for field in box.fields
        ]
        return Infobox(box.element, box.name, tuple(fields))

    tables = tuple(table(parsed_table) for parsed_table in text.tables)
    losses = text.losses
    if n_unspread:
        losses = tuple(sorted([*losses, Loss("table_not_spread", n_unspread)]))
    return Page(
        page_id=page_id,
        title=title,
        qid=properties.qid(page_id) if properties else None,
        is_disambiguation=text.is_disambiguation or (properties is not None and properties.is_disambiguation(page_id)),
        revision_id=raw.revision_id,
        parent_revision_id=raw.parent_revision_id,
        timestamp=instant(raw.timestamp),
        url=permanent_url(site, title, raw.revision_id),
        elements=text.elements,
        anchors=tuple(anchors),
        categories=text.categories,
        template_categories=text.template_categories,
        category_sort_keys=text.category_sort_keys,
        redirects=resolver.redirects_to(page_id),
        tables=tables,
        infoboxes=tuple(map(infobox, text.infoboxes)),
        templates=text.templates,
        losses=losses,
        parse_status=parsed.status,
    )


def page_with_references(page: Page, references: ParsedReferences | None) -> PageWithReferences:
    """Returns the page with the rows of its references. If its references could not be read, there are no rows."""
    page_id = page.page_id
    refs, uses, _ = references or ((), (), None)
    values: list[Any] = [
        *astuple(page),
        tuple([replace(ref, page_id=page_id) for ref in refs]),
        tuple([replace(use, page_id=page_id) for use in uses]),
    ]
    return PageWithReferences(*values)


def dependencies_of(
    page: Page, text: ParsedText, redirects_used: Iterable[str], input_hash: bytes | None
) -> PageDependencies:
    """Returns the recorded dependencies of a page; only its uses of templates and its counts of references if
    ``input_hash`` is None.
    """
    uses = []
    for use in page.templates:
        n_lost, example = text.lost.get((use.name, use.outcome), (0, None))
        uses.append(ShownUse(text.shown.get((use.name, use.outcome), 0), n_lost, example))
    counts = text.references.counts if text.references is not None else {}
    reference_counts = tuple(ReferenceCount(name, n) for name, n in sorted(counts.items()))
    if text.dependencies is None or input_hash is None:
        return PageDependencies(page.page_id, None, (), tuple(uses), reference_counts)
    hashes = np.array([title_hash(name) for name in text.dependencies.union(redirects_used)], np.uint64).view(np.int64)
    return PageDependencies(page.page_id, input_hash, tuple(sorted(hashes.tolist())), tuple(uses), reference_counts)


def _cell_links(page: ParsedText) -> Iterator[tuple[CellLink, ...]]:
    for table in page.tables:
        for row in table.rows:
            for cell in row:
                if cell.links:
                    yield cell.links
    for infobox in page.infoboxes:
        for field in infobox.fields:
            yield field.links


class _UsedRedirects:
    """Looks up titles, and records those that resolve to another title."""

    def __init__(self, resolver: BatchResolver) -> None:
        self._resolver, self.redirects_to = resolver, resolver.redirects_to
        self._known: dict[str, Resolution] = {}
        self.names: set[str] = set()

    def look_ahead(self, pages: Iterable[ParsedText]) -> None:
        """Looks up the targets of all links of some pages together, so that ``resolve`` finds them."""
        titles: set[str] = set()
        for page in pages:
            titles.update([anchor.target_title for anchor in page.anchors])
            for links in _cell_links(page):
                titles.update([link.target_title for link in links])
        titles.discard("")
        self._known = self._resolver.resolve_all(titles)

    def resolve(self, title: str) -> Resolution:
        found = self._known.get(title) or self._resolver.resolve(title)
        if found.title != title:
            self.names.add(title)
        return found


class Parser(Protocol):
    """Parses a wiki's articles; ``kbsource.pages.articles.PageParser`` implements it."""

    def parse(self, raw: RawPage, *, leave_out_references: bool = False) -> ParsedPage: ...
    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage: ...


@dataclass(frozen=True, slots=True)
class MakePages:
    """Creates the function that makes the pages of a chunk, when the folders of the index and the definitions are
    known. They may be local or in a bucket.
    """

    site: Site  #: facts about the wiki
    #: ``module:class`` of the parser. Its arguments are the site and, if there are any, the definitions
    parser: str = PARSER
    has_items: bool = False  #: true if the index contains the items of pages
    has_lua: bool = True  #: true if the Lua modules that definitions call are run
    has_references: bool = False  #: produce ``PageWithReferences`` rows
    has_dependencies: bool = False  #: record dependencies
    #: folder of a release whose pages are reused; the index must contain the changes since then
    base: str | None = None
    spreads_tables: bool = False  #: repeat cells over the rows and columns that they cover

    def prepare(self, *folders: str) -> None:
        """Copies the index and the definitions to this machine, and opens them for as long as the process lives."""
        for folder in folders:
            local_index(folder)

    def __call__(self, index: str | None = None, definitions: str | None = None) -> PageChunks:
        module, _, name = self.parser.partition(":")
        make: Callable[..., Parser] = getattr(importlib.import_module(module), name)
        row: type[Page] = Page
        if self.has_references:
            make, row = partial(make, has_references=True), PageWithReferences
        if index is None:
            none = np.empty(0, np.int64)
            return PageChunks(
                self.site,
                make(self.site),
                Unresolved(),
                None,
                none,
                row=row,
                has_dependencies=self.has_dependencies,
                spreads_tables=self.spreads_tables,
            )
        index = local_index(index)
        skipped = dropped_sources(f"{index}/{DROPPED_FILE}")
        properties = PageProps.open(index) if self.has_items else None
        titles = TitleIndex.open(index)
        if definitions is None:
            parser = make(self.site)
        else:
            store = DefinitionStore(local_index(definitions), self.site)
            dependencies = Dependencies(self.site)
            exists = dependencies.recording(titles.__contains__)
            invoke = LuaModules(store, self.site, exists, dependencies) if self.has_lua else None
            parser = make(self.site, definitions=store, invoke=invoke, exists=exists, dependencies=dependencies)
        base = None if self.base is None else BaseRelease(self.base, index)
        settings: dict[str, Any] = {"row": row, "has_dependencies": self.has_dependencies, "base": base}
        settings["spreads_tables"] = self.spreads_tables
        return PageChunks(self.site, parser, titles, properties, skipped, **settings)


@dataclass(slots=True)
class _Article:
    """An article whose links are not yet looked up."""

    raw: RawPage
    number: int  #: number of the article in the chunk, from 1
    input_hash: bytes | None  #: see ``PageDependencies``; None if dependencies are not recorded
    copy: tuple[BatchRow, int] | None  #: the page of the base that is reused, and its number of code points
    ways: list[Callable[[RawPage], ParsedPage]]  #: methods to parse the article that have not been tried yet
    failure: RecordError  #: the reason for the rejection, if no method is left
    parsed: ParsedPage | None = None


class PageChunks:
    """Parses raw articles of schema ``StagedArticle``, resolves their links, and yields pages of schema ``row``. If
    requested, the pages have the column ``dependencies``.

    If the parser fails on an article, exceeds the time limit or crashes the process, the article is first parsed again
    without its references, if they are read. Then the fallback extracts it, with the status ``fallback_error``,
    ``fallback_timeout`` or ``fallback_crash``. If the fallback fails too, the article is rejected.

    A RecordError counts as a failure. ``skipped`` contains the sources of the articles to leave out. A page of ``base``
    is reused if parsing would return the same page.

    The report counts ``articles``, ``skipped`` and ``taken_over``. Its facts are ``statuses``, ``losses`` and
    ``findings`` by name, and the rows of ``templates``.
    """

    def __init__(
        self,
        site: Site,
        parser: Parser,
        resolver: BatchResolver,
        properties: PageProps | None,
        skipped: npt.NDArray[np.int64],
        *,
        row: type[Page] = Page,
        has_dependencies: bool = False,
        base: BaseRelease | None = None,
        spreads_tables: bool = False,
    ) -> None:
        self._spreads_tables = spreads_tables
        self._has_references, self._has_dependencies = row is PageWithReferences, has_dependencies
        self.schema = (
            schema_of(row).append(schema_of(RecordedPage).field("dependencies")) if has_dependencies else schema_of(row)
        )
        self._site, self._parser, self._properties, self._base = site, parser, properties, base
        self._resolver = _UsedRedirects(resolver)
        self._skipped = frozenset(skipped.tolist())

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._groups(rows, work)
        except PageFaultError as fault:
            work.beat.enter(fault.number)  # ends the process at this page, so that the fallback makes it
            raise

    def _groups(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        facts, groups, report = _Facts(), PageGroups(RecordedPage), work.report
        report.counts.update(articles=0, skipped=0)
        waiting: list[_Article] = []
        n_links = 0
        name = ""
        for first, batch in rows:
            name = batch.schema.metadata[b"file"].decode()
            sizes = text_sizes(batch)
            report.n_bytes += sum(sizes)
            raws = list(raw_pages(batch))
            hashes: list[bytes] = []
            if self._has_dependencies or self._base is not None:
                hashes = [b"" if source in self._skipped else self._hash(raw) for source, raw in raws]
            known = {} if self._base is None else self._base.find([raw.page_id for _, raw in raws], hashes)
            for place, (source, raw) in enumerate(raws):
                number = first + place
                work.beat.done(pages=1, amount=sizes[place])
                if source in self._skipped:
                    report.counts["skipped"] += 1
                    continue
                times, how = work.verdicts.get(number, (0, "error"))
                copy = None if times else known.get(place)
                failure = RecordError(f"page_{how}", "neither the parser nor the fallback finished")
                input_hash = hashes[place] if self._has_dependencies else None
                article = _Article(raw, number, input_hash, copy, self._ways(times, how), failure)
                waiting.append(article)
                if copy is None and article.ways:
                    work.beat.enter(number)
                    self._parse(article)
                    work.beat.leave()
                if article.parsed is not None:
                    n_links += len(article.parsed.text.anchors)
                if n_links >= LINKS_AT_ONCE:
                    yield from self._finish(waiting, groups, facts, work)
                    waiting, n_links = [], 0
        yield from self._finish(waiting, groups, facts, work)
        if (rest := groups.rest()) is not None:
            yield self._counted(rest, facts)
        report.facts = {"file": name, **facts.values()}

    def _finish(
        self, articles: Sequence[_Article], groups: PageGroups, facts: _Facts, work: Work
    ) -> Iterator[pa.RecordBatch]:
        """Resolves the links of parsed articles, and adds their pages to the groups in order."""
        report = work.report
        self._resolver.look_ahead([article.parsed.text for article in articles if article.parsed is not None])
        for article in articles:
            try:
                if article.copy is not None:
                    full = groups.take(*article.copy)
                    report.counts["taken_over"] += 1
                else:
                    full = groups.add(self._page(article, work), article.number)
            except RecordError as error:
                raw, detail = article.raw, error.detail[:_DETAIL_CHARS]
                report.rejected.append(BadRecord("parse", str(raw.page_id), error.reason, detail, raw.file, raw.offset))
                continue
            report.counts["articles"] += 1
            if full is not None:
                yield self._counted(full, facts)

    def _counted(self, group: pa.RecordBatch, facts: _Facts) -> pa.RecordBatch:
        facts.add(group, has_references=self._has_references)
        columns = [group[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _hash(self, raw: RawPage) -> bytes:
        """Returns the hash of an article's own data and of what the snapshot contains about it (redirects, item)."""
        page_id, properties = raw.page_id, self._properties
        qid = properties.qid(page_id) if properties else None
        is_disambiguation = properties is not None and properties.is_disambiguation(page_id)
        revision = raw.revision_id, raw.parent_revision_id, raw.timestamp
        facts = raw.title, *revision, qid, is_disambiguation, self._resolver.redirects_to(page_id), raw.text
        return blake2b(msgspec.json.encode(facts), digest_size=16).digest()

    def _ways(self, times: int, how: str) -> list[Callable[[RawPage], ParsedPage]]:
        """Returns the methods to parse an article. Each is used if the previous one fails.

        Args:
            times: how often the article has ended the process.
            how: the way in which it ended the process, for ``parse_status``.
        """

        def fall_back(raw: RawPage) -> ParsedPage:
            return self._parser.parse_fallback(raw, f"{FALLBACK}{how}")

        if not times:
            return [self._parser.parse, fall_back]
        if not self._has_references:
            return [fall_back] if times == 1 else []
        if times == 1:  # the references may be the cause
            return [partial(self._parser.parse, leave_out_references=True), fall_back]
        return [fall_back] if times == 2 else []

    def _parse(self, article: _Article) -> None:
        """Parses an article with the next method."""
        article.parsed = None
        try:
            article.parsed = article.ways.pop(0)(article.raw)
        except RecordError as error:
            article.failure = error

    def _page(self, article: _Article, work: Work) -> RecordedPage:
        """Returns the page of an article. If the parser fails or its result breaks an invariant, the fallback makes the
        page.

        Raises:
            RecordError: the fallback fails too.
        """
        work.beat.enter(article.number)
        while article.parsed is not None or article.ways:
            if article.parsed is None:
                self._parse(article)
                continue
            try:
                page = self._made(article.parsed, article.input_hash)
            except RecordError as error:
                article.parsed, article.failure = None, error
                continue
            work.beat.leave()
            return page
        work.beat.leave()
        raise article.failure

    def _made(self, parsed: ParsedPage, input_hash: bytes | None) -> RecordedPage:
        """Returns the page after checking its invariants.

        Raises:
            RecordError: the page breaks an invariant even without its references.
        """
        self._resolver.names.clear()
        page = resolve_page(parsed, self._resolver, self._properties, self._site, spreads_tables=self._spreads_tables)
        noted = page_with_references(page, parsed.text.references)
        try:
            check_page(noted)
        except RecordError:  # if the references are not the cause, the second check raises the same error
            parsed = replace(parsed, text=replace(parsed.text, references=FAILED_REFERENCES))
            noted = page_with_references(page, FAILED_REFERENCES)
            check_page(noted)
        values: list[Any] = [*astuple(noted), dependencies_of(page, parsed.text, self._resolver.names, input_hash)]
        return RecordedPage(*values)


class _Facts:
    """Sums of counts over pages, for the report."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._findings: Counter[str] = Counter()
        self._fallbacks: list[tuple[int, str, str]] = []
        self._templates = TemplateCounts()

    def add(self, group: pa.RecordBatch, *, has_references: bool) -> None:
        """Counts the pages of a group of schema ``RecordedPage``."""
        self._statuses.update(group["parse_status"].to_pylist())
        if len(self._fallbacks) < FALLBACKS_NAMED and self._statuses.keys() - {"ok"}:
            pages = zip(*(group[name].to_pylist() for name in ("page_id", "title", "parse_status")), strict=True)
            self._fallbacks += [page for page in pages if page[2] != "ok"]
        for loss in group["losses"].flatten().to_pylist():
            self._losses[loss["kind"]] += loss["occurrences"]
        title, templates, uses = (group[name] for name in ("title", "templates", "dependencies"))
        uses = pc.struct_field(uses, "uses")
        self._templates.add_pages(*(column.to_pylist() for column in (title, templates, uses)))
        findings, anchors = self._findings, group["anchors"].flatten()
        findings["anchors"] += len(anchors)
        findings["anchors_resolved"] += pc.count(pc.struct_field(anchors, "target_page_id")).as_py()
        findings["disambiguation_pages"] += pc.sum(group["is_disambiguation"]).as_py()
        findings["pages_with_item"] += pc.count(group["qid"]).as_py()
        if has_references:
            findings.update({name: len(group[name].flatten()) for name in ("refs", "ref_uses")})
            for mark in pc.struct_field(group["dependencies"], "reference_counts").flatten().to_pylist():
                findings[f"ref_{mark['name']}"] += mark["n"]

    def values(self) -> dict[str, Any]:
        counts = {"statuses": self._statuses, "losses": self._losses, "findings": self._findings}
        return {
            **{name: dict(counter) for name, counter in counts.items()},
            "fallbacks": self._fallbacks[:FALLBACKS_NAMED],
            "templates": list(map(astuple, self._templates.rows())),
        }
