"""Pass two: a chunk of raw articles becomes a chunk of pages."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import RecordError
from kbsource.index.definition_store import DefinitionStore
from kbsource.index.page_props import PageProps
from kbsource.index.title_index import TitleIndex, Unresolved
from kbsource.index.title_index_build import DROPPED_FILE, dropped_sources
from kbsource.pages.articles import ParsedPage, Properties, TitleResolver, resolve_page
from kbsource.pages.staging import raw_pages
from kbsource.pages.template_counts import TemplateCounts
from kbsource.records import BadRecord, Page, RawPage
from kbsource.release.pages.row_groups import PageFaultError, PageGroups
from kbsource.runtime.chunks import Work
from kbsource.schema import PAGES
from kbsource.site import Site
from kbsource.wikitext.lua.runtime import make_invoke
from kbsource.wikitext.parse import ParsedText

PARSER = "kbsource.pages.articles:PageParser"
FALLBACK = "fallback_"
"""How the parse statuses begin that are not ``ok``."""
_DETAIL_CHARS = 1000


class Parser(Protocol):
    """Parses the articles of one wiki; ``kbsource.pages.articles.PageParser`` is one."""

    def parse(self, raw: RawPage) -> ParsedPage: ...
    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage: ...


@dataclass(frozen=True, slots=True)
class MakePages:
    """Gives the chunk function of a build, once it is known where the index lies.

    Attributes:
        site: facts of the wiki.
        parser: ``module:class`` of what parses, made with the site, and with the definitions where there are some.
        has_items: the index says which page has which item.
        has_lua: modules that definitions call are run.
    """

    site: Site
    parser: str = PARSER
    has_items: bool = False
    has_lua: bool = False

    def __call__(self, index: str | None = None, definitions: str | None = None) -> PageChunks:
        module, _, name = self.parser.partition(":")
        make: Callable[..., Parser] = getattr(importlib.import_module(module), name)
        if index is None:
            return PageChunks(self.site, make(self.site), Unresolved(), None, np.empty(0, np.int64))
        skipped = dropped_sources(f"{index}/{DROPPED_FILE}")
        properties = PageProps.open(index) if self.has_items else None
        titles = TitleIndex.open(index)
        if definitions is None:
            parser = make(self.site)
        else:
            store = DefinitionStore(definitions, self.site)
            exists = titles.__contains__
            invoke = make_invoke(store, self.site, exists) if self.has_lua else None
            parser = make(self.site, definitions=store, invoke=invoke, exists=exists)
        return PageChunks(self.site, parser, titles, properties, skipped)


class PageChunks:
    """Parses raw articles of schema ``staging.ARTICLES``, looks their links up, and gives pages of schema ``PAGES``.

    An article whose parsing ends the process, or fails, is extracted in the simplest way, with the status
    ``fallback_timeout``, ``fallback_crash`` or ``fallback_error``; one that does not survive that either is rejected.

    The report counts ``articles`` and ``skipped``; its facts hold ``statuses``, ``losses`` and ``findings`` by name,
    and the rows of ``templates``.

    Args:
        site: facts of the wiki.
        parser: parses; what raises RecordError is extracted as ``fallback_error``, and rejected where that fails too.
        resolver, properties: what is known of all titles.
        skipped: ``source`` of the articles that are left out, ascending.
    """

    schema = PAGES

    def __init__(
        self,
        site: Site,
        parser: Parser,
        resolver: TitleResolver,
        properties: Properties | None,
        skipped: npt.NDArray[np.int64],
    ) -> None:
        self._site, self._parser, self._resolver, self._properties = site, parser, resolver, properties
        self._skipped = frozenset(skipped.tolist())

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._groups(rows, work)
        except PageFaultError as fault:
            work.beat.enter(fault.number)  # ends the process at that page, which is then made in a simpler way
            raise

    def _groups(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        facts, groups, report = _Facts(), PageGroups(), work.report
        report.counts.update(articles=0, skipped=0)
        name = ""
        for first, batch in rows:
            name = batch.schema.metadata[b"file"].decode()
            report.n_bytes += batch["text"].nbytes
            for number, (source, raw) in enumerate(raw_pages(batch), first):
                work.beat.done(pages=1, amount=_utf8_bytes(raw.text))
                if source in self._skipped:
                    report.counts["skipped"] += 1
                    continue
                try:
                    page, text = self._page(raw, number, work)
                    full = groups.add(page, number)
                except RecordError as error:
                    detail = error.detail[:_DETAIL_CHARS]
                    report.rejected.append(
                        BadRecord("parse", str(raw.page_id), error.reason, detail, raw.file, raw.offset)
                    )
                    continue
                report.counts["articles"] += 1
                facts.add(page, text)
                if full is not None:
                    yield full
        if (rest := groups.rest()) is not None:
            yield rest
        report.facts = {"file": name, **facts.values()}

    def _page(self, raw: RawPage, number: int, work: Work) -> tuple[Page, ParsedText]:
        """Gives the page and what its wikitext says.

        By the simplest extraction where the parser does not come to its end or breaks a law.

        Raises:
            RecordError: nothing can be made of the article.
        """
        times, how = work.verdicts.get(number, (0, ""))
        if times > 1:
            raise RecordError(f"page_{how}", "neither the parser nor the simplest extraction came to an end")
        if not times:
            try:
                return self._made(raw, number, None, work)
            except RecordError:
                how = "error"
        return self._made(raw, number, f"{FALLBACK}{how}", work)

    def _made(self, raw: RawPage, number: int, status: str | None, work: Work) -> tuple[Page, ParsedText]:
        work.beat.enter(number)
        try:
            parsed = self._parser.parse(raw) if status is None else self._parser.parse_fallback(raw, status)
            page = resolve_page(parsed, self._resolver, self._properties, self._site)
            PageGroups.check(page)
        except RecordError:
            work.beat.leave()
            raise
        work.beat.leave()
        return page, parsed.text


class _Facts:
    """What is counted of pages."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._findings: Counter[str] = Counter()
        self._templates = TemplateCounts()

    def add(self, page: Page, text: ParsedText) -> None:
        self._statuses[page.parse_status] += 1
        for kind, count in page.losses:
            self._losses[kind] += count
        self._templates.add_page(page, text)
        findings = self._findings
        findings["anchors"] += len(page.anchors)
        findings["anchors_resolved"] += sum(anchor.target_page_id is not None for anchor in page.anchors)
        findings["disambiguation_pages"] += page.is_disambiguation
        findings["pages_with_item"] += page.qid is not None

    def values(self) -> dict[str, Any]:
        counts = {"statuses": self._statuses, "losses": self._losses, "findings": self._findings}
        return {
            **{name: dict(one) for name, one in counts.items()},
            "templates": list(map(tuple, self._templates.rows())),
        }


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
