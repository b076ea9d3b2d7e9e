"""Facts and types out of a release of Wikidata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbsource.wikidata.kind import WikidataTables
from tests.support.entities import array, item, item_snak, make, snak, statement, terms
from tests.support.qampari_joins import class_types, find_classes, simple_facts, values_of

pytestmark = pytest.mark.usefixtures("module_in_this_process")


def _time(property_id: str, time: str) -> dict[str, Any]:
    value = {"time": time, "timezone": 0, "before": 0, "after": 0, "precision": 9, "calendarmodel": "x/Q1985727"}
    return snak(property_id, "time", "time", value)


def _amount(property_id: str, amount: str) -> dict[str, Any]:
    return snak(property_id, "quantity", "quantity", {"amount": amount, "unit": "1"})


def _text(property_id: str, language: str, text: str) -> dict[str, Any]:
    return snak(property_id, "monolingualtext", "monolingualtext", {"language": language, "text": text})


ENDED = {"qualifiers": {"P582": [_time("P582", "+1990-00-00T00:00:00Z")]}, "qualifiers-order": ["P582"]}
LINES = [
    item("Q100", labels=terms(en="film")),
    item("Q101", item_snak("P279", "Q100"), labels=terms(en="short film")),
    item("Q102", labels=terms(en="film")),  # no class
    item("Q103", labels=terms(en="album")),
    item("Q104", labels=terms(en="album")),
    item("Q105", labels=terms(de="Lied", fr="song")),
    item("Q106", labels=terms(mul="series")),
    item("Q107", labels=terms(en="saga", mul="film")),
    item("Q1", item_snak("P31", "Q101"), item_snak("P57", "Q9"),
        _time("P577", "+1999-01-01T00:00:00Z"), _time("P577", "+2001-00-00T00:00:00Z")),
    item("Q2", *(item_snak("P31", type_id) for type_id in ("Q103", "Q100", "Q104")), item_snak("P57", "Q9"),
        item_snak("P57", "Q8")),
    item("Q3", item_snak("P31", "Q104"), item_snak("P57", "Q9"), _amount("P1082", "+12.5"),
        _text("P1451", "de", "Hier"), _text("P1451", "en", "Here"), _text("P1451", "en", "There")),
    item("Q4", claims={
        "P31": [
            *(statement(item_snak("P31", type_id)) for type_id in ("Q104", "Q105", "Q106", "Q107", "Q107", "Q107")),
            statement(item_snak("P31", "Q100"), rank="deprecated"),
        ],
        "P57": [
            statement(item_snak("P57", "Q9"), rank="deprecated"),
            statement(item_snak("P57", "Q8"), **ENDED),
            statement({"snaktype": "somevalue", "property": "P57", "datatype": "wikibase-item"}),
            statement(item_snak("P57", "Q7"), rank="preferred"),
            statement(item_snak("P57", "Q6")),
        ],
        "P577": [
            statement({"snaktype": "somevalue", "property": "P577", "datatype": "time"}),
            statement(_time("P577", "-0044-01-01T00:00:00Z")),
            statement(_time("P577", "+1900-00-00T00:00:00Z")),
        ],
        "P1082": [
            statement(_amount("P1082", "+100"), rank="deprecated"),
            statement(_amount("P1082", "+200"), **ENDED),
            statement(_amount("P1082", "+300")),
            statement(_amount("P1082", "+400"), rank="preferred"),
        ],
    }),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> WikidataTables:
    folder = tmp_path_factory.mktemp("wikidata")
    (folder / "dump-20260101.json").write_bytes(array(LINES))
    make(folder / "dump-20260101.json", output=folder / "release", languages=("de", "fr", "en"))
    return WikidataTables.open(str(folder / "release"))


def test_a_label_means_the_class_with_most_instances(tables: WikidataTables) -> None:
    # Two are called album: one instance has Q103, three has Q104. A German label and a French one are no English,
    # and one for all languages stands in for one that is missing alone: Q107, of more instances, is called saga.
    assert find_classes(tables, ["film", "album", "song", "series", "opera"]) == {
        "film": "Q100",
        "album": "Q104",
        "series": "Q106",
    }


def test_of_two_classes_with_as_many_instances_the_lower_number_is_meant_and_of_what_is_no_class_nothing(
    tmp_path: Path,
) -> None:
    lines = [
        *(item(name, labels=terms(en="film")) for name in ("Q20", "Q100", "Q3")),
        item("Q30", labels=terms(en="opera")),
        item("Q31", labels=terms(en="song")),
        item("Q1", item_snak("P31", "Q100"), item_snak("P31", "Q20")),
        item(
            "Q2",
            claims={"P31": [statement(item_snak("P31", type_id), rank="deprecated") for type_id in ("Q31", "Q100")]},
        ),
    ]
    (tmp_path / "dump.json").write_bytes(array(lines))
    make(tmp_path / "dump.json", output=tmp_path / "release")

    tables = WikidataTables.open(str(tmp_path / "release"))
    assert find_classes(tables, ["film", "opera", "song"]) == {"film": "Q20"}


def test_what_properties_and_lexemes_are_or_have_is_none_of_the_items_of_their_numbers(tmp_path: Path) -> None:
    lines: list[Any] = [
        {"type": "property", "id": "P7", "datatype": "string", "claims": {
            "P57": [statement(item_snak("P57", "Q9"))], "P1451": [statement(_text("P1451", "en", "Here"))],
        }},
        item("Q7", *(
            snak("P57", "wikibase-property", "wikibase-entityid", {"entity-type": kind, "id": entity_id})
            for kind, entity_id in (("property", "P9"), ("lexeme", "L9"), ("form", "L9-F1"))
        )),
    ]  # fmt: skip
    (tmp_path / "dump.json").write_bytes(array(lines))
    make(tmp_path / "dump.json", output=tmp_path / "release")
    tables = WikidataTables.open(str(tmp_path / "release"))

    facts = simple_facts(tables, ["P57"], class_types(tables, {}))
    assert [batch.to_pylist() for batch in facts if batch.num_rows] == []
    values = values_of(tables, np.array([7]), ["P57", "P1451"])
    assert [batch.to_pylist() for batch in values if batch.num_rows] == []


def test_a_class_that_is_given_is_taken_as_it_is(tables: WikidataTables) -> None:
    found = find_classes(tables, ["film", "album", "opera"], given={"album": "Q103", "opera": "Q999", "other": "Q1"})

    assert found == {"film": "Q100", "album": "Q103", "opera": "Q999"}


def test_classes_fall_under_the_types_above_them(tables: WikidataTables) -> None:
    types = class_types(tables, {"album": "Q104", "film": "Q100"})
    masks = types.of_classes(np.array([101, 100, 104, 103, 7]))

    assert types.has_type(masks, "film").tolist() == [True, True, False, False, False]
    assert types.has_type(masks, "album").tolist() == [False, False, True, False, False]


def test_two_types_that_are_one_class_have_the_same_classes_below_them(tables: WikidataTables) -> None:
    types = class_types(tables, {"movie": "Q100", "album": "Q104", **{f"film {n}": "Q100" for n in range(70)}})
    masks = types.of_classes(np.array([101, 104]))

    for label in ("movie", "film 0", "film 69"):
        assert types.has_type(masks, label).tolist() == [True, False]
    assert types.has_type(masks, "album").tolist() == [False, True]


def test_facts_that_hold_with_the_types_of_their_subjects(tables: WikidataTables) -> None:
    types = class_types(tables, {"album": "Q104", "film": "Q100"})
    facts = [
        row for batch in simple_facts(tables, ["P57"], types) for row in zip(*batch.to_pydict().values(), strict=True)
    ]

    assert facts == [
        (57, 9, 1, 0b10, 0),
        (57, 9, 2, 0b11, 0),
        (57, 8, 2, 0b11, 0),
        (57, 9, 3, 0b01, 0),
        (57, 7, 4, 0b01, 0),
        (57, 6, 4, 0b01, 0),
    ]


def test_values_of_every_kind(tables: WikidataTables) -> None:
    batches = values_of(tables, np.array([1, 3, 4]), ["P577", "P1082", "P1451", "P57"])
    values = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]

    assert values == [
        (1, 57, "Q9"),
        (1, 577, "1999"),
        (3, 57, "Q9"),
        (3, 1082, "12.5"),
        (3, 1451, "Here"),
        (3, 1451, "There"),
        (4, 57, "Q7"),
        (4, 57, "Q6"),
        (4, 577, "-44"),
        (4, 1082, "300"),
    ]


def test_the_best_values_are_the_preferred_ones_else_all(tables: WikidataTables) -> None:
    (batch,) = values_of(tables, np.array([2, 4]), ["P57", "P1082"], is_best=True)

    assert list(zip(*batch.to_pydict().values(), strict=True)) == [
        (2, 57, "Q9"),
        (2, 57, "Q8"),
        (4, 57, "Q7"),
        (4, 1082, "400"),
    ]


def test_values_of_other_types_than_their_property_has_are_left_out_and_texts_have_single_blanks(
    tmp_path: Path,
) -> None:
    own = [
        snak("P577", "string", "string", "long ago"),
        _time("P577", "+1999-00-00T00:00:00Z"),
        snak("P1082", "string", "string", "many"),
        _amount("P1082", "+120"),
        item_snak("P1451", "Q7"),
        _text("P1451", "en", " Here\u00a0"),
        _text("P1451", "en", "Over \t\u00a0here"),
        snak("P57", "string", "string", "Q8 and others"),
        item_snak("P57", "Q9"),
    ]
    (tmp_path / "dump.json").write_bytes(array([item("Q1", *own)]))
    make(tmp_path / "dump.json", output=tmp_path / "release")
    tables = WikidataTables.open(str(tmp_path / "release"))
    types = {"P577": ["time"], "P1082": ["quantity"], "P1451": ["string", "monolingualtext"], "P57": ["entity"]}

    (batch,) = values_of(tables, np.array([1]), list(types), value_types=types)
    assert sorted(zip(batch["property"].to_pylist(), batch["value"].to_pylist(), strict=True)) == [
        (57, "Q9"),
        (577, "1999"),
        (1082, "120"),
        (1451, "Here"),
        (1451, "Over here"),
    ]
