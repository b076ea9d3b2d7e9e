"""Pass two: a run of staged articles becomes one Parquet file of pages and a report.

Layout under the staging folder, one of each per shard, named by its number::

    shard_rejected/00012.arrow   articles that no extraction could save (``schema.REJECTED``)
    shard_templates/00012.arrow  uses of templates (``schema.TEMPLATES``), by name and outcome
    shards/00012.json            the report; written last: a shard without one was not finished
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from kbsource.articles import ParsedPage, Properties, Resolver, resolve_page
from kbsource.beat import Beat
from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.records import Page, RawPage
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import ShardWriter
from kbsource.schema import REJECTED, TEMPLATES
from kbsource.site import Site
from kbsource.staging import Chunk, read_chunks, read_json, staged_rows, write_json

SHARD_BYTES = 400 << 20
"""Wikitext of a full shard: 64-256 MB of Parquet, by measurement."""
MIN_SHARD_BYTES = 8 << 20
"""Wikitext below which a shard costs more in overhead than it gains in spread."""
MIN_SHARDS = 16
"""Shards that a middling dump is spread over, so that a handful of workers end at about the same time."""

FALLBACK = "fallback_"
"""How the parse statuses begin that are not ``ok``."""
_DETAIL_CHARS = 1000


class Parser(Protocol):
    """Parses the articles of one wiki; ``kbsource.articles.PageParser`` is one."""

    def parse(self, raw: RawPage) -> ParsedPage: ...
    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage: ...


@dataclass(frozen=True, slots=True)
class Shard:
    """What goes into one file of pages: some chunks, in the order of the dump."""

    number: int
    n_shards: int
    chunks: tuple[Chunk, ...]

    @property
    def raw_bytes(self) -> int:
        """Bytes of wikitext."""
        return sum(chunk.raw_bytes for chunk in self.chunks)

    def to_json(self) -> dict[str, Any]:
        """Gives the shard as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Shard:
        """Gives back what ``to_json`` gave."""
        chunks = tuple(Chunk(**chunk) for chunk in value["chunks"])
        return cls(value["number"], value["n_shards"], chunks)


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What became of a shard's articles: ``sum(articles) + sum of rejected + n_skipped`` are all that were
    staged.

    Attributes:
        number: number of the shard.
        entry: the file of pages.
        articles: pages written, by input file.
        rejected: articles rejected, by input file and reason.
        n_skipped: articles left out because a newer row has their page id.
        statuses: pages by ``parse_status``.
        losses: pieces not carried over, by kind.
        facts: further counts: ``anchors``, ``anchors_resolved``, ``disambiguation_pages``,
            ``pages_with_item``.
    """

    number: int
    entry: FileEntry
    articles: dict[str, int]
    rejected: dict[str, dict[str, int]]
    n_skipped: int
    statuses: dict[str, int]
    losses: dict[str, int]
    facts: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Gives the report as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShardReport:
        """Gives back what ``to_json`` gave."""
        return cls(**{**value, "entry": FileEntry(**value["entry"])})


@dataclass(slots=True)
class _Tally:
    articles: Counter[str] = field(default_factory=Counter)
    rejected: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    n_skipped: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    pages: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, page: Page, file: str) -> None:
        self.articles[file] += 1
        self.statuses[page.parse_status] += 1
        for kind, count in page.losses:
            self.losses[kind] += count
        for name, outcome, count in page.templates:
            self.uses[name, outcome] += count
            self.pages[name, outcome] += 1
        facts = self.facts
        facts["anchors"] += len(page.anchors)
        facts["anchors_resolved"] += sum(anchor.target_page_id is not None for anchor in page.anchors)
        facts["disambiguation_pages"] += page.is_disambiguation
        facts["pages_with_item"] += page.qid is not None


def plan_shards(
    chunks: Sequence[Chunk],
    *,
    shard_bytes: int = SHARD_BYTES,
    min_shard_bytes: int = MIN_SHARD_BYTES,
    min_shards: int = MIN_SHARDS,
) -> list[Shard]:
    """Gives the shards of a dump: consecutive chunks, about the same amount of text in each; at least one
    shard.

    Depends on the chunks alone, never on the number of workers.

    Args:
        chunks: all staged chunks in the order of the dump.
        shard_bytes: wikitext of a shard of a large dump.
        min_shard_bytes: wikitext that a shard has at least, as far as there is so much.
        min_shards: shards of a dump that is large enough for so many of ``min_shard_bytes``.
    """
    total = sum(chunk.raw_bytes for chunk in chunks)
    n_shards = max(-(-total // shard_bytes), min(min_shards, total // min_shard_bytes), 1)
    groups: list[list[Chunk]] = [[] for _ in range(n_shards)]
    done = 0
    for chunk in chunks:
        # By the chunk's middle, so that a chunk at an edge goes where most of it belongs.
        middle = 2 * done + chunk.raw_bytes
        groups[min(middle * n_shards // (2 * total) if total else 0, n_shards - 1)].append(chunk)
        done += chunk.raw_bytes
    filled = [group for group in groups if group] or [[]]
    return [Shard(number, len(filled), tuple(group)) for number, group in enumerate(filled)]


def shard_file(staging: str, kind: str, number: int) -> str:
    """Gives the path of a shard's file of one kind: ``shards``, ``shard_rejected`` or ``shard_templates``."""
    return join(staging, kind, f"{number:05d}.{'json' if kind == 'shards' else 'arrow'}")


def write_page_shard(
    shard: Shard,
    storage: Storage,
    *,
    output: str,
    staging: str,
    parser: Parser,
    resolver: Resolver,
    properties: Properties | None,
    site: Site,
    skipped: Container[int],
    verdicts: Mapping[int, str],
    beat: Beat,
) -> ShardReport:
    """Writes one file of pages, in the order of the dump, and the shard's report.

    Args:
        output: folder of the release.
        staging: staging folder.
        parser: parses; what raises RecordError is extracted as ``fallback_error``, and rejected where that
            fails too.
        resolver, properties: what is known of all titles.
        skipped: ``source`` of the articles that are left out.
        verdicts: by number of the article in the shard, from 1: ``fallback_…``, the status of an article that
            must not be parsed again, or a reason to reject it unread.

    Returns:
        The report, as written.
    """
    tally = _Tally()
    file = shard_path("pages", shard.number, shard.n_shards)
    rejected_path = shard_file(staging, "shard_rejected", shard.number)
    with (
        staged_rows(storage, rejected_path, REJECTED) as rejected,
        ShardWriter(output, file, storage) as writer,
    ):

        def attempt(raw: RawPage, number: int, verdict: str | None) -> RecordError | None:
            """Writes the page, or gives why it cannot be written."""
            try:
                if verdict is not None and not verdict.startswith(FALLBACK):
                    raise RecordError(verdict, "neither the parser nor the simplest extraction came to an end")
                beat.enter(number)
                parsed = parser.parse(raw) if verdict is None else parser.parse_fallback(raw, verdict)
                page = resolve_page(parsed, resolver, properties, site)
                beat.leave()
                writer.add(page)
            except RecordError as error:
                beat.leave()
                return error
            tally.add(page, raw.file)
            return None

        for number, (source, raw) in enumerate(read_chunks(storage, staging, shard.chunks), start=1):
            beat.done(pages=1, n_bytes=_utf8_bytes(raw.text))
            if source in skipped:
                tally.n_skipped += 1
                continue
            failure = attempt(raw, number, verdicts.get(number))
            if failure is not None and number not in verdicts:
                failure = attempt(raw, number, f"{FALLBACK}error")
            if failure is not None:
                key, detail = str(raw.page_id), failure.detail[:_DETAIL_CHARS]
                rejected.add(("parse", key, failure.reason, detail, raw.file, raw.offset))
                tally.rejected[raw.file][failure.reason] += 1
    _write_templates(tally, storage, shard_file(staging, "shard_templates", shard.number))
    report = ShardReport(
        number=shard.number,
        entry=writer.entry,
        articles=dict(sorted(tally.articles.items())),
        rejected={name: dict(sorted(reasons.items())) for name, reasons in sorted(tally.rejected.items())},
        n_skipped=tally.n_skipped,
        statuses=dict(sorted(tally.statuses.items())),
        losses=dict(sorted(tally.losses.items())),
        facts=dict(sorted(tally.facts.items())),
    )
    write_json(storage, shard_file(staging, "shards", shard.number), report.to_json())
    return report


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _write_templates(tally: _Tally, storage: Storage, path: str) -> None:
    with staged_rows(storage, path, TEMPLATES) as rows:
        for (name, outcome), uses in sorted(tally.uses.items()):
            rows.add((name, outcome, uses, tally.pages[name, outcome]))


def read_shard_report(storage: Storage, staging: str, number: int) -> ShardReport:
    """Gives the report of a shard.

    Raises:
        SetupError: the shard was not finished.
    """
    path = shard_file(staging, "shards", number)
    if not storage.exists(path):
        raise SetupError(f"{path}: shard {number} was not finished by any worker; run the build again")
    return ShardReport.from_json(read_json(storage, path))


def merge_templates(tables: Iterator[pa.Table]) -> pa.Table:
    """Gives the sum of the shards' template tables, sorted by name and outcome; holds one sum in memory."""
    merged = TEMPLATES.empty_table()
    for table in tables:
        grouped = pa.concat_tables([merged, table]).group_by(["name", "outcome"], use_threads=False)
        total = grouped.aggregate([("uses", "sum"), ("pages", "sum")])
        columns = [total[name] for name in ("name", "outcome", "uses_sum", "pages_sum")]
        merged = pa.Table.from_arrays(columns, schema=TEMPLATES)
    return merged.sort_by([("name", "ascending"), ("outcome", "ascending")])
