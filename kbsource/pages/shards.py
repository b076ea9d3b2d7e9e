"""The files of pages: chunks of pages put together, in the order of the dump.

Layout under the staging folder, one of each per file of pages, named by its number::

    shard_rejected/00012.arrow   articles that no extraction could save (``schema.REJECTED``)
    shard_templates/00012.arrow  uses of templates (``schema.TEMPLATES``), by name and outcome
    shards/00012.json            the report; written last: a shard without one was not finished
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import pyarrow as pa

from kbsource.files import Storage, join, read_json, write_json
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile
from kbsource.runtime.chunks import Key, Report, Stored, read_chunk_report, read_stored, rows_batch, write_chunk
from kbsource.schema import REJECTED, TEMPLATES

SHARD_BYTES = 400 << 20
"""Wikitext of a full shard: 64-256 MB of Parquet, by measurement."""
MIN_SHARD_BYTES = 8 << 20
"""Wikitext below which a shard costs more in overhead than it gains in spread."""
MIN_SHARDS = 16
"""Shards that a middling dump is spread over, so that a handful of workers end at about the same time."""


@dataclass(frozen=True, slots=True)
class Shard:
    """What goes into one file of pages: some chunks, in the order of the dump."""

    number: int
    n_shards: int
    chunks: tuple[tuple[Key, Stored], ...]


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


def plan_shards(
    chunks: Sequence[tuple[Key, Stored]],
    *,
    shard_bytes: int = SHARD_BYTES,
    min_shard_bytes: int = MIN_SHARD_BYTES,
    min_shards: int = MIN_SHARDS,
) -> list[Shard]:
    """Gives the shards of a dump: consecutive chunks, about the same amount of text in each; at least one
    shard.

    Depends on the chunks alone, never on the number of workers.

    Args:
        chunks: all chunks in the order of the dump; their weight is that of the wikitext they are made of.
        shard_bytes: wikitext of a shard of a large dump.
        min_shard_bytes: wikitext that a shard has at least, as far as there is so much.
        min_shards: shards of a dump that is large enough for so many of ``min_shard_bytes``.
    """
    total = sum(stored.n_bytes for _, stored in chunks)
    n_shards = max(-(-total // shard_bytes), min(min_shards, total // min_shard_bytes), 1)
    groups: list[list[tuple[Key, Stored]]] = [[] for _ in range(n_shards)]
    done = 0
    for key, stored in chunks:
        # By the chunk's middle, so that a chunk at an edge goes where most of it belongs.
        middle = 2 * done + stored.n_bytes
        groups[min(middle * n_shards // (2 * total) if total else 0, n_shards - 1)].append((key, stored))
        done += stored.n_bytes
    filled = [group for group in groups if group] or [[]]
    return [Shard(number, len(filled), tuple(group)) for number, group in enumerate(filled)]


def shard_file(staging: str, kind: str, number: int) -> str:
    """Gives the path of a shard's file of one kind: ``shards``, ``shard_rejected`` or ``shard_templates``."""
    return join(staging, kind, f"{number:05d}.{'json' if kind == 'shards' else 'arrow'}")


def write_page_shard(shard: Shard, storage: Storage, *, output: str, staging: str) -> ShardReport:
    """Writes one file of pages out of its chunks, and the shard's report; one that is there already is taken.

    Args:
        shard: the chunks, from ``page_chunks.PageChunks``.
        storage: of all folders.
        output: folder of the release.
        staging: staging folder.

    Returns:
        The report, as written.
    """
    report_path = shard_file(staging, "shards", shard.number)
    if storage.exists(report_path):
        return ShardReport.from_json(read_json(storage, report_path))
    articles: Counter[str] = Counter()
    rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sums: dict[str, Counter[str]] = {name: Counter() for name in ("statuses", "losses", "findings")}
    uses: Counter[tuple[str, str]] = Counter()
    pages: Counter[tuple[str, str]] = Counter()
    n_skipped = 0
    file = shard_path("pages", shard.number, shard.n_shards)
    rejected_rows: list[tuple[Any, ...]] = []
    with TableFile(output, file, "pages", storage) as target:
        for _, stored in shard.chunks:
            report = read_chunk_report(stored.path, storage)[1]
            for batch in read_stored(stored, storage):
                target.write(batch)
            for bad in report.rejected:
                rejected_rows.append(astuple(bad))
                rejected[bad.file][bad.reason] += 1
            articles[report.facts["file"]] += report.counts["articles"]
            n_skipped += report.counts["skipped"]
            for name, counts in sums.items():
                counts.update(report.facts[name])
            for name, outcome, n_uses, n_pages in report.facts["templates"]:
                uses[name, outcome] += n_uses
                pages[name, outcome] += n_pages
    templates = [(*use, n_uses, pages[use]) for use, n_uses in sorted(uses.items())]
    for kind, rows, schema in (
        ("shard_rejected", rejected_rows, REJECTED),
        ("shard_templates", templates, TEMPLATES),
    ):
        path = shard_file(staging, kind, shard.number)
        write_chunk([rows_batch(rows, schema)], schema, Report(), path=path, storage=storage)
    shard_report = ShardReport(
        number=shard.number,
        entry=target.entry,
        articles=dict(sorted(articles.items())),
        rejected={name: dict(sorted(reasons.items())) for name, reasons in sorted(rejected.items())},
        n_skipped=n_skipped,
        statuses=dict(sorted(sums["statuses"].items())),
        losses=dict(sorted(sums["losses"].items())),
        facts=dict(sorted(sums["findings"].items())),
    )
    write_json(storage, report_path, shard_report.to_json())
    return shard_report


def read_shard_report(storage: Storage, staging: str, number: int) -> ShardReport:
    """Gives the report of a shard that is finished."""
    return ShardReport.from_json(read_json(storage, shard_file(staging, "shards", number)))


def merge_templates(tables: Iterator[pa.Table]) -> pa.Table:
    """Gives the sum of the shards' template tables, sorted by name and outcome; holds one sum in memory."""
    merged = TEMPLATES.empty_table()
    for table in tables:
        grouped = pa.concat_tables([merged, table]).group_by(["name", "outcome"], use_threads=False)
        total = grouped.aggregate([("uses", "sum"), ("pages", "sum")])
        columns = [total[name] for name in ("name", "outcome", "uses_sum", "pages_sum")]
        merged = pa.Table.from_arrays(columns, schema=TEMPLATES)
    return merged.sort_by([("name", "ascending"), ("outcome", "ascending")])
