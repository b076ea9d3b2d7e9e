"""One range of a dump becomes files of the tables, and a report.

Files of a range get the names ``items/00012-000.unnamed``, …, until the number of all files is known. Under the staging
folder, one of each per range, named by its number::

    rejected/00012.arrow   rejected records (``schema.REJECTED``)
    ids/00012.arrow        id and revision of every entity (see ``IDS``), for finding those that come twice
    classes/00012.arrow    P279 statements and the values of P31 (see ``CLASS_EDGES``)
    parts/00012.json       the report; written last: a range without one was not finished

Everything depends on the range alone, so doing a range again is harmless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.beat import Beat
from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry
from kbsource.schema import REJECTED
from kbsource.staging import read_json, staged_rows, write_json
from kbsource.wikidata.columns import Columns, plain_batch, row_batch, statement_columns, statements_batch
from kbsource.wikidata.entity import Entity, EntityReader, entity_key
from kbsource.wikidata.lines import Line, read_ahead
from kbsource.wikidata.rolling import RollingFiles
from kbsource.wikidata.statements import Statement
from kbsource.wikidata.values import ENTITY, RANKS

PARSED_TABLES = ("items", "properties", "sitelinks", "statements")
"""Tables that the ranges of a dump give; the others are made of all of them."""
GROUP_ROWS = {"items": 1 << 13, "properties": 1 << 13, "sitelinks": 1 << 16, "statements": 1 << 15}
IDS_AT_ONCE = 1 << 16

ITEM, PROPERTY = 0, 1
IDS = pa.schema(
    [
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("number", pa.uint32(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
    ]
)
"""``kind`` is ``ITEM`` or ``PROPERTY``; ``revision_id`` -1 when unknown; ``ordinal`` counts the lines of the range."""
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
    tables: dict[str, tuple[FileEntry, ...]]

    def to_json(self) -> dict[str, Any]:
        """Gives the report as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PartReport:
        """Gives back what ``to_json`` gave."""
        tables = {name: tuple(FileEntry(**one) for one in entries) for name, entries in value["tables"].items()}
        return cls(**{**value, "tables": tables})


def staged_file(staging: str, kind: str, part: int) -> str:
    """Gives the path of a range's file of one kind: ``rejected``, ``ids``, ``classes`` or ``parts``."""
    return join(staging, kind, f"{part:05d}.{'json' if kind == 'parts' else 'arrow'}")


class _Table:
    """Columns of one table, written a row group at a time."""

    def __init__(self, files: RollingFiles, group_rows: int, batch_of: Callable[[Columns], pa.RecordBatch]) -> None:
        self._files, self._group_rows, self._batch_of = files, group_rows, batch_of
        self._columns: list[list[Any]] = []
        self._n_rows = 0

    def extend(self, columns: Columns) -> None:
        """Takes rows, given as columns of one length."""
        if not self._columns:
            self._columns = [[] for _ in columns]
        for own, more in zip(self._columns, columns, strict=True):
            own.extend(more)
        self._n_rows += len(columns[0])
        while self._n_rows >= self._group_rows:
            self._write(self._group_rows)

    def flush(self) -> None:
        """Writes what is pending; call it once after the last row."""
        if self._n_rows:
            self._write(self._n_rows)

    def _write(self, n_rows: int) -> None:
        self._files.write(self._batch_of([column[:n_rows] for column in self._columns]))
        for column in self._columns:
            del column[:n_rows]
        self._n_rows -= n_rows


def _statement_facts(batch: pa.RecordBatch) -> Counter[str]:
    """Gives how many statements there are of each rank, kind of snak and type of value."""
    found: Counter[str] = Counter()
    for name, prefix in (("rank", "rank"), ("snak", "snak"), ("value_type", "value")):
        for one in pc.value_counts(batch[name].drop_null()).to_pylist():
            found[f"{prefix}_{one['values']}"] += one["counts"]
    found["qualifiers"] += len(batch["qualifiers"].flatten())
    return found


def write_part(
    lines: Iterable[Line | BadRecord],
    storage: Storage,
    *,
    output: str,
    staging: str,
    part: int,
    file: str,
    reader: EntityReader,
    skipped: Container[int],
    verdicts: Mapping[int, str],
    beat: Beat,
) -> PartReport:
    """Writes what one range of a dump gives, in the order of the dump, and its report.

    Args:
        lines: of one range, from ``lines.read_lines``.
        output: folder of the release.
        staging: staging folder.
        part: number of the range.
        file: base name of the dump file.
        reader: reads the entities; what raises RecordError is rejected.
        skipped: ordinals of entities that another line supersedes; they are rejected as ``duplicate_entity``.
        verdicts: by ordinal: how an entity ended the process that read it; it is rejected unread.

    Returns:
        The report, as written.
    """
    counts: Counter[str] = Counter()
    rejects: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    classes: set[int] = set()

    def counted_statements(columns: Columns) -> pa.RecordBatch:
        batch = statements_batch(columns)
        facts.update(_statement_facts(batch))
        return batch

    with ExitStack() as stack:
        files = {name: stack.enter_context(RollingFiles(output, name, part, storage)) for name in PARSED_TABLES}
        batches: dict[str, Callable[[Columns], pa.RecordBatch]] = {
            "items": partial(row_batch, "items"),
            "properties": partial(row_batch, "properties"),
            "sitelinks": partial(plain_batch, "sitelinks"),
            "statements": counted_statements,
        }
        tables = {name: _Table(files[name], GROUP_ROWS[name], batches[name]) for name in PARSED_TABLES}
        rejected, ids, edges = (
            stack.enter_context(staged_rows(storage, staged_file(staging, kind, part), schema))
            for kind, schema in (("rejected", REJECTED), ("ids", IDS), ("classes", CLASS_EDGES))
        )

        def reject(bad: BadRecord) -> None:
            rejected.add((bad.stage, bad.key, bad.reason, bad.detail[:_DETAIL_CHARS], bad.file, bad.offset))
            rejects[bad.reason] += 1

        for ordinal, line in enumerate(read_ahead(lines), start=1):
            counts["lines"] += 1
            if isinstance(line, BadRecord):
                reject(line)
                continue
            try:
                if ordinal in verdicts:
                    kind = verdicts[ordinal].rpartition("_")[2]
                    raise RecordError(f"entity_{kind}", "the entity ended the process that read it")
                beat.enter(ordinal)
                entity = reader.read(line.data)
                beat.leave()
                if ordinal in skipped:
                    raise RecordError("duplicate_entity", "another line has the entity, in a newer revision or before")
            except RecordError as error:
                beat.leave()
                reject(BadRecord("parse", entity_key(line.data), error.reason, error.detail, file, line.offset))
                continue
            if entity.kind not in ("item", "property"):
                counts["others"] += 1
                facts[f"type_{entity.kind}"] += 1
                continue
            _add_entity(entity, tables)
            is_item = entity.kind == "item"
            counts["items" if is_item else "properties"] += 1
            facts["without_label"] += entity.label is None
            revision = -1 if entity.revision_id is None else entity.revision_id
            ids.add((ITEM if is_item else PROPERTY, entity.number, revision, ordinal))
            for property_id, class_ in _class_links(entity.statements):
                if property_id == _INSTANCE_OF:
                    classes.add(class_)
                elif is_item:
                    edges.add((entity.number, class_))
                    classes.add(class_)
            for rows in (ids, edges):
                if rows.n_pending >= IDS_AT_ONCE:
                    rows.flush()
        for number in sorted(classes):
            edges.add((number, number))
        for table in tables.values():
            table.flush()
    report = PartReport(
        part=part,
        file=file,
        n_lines=counts["lines"],
        n_items=counts["items"],
        n_properties=counts["properties"],
        n_others=counts["others"],
        rejected=dict(sorted(rejects.items())),
        facts=dict(sorted((+facts).items())),
        tables={name: one.entries for name, one in files.items()},
    )
    write_json(storage, staged_file(staging, "parts", part), report.to_json())
    return report


def _add_entity(entity: Entity, tables: Mapping[str, _Table]) -> None:
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


def read_part(storage: Storage, staging: str, part: int) -> PartReport:
    """Gives the report of a range.

    Raises:
        SetupError: the range was not finished.
    """
    path = staged_file(staging, "parts", part)
    if not storage.exists(path):
        raise SetupError(f"{path}: range {part} of the dump was not finished by any worker; run the command again")
    return PartReport.from_json(read_json(storage, path))
