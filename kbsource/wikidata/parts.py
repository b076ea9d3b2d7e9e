"""One range of a dump becomes batches of the tables, and those become files and a report.

Files of a range lie in the staging folder, named by its key, until the number of all files is known:
``tables/items/00012-00000-000.parquet``, …; ``classes/00012-00000.arrow`` holds P279 statements and the values of P31
(see ``CLASS_EDGES``). Everything depends on the key alone, so doing a range again is harmless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.dump.lines import Line, LineRange
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.errors import RecordError
from kbsource.files import ReadableStorage, Storage, base_name, join
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import RollingFiles
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import Key, Report, Work, chunk_path, rows_batch, write_chunk
from kbsource.wikidata.columns import (
    Columns,
    TableRows,
    names_in,
    plain_batch,
    row_batch,
    statement_columns,
    statement_facts,
    statements_batch,
)
from kbsource.wikidata.entity import Entity, EntityReader, entity_key
from kbsource.wikidata.lines import read_ahead, read_lines
from kbsource.wikidata.statements import Statement
from kbsource.wikidata.values import ENTITY, RANKS

PARSED_TABLES = ("items", "properties", "sitelinks", "statements")
"""Tables that the ranges of a dump give; the others are made of all of them."""
ROWS_PER_FILE = {
    "items": 1 << 20,
    "properties": 1 << 20,
    "sitelinks": 1 << 23,
    "statements": 1 << 22,
    "classes": 1 << 24,
}
"""Rows of a file, 50 to 200 MB: the ranges of a bzip2 file give less, a gzip file is one range."""
_ROWS_AT_ONCE = 1 << 16

ITEM, PROPERTY = 0, 1
IDS = pa.schema(
    [
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("number", pa.uint32(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
    ]
)
"""``kind`` is ``ITEM`` or ``PROPERTY``; ``revision_id`` -1 when unknown; ``ordinal`` counts the lines of the range with
the number ``part``."""
ORDINALS = pa.schema([pa.field("ordinal", pa.int64(), nullable=False)])
"""Which lines of a range are left out."""
CLASS_EDGES = pa.schema(
    [pa.field("class", pa.uint32(), nullable=False), pa.field("superclass", pa.uint32(), nullable=False)]
)
"""Numbers of items; a value of P31 stands as its own superclass."""

_INSTANCE_OF, _SUBCLASS_OF = "P31", "P279"
_CLASS_PROPERTIES = frozenset([_INSTANCE_OF, _SUBCLASS_OF])
_DEPRECATED = RANKS.index("deprecated")
_DETAIL_CHARS = 1000


@dataclass(frozen=True, slots=True)
class PartReport:
    """What a range held: ``n_lines == n_items + n_properties + n_others + sum(rejected)``.

    Attributes:
        part: number of the range.
        file: base name of the dump file.
        n_lines: entities' lines and places of damage.
        n_items, n_properties: released ones.
        n_others: entities of other types, which are not released.
        rejected: lines and places of damage, by reason.
        facts: further counts, see ``manifest.WikidataManifest``.
        used: of the wanted ``languages``, ``sites`` and ``qualifiers`` those that occur.
        tables: files by table; no rows, no file.
    """

    part: int
    file: str
    n_lines: int
    n_items: int
    n_properties: int
    n_others: int
    rejected: dict[str, int]
    facts: dict[str, int]
    used: dict[str, list[str]]
    tables: dict[str, tuple[FileEntry, ...]]

    def to_json(self) -> dict[str, Any]:
        """Gives the report as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PartReport:
        """Gives back what ``to_json`` gave."""
        tables = {name: tuple(FileEntry(**entry) for entry in entries) for name, entries in value["tables"].items()}
        return cls(**{**value, "tables": tables})


class EntityRange:
    """What one range of a dump gives, in the order of the dump; iterate once.

    Args:
        lines: of the range, from ``lines.read_lines``.
        part: number of the range.
        file: base name of the dump file.
        reader: reads the entities; what raises RecordError is rejected.
        skipped: ordinals of entities that another line supersedes; they are rejected as ``duplicate_entity``.
        verdicts: by ordinal: how an entity ended the process that read it; it is rejected unread.
        beat: shows the entity in work.

    Attributes:
        rejected: what was rejected so far.
    """

    def __init__(
        self,
        lines: Iterable[Line | BadRecord],
        *,
        part: int,
        file: str,
        reader: EntityReader,
        skipped: Container[int] = (),
        verdicts: Mapping[int, str] | None = None,
        beat: Beat | None = None,
    ) -> None:
        self._lines, self._part, self._file, self._reader = lines, part, file, reader
        self._skipped, self._verdicts, self._beat = skipped, verdicts or {}, beat or Beat.unshared()
        self._ready: list[tuple[str, pa.RecordBatch]] = []
        batches: dict[str, Callable[[Columns], pa.RecordBatch]] = {
            "items": partial(row_batch, "items"),
            "properties": partial(row_batch, "properties"),
            "sitelinks": partial(plain_batch, "sitelinks"),
            "statements": self._statements_batch,
        }
        self._tables = {name: TableRows(name, batch_of, self._ready) for name, batch_of in batches.items()}
        self._counts: Counter[str] = Counter()
        self._facts: Counter[str] = Counter()
        self._ids: list[tuple[int, ...]] = []
        self._edges: list[tuple[int, ...]] = []
        self._classes: set[int] = set()
        self.rejected: list[BadRecord] = []

    def __iter__(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields row groups of ``PARSED_TABLES``, and batches of ``IDS`` and of ``CLASS_EDGES``, with their names."""
        beat, ready = self._beat, self._ready
        for ordinal, line in enumerate(read_ahead(self._lines), start=1):
            self._counts["lines"] += 1
            if isinstance(line, BadRecord):
                self._reject(line)
                continue
            try:
                if ordinal in self._verdicts:
                    raise RecordError(f"entity_{self._verdicts[ordinal]}", "the entity ended the process that read it")
                beat.enter(ordinal)
                entity = self._reader.read(line.data)
                beat.leave()
                if ordinal in self._skipped:
                    raise RecordError("duplicate_entity", "another line has the entity, in a newer revision or before")
            except RecordError as error:
                beat.leave()
                key = entity_key(line.data)
                self._reject(BadRecord("parse", key, error.reason, error.detail, self._file, line.offset))
                continue
            self._add(entity, ordinal)
            if len(self._ids) >= _ROWS_AT_ONCE or len(self._edges) >= _ROWS_AT_ONCE:
                self._flush_rows()
            if ready:
                yield from ready
                ready.clear()
        self._edges += [(number, number) for number in sorted(self._classes)]
        self._flush_rows()
        for table in self._tables.values():
            table.flush()
        yield from ready

    def _reject(self, bad: BadRecord) -> None:
        self.rejected.append(replace(bad, detail=bad.detail[:_DETAIL_CHARS]))

    def _add(self, entity: Entity, ordinal: int) -> None:
        if entity.kind not in ("item", "property"):
            self._counts["others"] += 1
            self._facts[f"type_{entity.kind}"] += 1
            return
        _add_entity(entity, self._tables)
        is_item = entity.kind == "item"
        self._counts["items" if is_item else "properties"] += 1
        self._facts["without_label"] += entity.label is None
        revision = -1 if entity.revision_id is None else entity.revision_id
        self._ids.append((ITEM if is_item else PROPERTY, entity.number, revision, self._part, ordinal))
        for property_id, class_ in _class_links(entity.statements):
            if property_id == _INSTANCE_OF:
                self._classes.add(class_)
            elif is_item:
                self._edges.append((entity.number, class_))
                self._classes.add(class_)

    def _flush_rows(self) -> None:
        for name, rows, schema in (("ids", self._ids, IDS), ("classes", self._edges, CLASS_EDGES)):
            if rows:
                self._ready.append((name, rows_batch(rows, schema)))
                rows.clear()

    def _statements_batch(self, columns: Columns) -> pa.RecordBatch:
        batch = statements_batch(columns)
        self._facts.update(statement_facts(batch))
        return batch

    def counts(self) -> dict[str, int]:
        """Gives the number of ``lines``, ``items``, ``properties``, ``others`` and ``rejected`` so far."""
        names = ("lines", "items", "properties", "others")
        return {**{name: self._counts[name] for name in names}, "rejected": len(self.rejected)}

    def report(
        self, tables: Mapping[str, tuple[FileEntry, ...]], *, used: dict[str, list[str]], damaged_bytes: int
    ) -> PartReport:
        """Gives the report; only after the last batch.

        Args:
            tables: files by table.
            used: as in the report.
            damaged_bytes: stored bytes of the range that cannot be read.
        """
        self._facts[DAMAGED_BYTES] = damaged_bytes
        counts, rejected = self._counts, Counter(bad.reason for bad in self.rejected)
        return PartReport(
            part=self._part,
            file=self._file,
            n_lines=counts["lines"],
            n_items=counts["items"],
            n_properties=counts["properties"],
            n_others=counts["others"],
            rejected=dict(sorted(rejected.items())),
            facts=dict(sorted((+self._facts).items())),
            used=used,
            tables=dict(tables),
        )


class PartFiles:
    """Writes what ranges of a dump give; the chunk function of a release, whose chunks are ranges.

    The rows of a chunk are ``IDS``; its report holds a ``PartReport`` as its facts, and what is rejected. The rows that
    it is given, if any, are ``ORDINALS``: of entities that another line supersedes.

    Args:
        ranges: of the dump.
        reader: reads the entities.
        source: of the dump.
        storage: of the staging folder.
        staging: takes the files.
    """

    schema = IDS

    def __init__(
        self,
        ranges: Sequence[LineRange],
        reader: EntityReader,
        *,
        source: ReadableStorage,
        storage: Storage,
        staging: str,
    ) -> None:
        self._ranges, self._reader = ranges, reader
        self._source, self._storage, self._staging = source, storage, staging

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        line_range, beat = self._ranges[work.key.part], work.beat
        damages: list[int] = []
        lines = read_lines(
            line_range,
            self._source,
            on_progress=lambda n_bytes: beat.done(pages=0, amount=n_bytes),
            on_damage=damages.append,
        )
        if work.alone:
            self._read_alone(lines, work)
            return
        part = EntityRange(
            lines,
            part=line_range.index,
            file=base_name(line_range.path),
            reader=self._reader,
            skipped=frozenset(ordinal for _, batch in rows for ordinal in batch["ordinal"].to_pylist()),
            verdicts={ordinal: how for ordinal, (_, how) in work.verdicts.items()},
            beat=beat,
        )
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(part_files(self._staging, name, work.key, self._storage))
                for name in PARSED_TABLES
            }
            edges = []
            names: dict[str, set[str]] = {name: set() for name in ("languages", "sites", "qualifiers")}
            for name, batch in part:
                if name == "ids":
                    yield batch
                elif name == "classes":
                    edges.append(batch)
                else:
                    files[name].write(batch)
                    for kind, column in names_in(name, batch):
                        names[kind].update(pc.unique(column).to_pylist())
        edges_path = class_edges_path(self._staging, work.key)
        write_chunk(edges, CLASS_EDGES, Report(), path=edges_path, storage=self._storage)
        report = part.report(
            {name: one.entries for name, one in files.items()},
            used={name: sorted(self._reader.wanted_in(name, found)) for name, found in names.items()},
            damaged_bytes=sum(damages),
        )
        work.report.rejected = part.rejected
        work.report.facts = report.to_json()

    def _read_alone(self, lines: Iterable[Line | BadRecord], work: Work) -> None:
        for ordinal, line in enumerate(lines, start=1):
            if ordinal == work.alone and isinstance(line, Line):
                work.beat.enter(ordinal)
                with suppress(RecordError):
                    self._reader.read(line.data)
                work.beat.leave()
                return


def tables_folder(staging: str) -> str:
    """Gives the folder of the ranges' files."""
    return join(staging, "tables")


def part_files(staging: str, table: str, key: Key, storage: Storage) -> RollingFiles:
    """Gives what takes the rows of a table that a range gives."""
    names = f"{key.part:05d}-{key.chunk:05d}-{{:03d}}.parquet"
    return RollingFiles(tables_folder(staging), table, storage, names=names, rows_per_file=ROWS_PER_FILE[table])


def class_edges_path(staging: str, key: Key) -> str:
    """Gives the path of a range's ``CLASS_EDGES``."""
    return chunk_path(join(staging, "classes"), key)


def _add_entity(entity: Entity, tables: Mapping[str, TableRows]) -> None:
    language, text = entity.label or (None, None)
    terms = (
        text,
        language,
        entity.labels,
        entity.descriptions,
        entity.aliases,
        len(entity.statements),
        entity.revision_id,
    )
    if entity.kind == "item":
        tables["items"].extend(([(entity.entity_id, *terms, entity.n_sitelinks)],))
        if (links := entity.sitelinks).sites:
            tables["sitelinks"].extend(([entity.entity_id] * len(links.sites), links.sites, links.titles))
    else:
        tables["properties"].extend(([(entity.entity_id, entity.datatype, *terms)],))
    if entity.statements:
        tables["statements"].extend(statement_columns(entity.entity_id, entity.statements))


def _class_links(statements: Iterable[Statement]) -> Iterator[tuple[str, int]]:
    """Gives the items that are values of P31 and P279, deprecated statements left out, with their property."""
    for property_id, rank, (form, _, value, _), _ in statements:
        if property_id in _CLASS_PROPERTIES and form == ENTITY and rank != _DEPRECATED and value and value[0] == "Q":
            yield property_id, int(value[1:])
