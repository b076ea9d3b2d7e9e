"""Snaks of the JSON dump and the columns that they fill: ``tests/golden/wikidata_snaks.jsonl``, a case a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kbsource.columns import schema_of
from kbsource.errors import RecordError
from kbsource.wikidata.entity import FORMS, NEEDED_QUALIFIERS, OWN_COLUMNS, RANKS, Entity, Term, entity_key, read_snak
from kbsource.wikidata.records import Value
from tests.support.entities import item, item_snak, reader, statement, terms

GOLDEN = Path(__file__).parents[2] / "golden" / "wikidata_snaks.jsonl"
CASES = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_the_columns_of_a_snak(case: dict[str, Any]) -> None:
    form, datatype, value, own = read_snak(case["snak"])
    kind, value_type = FORMS[form]
    columns = {"snak": kind, "datatype": datatype, "value_type": value_type, "value": value}
    if own is not None:
        columns |= zip(OWN_COLUMNS[value_type], own, strict=True)
    assert columns.keys() <= {*schema_of(Value).names}
    assert {name: value for name, value in columns.items() if value is not None} == case["columns"]
    if columns["value_type"] == "other":
        assert orjson.loads(columns["value"]) == case["snak"]["datavalue"]


@pytest.mark.parametrize(
    "broken",
    [{}, {"snaktype": "maybe"}, {"snaktype": "value"}, {"snaktype": "value", "datavalue": {"type": "string"}}, "text"],
)
def test_a_snak_that_lacks_its_parts_is_malformed(broken: Any) -> None:
    with pytest.raises(RecordError) as caught:
        read_snak(broken)
    assert caught.value.reason == "malformed_statement"


STATEMENT = b'{"id":"Q1","type":"item","claims":{"P1":[{"rank":"normal","mainsnak":{%s}}]}}'


def read(value: Any, **options: Any) -> Entity:
    return reader(**options).read(value if isinstance(value, bytes) else orjson.dumps(value))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (terms(fr="mer", de="Meer"), Term("de", "Meer")),
        (terms(fr="mer", mul="M"), Term("fr", "mer")),
        (terms(mul="M", **{"de-at": "Meer"}), Term("mul", "M")),
        (terms(**{"fr-ca": "mer", "de-at": "Meer"}), Term("de-at", "Meer")),
        (terms(it="mare"), None),
        ({}, None),
    ],
)
def test_the_label_is_in_the_first_language_that_has_one_then_mul_then_a_variant(
    labels: dict[str, Any], expected: Term | None
) -> None:
    assert read(item("Q1", labels=labels), languages=("de", "fr")).label == expected


@pytest.mark.parametrize(
    ("links", "detail"),
    [
        ({"a": {"title": ""}, "b": {}}, "'' is not a title"),
        ({"a": {}, "b": {"title": ""}}, "KeyError('title')"),
        ({"a": {"title": "A"}, "b": {"title": [1]}, "c": "x"}, "[1] is not a title"),
        ({"a": {"title": "A"}, "b": "x"}, "string indices"),
    ],
)
def test_of_sitelinks_without_a_title_the_first_is_named(links: dict[str, Any], detail: str) -> None:
    with pytest.raises(RecordError) as caught:
        read(item("Q1", sitelinks=links))
    assert detail in caught.value.detail
    assert read(item("Q1", sitelinks=links), sites=frozenset("d")).n_sitelinks == len(links)


@pytest.mark.parametrize("field", ["labels", "descriptions", "aliases", "sitelinks", "claims"])
@pytest.mark.parametrize("empty", [[], None, {}])
def test_an_empty_array_stands_for_an_empty_object(field: str, empty: Any) -> None:
    found = read({**item("Q1", item_snak("P1", "Q2")), field: empty})
    kept = {"labels": found.labels, "claims": found.statements}
    assert kept.get(field, ()) == ()


def test_statements_have_rank_and_wanted_qualifiers() -> None:
    qualifiers = {"P580": [item_snak("P580", "Q7")], "P999": [item_snak("P999", "Q8")]}
    claims = {
        "P1": [
            statement(item_snak("P1", "Q2"), rank="preferred", qualifiers=qualifiers),
            statement(item_snak("P1", "Q3"), rank="deprecated", qualifiers=[]),
        ]
    }
    rows = read(item("Q1", claims=claims), qualifiers=frozenset(NEEDED_QUALIFIERS)).statements
    assert [(property_id, RANKS[rank], snak[2]) for property_id, rank, snak, _ in rows] == [
        ("P1", "preferred", "Q2"),
        ("P1", "deprecated", "Q3"),
    ]
    assert [[(property_id, snak[2]) for property_id, snak in row[-1]] for row in rows] == [[("P580", "Q7")], []]
    assert [claim[0] for claim in read(item("Q1", claims=claims)).statements[0][-1]] == ["P580", "P999"]


def test_an_array_with_gaps_is_an_object_to_php_and_an_array_here() -> None:
    gapped = {"1": statement(item_snak("P1", "Q2"), qualifiers={"P9": {"2": item_snak("P9", "Q3")}})}
    found = read(item("Q1", claims={"P1": gapped}, aliases={"en": {"3": {"language": "en", "value": "sea"}}}))
    ((_, _, main, ((_, qualifier),)),) = found.statements
    assert (main[2], qualifier[2]) == ("Q2", "Q3")
    assert found.aliases == (Term("en", "sea"),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"item","id":"Q1"', "malformed_json"),
        (b"[]", "malformed_json"),
        (b'{"type":"item","id":"Q1","labels":{"en":{"value":"\\ud800"}}}', "malformed_json"),
        (b'{"type":"item","id":"\xff"}', "malformed_json"),
        (b'{"type":"item"}', "missing_field"),
        (b'{"id":"Q1"}', "missing_field"),
        (b'{"type":"property","id":"P1"}', "missing_field"),
        (b'{"type":"item","id":"P1"}', "invalid_field"),
        (b'{"type":"item","id":"Q0"}', "invalid_field"),
        (b'{"type":"item","id":"Q1","lastrevid":"x"}', "invalid_field"),
        (b'{"type":"item","id":"Q1","labels":{"en":"sea"}}', "invalid_field"),
        (b'{"type":"item","id":"Q1","labels":["sea"]}', "invalid_field"),
        (b'{"type":"item","id":"Q1","sitelinks":{"enwiki":{}}}', "invalid_field"),
        (b'{"type":"item","id":"Q1","aliases":{"en":[{}]}}', "invalid_field"),
        (b'{"type":"item","id":"Q1","claims":{"P1":[{"rank":"best"}]}}', "malformed_statement"),
        (b'{"type":"item","id":"Q1","claims":{"P1":[{"rank":"normal"}]}}', "malformed_statement"),
        (b'{"entity":"Q1","redirect":"Q2"}', "entity_redirect"),
        (b'{"type":"item","id":"q1"}', "invalid_field"),
        (b'{"type":"item","id":"Q4000000000"}', "invalid_field"),
        (b'{"type":"Item","id":"Q1"}', "invalid_field"),
        (b'{"type":"lexeme","id":"P1"}', "invalid_field"),
        (b'{"type":"item","id":"Q1","lastrevid":9223372036854775808}', "invalid_field"),
        (b'{"type":"item","id":"Q1","lastrevid":-1}', "invalid_field"),
        (b'{"type":"item","id":"Q1","lastrevid":true}', "invalid_field"),
        (b'{"type":"item","id":"Q1","sitelinks":{"enwiki":{"title":""}}}', "invalid_field"),
        (b'{"type":"item","id":"Q1","aliases":{"en":""}}', "invalid_field"),
        (b'{"type":"item","id":"Q1","claims":{"P1":""}}', "malformed_statement"),
        (b'{"type":"item","id":"Q1","claims":{"Q1":[]}}', "malformed_statement"),
        (STATEMENT % b'"snaktype":"novalue","datatype":5', "malformed_statement"),
        (STATEMENT % b'"snaktype":"novalue"},"qualifiers":{"P1":""', "malformed_statement"),
        (STATEMENT % b'"snaktype":"novalue"},"qualifiers":{"start":[]', "malformed_statement"),
        (STATEMENT.replace(b"}]", b',"qualifiers":""}]') % b'"snaktype":"novalue"', "malformed_statement"),
        (b"[" * 5000 + b"]" * 5000, "malformed_json"),
    ],
)
def test_lines_that_are_no_entity_are_rejected_with_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        read(line)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id":%s,"type":"item"}', "invalid_field"),
        (b'{"redirect":%s}', "entity_redirect"),
        (b'{"id":"Q1","type":"item","lastrevid":%s}', "invalid_field"),
        (b'{"id":"Q1","type":"item","labels":{"en":{"value":%s}}}', "invalid_field"),
        (b'{"id":"P1","type":"property","datatype":%s}', "invalid_field"),
        (b'{"id":"Q1","type":"item","claims":{"P1":[{"rank":%s}]}}', "malformed_statement"),
        (STATEMENT % b'"snaktype":%s', "malformed_statement"),
        (STATEMENT % b'"snaktype":"value","x":%s', "malformed_statement"),
        (STATEMENT % b'"snaktype":"novalue","datatype":%s', "malformed_statement"),
        (STATEMENT % b'"snaktype":"value","datavalue":{"type":"odd","value":%s}', "malformed_statement"),
    ],
)
def test_what_is_nested_too_deeply_to_be_shown_is_rejected_all_the_same(line: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        read(line % (b"[" * 1000 + b"]" * 1000))
    assert caught.value.reason == reason
    assert len(caught.value.detail) < 300


@pytest.mark.parametrize(
    ("line", "expected"), [(b'{"type":"item","id":"Q42","la', "Q42"), (b'{"id": "P31"', "P31"), (b"{", "")]
)
def test_the_key_of_a_broken_line_is_its_id_where_it_shows(line: bytes, expected: str) -> None:
    assert entity_key(line) == expected
