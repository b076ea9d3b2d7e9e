"""The steps of QAMPARI as transforms: from the tables of two releases to decided queries and their questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.runtime.chunks import ChunkKey
from kbsource.runtime.regroup import ByNumber
from mapping.qampari.classes import ClassTypes, ItemSet
from mapping.qampari.names import ValueKind, kinds_of_types, types_of_values
from mapping.qampari.statements import (
    ANSWERS,
    BASES,
    PAIRED,
    PAIRS,
    STATEMENT_COLUMNS,
    simple_facts,
    sorted_facts,
    values_of,
)
from pipelines.primitives.group_map import TOLD, By, map_groups, send_rows
from pipelines.primitives.lookup import MapRows, read_item_set, write_item_set
from pipelines.primitives.shuffle import StepCollector
from pipelines.qampari import compositions, lists, simple
from pipelines.qampari.facts import OF_FACTS, OF_FOUND, find_proofs, guarded, search_facts
from pipelines.qampari.lookups import find_classes, find_item_names, rank_queries, read_types
from pipelines.qampari.pages import ListReading
from pipelines.qampari.plan import (
    ASKED,
    BY_FACT,
    FACT_NUMBERS,
    ITEMS,
    OF_QUESTIONS,
    ORDERED_QUERIES,
    ROWS_AT_ONCE,
    SETTLED,
    SORTED_BY,
    STAGED,
    TRIED,
    QampariPlan,
    by_query,
)
from pipelines.transforms.tables import find_places, read_places

Given, AllOf = beam.pvalue.AsSingleton, beam.pvalue.AsList
_IN_ORDER: dict[str, Any] = {"rows_at_once": ROWS_AT_ONCE, "sorted_by": SORTED_BY}
SIMPLE, COMPOSITIONS, TABLES = "simple", "compositions", "tables"
"""Kinds of facts; counts are grouped by them."""
_QUESTIONS = {name: name for name in OF_QUESTIONS}


def make_wikidata_questions(
    pipeline: Any,
    plan: QampariPlan,
    paths: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, ValueKind],
    made: StepCollector,
) -> Any:
    """Makes simple questions, compositions and intersections, and returns the choices of ``lookups.find_classes``.

    Args:
        paths: paths of the files of a release of Wikidata, by table.
        kinds: kinds of the properties' values, if their datatypes determine them.
    """
    lacking = tuple(sorted(set(plan.composed) - kinds.keys()))
    places = {name: pipeline | f"{name} to read" >> find_places(paths[name]) for name in ("items", "statements")}
    chosen, types = pipeline | "classes" >> find_classes(plan, paths, places, lacking)
    every_kind = Given(chosen | "kinds" >> beam.Map(_kinds, dict(kinds)))
    statements = paths["statements"]

    facts = (
        places["statements"]
        | "statements" >> read_places(statements, STATEMENT_COLUMNS, together="entity_id")
        | "facts" >> beam.ParDo(MapRows(partial(_simple_facts, plan=plan), opens=read_types), Given(types))
    )
    asked = {"facts": facts} | "ask" >> map_groups(
        partial(simple.ask_simple, plan=plan),
        plan.folder("asked"),
        outputs={"asked": ASKED, "items": ITEMS, "queries": ORDERED_QUERIES},
        by={"facts": _by(plan, "value", simple.FACT_ORDER)},
        given=(Given(types),),
        step=made.step(queries="queries", counts="skipped"),
        **_IN_ORDER,
    )
    named = AllOf(asked["items"] | "names" >> find_item_names(plan, "names", paths["items"], places["items"]))
    staged = {"asked": asked["asked"]} | "make facts" >> map_groups(
        partial(simple.make_simple_facts, plan=plan),
        plan.folder(SIMPLE, "made"),
        outputs={"staged": STAGED, **OF_FACTS, "queries": ORDERED_QUERIES},
        given=(named,),
        step=made.step(queries="queries", counts=SIMPLE),
        **_IN_ORDER,
    )
    found = staged["wanted"] | "search" >> search_facts(plan, SIMPLE)
    tried = {"staged": staged["staged"], "facts": staged["facts"], "found": found} | "try" >> map_groups(
        partial(simple.try_simple, plan=plan),
        plan.folder(SIMPLE, "tried"),
        outputs={"tried": TRIED, "said": FACT_NUMBERS},
        by=OF_FOUND,
        step=made.step(counts=SIMPLE),
    )
    proved = tried["tried"] | "prove" >> find_proofs(plan.options, plan.folder(SIMPLE, "proofs"))
    settled = {"staged": staged["staged"], "said": tried["said"], "proofs": proved} | "settle" >> map_groups(
        partial(simple.settle_simple, plan=plan),
        plan.folder(SIMPLE, "settled"),
        outputs={"settled": SETTLED, "answers": ANSWERS, "bases": BASES, "subjects": ITEMS, **OF_QUESTIONS},
        given=(Given(types), named),
        step=made.step(**_QUESTIONS, counts=SIMPLE),
        **_IN_ORDER,
    )
    ranks = Given(settled["settled"] | "ranks" >> rank_queries(plan.folder("ranks.npy")))
    pairs = _compositions(plan, paths, places, settled, (named, AllOf(proved), ranks), every_kind, made)
    for step in (asked, staged, tried, settled, *pairs):
        made.take(step[TOLD])
    return chosen


def _by(plan: QampariPlan, column: str, order: Sequence[str] = ()) -> By:
    return By(ByNumber(column, plan.n_groups), order)


def _by_query(plan: QampariPlan, column: str = "query", order: Sequence[str] = ()) -> By:
    return By(by_query(column, plan.n_groups), order)


def _kinds(chosen: dict[str, dict[str, str]], known: dict[str, ValueKind]) -> dict[str, ValueKind]:
    return {**kinds_of_types(chosen["types"]), **known}


def _simple_facts(batch: pa.RecordBatch, types: ClassTypes, *, plan: QampariPlan) -> pa.RecordBatch:
    return sorted_facts(simple_facts(batch, plan.enabled, types), plan.options.most_subjects)


def _values(
    batch: pa.RecordBatch, subjects: ItemSet, kinds: dict[str, ValueKind], *, plan: QampariPlan
) -> pa.RecordBatch:
    return values_of(batch, subjects, plan.composed, value_types=types_of_values(kinds, plan.composed))


def _compositions(
    plan: QampariPlan,
    paths: Mapping[str, tuple[str, ...]],
    places: Mapping[str, Any],
    simple_settled: Any,
    given: tuple[Any, ...],
    kinds: Any,
    made: StepCollector,
) -> list[Any]:
    """Makes compositions and intersections, and returns the steps with outputs for the final commit."""

    def folder(name: str) -> str:
        return plan.folder(COMPOSITIONS, name)

    named, proofs, ranks = given
    by_subject = _by(plan, "subject")
    subjects = Given(simple_settled["subjects"] | "subjects" >> write_item_set(folder("subjects.npy")))
    values = (
        places["statements"]
        | "statements of subjects" >> read_places(paths["statements"], STATEMENT_COLUMNS, together="entity_id")
        | "values" >> beam.ParDo(MapRows(partial(_values, plan=plan), opens=read_item_set), subjects, kinds)
    )
    of_subjects = {"bases": simple_settled["bases"], "values": values, "answers": simple_settled["answers"]}
    joined = of_subjects | "join" >> map_groups(
        compositions.join_values,
        folder("joined"),
        outputs={"paired": PAIRED, "pairs": PAIRS},
        by={"bases": by_subject, "values": by_subject, "answers": _by(plan, "subject", compositions.ANSWER_ORDER)},
    )
    composed = {"paired": joined["paired"]} | "compose" >> map_groups(
        partial(compositions.compose, plan=plan),
        folder("composed"),
        outputs={"composed": compositions.COMPOSED, "placed": compositions.PLACED, "items": ITEMS},
        by={"paired": _by_query(plan, order=compositions.PAIR_ORDER)},
        given=(kinds,),
    )
    name_values = find_item_names(plan, "names_of_values", paths["items"], places["items"])
    named_values = AllOf(composed["items"] | "names of values" >> name_values)
    facts = {"placed": composed["placed"]} | "make facts of values" >> map_groups(
        partial(compositions.make_composition_facts, plan=plan),
        folder("made"),
        outputs={**OF_FACTS, "numbered": compositions.FLAGGED},
        by={"placed": by_subject},
        given=(named, named_values, kinds),
        step=made.step(counts=COMPOSITIONS),
    )
    found = facts["wanted"] | "search values" >> search_facts(plan, COMPOSITIONS)
    flagged = {"numbered": facts["numbered"], "found": found} | "flag" >> map_groups(
        compositions.flag_facts,
        folder("flags"),
        outputs={"flagged": compositions.FLAGGED},
        by=OF_FOUND,
        step=made.step(counts=COMPOSITIONS),
    )
    of_queries, sent_queries = send_rows(
        {"composed": composed["composed"], "settled": simple_settled["settled"], "flagged": flagged["flagged"]},
        folder("of_queries"),
        {"flagged": _by_query(plan, order=compositions.FLAGGED_ORDER)},
    )
    needed = of_queries | "need" >> map_groups(
        partial(compositions.need_facts, plan=plan),
        folder("needed"),
        outputs={"needed": FACT_NUMBERS},
        by=sent_queries,
        given=(kinds,),
    )
    tried = {"needed": needed["needed"], "facts": facts["facts"], "found": found} | "try values" >> map_groups(
        compositions.try_composed,
        folder("tried"),
        outputs={"tried": TRIED},
        by={"needed": By(BY_FACT), **OF_FOUND},
        step=made.step(counts=COMPOSITIONS),
    )
    proved = tried["tried"] | "prove values" >> find_proofs(plan.options, plan.folder(COMPOSITIONS, "proofs"))
    sent = {"numbered": facts["numbered"], "proofs": proved} | "send" >> map_groups(
        partial(compositions.send_proofs, plan=plan),
        folder("sent"),
        outputs={"sent": compositions.SENT},
        step=made.step(counts=COMPOSITIONS),
    )
    pairs = {**of_queries, "sent": sent["sent"], "pairs": joined["pairs"]}
    settled = pairs | "settle pairs" >> map_groups(
        partial(compositions.settle_pairs, plan=plan),
        folder("settled"),
        outputs=OF_QUESTIONS,
        by={
            **sent_queries,
            "sent": By(ByNumber("group")),
            "pairs": _by_query(plan, "first", compositions.INTERSECTION_ORDER),
        },
        given=(named, named_values, proofs, kinds, ranks),
        step=made.step(**_QUESTIONS),
        **_IN_ORDER,
    )
    return [facts, flagged, tried, sent, settled]


def _files(_: bytes, n: int) -> list[tuple[ChunkKey, None]]:
    return [(ChunkKey(0, number), None) for number in range(n)]


def make_table_questions(pipeline: Any, plan: QampariPlan, made: StepCollector) -> None:
    """Makes the questions about the tables of list pages."""
    read = (
        pipeline
        | "begin" >> beam.Impulse()
        | "pages files" >> beam.FlatMap(_files, len(plan.pages.files))
        | "spread pages files" >> beam.Reshuffle()
        | "read lists" >> guarded(partial(ListReading, plan), plan, "lists")
    )
    facts = {"lists": read.chunks} | "make facts of tables" >> map_groups(
        partial(lists.make_list_facts, plan=plan),
        plan.folder(TABLES, "made"),
        outputs=OF_FACTS,
        step=made.step(counts=TABLES),
    )
    found = facts["wanted"] | "search tables" >> search_facts(plan, TABLES)
    settled = {"lists": read.chunks, "facts": facts["facts"], "found": found} | "settle tables" >> map_groups(
        partial(lists.settle_tables, plan=plan),
        plan.folder(TABLES, "settled"),
        outputs=OF_QUESTIONS,
        by=OF_FOUND,
        step=made.step(**_QUESTIONS, counts=TABLES),
        **_IN_ORDER,
    )
    made.take(facts[TOLD])
    made.take(settled[TOLD])
    made.add("lists", read.chunks)
