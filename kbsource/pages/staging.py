"""The first pass of a build: reads a byte range of a dump into files of articles, titles and rejected records, and a
report.

In the staging folder, each range has one file of each kind, named by the range's number, and a file for each chunk of
articles, which is removed when its pages are parsed::

    articles/00012-00003.arrow a chunk of raw articles (``StagedArticle``), of about ``CHUNK_CHARS`` code points
    titles/00012.arrow         titles and redirect targets of the main namespace (``title_index_build.STATED_TITLES``)
    rejected/00012.arrow       rejected records (``BadRecord``)
    definitions/00012.arrow    templates and modules (``definition_store.DEFINITION_ROWS``), if requested
    scan/00012.json            the report; written last: a range without a report was not finished

Every file is first written under a temporary name. Its content depends only on the range, so repeating a range does no
harm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from kbsource.columns import rows_of, schema_of
from kbsource.dump.rejects import loss_findings
from kbsource.dump.snapshots import HTML
from kbsource.errors import SetupError
from kbsource.files import Folder, join
from kbsource.index.definition_store import DEFINITION_ROWS, MODULE, TEMPLATE, definition_name
from kbsource.index.redirects import parse_redirect
from kbsource.index.title_index_build import STATED_TITLES
from kbsource.records import BadRecord, RawPage
from kbsource.rows import Row
from kbsource.runtime.chunks import READING, WRITING, BatchRef, ChunkKey, chunk_path, rows_batch
from kbsource.site import Site
from kbsource.titles import TargetParser, normalise_title

CHUNK_CHARS = 4 << 20
"""Weight of a record batch, about the number of code points of its wikitext. A worker holds one batch in memory, and a
shard consists of whole batches.
"""
PAGE_CHARS = 500
"""Weight of a page in a batch in addition to its text, in code points. It limits the number of very short pages in a
batch.
"""
_ROWS_AT_ONCE = 50_000
_WIKITEXT = "wikitext"
_PAGE_MODELS = frozenset({_WIKITEXT, HTML})
_NO_TITLE = re.compile(r"\A\Z|[\x00-\x1f]")
_NOT_YET_WRITTEN = "no_revision_as_of"
_COUNTED = ("n_pages", "n_articles", "n_redirects", "n_other", "n_definitions", "n_unselected")


class StagedArticle(Row):
    """An article in a file of chunks. The name of the dump file, which all articles share, is in the schema's
    metadata.
    """

    source: int  #: the article's ``source`` in the file of titles
    page_id: int
    title: str  #: in normal form
    revision_id: int
    parent_revision_id: int | None
    timestamp: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects articles of a dump."""

    max_pages: int | None = None  #: maximum number of pages and damaged parts to read, of every namespace; None for all
    #: normalised titles of the articles to select. Redirects are selected if their own title or their target is one of
    #: them. None for all
    titles: frozenset[str] | None = None
    #: true if templates and modules are staged too; they are counted as pages of other namespaces
    has_definitions: bool = False


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The counts of a range: ``n_pages == n_articles + n_redirects + n_other + n_unselected + sum(rejected)``."""

    part: int  #: number of the range
    file: str  #: base name of the dump file
    n_pages: int  #: pages and damaged parts that begin in the range
    #: ``n_articles``, ``n_redirects``: pages that were staged
    n_articles: int
    n_redirects: int
    n_other: int  #: pages of other namespaces
    n_definitions: int  #: pages of other namespaces that are staged: templates and modules
    n_unselected: int  #: pages that the selection excludes, or that have no revision before the requested time
    rejected: dict[str, int]  #: number of pages and damaged parts, by reason
    days: dict[str, int]  #: number of pages by the day of their revision, ``2019-07-19``
    #: ``n_bytes``: stored bytes of the range; ``damaged_bytes``: those of them that cannot be read
    n_bytes: int
    damaged_bytes: int
    chunks: tuple[BatchRef, ...]  #: chunks of the staged articles; their weight is the number of bytes of wikitext


def part_path(staging: str, kind: str, part: int) -> str:
    """Returns the path of a range's file. Its kind is ``scan`` or one that ``RangeScan`` yields, except
    ``articles``.
    """
    return join(staging, kind, f"{part:05d}.{'json' if kind == 'scan' else 'arrow'}")


class RedirectReader:
    """Detects redirects among a site's pages, and reads their targets."""

    def __init__(self, site: Site) -> None:
        self._lang = site.lang
        self._parse_target = TargetParser(site).parse

    def read(self, page: RawPage) -> tuple[str | None, int | None, str | None] | None:
        """Returns the target's title, namespace and section of a redirect; None for a page that is not a redirect.

        The target is read from the dump's ``<redirect>`` element or, without such an element, from the text. If the
        target cannot be a page title, the result is (None, None, None).
        """
        found = parse_redirect(page.text, self._lang)
        written = page.redirect_title
        fragment = None
        if found is not None:
            written = written if written is not None else found[0]
            fragment = found[1]
        if written is None:
            return None
        target = self._parse_target(f":{written}")
        if target.kind == "invalid" or not target.title:
            return None, None, None
        return target.title, target.namespace, fragment or target.fragment


class RangeScan:
    """The contents of a range of a dump, in batches. It can be iterated only once.

    ``records`` contains the pages and rejected records of the range in the order of the dump, as
    ``dump.reader.read_range`` yields them. During reading, ``damages`` receives the number of stored bytes that each
    damage made unreadable.
    """

    def __init__(
        self,
        records: Iterable[RawPage | BadRecord],
        *,
        part: int,
        file: str,
        site: Site,
        selection: Selection,
        n_bytes: int = 0,
        damages: Sequence[int] = (),
        on_page: Callable[[], None] = lambda: None,
    ) -> None:
        self._records, self._part, self._file, self._site = records, part, file, site
        self._selection, self._on_page = selection, on_page
        self._n_bytes, self._damages = n_bytes, damages
        self.schemas = {
            "articles": schema_of(StagedArticle).with_metadata({"file": file}),
            "titles": STATED_TITLES,
            "rejected": schema_of(BadRecord),
            **({"definitions": DEFINITION_ROWS} if selection.has_definitions else {}),
        }
        self._rows: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in self.schemas}
        self._counts: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._days: Counter[str] = Counter()
        self._n_sources = 0

    def __iter__(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields batches, each with its kind: ``articles``, ``titles``, ``rejected`` or ``definitions``."""
        redirects = RedirectReader(self._site)
        n_chars = n_defined = 0
        for record in islice(self._records, self._selection.max_pages):
            self._on_page()
            self._counts["n_pages"] += 1
            if isinstance(record, BadRecord):
                if record.reason == _NOT_YET_WRITTEN:
                    self._counts["n_unselected"] += 1
                else:
                    self._reject(record)
            else:
                self._days[record.timestamp[:10]] += 1
                if record.namespace == 0:
                    n_chars += self._add(record, redirects)
                else:
                    self._counts["n_other"] += 1
                    if self._selection.has_definitions and record.namespace in (TEMPLATE, MODULE):
                        n_defined += self._define(record, redirects)
            if n_chars >= CHUNK_CHARS:
                yield self._batch("articles")
                n_chars = 0
            if n_defined >= CHUNK_CHARS:
                yield self._batch("definitions")
                n_defined = 0
            for kind in ("titles", "rejected"):
                if len(self._rows[kind]) >= _ROWS_AT_ONCE:
                    yield self._batch(kind)
        for kind, rows in self._rows.items():
            if rows:
                yield self._batch(kind)

    def _batch(self, kind: str) -> tuple[str, pa.RecordBatch]:
        batch = rows_batch(self._rows[kind], self.schemas[kind])
        self._rows[kind].clear()
        return kind, batch

    def _add(self, record: RawPage, redirects: RedirectReader) -> int:
        """Adds a page of the main namespace. Returns the weight of an article."""
        page_id, selected = record.page_id, self._selection.titles
        title = normalise_title(record.title, self._site)
        if _NO_TITLE.search(title):
            self._reject(_bad_page(record, "invalid_title", repr(record.title)))
            return 0
        target = redirects.read(record)
        if selected is not None and title not in selected and (target is None or target[0] not in selected):
            self._counts["n_unselected"] += 1
            return 0
        source = self._part << 32 | self._n_sources
        if target is None and record.model not in _PAGE_MODELS:
            self._reject(_bad_page(record, "content_model", record.model))
            return 0
        self._n_sources += 1
        is_redirect = target is not None
        leads_to = target or (None, None, None)
        self._rows["titles"].append((page_id, title, record.revision_id, is_redirect, *leads_to, source, record.qid))
        self._counts["n_redirects" if is_redirect else "n_articles"] += 1
        if is_redirect:
            return 0
        revision = record.revision_id, record.parent_revision_id, record.timestamp
        self._rows["articles"].append((source, page_id, title, *revision, record.offset, record.text))
        return len(record.text) + PAGE_CHARS

    def _define(self, record: RawPage, redirects: RedirectReader) -> int:
        """Adds a template or a module; returns its weight."""
        target = None
        if record.namespace == TEMPLATE:
            if record.model != _WIKITEXT:  # such as a style sheet
                return 0
            target = redirects.read(record)
        name = definition_name(record.namespace, record.title, self._site.lang)
        leads_to = "" if target is None else definition_name(target[1] or 0, target[0] or "", self._site.lang)
        text = record.text if target is None else ""
        self._rows["definitions"].append((name, record.revision_id, record.page_id, target and leads_to, text))
        self._counts["n_definitions"] += 1
        return len(text) + PAGE_CHARS

    def _reject(self, bad: BadRecord) -> None:
        self._rows["rejected"].append(astuple(bad))
        self._rejected[bad.reason] += 1

    def report(self, chunks: Sequence[BatchRef] = ()) -> ScanReport:
        """Returns the report of the range. All batches must have been read."""
        return ScanReport(
            part=self._part,
            file=self._file,
            **{name: self._counts[name] for name in _COUNTED},
            rejected=dict(sorted(self._rejected.items())),
            days=dict(sorted(self._days.items())),
            n_bytes=self._n_bytes,
            damaged_bytes=sum(self._damages),
            chunks=tuple(chunks),
        )


def lost_pages(reports: Iterable[ScanReport]) -> dict[str, int]:
    """Returns the findings of the manifest about damaged blocks, from the reports of all ranges."""
    read = [report for report in reports if report.n_pages]
    return loss_findings(
        sum(report.n_pages for report in read),
        n_bytes=sum(report.n_bytes for report in read),
        damaged_bytes=sum(report.damaged_bytes for report in read),
    )


def _bad_page(page: RawPage, reason: str, detail: str) -> BadRecord:
    return BadRecord("scan", str(page.page_id), reason, detail, page.file, page.offset)


def stage_scan(scan: RangeScan, *, staging: str, part: int) -> ScanReport:
    """Writes the batches of a scan and the report to the staging folder, and returns the report."""
    chunks: list[BatchRef] = []
    with ExitStack() as stack:
        writers = {}
        for kind in scan.schemas.keys() - {"articles"}:
            sink = stack.enter_context(Folder.of(part_path(staging, kind, part)).create())
            writers[kind] = stack.enter_context(pa.ipc.new_file(sink, scan.schemas[kind], options=WRITING))
        for kind, batch in scan:
            if kind != "articles":
                writers[kind].write_batch(batch)
                continue
            path = chunk_path(join(staging, kind), ChunkKey(part, len(chunks)))
            with Folder.of(path).create() as sink, pa.ipc.new_file(sink, batch.schema, options=WRITING) as writer:
                writer.write_batch(batch)
            chunks.append(BatchRef(path, 0, 1, batch.num_rows, sum(text_sizes(batch))))
    report = scan.report(chunks)
    Folder.of(part_path(staging, "scan", part)).write_json(msgspec.to_builtins(report))
    return report


def read_report(staging: str, part: int) -> ScanReport:
    """Returns the report of a range.

    Raises:
        SetupError: the range was not finished.
    """
    path = part_path(staging, "scan", part)
    if not Folder.of(path).exists():
        raise SetupError(f"{path}: range {part} of the dump was not finished by any worker; run the build again")
    return msgspec.convert(Folder.of(path).read_json(), ScanReport)


def read_staged_batches(path: str) -> Iterator[pa.RecordBatch]:
    """Reads the record batches of a staged file in order, with one in memory."""
    with Folder.of(path).open() as file:
        reader = pa.ipc.open_file(file, options=READING)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def text_sizes(batch: pa.RecordBatch) -> list[int]:
    """Returns the size of the text of each staged article, in bytes of UTF-8."""
    sizes: list[int] = pc.binary_length(batch["text"]).to_pylist()
    return sizes


def raw_pages(batch: pa.RecordBatch) -> Iterator[tuple[int, RawPage]]:
    """Yields the source and the page of each staged article, in order."""
    file = batch.schema.metadata[b"file"].decode()
    for row in rows_of(batch, StagedArticle):
        revision = row.revision_id, row.parent_revision_id, row.timestamp
        yield row.source, RawPage(row.page_id, 0, row.title, None, *revision, _WIKITEXT, row.text, file, row.offset)
