"""Converts a range of a dump to batches of the tables, and writes them to files with a report.

The files of a range have names with its key, and are in the staging folder until the number of all files is known:
``tables/items/00012-00000-000.parquet``, …; ``classes/00012-00000.arrow`` contains P279 statements and the values of
P31 (see ``CLASS_EDGES``). The files depend only on the range, so repeating a range does no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from kbsource.columns import encode, schema_of
from kbsource.dump.digests import CheckedFiles, HashedFile, read_hashes, write_hashes
from kbsource.dump.lines import Line, LineRange
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.errors import RecordError
from kbsource.files import Files, Folder, base_name, join
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import RollingFiles
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import ChunkKey, Report, Work, chunk_path, write_chunk
from kbsource.wikidata.entity import (
    ENTITY,
    FORMS,
    OWN_COLUMNS,
    RANKS,
    Entity,
    EntityReader,
    ReadStatement,
    Snak,
    entity_key,
)
from kbsource.wikidata.lines import read_ahead, read_entities
from kbsource.wikidata.records import WIKIDATA_TABLES, EntityCounts, Statement, Value

Columns = Sequence[Sequence[Any]]
GROUP_ROWS = {"items": 1 << 13, "properties": 1 << 13, "sitelinks": 1 << 16, "statements": 1 << 15}
"""Rows per row group, by table. Data that is not a table has ``_ROWS_AT_ONCE`` rows per batch."""
_ROWS_AT_ONCE = 1 << 16
_TERMS = ("labels", "descriptions", "aliases")
_SNAKS, _VALUE_TYPES = zip(*FORMS, strict=True)
_TYPES = {field.name: field.type for field in schema_of(Value)}
_OWN = [(FORMS.index(("value", value_type)), names) for value_type, names in OWN_COLUMNS.items()]


def row_batch(schema: pa.Schema, columns: Columns) -> pa.RecordBatch:
    """Returns a record batch of rows that are tuples. They are passed as the only column."""
    (rows,) = columns
    return plain_batch(schema, _transposed(rows, len(rows[0])))


def plain_batch(schema: pa.Schema, columns: Columns) -> pa.RecordBatch:
    """Returns a record batch from columns of values that need no conversion."""
    arrays = [encode(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def statement_columns(entity_id: str, statements: Sequence[ReadStatement]) -> Columns:
    """Returns the columns that ``statements_batch`` expects, for the statements of an entity (at least one)."""
    property_ids, ranks, snaks, qualifiers = zip(*statements, strict=True)
    return [entity_id] * len(statements), property_ids, ranks, *zip(*snaks, strict=True), qualifiers


def statements_batch(columns: Columns) -> pa.RecordBatch:
    """Returns a record batch of the table ``statements``.

    Args:
        columns: entity, property, index of the rank, the four parts of the snak, and the qualifiers, which are pairs of
            property and snak.
    """
    entity_ids, property_ids, ranks, *snaks, qualifiers = columns
    schema = schema_of(Statement)
    arrays = [
        pa.array(entity_ids, pa.string()),
        pa.array(property_ids, pa.string()),
        _names(RANKS).take(pa.array(_small(ranks))),
        *_snak_arrays(*snaks),
        _qualifier_array(qualifiers, schema.field("qualifiers").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class TableBatches:
    """Collects the columns of a table, and passes them on one row group at a time."""

    def __init__(
        self, name: str, batch_of: Callable[[Columns], pa.RecordBatch], ready: list[tuple[str, pa.RecordBatch]]
    ) -> None:
        self._name, self._batch_of, self._ready = name, batch_of, ready
        self._group_rows = GROUP_ROWS.get(name, _ROWS_AT_ONCE)
        self._columns: list[list[Any]] = []
        self._n_rows = 0

    def extend(self, columns: Columns) -> None:
        """Adds rows, passed as columns of the same length."""
        if not self._columns:
            self._columns = [[] for _ in columns]
        for own, more in zip(self._columns, columns, strict=True):
            own.extend(more)
        self._n_rows += len(columns[0])
        while self._n_rows >= self._group_rows:
            self._give(self._group_rows)

    def flush(self) -> None:
        """Passes on the remaining rows. Call it once, after all rows were added."""
        if self._n_rows:
            self._give(self._n_rows)

    def _give(self, n_rows: int) -> None:
        self._ready.append((self._name, self._batch_of([column[:n_rows] for column in self._columns])))
        for column in self._columns:
            del column[:n_rows]
        self._n_rows -= n_rows


def statement_facts(batch: pa.RecordBatch) -> Counter[str]:
    """Returns the number of statements by rank, kind of snak and type of value, and the number of qualifiers."""
    found: Counter[str] = Counter()
    for name, prefix in (("rank", "rank"), ("snak", "snak"), ("value_type", "value")):
        for row in pc.value_counts(batch[name].drop_null()).to_pylist():
            found[f"{prefix}_{row['values']}"] += row["counts"]
    found["qualifiers"] += len(batch["qualifiers"].flatten())
    return found


def names_in(table: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    """Returns the names in a batch (languages, wikis, properties) that an option can select, by option."""
    if table == "sitelinks":
        yield "sites", batch["site"]
    elif table == "statements":
        yield "qualifiers", batch["qualifiers"].flatten().field("property_id")
    else:
        yield from (("languages", batch[term].flatten().field("language")) for term in _TERMS)


def _qualifier_array(qualifiers: Sequence[Sequence[tuple[str, Snak]]], type_: pa.DataType) -> pa.ListArray:
    ends = np.cumsum(np.fromiter(map(len, qualifiers), np.int32, len(qualifiers)), dtype=np.int32)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    property_ids, snaks = _transposed(chain.from_iterable(qualifiers), 2)
    arrays = [pa.array(property_ids, pa.string()), *_snak_arrays(*_transposed(snaks, 4))]
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(arrays, fields=list(type_.value_type)), type=type_
    )


def _transposed(rows: Iterable[Sequence[Any]], n_columns: int) -> Columns:
    return list(zip(*rows, strict=True)) or [()] * n_columns


def _snak_arrays(
    forms: Sequence[int], datatypes: Sequence[str | None], values: Sequence[str | None], own_values: Sequence[Any]
) -> list[pa.Array]:
    """Returns the columns of ``Value``."""
    numbers = _small(forms)
    places = pa.array(numbers)
    arrays = {
        "snak": _names(_SNAKS).take(places),
        "datatype": pa.array(datatypes, pa.string()),
        "value_type": _names(_VALUE_TYPES).take(places),
        "value": pa.array(values, pa.string()),
    }
    for form, names in _OWN:
        at = np.flatnonzero(numbers == form)
        rows = [own_values[place] for place in at.tolist()]
        for name, column in zip(names, _transposed(rows, len(names)), strict=True):
            arrays[name] = _spread(pa.array(column, _TYPES[name]), at, len(numbers))
    return [arrays[field.name] for field in schema_of(Value)]


@cache
def _names(names: tuple[str | None, ...]) -> pa.Array:
    return pa.array(names, pa.string())


def _spread(array: pa.Array, at: npt.NDArray[np.int64], n_rows: int) -> pa.Array:
    """Returns an array of ``n_rows`` that has the values at the positions ``at``, and null at all others."""
    if not len(at):
        return pa.nulls(n_rows, array.type)
    is_missing = np.ones(n_rows, np.bool_)
    is_missing[at] = False
    places = np.zeros(n_rows, np.int32)
    places[at] = np.arange(len(at), dtype=np.int32)
    return array.take(pa.array(places, mask=is_missing))


def _small(numbers: Sequence[int]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytes(numbers), np.uint8)


PARSED_TABLES = ("items", "properties", "sitelinks", "statements")
"""Tables that are made range by range. The others are made from all ranges together."""
ROWS_PER_FILE = {
    "items": 1 << 20,
    "properties": 1 << 20,
    "sitelinks": 1 << 23,
    "statements": 1 << 22,
    "classes": 1 << 24,
}
"""Maximum rows per file, which are 50 to 200 MB. A range of a bzip2 file has fewer; a gzip file, which is one range,
may have more.
"""
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
"""``kind`` is ``ITEM`` or ``PROPERTY``; ``revision_id`` is -1 if unknown; ``part`` is the number of the range, and
``ordinal`` the line number in it.
"""
ORDINALS = pa.schema([pa.field("ordinal", pa.int64(), nullable=False)])
"""The lines of a range that are left out."""
CLASS_EDGES = pa.schema(
    [pa.field("class", pa.uint32(), nullable=False), pa.field("superclass", pa.uint32(), nullable=False)]
)
"""Pairs of item numbers: a class and its superclass. A value of P31 is entered as its own superclass."""

_INSTANCE_OF, _SUBCLASS_OF = "P31", "P279"
_CLASS_PROPERTIES = frozenset([_INSTANCE_OF, _SUBCLASS_OF])
_DEPRECATED = RANKS.index("deprecated")
_DETAIL_CHARS = 1000


@dataclass(frozen=True, slots=True)
class PartReport:
    """The results of a range."""

    part: int  #: number of the range
    file: str  #: base name of the dump file
    counts: EntityCounts
    facts: dict[str, int]  #: further counts, see ``WikidataManifest``
    used: dict[str, list[str]]  #: the wanted ``languages``, ``sites`` and ``qualifiers`` that occur
    tables: dict[str, tuple[FileEntry, ...]]  #: files by table; a table without rows has no file


class EntityRange:
    """Iterates over the contents of a range of a dump, in the order of the dump. It can be iterated only once.

    Args:
        lines: lines of the range, from ``lines.read_lines``.
        reader: reads the entities; an entity that raises RecordError is rejected.
        skipped: ordinals of entities to leave out because another line has the same entity; they are rejected as
            ``duplicate_entity``.
        verdicts: for entities that crashed the process, by ordinal, how the process ended; they are rejected without
            being read.
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
        of_rows = {"items": WIKIDATA_TABLES["items"], "properties": WIKIDATA_TABLES["properties"], "ids": IDS}
        batches: dict[str, Callable[[Columns], pa.RecordBatch]] = {
            **{name: partial(row_batch, schema) for name, schema in of_rows.items()},
            "sitelinks": partial(plain_batch, WIKIDATA_TABLES["sitelinks"]),
            "statements": self._statements_batch,
            "classes": partial(plain_batch, CLASS_EDGES),
        }
        self._tables = {name: TableBatches(name, batch_of, self._ready) for name, batch_of in batches.items()}
        self._counts: Counter[str] = Counter()
        self._facts: Counter[str] = Counter()
        self._classes: set[int] = set()
        self.rejected: list[BadRecord] = []  #: records rejected so far

    def __iter__(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Iterates over row groups of ``PARSED_TABLES``, and batches of ``IDS`` and of ``CLASS_EDGES``, with their
        names.
        """
        beat, ready = self._beat, self._ready
        for ordinal, line in enumerate(read_ahead(self._lines), start=1):
            self._counts["lines"] += 1
            if isinstance(line, BadRecord):
                self._reject(line)
                continue
            try:
                if ordinal in self._verdicts:
                    raise RecordError(f"entity_{self._verdicts[ordinal]}", "the process that read the entity crashed")
                beat.enter(ordinal)
                entity = self._reader.read(line.data)
                beat.leave()
                if ordinal in self._skipped:
                    raise RecordError(
                        "duplicate_entity", "another line has the same entity, in a newer revision or earlier"
                    )
            except RecordError as error:
                beat.leave()
                key = entity_key(line.data)
                self._reject(BadRecord("parse", key, error.reason, error.detail, self._file, line.offset))
                continue
            self._add(entity, ordinal)
            if ready:
                yield from ready
                ready.clear()
        self._tables["classes"].extend((sorted(self._classes), sorted(self._classes)))
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
        of_range = (ITEM if is_item else PROPERTY, entity.number, revision, self._part, ordinal)
        self._tables["ids"].extend(([of_range],))
        for property_id, class_ in _class_links(entity.statements):
            if property_id == _INSTANCE_OF:
                self._classes.add(class_)
            elif is_item:
                self._tables["classes"].extend(([entity.number], [class_]))
                self._classes.add(class_)

    def _statements_batch(self, columns: Columns) -> pa.RecordBatch:
        batch = statements_batch(columns)
        self._facts.update(statement_facts(batch))
        return batch

    def counts(self) -> dict[str, int]:
        """Returns the number of ``lines``, ``items``, ``properties``, ``others`` and ``rejected`` so far."""
        names = ("lines", "items", "properties", "others")
        return {**{name: self._counts[name] for name in names}, "rejected": len(self.rejected)}

    def report(
        self, tables: Mapping[str, tuple[FileEntry, ...]], *, used: dict[str, list[str]], damaged_bytes: int
    ) -> PartReport:
        """Returns the report. Call it only after the last batch.

        Args:
            damaged_bytes: number of stored bytes of the range that cannot be read.
        """
        self._facts[DAMAGED_BYTES] = damaged_bytes
        n, rejected = self._counts, Counter(bad.reason for bad in self.rejected)
        counts = EntityCounts(n["lines"], n["items"], n["properties"], n["others"], dict(sorted(rejected.items())))
        facts = dict(sorted((+self._facts).items()))
        return PartReport(self._part, self._file, counts, facts, used, dict(tables))


def write_plan(ranges: Sequence[LineRange], hashed: Mapping[str, HashedFile], staging: str) -> None:
    """Writes the ranges of the dump, and the hashes of its files by path, to the staging folder."""
    Folder.of(_plan_path(staging)).write_json(msgspec.to_builtins(ranges))
    write_hashes(hashed, _hashes_path(staging))


def planned_files(staging: str, reader: EntityReader) -> PartFiles:
    """Returns the chunk function for ranges that ``write_plan`` wrote, for processes that know only the folder's
    path.
    """
    ranges = msgspec.convert(Folder.of(_plan_path(staging)).read_json(), list[LineRange])
    return PartFiles(ranges, reader, files=CheckedFiles(read_hashes(_hashes_path(staging))), staging=staging)


def _plan_path(staging: str) -> str:
    return join(staging, "plan.json")


def _hashes_path(staging: str) -> str:
    return join(staging, "hashes.json")


class PartFiles:
    """Writes the contents of ranges of a dump. It is the chunk function of a release whose chunks are ranges.

    The rows of a chunk are ``IDS``. Its report contains a ``PartReport`` as its facts, and the rejected records. Its
    input rows, if any, are the ``ORDINALS`` of entities to leave out because another line has the same entity.
    """

    schema = IDS

    def __init__(self, ranges: Sequence[LineRange], reader: EntityReader, *, files: Files, staging: str) -> None:
        self._ranges, self._reader = ranges, reader
        self._files, self._staging = files, staging

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        line_range, beat = self._ranges[work.key.part], work.beat
        damages: list[int] = []
        lines = read_entities(
            line_range,
            files=self._files,
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
            files = {name: stack.enter_context(part_files(self._staging, name, work.key)) for name in PARSED_TABLES}
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
        write_chunk(edges, CLASS_EDGES, Report(), path=edges_path)
        report = part.report(
            {name: file.entries for name, file in files.items()},
            used={name: sorted(self._reader.wanted_in(name, found)) for name, found in names.items()},
            damaged_bytes=sum(damages),
        )
        work.report.rejected = part.rejected
        work.report.counts.update(part.counts())
        work.report.facts = msgspec.to_builtins(report)

    def _read_alone(self, lines: Iterable[Line | BadRecord], work: Work) -> None:
        for ordinal, line in enumerate(lines, start=1):
            if ordinal == work.alone and isinstance(line, Line):
                work.beat.enter(ordinal)
                with suppress(RecordError):
                    self._reader.read(line.data)
                work.beat.leave()
                return


def tables_folder(staging: str) -> str:
    """Returns the folder of the ranges' files."""
    return join(staging, "tables")


def part_files(staging: str, table: str, key: ChunkKey) -> RollingFiles:
    """Returns the writer for the rows of a table in a range."""
    names = f"{key.part:05d}-{key.chunk:05d}-{{:03d}}.parquet"
    return RollingFiles(
        tables_folder(staging), table, schema=WIKIDATA_TABLES[table], names=names, rows_per_file=ROWS_PER_FILE[table]
    )


def class_edges_path(staging: str, key: ChunkKey) -> str:
    """Returns the path of a range's ``CLASS_EDGES``."""
    return chunk_path(join(staging, "classes"), key)


def _add_entity(entity: Entity, tables: Mapping[str, TableBatches]) -> None:
    label = entity.label
    terms = (
        label and label.text,
        label and label.language,
        entity.labels,
        entity.descriptions,
        entity.aliases,
        len(entity.statements),
        entity.revision_id,
    )
    if entity.kind == "item":
        tables["items"].extend(([(entity.entity_id, *terms, entity.n_sitelinks)],))
        sites, titles = entity.sitelinks
        if sites:
            tables["sitelinks"].extend(([entity.entity_id] * len(sites), sites, titles))
    else:
        tables["properties"].extend(([(entity.entity_id, entity.datatype, *terms)],))
    if entity.statements:
        tables["statements"].extend(statement_columns(entity.entity_id, entity.statements))


def _class_links(statements: Iterable[ReadStatement]) -> Iterator[tuple[str, int]]:
    """Finds the items that are values of P31 and P279, with their property; deprecated statements are skipped."""
    for property_id, rank, (form, _, value, _), _ in statements:
        if property_id in _CLASS_PROPERTIES and form == ENTITY and rank != _DEPRECATED and value and value[0] == "Q":
            yield property_id, int(value[1:])
