"""The release of Wikidata: its manifest, its kind and its invariants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kbsource.columns import rebatched
from kbsource.files import join
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, Kind
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Count, TypedManifest, row_faults, sum_faults
from kbsource.release.reader import row_groups
from kbsource.rows import SCHEMA_VERSION
from kbsource.wikidata.entity import (
    DAY_PRECISION,
    ID_NUMBER,
    MONTH_PRECISION,
    OWN_COLUMNS,
    RANKS,
    SNAKS,
    VALUE_ID,
    VALUE_TYPES,
)
from kbsource.wikidata.records import WIKIDATA_TABLES, EntityCounts

FORMAT = "kbsource-wikidata-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WikidataManifest(TypedManifest):
    """The manifest of a release of Wikidata, which consists of tables only."""

    date: str | None  #: date of the dump, from the files' names, or None
    #: ``counts``: by base name of the input file; ``totals``: their sum
    counts: dict[str, EntityCounts]
    totals: EntityCounts
    #: number of statements by ``rank_…``, ``snak_…`` and ``value_…``, of ``qualifiers``, and of entities
    #: ``without_label`` and of other types (``type_…``); if the dump is damaged, ``damaged_bytes`` and
    #: ``estimated_lost``
    findings: dict[str, Count]
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION


def _count_faults(manifest: WikidataManifest) -> list[str]:
    """Returns a message for each contradiction among the counts, or between counts and numbers of rows."""
    totals, findings = manifest.totals, manifest.findings
    expected = {
        "items": totals.items,
        "properties": totals.properties,
        "statements": sum(n for name, n in findings.items() if name.startswith("rank_")),
        "rejected": totals.n_rejected,
    }
    return sum_faults(manifest.counts, totals, EntityCounts()) + row_faults(manifest, expected)


_ITEM, _PROPERTY, _VALUE = f"Q{ID_NUMBER}", f"P{ID_NUMBER}", VALUE_ID
_WITHIN = {"month": (1, 12), "day": (1, 31), "precision": (0, 14), "latitude": (-360, 360), "longitude": (-360, 360)}
_ALWAYS = {"language", "year", "precision", "calendar", "latitude", "longitude", "globe"}
"""Columns that every value of their type has."""


def _value_faults(of: str = "") -> Iterator[tuple[str, str]]:
    """Yields the condition and the name of each possible fault of a value. ``of`` is the prefix of the columns, for
    statements or qualifiers.
    """
    yield f"not regexp_full_match({of}property_id, '{_PROPERTY}')", "not a property"
    yield f"{of}snak not in {SNAKS}", "not a kind of snak"
    yield f"{of}value_type not in {VALUE_TYPES}", "not a type of value"
    yield (
        f"({of}value_type is not null) <> ({of}snak = 'value')",
        "a value type without a value, or a value without its type",
    )
    yield f"({of}value_type is null) <> ({of}value is null)", "a value type without a value"
    yield f"{of}value_type = 'entity' and not regexp_full_match({of}value, '{_VALUE}')", "a value that is not an id"
    for type_, names in OWN_COLUMNS.items():
        for name in names:
            is_other = f"{of}{name} is not null and {of}value_type is distinct from '{type_}'"
            yield is_other, f"{name} of another type of value"
            if name in _ALWAYS:
                yield f"{of}value_type = '{type_}' and {of}{name} is null", f"no {name}"
    for name, (least, most) in _WITHIN.items():
        yield f"{of}{name} not between {least} and {most}", f"{name} not from {least} to {most}"
    for name, least in (("month", MONTH_PRECISION), ("day", DAY_PRECISION)):
        yield f"{of}{name} is not null and {of}precision < {least}", f"a {name} beyond the precision"


def _first(faults: Iterable[tuple[str, str]]) -> str:
    """Returns an expression for the first fault of a row, which is null if it has none."""
    return f"case {' '.join(f'when {is_broken} then {what!r}' for is_broken, what in faults)} end"


def _row_invariant(table: str, key: str, faults: Iterable[tuple[str, str]]) -> Invariant:
    return Invariant(
        "invalid_entity",
        "a row is malformed",
        f"[{key} || ': ' || fault for fault in [{_first(faults)}] if fault is not null]",
        table=table,
    )


def _entity_faults(key: str, form: str) -> Iterator[tuple[str, str]]:
    yield f"not regexp_full_match({key}, '{form}')", "not an id"
    yield (
        "label is distinct from label_language and (label is null or label_language is null)",
        "a label without a language",
    )
    yield "n_statements < 0", "n_statements below 0"


def _claim_invariant(name: str, claiming: str, present: str, needs: tuple[str, ...]) -> Invariant:
    """Returns the invariant that a table has as many rows for each entity as the entity's own row states, such as
    ``n_statements``. It compares the total number of rows, and a sum weighted by the numbers of the entities, which
    detects rows of a wrong entity.
    """
    return Invariant(
        "counts",
        "",
        f"""select '{MANIFEST}', case when claimed is distinct from present
            then format('{name}: {{}} rows, but the entities state {{}}', present, claimed)
            else format('{name}: the {{}} rows belong to other entities than stated', present) end
        from ({claiming}) as entity(claimed, claimed_numbers), ({present}) as found(present, present_numbers)
        where coalesce(claimed, 0) <> coalesce(present, 0)
            or coalesce(claimed_numbers, 0) <> coalesce(present_numbers, 0)""",
        needs=needs,
    )


INVARIANTS = (
    _row_invariant("items", "item_id", (*_entity_faults("item_id", _ITEM), ("n_sitelinks < 0", "n_sitelinks below 0"))),
    _row_invariant("properties", "property_id", _entity_faults("property_id", _PROPERTY)),
    _row_invariant(
        "sitelinks",
        "item_id",
        ((f"not regexp_full_match(item_id, '{_ITEM}')", "not an id"), ("title = ''", "a sitelink without a title")),
    ),
    _row_invariant(
        "statements",
        "entity_id",
        (
            (f"not regexp_full_match(entity_id, '[QP]{ID_NUMBER}')", "not an id"),
            (f"rank not in {RANKS}", "not a rank"),
            *_value_faults(),
        ),
    ),
    Invariant(
        "invalid_entity",
        "",
        f"[entity_id || ': ' || fault for fault in [{_first(_value_faults('qualifier.'))} for qualifier in qualifiers] "
        "if fault is not null]",
        table="statements",
    ),
    *(
        Invariant(
            "duplicate_entity",
            "two rows describe the same entity",
            f"select min(_file), {key} from {table} group by {key} having count(*) > 1",
        )
        for table, key in (("items", "item_id"), ("properties", "property_id"))
    ),
    *(
        _claim_invariant(
            f"statements_{letter}",
            f"select sum(n_statements), sum(n_statements * try_cast({key}[2:] as bigint)) from {table}",
            f"select count(*), sum(try_cast(entity_id[2:] as bigint)) from statements where entity_id[1] = '{letter}'",
            (table, "statements"),
        )
        for letter, key, table in (("Q", "item_id", "items"), ("P", "property_id", "properties"))
    ),
    _claim_invariant(
        "sitelinks_Q",
        "select sum(n_sitelinks), sum(n_sitelinks * try_cast(item_id[2:] as bigint)) from items "
        "where exists (from settings where name = 'every site' and n > 0)",
        "select count(*), sum(try_cast(item_id[2:] as bigint)) from sitelinks "
        "where exists (from settings where name = 'every site' and n > 0)",
        ("items", "sitelinks"),
    ),
    Invariant("classes_disagree", "the table of classes is not the one recomputed from the statements"),
)
_IS_LINK = f"value_type = 'entity' and rank <> 'deprecated' and regexp_full_match(value, '{_ITEM}')"
_EDGES = f"""
with subclasses as (
    select entity_id[2:]::uinteger as below, value[2:]::uinteger as above from statements
    where property_id = 'P279' and {_IS_LINK} and regexp_full_match(entity_id, '{_ITEM}')
)
from subclasses union select above, above from subclasses
union select value[2:]::uinteger as class, class from statements where property_id = 'P31' and {_IS_LINK}
"""
"""The subclass relation. A row with the same item twice only adds the item as a class."""


def check_classes(checking: Checking[WikidataManifest]) -> Mapping[str, int]:
    """Recomputes the class closure. Memory: the edges of the relation."""
    from kbsource.wikidata.classes import BLOCK_CLASSES, class_closure  # these need numpy

    if checking.given.issuperset(("classes", "statements")):
        edges = checking.db.sql(_EDGES).fetchnumpy()
        wanted = class_closure(edges["below"], edges["above"])
        stored = (batch.cast(WIKIDATA_TABLES["classes"]) for _, batch in checking.batches("classes"))
        file = checking.manifest.tables["classes"][0].file
        again, own = (rebatched(batches, BLOCK_CLASSES) for batches in (wanted, stored))
        checking.same(file, "classes_disagree", own, again, lambda batch: batch["class_id"][0])
    return {}


WIKIDATA_RELEASE: Kind[WikidataManifest] = Kind(
    name="release of Wikidata",
    format=FORMAT,
    made_by="kbsource wikidata",
    card=CardText(
        title="Items and statements of Wikidata",
        summary=(
            "Items, properties, statements with their qualifiers, sitelinks and the hierarchy of classes of a dump "
            "of Wikidata."
        ),
        main="statements",
        holds=("wikidata",),
        tags=("wikidata", "knowledge-graph"),
        limits=(
            "References of statements and lexemes are left out.",
            "Labels, descriptions and aliases are in the languages that the options name.",
        ),
    ),
    queries=(
        (
            "items in the most wikis",
            "select item_id, label, n_sitelinks from items order by n_sitelinks desc, item_id limit 10",
        ),
        (
            "most used properties",
            "select property_id, label, count(*) as n from statements join properties using (property_id) "
            "group by all order by n desc, property_id limit 10",
        ),
        (
            "statements about an item",
            "select property_id, rank, value_type, value from statements "
            "where entity_id = (select min(item_id) from items) order by property_id",
        ),
    ),
    shown_by=(
        ("items", "item_id"),
        ("properties", "property_id"),
        ("sitelinks", "item_id"),
        ("statements", "entity_id"),
        ("classes", "class_id"),
        ("sitelinks", "title"),
        ("rejected", "key"),
    ),
    manifest=WikidataManifest,
    tables=WIKIDATA_TABLES,
    required=tuple(WIKIDATA_TABLES),
    schema_version=SCHEMA_VERSION,
    counts=(
        TableCount("totals.items", "select count(*) from items", summary="items"),
        TableCount("totals.properties", "select count(*) from properties", summary="properties"),
        TableCount("totals.rejected", "select reason, count(*) from rejected group by all", names=()),
        TableCount(None, "select count(*) from statements", summary="statements"),
        TableCount(None, "select count(*) from sitelinks", summary="sitelinks"),
        TableCount(None, "select count(*) from classes", summary="pairs of classes"),
    ),
    further_faults=_count_faults,
    invariants=INVARIANTS,
    settings=lambda manifest: {"every site": manifest.options.get("sites", ()) is None},
    check=check_classes,
)


@dataclass(frozen=True, slots=True)
class WikidataTables:
    """Reads a release of Wikidata table by table."""

    path: str  #: folder of the release
    manifest: WikidataManifest  #: manifest of the release

    @classmethod
    def open(cls, path: str) -> WikidataTables:
        """Opens a release.

        Raises:
            SetupError: the folder contains no finished release of Wikidata.
        """
        return cls(path, WIKIDATA_RELEASE.read(path))

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Reads rows of a table in its order, with one row group in memory."""
        for entry in self.manifest.tables[table]:
            for group in row_groups(join(self.path, entry.file), columns):
                yield from group.combine_chunks().to_batches()

    def n_rows(self, table: str) -> int:
        """Returns the number of rows of a table."""
        return self.manifest.n_rows(table)
