"""Reads the entities of a JSON dump of Wikidata in ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam

from kbsource.dump.lines import LineRange
from kbsource.dump.ranges import expand_paths, from_root, range_size, size_of
from kbsource.files import base_name
from kbsource.runtime.chunks import ChunkKey
from kbsource.wikidata.entity import NEEDED_QUALIFIERS, EntityReader
from kbsource.wikidata.lines import plan_entities, read_entities
from kbsource.wikidata.parts import PARSED_TABLES, EntityRange
from pipelines.runners.counters import count, count_rejected
from pipelines.runners.workers import do

ITEMS, PROPERTIES, SITELINKS, STATEMENTS = PARSED_TABLES
REJECTED, COUNTS = "rejected", "counts"


class ReadWikidata(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Reads the entities of a JSON dump of Wikidata, as rows of tables. Applied to a pipeline.

    Outputs:
        ``items``, ``properties``, ``sitelinks``, ``statements``: (key, record batch), with the columns of this table in
            a release (docs/tables.md); the key is the number of the range and the number of the batch in it.
        ``rejected``: ``BadRecord`` of lines that cannot be read, in no particular order.
        ``counts``: (key, dict): ``lines``, ``items``, ``properties``, ``others`` (lexemes, …) and ``rejected``; the
            first is the sum of the others.

    An entity that occurs twice in the dump is returned twice. Memory holds one batch per table. An output that is
    shuffled passes through the runner's memory: apply ``Checkpoint`` first if it is large.

    Args:
        dump: paths or patterns of the files, one entity per line; local, or in a file system that Beam supports.
        languages: languages of labels, descriptions and aliases, the preferred one first.
        sites: wikis whose sitelinks are included, like ``enwiki``; None for all.
        qualifiers: properties whose qualifiers are included; None for all.
        range_bytes: compressed bytes per range; None for a default that depends on the dump.

    Raises:
        SetupError: a file is missing or is not a dump.
    """

    def __init__(
        self,
        dump: str | Sequence[str],
        *,
        languages: Sequence[str] = ("en",),
        sites: Sequence[str] | None = None,
        qualifiers: Sequence[str] | None = NEEDED_QUALIFIERS,
        range_bytes: int | None = None,
    ) -> None:
        super().__init__()
        patterns = [dump] if isinstance(dump, str) else list(dump)
        paths = from_root(expand_paths(patterns))
        self._ranges = plan_entities(paths, range_bytes=range_size(size_of(paths), range_bytes))
        self._reader = EntityReader(
            languages=tuple(languages),
            sites=None if sites is None else frozenset(sites),
            qualifiers=None if qualifiers is None else frozenset(qualifiers),
        )

    def expand(self, pipeline: Any) -> Any:
        return (
            pipeline
            | "ranges" >> beam.Create(self._ranges, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read"
            >> do(_read_entities, reader=self._reader).with_outputs(
                PROPERTIES, SITELINKS, STATEMENTS, REJECTED, COUNTS, main=ITEMS
            )
        )


def _read_entities(element: LineRange, *, reader: EntityReader) -> Iterator[Any]:
    part = EntityRange(read_entities(element), part=element.index, file=base_name(element.path), reader=reader)
    n_batches: Counter[str] = Counter()
    for name, batch in part:
        if name in PARSED_TABLES:
            keyed = ChunkKey(element.index, n_batches[name]), batch
            n_batches[name] += 1
            yield keyed if name == ITEMS else beam.pvalue.TaggedOutput(name, keyed)
    for bad in part.rejected:
        yield beam.pvalue.TaggedOutput(REJECTED, bad)
    count_rejected(part.rejected)
    count(counts := part.counts())
    yield beam.pvalue.TaggedOutput(COUNTS, (ChunkKey(element.index, 0), counts))
