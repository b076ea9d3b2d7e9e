from __future__ import annotations

from typing import Any

import orjson
import pytest

from kbsource.errors import RecordError
from kbsource.schema import VALUE
from kbsource.wikidata.values import FORMS, OWN_COLUMNS, read_snak
from tests.support.entities import item_snak, snak

NAMES = {field.name for field in VALUE}
GREGORIAN, JULIAN = "http://www.wikidata.org/entity/Q1985727", "http://www.wikidata.org/entity/Q1985786"


def filled(one: dict[str, Any]) -> dict[str, Any]:
    """Gives the columns of a snak that are not null."""
    form, datatype, value, own = read_snak(one)
    kind, value_type = FORMS[form]
    columns = {"snak": kind, "datatype": datatype, "value_type": value_type, "value": value}
    if own is not None:
        columns |= zip(OWN_COLUMNS[value_type], own, strict=True)
    assert columns.keys() <= NAMES
    return {name: value for name, value in columns.items() if value is not None}


def time(written: str, precision: Any, calendar: str = GREGORIAN) -> dict[str, Any]:
    value = {"time": written, "timezone": 0, "before": 0, "after": 0, "precision": precision, "calendarmodel": calendar}
    return snak("P1", "time", "time", value)


def test_an_item_is_its_id() -> None:
    assert filled(item_snak("P1", "Q5")) == {
        "snak": "value",
        "datatype": "wikibase-item",
        "value_type": "entity",
        "value": "Q5",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"entity-type": "item", "numeric-id": 42}, "Q42"),
        ({"entity-type": "property", "numeric-id": 31}, "P31"),
        ({"entity-type": "form", "id": "L7-F2"}, "L7-F2"),
    ],
)
def test_an_entity_may_lack_its_id_or_its_number(value: dict[str, Any], expected: str) -> None:
    assert filled(snak("P1", "x", "wikibase-entityid", value))["value"] == expected


def test_a_snak_of_an_old_dump_has_no_datatype() -> None:
    one = item_snak("P1", "Q5")
    del one["datatype"]
    assert "datatype" not in filled(one)


@pytest.mark.parametrize(
    ("written", "precision", "expected"),
    [
        ("+1952-03-11T00:00:00Z", 11, {"year": 1952, "month": 3, "day": 11}),
        ("+1952-03-00T00:00:00Z", 10, {"year": 1952, "month": 3}),
        ("+1952-03-11T00:00:00Z", 10, {"year": 1952, "month": 3}),
        ("+1952-00-00T00:00:00Z", 9, {"year": 1952}),
        ("+1952-01-01T00:00:00Z", 9, {"year": 1952}),
        ("-0044-03-15T00:00:00Z", 11, {"year": -44, "month": 3, "day": 15}),
        ("-13798000000-00-00T00:00:00Z", 3, {"year": -13_798_000_000}),
        ("+00000002013-01-01T00:00:00Z", 11, {"year": 2013, "month": 1, "day": 1}),
        ("+1712-02-30T00:00:00Z", 11, {"year": 1712, "month": 2, "day": 30}),  # in Sweden there was one
        ("+1952-00-00T00:00:00Z", 11, {"year": 1952}),
    ],
)
def test_times_have_the_year_and_what_their_precision_reaches(
    written: str, precision: int, expected: dict[str, int]
) -> None:
    found = filled(time(written, precision))
    assert {name: found[name] for name in found if name in ("year", "month", "day")} == expected
    assert (found["value"], found["precision"], found["calendar"]) == (written, precision, "gregorian")


def test_calendars_are_named_and_unknown_ones_kept() -> None:
    assert filled(time("+1500-01-01T00:00:00Z", 11, JULIAN))["calendar"] == "julian"
    assert filled(time("+1500-01-01T00:00:00Z", 11, "http://www.wikidata.org/entity/Q12138"))["calendar"] == "Q12138"


def test_quantities_keep_every_digit_bounds_and_unit() -> None:
    value = {
        "amount": "+0.10",
        "unit": "http://www.wikidata.org/entity/Q11573",
        "lowerBound": "-0.05",
        "upperBound": "+0.15",
    }
    found = filled(snak("P1", "quantity", "quantity", value))
    assert [found[name] for name in ("value", "unit", "lower", "upper")] == ["0.10", "Q11573", "-0.05", "0.15"]


def test_a_quantity_without_unit_or_bounds_has_none() -> None:
    found = filled(snak("P1", "quantity", "quantity", {"amount": "-17", "unit": "1"}))
    assert found == {"snak": "value", "datatype": "quantity", "value_type": "quantity", "value": "-17"}


def test_monolingual_text_has_its_language() -> None:
    found = filled(snak("P1", "monolingualtext", "monolingualtext", {"language": "fr", "text": "la mer"}))
    assert (found["value_type"], found["value"], found["language"]) == ("monolingualtext", "la mer", "fr")


def test_strings_and_external_ids_are_told_apart_by_datatype() -> None:
    found = filled(snak("P1", "external-id", "string", "nb123"))
    assert (found["datatype"], found["value_type"], found["value"]) == ("external-id", "string", "nb123")


def test_coordinates_have_degrees_and_globe() -> None:
    value = {"latitude": 61.21, "longitude": -4, "altitude": None, "precision": None, "globe": "http://x/entity/Q2"}
    found = filled(snak("P1", "globe-coordinate", "globecoordinate", value))
    assert (found["value"], found["latitude"], found["longitude"], found["globe"]) == ("61.21,-4.0", 61.21, -4.0, "Q2")


@pytest.mark.parametrize("kind", ["somevalue", "novalue"])
def test_unknown_and_absent_values_are_kept_as_such(kind: str) -> None:
    assert filled({"snaktype": kind, "property": "P1", "datatype": "time"}) == {"snak": kind, "datatype": "time"}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("wikibase-tensor", {"shape": [2, 2]}),
        ("time", {"time": "around Easter", "precision": 11, "calendarmodel": GREGORIAN}),
        ("time", {"time": "+1952-03-11T00:00:00Z", "precision": 99, "calendarmodel": GREGORIAN}),
        ("time", {"time": "+1952-03-11T00:00:00Z", "calendarmodel": GREGORIAN}),
        ("quantity", {"amount": "many", "unit": "1"}),
        ("quantity", "17"),
        ("string", 17),
        ("wikibase-entityid", {"entity-type": "item"}),
        ("wikibase-entityid", {"id": "42"}),
        ("wikibase-entityid", {"id": "q42"}),
        ("wikibase-entityid", {"id": "Q99999999999"}),
        ("wikibase-entityid", {"id": "Q1-F1"}),
        ("wikibase-entityid", {"entity-type": "item", "numeric-id": 4.7}),
        ("wikibase-entityid", {"entity-type": "item", "numeric-id": True}),
        ("wikibase-entityid", {"entity-type": "item", "numeric-id": "٤"}),
        ("time", {"time": "+1952-13-11T00:00:00Z", "precision": 11, "calendarmodel": GREGORIAN}),
        ("time", {"time": "+1952-03-32T00:00:00Z", "precision": 11, "calendarmodel": GREGORIAN}),
        ("time", {"time": "+1952-03-11T00:00:00Z", "precision": True, "calendarmodel": GREGORIAN}),
        ("quantity", {"amount": "1", "unit": ""}),
        ("quantity", {"amount": 1, "unit": "1"}),
        ("globecoordinate", {"latitude": "nan", "longitude": "1", "globe": GREGORIAN}),
        ("globecoordinate", {"latitude": True, "longitude": 1, "globe": GREGORIAN}),
        ("globecoordinate", {"latitude": 1, "longitude": 361, "globe": GREGORIAN}),
        ("monolingualtext", {"text": "no language"}),
        ("globecoordinate", {"latitude": 1, "longitude": None, "globe": GREGORIAN}),
    ],
)
def test_values_of_unknown_type_or_form_are_kept_as_json(type_: str, value: Any) -> None:
    found = filled(snak("P1", "odd", type_, value))
    assert found.pop("value_type") == "other"
    assert orjson.loads(found["value"]) == {"type": type_, "value": value}


@pytest.mark.parametrize(
    "broken",
    [{}, {"snaktype": "maybe"}, {"snaktype": "value"}, {"snaktype": "value", "datavalue": {"type": "string"}}, "text"],
)
def test_a_snak_that_lacks_its_parts_is_malformed(broken: Any) -> None:
    with pytest.raises(RecordError) as caught:
        read_snak(broken)
    assert caught.value.reason == "malformed_statement"
