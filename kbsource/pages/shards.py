"""Writes the files of the table ``pages``, the shards: each combines consecutive chunks of pages, in the order of the
dump.

For each shard, the staging folder has a file of results, ``shards/00012.arrow``. It is written last, so without it the
shard is not finished. Its rows are the uses of templates (``TemplateRow``), by name and outcome. Its report contains a
``ShardReport``, and the articles that could not be extracted in any way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import reduce
from heapq import merge
from itertools import groupby
from typing import Any

import msgspec
import pyarrow as pa

from kbsource.columns import batch_of, schema_of
from kbsource.files import Folder, join
from kbsource.records import BadRecord, Page, PageDependencies, TemplateRow
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile
from kbsource.rows import Row
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    drop_rows,
    read_chunk_report,
    read_rows,
    read_stored,
    write_chunk,
)
from kbsource.wikitext.reference_rows import Reference, ReferenceUse

_Structs = list[dict[str, Any]]
REFERENCES: dict[str, type[Row]] = {"refs": Reference, "ref_uses": ReferenceUse}
"""The tables of references. ``PageWithReferences`` has a column for each."""
SHARD_BYTES = 400 << 20
"""Wikitext of a full shard; measured to give 64-256 MB of Parquet."""
FALLBACKS_NAMED = 3
"""Maximum number of articles extracted by the fallback that a manifest lists."""
_ROWS_AT_ONCE = 1 << 9
MIN_SHARD_BYTES = 8 << 20
"""Minimum amount of wikitext in a shard. A smaller shard costs more overhead than parallelism saves."""
MIN_SHARDS = 16
"""Number of shards for a dump of medium size. It is enough for a few workers to finish at about the same time."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The content of a file of pages: consecutive chunks in the order of the dump."""

    number: int
    n_shards: int
    chunks: tuple[tuple[ChunkKey, BatchRef], ...]


@dataclass(frozen=True, slots=True)
class ShardReport:
    """The counts of a shard's articles by outcome. Articles with a newer row of the same page id are not counted."""

    number: int  #: number of the shard
    entry: FileEntry  #: entry of the shard's file
    articles: dict[str, int]  #: number of pages written, by input file
    rejected: dict[str, dict[str, int]]  #: number of articles rejected, by input file and reason
    statuses: dict[str, int]  #: number of pages by ``parse_status``
    losses: dict[str, int]  #: number of items not carried over, by kind
    #: further counts: ``anchors``, ``anchors_resolved``, ``disambiguation_pages``, ``pages_with_item``
    facts: dict[str, int]
    #: page id, title and status of the first pages that were extracted by the fallback
    fallbacks: tuple[tuple[int, str, str], ...] = ()
    #: files of the shard in other tables, by table: references and dependencies, if requested
    others: dict[str, FileEntry] = field(default_factory=dict)


def plan_shards(
    chunks: Sequence[tuple[ChunkKey, BatchRef]],
    *,
    shard_bytes: int = SHARD_BYTES,
    min_shard_bytes: int = MIN_SHARD_BYTES,
    min_shards: int = MIN_SHARDS,
) -> list[Shard]:
    """Divides the chunks of a dump into shards: consecutive chunks with about the same amount of text. There is at
    least one.

    The result depends only on the chunks, never on the number of workers. The weight of a chunk is the size of its
    wikitext. Shards of a large dump have ``shard_bytes`` each. Smaller dumps are split into up to ``min_shards`` shards
    of at least ``min_shard_bytes`` each.
    """
    total = sum(stored.n_bytes for _, stored in chunks)
    n_shards = max(-(-total // shard_bytes), min(min_shards, total // min_shard_bytes), 1)
    groups: list[list[tuple[ChunkKey, BatchRef]]] = [[] for _ in range(n_shards)]
    done = 0
    for key, stored in chunks:
        # A chunk belongs to the shard that contains its middle.
        middle = 2 * done + stored.n_bytes
        groups[min(middle * n_shards // (2 * total) if total else 0, n_shards - 1)].append((key, stored))
        done += stored.n_bytes
    filled = [group for group in groups if group] or [[]]
    return [Shard(number, len(filled), tuple(group)) for number, group in enumerate(filled)]


def shard_file(staging: str, number: int) -> str:
    """Returns the path of the file with the results of a finished shard."""
    return chunk_path(join(staging, "shards"), ChunkKey(number, 0))


def write_page_shard(
    shard: Shard, *, output: str, staging: str, has_references: bool = False, has_dependencies: bool = False
) -> ShardReport:
    """Writes a shard from the chunks that ``PageChunks`` made, with its file of results, and returns its report.

    If the shard is already finished, it is reused. Afterwards, the rows of its chunks are removed.
    """
    if Folder.of(shard_file(staging, shard.number)).exists():
        return read_shard(staging, shard.number)[1]
    articles: Counter[str] = Counter()
    rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    fallbacks: list[tuple[int, str, str]] = []
    sums: dict[str, Counter[str]] = {name: Counter() for name in ("statuses", "losses", "findings")}
    templates = TemplateCounts()
    records: list[BadRecord] = []
    rows_by_table = {"pages": Page, **({"dependencies": PageDependencies} if has_dependencies else {})}
    rows_by_table |= REFERENCES if has_references else {}
    with ExitStack() as stack:
        targets = {
            table: stack.enter_context(
                TableFile(output, shard_path(table, shard.number, shard.n_shards), table, schema=schema_of(row))
            )
            for table, row in rows_by_table.items()
        }
        for _, stored in shard.chunks:
            report = read_chunk_report(stored.path)[1]
            for batch in read_stored(stored):
                targets["pages"].write(batch.select(schema_of(Page).names))
                for table in [*targets][1:]:
                    structs = batch["dependencies"] if table == "dependencies" else batch[table].flatten()
                    if len(structs):
                        schema = schema_of(rows_by_table[table])
                        targets[table].write(pa.RecordBatch.from_arrays(structs.flatten(), schema=schema))
            for bad in report.rejected:
                records.append(bad)
                rejected[bad.file][bad.reason] += 1
            fallbacks += map(tuple, report.facts["fallbacks"])
            articles[report.facts["file"]] += report.counts["articles"]
            for name, counts in sums.items():
                counts.update(report.facts[name])
            templates.add(TemplateRow(*row) for row in report.facts["templates"])
    shard_report = ShardReport(
        number=shard.number,
        entry=targets.pop("pages").entry,
        articles=_in_order(articles),
        rejected={name: _in_order(reasons) for name, reasons in sorted(rejected.items())},
        statuses=_in_order(sums["statuses"]),
        losses=_in_order(sums["losses"]),
        facts=_in_order(sums["findings"]),
        fallbacks=tuple(fallbacks[:FALLBACKS_NAMED]),
        others={table: target.entry for table, target in targets.items()},
    )
    rows = batch_of(templates.rows(), TemplateRow)
    parts = [rows.slice(start, _ROWS_AT_ONCE) for start in range(0, rows.num_rows, _ROWS_AT_ONCE)]
    done = Report(rejected=records, facts=asdict(shard_report))
    write_chunk(parts, schema_of(TemplateRow), done, path=shard_file(staging, shard.number))
    for _, stored in shard.chunks:
        drop_rows(stored)
    return shard_report


def _in_order(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def merged_templates(staging: str, numbers: Iterable[int]) -> Iterator[TemplateRow]:
    """Merges the uses of templates in finished shards. The result is the same as with a single ``TemplateCounts``.

    Memory: ``_ROWS_AT_ONCE`` rows of every shard.
    """
    shards = (read_rows(read_chunk_report(shard_file(staging, number))[0], TemplateRow) for number in numbers)
    # Among rows with the same key, rows of earlier shards come first.
    for _, rows in groupby(merge(*shards, key=_use), key=_use):
        yield reduce(_sum, rows)


def _use(row: TemplateRow) -> tuple[str, str]:
    return row.name, row.outcome


def _sum(known: TemplateRow, row: TemplateRow) -> TemplateRow:
    """Returns the sum of two rows with the same key. The example is that of ``known``, which comes first."""
    first = known if known.example is not None else row
    return TemplateRow(
        known.name,
        known.outcome,
        uses=known.uses + row.uses,
        pages=known.pages + row.pages,
        shown_chars=known.shown_chars + row.shown_chars,
        lost_chars=known.lost_chars + row.lost_chars,
        example_title=first.example_title,
        example=first.example,
    )


def read_shard(staging: str, number: int) -> tuple[list[BadRecord], ShardReport]:
    """Returns the rejected articles and the report of a finished shard."""
    _, report = read_chunk_report(shard_file(staging, number))
    return report.rejected, msgspec.convert(report.facts, ShardReport)


class TemplateCounts:
    """Collects uses of templates by name and outcome. Numbers are added up, and the first example is kept."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], TemplateRow] = {}

    def add(self, rows: Iterable[TemplateRow]) -> None:
        """Adds rows. They must come after all rows that were added before."""
        for row in rows:
            known = self._rows.get(key := _use(row))
            self._rows[key] = row if known is None else _sum(known, row)

    def add_pages(self, titles: Iterable[str], templates: Iterable[_Structs], shown: Iterable[_Structs]) -> None:
        """Adds the uses on pages from three columns with a value for each page: its title, and its lists of
        ``TemplateUse`` and ``ShownUse``, as Arrow returns them.
        """
        for title, uses, shows in zip(titles, templates, shown, strict=True):
            for use, show in zip(uses, shows, strict=True):
                lost_by = title if show["lost_chars"] else None
                counts = use["uses"], 1, show["shown_chars"], show["lost_chars"]
                self.add([TemplateRow(use["name"], use["outcome"], *counts, lost_by, show["example"])])

    def rows(self) -> list[TemplateRow]:
        """Returns the rows, sorted."""
        return [self._rows[key] for key in sorted(self._rows)]
