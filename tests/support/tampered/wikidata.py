"""Ways to tamper with releases of Wikidata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbsource.wikidata.kind import WIKIDATA_RELEASE
from tests.support.entities import array, item, make, snak, write_odd_dump
from tests.support.tampered.edits import COUNTED, MANIFEST, Group, Place, Released, Tampered, again, at, rows


def _wikidata(folder: Path, release: Path) -> Released:
    make(write_odd_dump(folder), output=folder / "release", max_rejects=0.1)
    return Released(folder / "release", {})


def _values(folder: Path, release: Path) -> Released:
    """A release with a time and a place."""
    time = {"time": "+1952-03-11T00:00:00Z", "precision": 11, "calendarmodel": f"{_ENTITY}Q1985727"}
    place = {"latitude": 1.5, "longitude": 2.5, "globe": f"{_ENTITY}Q2"}
    claims = (snak("P1", "any", "time", time), snak("P2", "any", "globecoordinate", place))
    (folder / "dump.json").write_bytes(array([item("Q1", *claims)]))
    make(folder / "dump.json", output=folder / "release")
    return Released(folder / "release", {})


_ENTITY = "http://www.wikidata.org/entity/"
_QUALIFIER = {"property_id": "P580", "snak": "value", "value_type": "number", "value": "1"}


def _table(name: str) -> str:
    return f"{name}/{name}-00000-of-00001.parquet"


def _entity(
    table: str,
    column: str,
    value: Any,
    invariant: str,
    text: str,
    *,
    row: int = 0,
    file: str = "",
    also: tuple[Place, ...] = (),
) -> Tampered:
    """Returns a table of which one value was changed."""
    what = f"{column} of {table} is {value!r} in row {row}"
    return Tampered(what, rows(_table(table), at(row, **{column: value})), invariant, text, file, also)


_CLASSES = ((_table("classes"), "classes_disagree"),)
_LINKS = ((MANIFEST, "counts"), (MANIFEST, "counts 3"))
_NO_ID = "Q5: a value that is not an id"
_WIKIDATA = (
    _entity("items", "item_id", "Q4", "duplicate_entity", "Q4", also=_LINKS),
    _entity("items", "item_id", "X4", "invalid_entity", "X4: not an id", also=_LINKS),
    _entity("items", "item_id", "Q4294967296", "invalid_entity", "Q4294967296: not an id", also=_LINKS),
    _entity("items", "label", None, "invalid_entity", "Q5: a label without a language"),
    _entity("items", "n_statements", 7, "counts", "statements_Q: 44 rows, but the entities state 49", file=MANIFEST),
    _entity("properties", "label", None, "invalid_entity 2", "P31: a label without a language"),
    Tampered(
        "a property is there twice", rows(_table("properties"), again(0)), "duplicate_entity 2", "P31", also=COUNTED
    ),
    _entity(
        "properties", "n_statements", 7, "counts 2", "statements_P: 0 rows, but the entities state 7", file=MANIFEST
    ),
    _entity(
        "sitelinks",
        "item_id",
        "Q6",
        "counts 3",
        "sitelinks_Q: the 1 rows belong to other entities than stated",
        file=MANIFEST,
    ),
    _entity("sitelinks", "title", "", "invalid_entity 3", "Q5: a sitelink without a title"),
    _entity(
        "statements",
        "entity_id",
        "Q100",
        "counts",
        "statements_Q: the 44 rows belong to other entities than stated",
        file=MANIFEST,
        also=_CLASSES,
    ),
    _entity("statements", "rank", "best", "invalid_entity 4", "Q5: not a rank"),
    _entity("statements", "snak", "novalue", "invalid_entity 4", "Q5: a value type without a value"),
    _entity("statements", "value_type", "number", "invalid_entity 4", "Q5: not a type of value", also=_CLASSES),
    *(
        _entity("statements", "value", value, "invalid_entity 4", _NO_ID, also=_CLASSES)
        for value in ("5", "Q1-F1", "Q99999999999")
    ),
    _entity("statements", "value", "Q77", "classes_disagree", "number 0: Q2 instead of Q2", file=_table("classes")),
    _entity(
        "statements",
        "entity_id",
        "Q4294967296",
        "invalid_entity 4",
        "Q4294967296: not an id",
        also=(*_CLASSES, *COUNTED),
    ),
    _entity("statements", "year", 1900, "invalid_entity 4", "Q5: year of another type of value"),
    _entity("classes", "distance", 3, "classes_disagree", "number 0: Q2 instead of Q2"),
    _entity("rejected", "reason", "bad_luck", "counts", "totals.rejected.bad_luck: 1 counted", file=MANIFEST),
    Tampered(
        "the type of a qualifier is unknown",
        rows(_table("statements"), at(0, qualifiers=[_QUALIFIER])),
        "invalid_entity 5",
        "Q5: not a type of value",
    ),
)
_VALUES = tuple(
    _entity("statements", column, value, "invalid_entity 4", f"{column} not from", row=row)
    for row, column, value in (
        (0, "month", 13),
        (0, "day", 0),
        (0, "precision", 15),
        (1, "latitude", float("nan")),
        (1, "longitude", -361.0),
    )
)

GROUPS = {
    "wikidata": Group(WIKIDATA_RELEASE, _wikidata, _WIKIDATA),
    "values": Group(WIKIDATA_RELEASE, _values, _VALUES),
}
