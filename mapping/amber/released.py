"""Sets as the records of the released files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mapping.amber.queries import additional_names, value_names
from mapping.amber.records import ITEM, AmberSet, AmberTuple, FullValue, PageRef, Query, SetEntity


def tuples_record(amber_set: AmberSet) -> dict[str, Any]:
    """Gives the record of a set in ``amber_set_tuples.jsonl``."""
    return {"name": amber_set.name, "qids": {entity.qid: entity_record(entity) for entity in amber_set.entities}}


def entity_record(entity: SetEntity) -> dict[str, Any]:
    """Gives an entity as it stands there."""
    return {
        "popularity": entity.popularity,
        "is_head": entity.is_head,
        "aliases": entity.aliases,
        "entity_types": entity.entity_types,
        "wikipedia": _pages(entity.pages),
        "pids": {
            one.property_id: {
                "property": one.property,
                "amber_id": one.amber_id,
                "provenance": _pages(one.provenance),
                "values": [_value_record(value) for value in one.values],
            }
            for one in entity.tuples
        },
    }


def _pages(pages: Sequence[PageRef]) -> list[dict[str, str]]:
    return [page._asdict() for page in pages]


def _value_record(value: FullValue) -> dict[str, Any]:
    own = {"qid": value.value} if value.kind == ITEM else {"amount": value.value, "unit": value.unit}
    types = {} if value.entity_types is None else {"entity_types": value.entity_types}
    return {
        "type": value.kind,
        **own,
        "aliases": value.aliases,
        "additional_aliases": value.additional_aliases,
        **types,
        "found_in_passage": value.is_found,
    }


def set_of(record: Mapping[str, Any]) -> AmberSet:
    """Gives the set of a record; the reverse of ``tuples_record``."""
    return AmberSet(record["name"], tuple(entity_of(qid, one) for qid, one in record["qids"].items()))


def entity_of(qid: str, record: Mapping[str, Any]) -> SetEntity:
    """Gives the entity of a record; the reverse of ``entity_record``."""
    tuples = (
        AmberTuple(
            property_id,
            one["property"],
            one["amber_id"],
            _page_refs(one["provenance"]),
            tuple(_value_of(value) for value in one["values"]),
        )
        for property_id, one in record["pids"].items()
    )
    return SetEntity(
        qid,
        record["popularity"],
        record["is_head"],
        tuple(record["aliases"]),
        tuple(record["entity_types"]),
        _page_refs(record["wikipedia"]),
        tuple(tuples),
    )


def _page_refs(pages: Sequence[Mapping[str, str]]) -> tuple[PageRef, ...]:
    return tuple(PageRef(**page) for page in pages)


def _value_of(record: Mapping[str, Any]) -> FullValue:
    types = record.get("entity_types")
    return FullValue(
        record["type"],
        record["qid"] if record["type"] == ITEM else record["amount"],
        record.get("unit"),
        tuple(record["aliases"]),
        tuple(record["additional_aliases"]),
        None if types is None else tuple(types),
        record["found_in_passage"],
    )


def set_record(name: str, entities: Sequence[tuple[SetEntity, Sequence[Query]]]) -> dict[str, Any]:
    """Gives the record of a set in ``amber_sets.jsonl`` of a task."""
    return {
        "name": name,
        "qids": {
            entity.qid: {
                "is_head": entity.is_head,
                "popularity": entity.popularity,
                "wikipedia": _pages(entity.pages),
                "queries": [_query_record(query) for query in queries],
            }
            for entity, queries in entities
        },
    }


def _query_record(query: Query) -> dict[str, Any]:
    return {
        "id": query.query_id,
        "input": query.input,
        "output": {
            "answer": query.answer,
            "provenance": _pages(query.tuple.provenance),
            "meta": {"values": value_names(query.tuple), "additional_values": additional_names(query.tuple)},
        },
        "meta": {"pid": query.tuple.property_id},
    }
