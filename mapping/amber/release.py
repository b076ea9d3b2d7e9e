"""Writes a release of AmbER sets except for its manifest: queries of the three tasks, published files, tables, counts.

::

    human/qa/amber_sets.jsonl, sf/…, fc/…                      as the published files, one folder per collection
    human/amber_set_tuples.jsonl
    human/qa_templates.json, fc_templates.json, entity_types_to_distinguishing_properties.json
    sets/  tuples/  set_queries/  names/                       the same as tables, and the outcome of every name
    report.json                                                counts
    manifest.json                                              written last
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import convert, to_builtins

from kbsource.columns import schema_of
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import LinesFile, write_lines
from mapping.amber.records import (
    ANY,
    QUANTITY,
    TASKS,
    AmberOptions,
    AmberQuery,
    AmberSet,
    AmberTuple,
    Collection,
    FullValue,
    NamedEntity,
    NameRow,
    SetEntity,
    SetQueryRow,
    SetRow,
    Signals,
    Task,
    TupleRow,
)

TABLES = {
    "sets": schema_of(SetRow),
    "tuples": schema_of(TupleRow),
    "set_queries": schema_of(SetQueryRow),
    "names": schema_of(NameRow),
}
"""Every table of a release of AmbER sets, by folder name."""
SUPPORTS, REFUTES = "SUPPORTS", "REFUTES"
_SEPARATOR = " [SEP] "


def choose_template(templates: Sequence[str], qid: str, property_id: str) -> str:
    """Returns one of the templates. A checksum of item and property selects it, so the choice is always the same.

    >>> choose_template(["a", "b", "c"], "Q91", "P607")
    'b'
    """
    return random.Random(int(qid[1:] + property_id[1:])).choice(templates)


def make_queries(
    name: str,
    entity: SetEntity,
    task: Task,
    collection: Collection,
    options: AmberOptions,
    objects: Mapping[str, Sequence[str]],
) -> Iterator[AmberQuery]:
    """Makes the queries about an entity, in the order of its tuples; a true claim comes before its false one.

    Args:
        entity: an entity of the set whose pages have been searched.
        objects: by property, names of its values, the most frequent first, see ``ValueCounts``.
    """
    for amber_tuple in entity.tuples:
        if task == "sf":
            yield _query(f"{name}{_SEPARATOR}{amber_tuple.property}", answers(amber_tuple), amber_tuple)
        elif task == "qa":
            templates = _qa_templates(amber_tuple, collection, options)
            # A name may itself contain ``$object``.
            question = choose_template(templates, entity.qid, amber_tuple.property_id).replace("$entity", name)
            yield _query(question, answers(amber_tuple), amber_tuple)
        else:
            template = choose_template(
                collection.fc_templates[amber_tuple.property_id], entity.qid, amber_tuple.property_id
            )
            true = next(value.aliases[0] for value in amber_tuple.values if value.found_in_passage)
            yield _query(_filled(template, name, true), SUPPORTS, amber_tuple)
            false = false_object(amber_tuple, objects.get(amber_tuple.property_id, ()))
            if false is not None:
                yield _query(_filled(template, name, false), REFUTES, amber_tuple)


def answers(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Returns every name of every value, additional names last; duplicates are kept."""
    return (*names_of_values(amber_tuple), *additional_names(amber_tuple))


def names_of_values(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Returns the names of the values."""
    return tuple(alias for value in amber_tuple.values for alias in value.aliases)


def additional_names(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Returns the additional names of the values."""
    return tuple(alias for value in amber_tuple.values for alias in value.additional_aliases)


def claim(name: str, qid: str, amber_tuple: AmberTuple, value: FullValue, collection: Collection) -> str:
    """Returns a sentence that states the value, in the wording of true claims. The value itself may be false."""
    template = choose_template(collection.fc_templates[amber_tuple.property_id], qid, amber_tuple.property_id)
    return _filled(template, name, value.aliases[0])


def _query(text: str, answer: tuple[str, ...] | str, amber_tuple: AmberTuple) -> AmberQuery:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return AmberQuery(f"{amber_tuple.amber_id}={digest}", text, answer, amber_tuple)


def _qa_templates(amber_tuple: AmberTuple, collection: Collection, options: AmberOptions) -> Sequence[str]:
    by_type = collection.qa_templates[amber_tuple.property_id]
    types = dict.fromkeys(item for value in amber_tuple.values for item in value.entity_types or ())
    typed = [text for item in types for text in by_type.get(item, ())] if options.typed_templates else []
    return typed or by_type[ANY]


def _filled(template: str, name: str, value: str) -> str:
    return template.replace("$entity", name).replace("$object", value)


def false_object(amber_tuple: AmberTuple, objects: Iterable[str]) -> str | None:
    """Returns the first of some names that is not the name of any of a tuple's values, or None.

    Quantities are compared as numbers.
    """
    names = set(names_of_values(amber_tuple))
    numbers = {_number(value.amount or "") for value in amber_tuple.values if value.type == QUANTITY}
    return next((text for text in objects if text not in names and not (numbers and _number(text) in numbers)), None)


def _number(text: str) -> Decimal | str:
    try:
        return number if (number := Decimal(text)).is_finite() else text
    except InvalidOperation:
        return text


class ValueCounts:
    """Counts how often each value occurs for a property, by first name. Memory: each name once per property."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, amber_set: AmberSet) -> None:
        """Adds the values of a set, whether or not they were found."""
        for entity in amber_set.entities:
            for amber_tuple in entity.tuples:
                self._counts[amber_tuple.property_id].update(value.aliases[0] for value in amber_tuple.values)

    def ranked(self) -> dict[str, list[str]]:
        """Returns the names by property, the most frequent first; of equally frequent names, the one added first comes
        first."""
        return {property_id: [text for text, _ in counts.most_common()] for property_id, counts in self._counts.items()}


def tuples_record(amber_set: AmberSet) -> dict[str, Any]:
    """Returns the record of a set in ``amber_set_tuples.jsonl``."""
    return {"name": amber_set.name, "qids": {entity.qid: _entity_record(entity) for entity in amber_set.entities}}


def _entity_record(entity: SetEntity) -> dict[str, Any]:
    record: dict[str, Any] = to_builtins(entity)
    del record["qid"]
    tuples = record.pop("tuples")
    for amber_tuple in tuples:
        amber_tuple["values"] = [
            {name: said for name, said in value.items() if said is not None} for value in amber_tuple["values"]
        ]
    return {**record, "pids": {amber_tuple.pop("property_id"): amber_tuple for amber_tuple in tuples}}


def set_of(record: Mapping[str, Any]) -> AmberSet:
    """Returns the set of a record; the inverse of ``tuples_record``."""
    entities = (
        {**of, "qid": qid, "tuples": [{"property_id": name, **amber_tuple} for name, amber_tuple in of["pids"].items()]}
        for qid, of in record["qids"].items()
    )
    return AmberSet(record["name"], tuple(convert(entity, SetEntity) for entity in entities))


def set_record(name: str, entities: Sequence[tuple[SetEntity, Sequence[AmberQuery]]]) -> dict[str, Any]:
    """Returns the record of a set in the ``amber_sets.jsonl`` of a task."""
    return {
        "name": name,
        "qids": {
            entity.qid: {
                "is_head": entity.is_head,
                "popularity": entity.popularity,
                "wikipedia": to_builtins(entity.wikipedia),
                "queries": [_query_record(query) for query in queries],
            }
            for entity, queries in entities
        },
    }


def _query_record(query: AmberQuery) -> dict[str, Any]:
    return {
        "id": query.query_id,
        "input": query.input,
        "output": {
            "answer": query.answer,
            "provenance": to_builtins(query.tuple.provenance),
            "meta": {"values": names_of_values(query.tuple), "additional_values": additional_names(query.tuple)},
        },
        "meta": {"pid": query.tuple.property_id},
    }


MEASURES = ("sets", "entities_per_set", "distinguished_per_set", "properties_per_set", "queries", *TASKS)
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "human": (2093, 2.98, 2.03, 2.84, 23768, 5942, 5942, 11884),
    "nonhuman": (5237, 2.42, 2.06, 2.64, 55216, 13804, 13804, 27608),
}
_SHARES = (
    "Q5 P641 25.68 Q5 P54 17.25 Q5 P1303 17.01 Q5 P413 12.82 Q5 P607 12.29 Q5 P241 12.22 Q5 P135 2.04 Q5 P185 0.42 "
    "Q5 P157 0.19 Q5 P1441 0.08 Q11424 P161 27.14 Q11424 P58 18.28 Q482994 P175 16.57 Q7725634 P50 11.13 "
    "Q47461344 P50 7.43 Q482994 P264 7.11 Q7366 P175 4.42 Q215380 P264 2.1 Q5398426 P161 2.01 Q5398426 P2437 1.85 "
    "Q4830453 P452 0.65 Q7366 P264 0.62 Q515 P1082 0.24 Q482994 P658 0.21 Q5398426 P58 0.21"
).split()
PUBLISHED_SHARES = {
    f"{kind} {property_id}": float(n) for kind, property_id, n in zip(*(_SHARES[i::3] for i in range(3)), strict=True)
}
"""Source: the tables of statistics of the paper, https://aclanthology.org/2021.acl-long.345."""


class CollectionStatistics:
    """Counts the sets of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._counts: Counter[str] = Counter()
        self._properties: Counter[str] = Counter()

    def add(self, amber_set: AmberSet, n_queries: Mapping[Task, int]) -> None:
        """Adds a set with the number of its queries by task."""
        own = [entity for entity in amber_set.entities if entity.tuples]
        n_tuples = sum(len(flag_option.tuples) for flag_option in own)
        self._counts.update(sets=1, entities=len(amber_set.entities), distinguished=len(own), properties=n_tuples)
        self._counts.update(n_queries)
        for entity in own:
            for kind in dict.fromkeys(entity.entity_types):
                for amber_tuple in entity.tuples:
                    if amber_tuple.property_id in self._collection.types.get(kind, ()):
                        self._properties[f"{kind} {amber_tuple.property_id}"] += 1

    def values(self) -> dict[str, Any]:
        """Returns the measures, each with the paper's value, and the share of each property of a type in per cent."""
        counts, n_sets = self._counts, self._counts["sets"] or 1
        means = [round(counts[name] / n_sets, 2) for name in ("entities", "distinguished", "properties")]
        n_queries = [counts[task] for task in TASKS]
        own = (counts["sets"], *means, sum(n_queries), *n_queries)
        published = PUBLISHED.get(self._collection.name, (None,) * len(own))
        total = counts["properties"] or 1
        shares = {
            name: {"made": round(100 * self._properties[name] / total, 2), "published": PUBLISHED_SHARES.get(name)}
            for name in (f"{kind} {stored}" for kind, many in self._collection.types.items() for stored in many)
        }
        measures = zip(MEASURES, own, published, strict=True)
        return {**{name: {"made": made, "published": of} for name, made, of in measures}, "shares": shares}


TUPLES_FILE = "amber_set_tuples.jsonl"


def sets_path(collection: str, task: Task) -> str:
    """Returns the path of a task's file."""
    return f"{collection}/{task}/amber_sets.jsonl"


def write_collection(
    collection: Collection,
    sets: Iterator[AmberSet],
    objects: Mapping[str, Sequence[str]],
    options: AmberOptions,
    *,
    output: str,
) -> tuple[list[FileEntry], dict[str, Any]]:
    """Writes the files of a collection; returns their entries and its statistics."""
    statistics = CollectionStatistics(collection)
    with ExitStack() as stack:
        paths = [f"{collection.name}/{TUPLES_FILE}", *(sets_path(collection.name, task) for task in TASKS)]
        tuples, *by_task = (stack.enter_context(LinesFile(output, path)) for path in paths)
        for amber_set in sets:
            tuples.write(amber_line(tuples_record(amber_set)))
            n_queries = {}
            for task, file in zip(TASKS, by_task, strict=True):
                queries = set_queries(amber_set, task, collection, options, objects)
                file.write(amber_line(set_record(amber_set.name, queries)))
                n_queries[task] = sum(len(own) for _, own in queries)
            statistics.add(amber_set, n_queries)
    texts = {
        "entity_types_to_distinguishing_properties": collection.types,
        "fc_templates": collection.fc_templates,
        "qa_templates": collection.qa_templates,
    }
    entries = [file.entry for file in (tuples, *by_task)]
    for name, value in texts.items():
        content = json.dumps(value, ensure_ascii=False, indent=4).encode()
        entries.append(write_lines([content], f"{collection.name}/{name}.json", output=output))
    return entries, statistics.values()


def set_queries(
    amber_set: AmberSet, task: Task, collection: Collection, options: AmberOptions, objects: Mapping[str, Sequence[str]]
) -> list[tuple[SetEntity, list[AmberQuery]]]:
    """Returns the entities of a set with their queries for a task."""
    return [
        (entity, list(make_queries(amber_set.name, entity, task, collection, options, objects)))
        for entity in amber_set.entities
    ]


def amber_line(record: Mapping[str, Any]) -> bytes:
    """Returns the line for a record, formatted as in the published files."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def set_row(collection: str, amber_set: AmberSet) -> SetRow:
    """Returns the row of a set in the table ``sets``."""
    own = NamedEntity.__struct_fields__
    entities = (NamedEntity(*(getattr(entity, name) for name in own)) for entity in amber_set.entities)
    return SetRow(collection, amber_set.name, tuple(entities))


def tuple_rows(collection: str, amber_set: AmberSet, signals: Iterator[Mapping[str, Any]]) -> Iterator[TupleRow]:
    """Builds the rows of a set in the table ``tuples``. ``signals`` are the signals of its tuples, in the order of
    their ids."""
    tuples = {
        amber_tuple.amber_id: (entity.qid, amber_tuple)
        for entity in amber_set.entities
        for amber_tuple in entity.tuples
    }
    said = {amber_id: convert(next(signals), Signals) for amber_id in sorted(tuples)}
    for amber_id, (qid, amber_tuple) in tuples.items():
        yield TupleRow(collection, amber_set.name, qid, amber_tuple, said[amber_id])


def query_rows(
    collection: Collection, amber_set: AmberSet, task: Task, options: AmberOptions, objects: Mapping[str, Sequence[str]]
) -> Iterator[SetQueryRow]:
    """Builds the rows of a task's queries in the table ``set_queries``."""
    for entity, queries in set_queries(amber_set, task, collection, options, objects):
        for query in queries:
            answers = (query.answer,) if isinstance(query.answer, str) else query.answer
            ids = (entity.qid, query.tuple.property_id, query.query_id)
            of_set = (collection.name, task, amber_set.name)
            yield SetQueryRow(*of_set, *ids, query.input, answers, query.tuple.provenance)
