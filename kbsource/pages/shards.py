"""The files of pages: chunks of pages put together, in the order of the dump.

For each there is a chunk file in the staging folder, ``shards/00012.arrow``, written last: a shard without one was not
finished. Its rows are the uses of templates (``schema.TEMPLATES``), by name and outcome; its report holds a
``ShardReport``, and the articles that no extraction could save.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.pages.template_counts import TemplateCounts, TemplateRow
from kbsource.records import BadRecord
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile
from kbsource.runtime.chunks import (
    Key,
    Report,
    Stored,
    chunk_path,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from kbsource.schema import TEMPLATES

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


def shard_file(staging: str, number: int) -> str:
    """Gives the path of what is known of a shard that is finished."""
    return chunk_path(join(staging, "shards"), Key(number, 0))


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
    if storage.exists(shard_file(staging, shard.number)):
        return read_shard(storage, staging, shard.number)[2]
    articles: Counter[str] = Counter()
    rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sums: dict[str, Counter[str]] = {name: Counter() for name in ("statuses", "losses", "findings")}
    templates = TemplateCounts()
    records: list[BadRecord] = []
    n_skipped = 0
    with TableFile(output, shard_path("pages", shard.number, shard.n_shards), "pages", storage) as target:
        for _, stored in shard.chunks:
            report = read_chunk_report(stored.path, storage)[1]
            for batch in read_stored(stored, storage):
                target.write(batch)
            for bad in report.rejected:
                records.append(bad)
                rejected[bad.file][bad.reason] += 1
            articles[report.facts["file"]] += report.counts["articles"]
            n_skipped += report.counts["skipped"]
            for name, counts in sums.items():
                counts.update(report.facts[name])
            templates.add(map(TemplateRow._make, report.facts["templates"]))
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
    rows = rows_batch(templates.rows(), TEMPLATES)
    done = Report(rejected=records, facts=asdict(shard_report))
    write_chunk([rows], TEMPLATES, done, path=shard_file(staging, shard.number), storage=storage)
    return shard_report


def read_shard(storage: Storage, staging: str, number: int) -> tuple[Stored, list[BadRecord], ShardReport]:
    """Gives of a shard that is finished the uses of templates, the articles that were rejected, and its report."""
    templates, report = read_chunk_report(shard_file(staging, number), storage)
    shard = ShardReport(**{**report.facts, "entry": FileEntry(**report.facts["entry"])})
    return templates, report.rejected, shard


def merge_templates(tables: Iterator[pa.Table]) -> pa.Table:
    """Gives the sum of the shards' template tables, sorted by name and outcome; holds one sum in memory.

    The tables come in the order of the pages: of the examples the first stays.
    """
    sums = [(name, "sum") for name in ("uses", "pages", "shown_chars", "lost_chars")]
    firsts = [(name, "first") for name in ("example_title", "example")]
    merged = TEMPLATES.empty_table()
    for table in tables:
        grouped = pa.concat_tables([merged, table]).group_by(["name", "outcome"], use_threads=False)
        total = grouped.aggregate([*sums, *firsts])
        merged = total.rename_columns([name.removesuffix("_sum").removesuffix("_first") for name in total.column_names])
        merged = merged.select(TEMPLATES.names).cast(TEMPLATES)
    return merged.sort_by([("name", "ascending"), ("outcome", "ascending")])
