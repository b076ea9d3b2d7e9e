"""The steps of QAMPARI as transforms: from the tables of two releases to settled queries and their questions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.runtime.chunks import ChunkKey
from mapping.qampari.classes import ClassTypes, ItemSet, Numbers
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
from pipelines.primitives.group_map import COUNTS, GroupMap, groups_by
from pipelines.primitives.lookup import MapRows, read_item_set, write_item_set
from pipelines.primitives.shuffle import Made, Regroup
from pipelines.qampari import compositions, lists, simple
from pipelines.qampari.facts import OF_FACTS, by_fact, find_proofs, guarded, search_facts
from pipelines.qampari.lookups import find_classes, find_item_names, rank_queries, read_types
from pipelines.qampari.pages import ReadLists
from pipelines.qampari.plan import (
    ASKED,
    FACT_NUMBERS,
    FOUND_ORDER,
    ITEMS,
    KEPT,
    OF_QUESTIONS,
    ORDERED_QUERIES,
    ROWS_AT_ONCE,
    SORTED_BY,
    STAGED,
    TRIED,
    Plan,
    groups_by_query,
)
from pipelines.transforms.tables import ReadStatements

Given, AllOf = beam.pvalue.AsSingleton, beam.pvalue.AsList
_IN_ORDER: dict[str, Any] = {"rows_at_once": ROWS_AT_ONCE, "sorted_by": SORTED_BY}
_FOUND = {"found": FOUND_ORDER}
SIMPLE, COMPOSITIONS, TABLES = "simple", "compositions", "tables"
"""Kinds of facts, which counts are by."""


def make_wikidata_questions(
    pipeline: Any,
    plan: Plan,
    paths: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, ValueKind],
    made: Made,
) -> Any:
    """Makes simple questions, compositions and intersections; gives what ``lookups.find_classes`` chose.

    Args:
        paths: of the files of a release of Wikidata, by table.
        kinds: of the values of properties, as far as their datatypes say.
    """
    lacking = tuple(sorted(set(plan.composed) - kinds.keys()))
    chosen, types = pipeline | "classes" >> find_classes(plan, paths, lacking)
    every_kind = Given(chosen | "kinds" >> beam.Map(_kinds, dict(kinds)))
    statements = paths["statements"]

    facts = (
        pipeline
        | "statements" >> ReadStatements(statements, STATEMENT_COLUMNS)
        | "facts" >> beam.ParDo(MapRows(partial(_simple_facts, plan=plan), opens=read_types), Given(types))
        | "by value" >> Regroup(plan.folder("facts"), _by(plan, "value"))
    )
    asked = {"facts": facts} | "ask" >> GroupMap(
        partial(simple.ask_simple, plan=plan),
        plan.folder("asked"),
        outputs={"asked": ASKED, "items": ITEMS, "queries": ORDERED_QUERIES},
        orders={"facts": simple.FACT_ORDER},
        given=(Given(types),),
        **_IN_ORDER,
    )
    named = AllOf(asked["items"] | "names" >> find_item_names(plan, "names", paths["items"]))
    staged = {"asked": asked["asked"]} | "make facts" >> GroupMap(
        partial(simple.make_facts, plan=plan),
        plan.folder(SIMPLE, "made"),
        outputs={"staged": STAGED, **OF_FACTS, "queries": ORDERED_QUERIES},
        given=(named,),
        **_IN_ORDER,
    )
    found = staged["wanted"] | "search" >> search_facts(plan, SIMPLE)
    tried = {"staged": staged["staged"], "facts": staged["facts"], "found": found} | "try" >> GroupMap(
        partial(simple.try_simple, plan=plan),
        plan.folder(SIMPLE, "tried"),
        outputs={"tried": TRIED, "said": FACT_NUMBERS},
        orders=_FOUND,
    )
    proved = tried["tried"] | "prove" >> find_proofs(plan, SIMPLE)
    settled = {"staged": staged["staged"], "said": tried["said"], "proofs": proved["proofs"]} | "settle" >> GroupMap(
        partial(simple.settle_simple, plan=plan),
        plan.folder(SIMPLE, "settled"),
        outputs={"kept": KEPT, "answers": ANSWERS, "bases": BASES, "subjects": ITEMS, **OF_QUESTIONS},
        given=(Given(types), named),
        **_IN_ORDER,
    )
    given = (named, AllOf(proved["proofs"]), Given(settled["kept"] | "ranks" >> rank_queries(plan.folder("ranks.npy"))))
    made.add("skipped", asked[COUNTS])
    made.add("queries", asked["queries"])
    made.add("queries", staged["queries"])
    _add_questions(made, settled)
    for counts in (staged[COUNTS], tried[COUNTS], proved["counts"]):
        made.add(SIMPLE, counts)
    composed = _compositions(pipeline, plan, statements, paths["items"], settled, given, every_kind)
    _add_questions(made, composed["settled"])
    for counts in composed["counts"]:
        made.add(COMPOSITIONS, counts)
    _add_questions(made, _intersections(plan, settled, given))
    return chosen


def _add_questions(made: Made, settled: Any) -> None:
    for name in OF_QUESTIONS:
        made.add(name, settled[name])


def _by(plan: Plan, column: str) -> partial[Numbers]:
    return partial(groups_by, column=column, n_groups=plan.n_groups)


def _by_query(plan: Plan, column: str = "query") -> partial[Numbers]:
    return partial(groups_by_query, column=column, n_groups=plan.n_groups)


def _kinds(chosen: dict[str, dict[str, str]], known: dict[str, ValueKind]) -> dict[str, ValueKind]:
    return {**kinds_of_types(chosen["types"]), **known}


def _simple_facts(batch: pa.RecordBatch, types: ClassTypes, *, plan: Plan) -> pa.RecordBatch:
    return sorted_facts(simple_facts(batch, plan.enabled, types), plan.options.most_subjects)


def _values(batch: pa.RecordBatch, subjects: ItemSet, kinds: dict[str, ValueKind], *, plan: Plan) -> pa.RecordBatch:
    return values_of(batch, subjects, plan.composed, value_types=types_of_values(kinds, plan.composed))


def _intersections(plan: Plan, settled: Any, given: tuple[Any, ...]) -> Any:
    answers = settled["answers"] | "answers by subject" >> Regroup(
        plan.folder("intersections", "answers"), _by(plan, "subject"), order=compositions.ANSWER_ORDER
    )
    paired = {"answers": answers} | "pair" >> GroupMap(
        compositions.pair_queries,
        plan.folder("intersections", "paired"),
        outputs={"pairs": PAIRS},
        orders={"answers": compositions.ANSWER_ORDER},
    )
    pairs = paired["pairs"] | "pairs by first" >> Regroup(
        plan.folder("intersections", "pairs"), _by_query(plan, "first"), order=compositions.INTERSECTION_ORDER
    )
    return {"pairs": pairs} | "settle intersections" >> GroupMap(
        partial(compositions.settle_intersections, plan=plan),
        plan.folder("intersections", "settled"),
        outputs=OF_QUESTIONS,
        orders={"pairs": compositions.INTERSECTION_ORDER},
        given=given,
        **_IN_ORDER,
    )


def _compositions(
    pipeline: Any,
    plan: Plan,
    statements: tuple[str, ...],
    items: tuple[str, ...],
    simple_settled: Any,
    given: tuple[Any, ...],
    kinds: Any,
) -> dict[str, Any]:
    def folder(name: str) -> str:
        return plan.folder(COMPOSITIONS, name)

    named, proofs, ranks = given
    subjects = Given(simple_settled["subjects"] | "subjects" >> write_item_set(folder("subjects.npy")))
    values = (
        pipeline
        | "statements of subjects" >> ReadStatements(statements, STATEMENT_COLUMNS)
        | "values" >> beam.ParDo(MapRows(partial(_values, plan=plan), opens=read_item_set), subjects, kinds)
        | "values by subject" >> Regroup(folder("values"), _by(plan, "subject"))
    )
    bases = simple_settled["bases"] | "bases" >> Regroup(folder("bases"), _by(plan, "subject"))
    joined = {"bases": bases, "values": values} | "join" >> GroupMap(
        compositions.join_values, folder("joined"), outputs={"paired": PAIRED}
    )
    paired = joined["paired"] | "by query" >> Regroup(folder("paired"), _by_query(plan), order=compositions.PAIR_ORDER)
    composed = {"paired": paired} | "compose" >> GroupMap(
        partial(compositions.compose, plan=plan),
        folder("composed"),
        outputs={"composed": compositions.COMPOSED, "placed": compositions.PLACED, "items": ITEMS},
        orders={"paired": compositions.PAIR_ORDER},
        given=(kinds,),
    )
    named_values = AllOf(composed["items"] | "names of values" >> find_item_names(plan, "names_of_values", items))
    placed = composed["placed"] | "placed" >> Regroup(folder("placed"), _by(plan, "subject"))
    facts = {"placed": placed} | "make facts of values" >> GroupMap(
        partial(compositions.make_facts, plan=plan),
        folder("made"),
        outputs={**OF_FACTS, "numbered": compositions.FLAGGED},
        given=(named, named_values, kinds),
    )
    found = facts["wanted"] | "search values" >> search_facts(plan, COMPOSITIONS)
    flagged = {"numbered": facts["numbered"], "found": found} | "flag" >> GroupMap(
        compositions.flag_facts,
        folder("flags"),
        outputs={"flagged": compositions.FLAGGED, "said": FACT_NUMBERS},
        orders=_FOUND,
    )
    orders = {"flagged": compositions.FLAGGED_ORDER}
    by_query = Regroup(folder("flagged"), _by_query(plan), order=compositions.FLAGGED_ORDER)
    of_queries = {
        "composed": composed["composed"],
        "kept": simple_settled["kept"],
        "flagged": flagged["flagged"] | "flagged" >> by_query,
    }
    needed = of_queries | "need" >> GroupMap(
        partial(compositions.need_facts, plan=plan),
        folder("needed"),
        outputs={"needed": FACT_NUMBERS},
        orders=orders,
        given=(kinds,),
    )
    needed_facts = needed["needed"] | "needed" >> Regroup(folder("needed_facts"), by_fact)
    tried = {"needed": needed_facts, "facts": facts["facts"], "found": found} | "try values" >> GroupMap(
        compositions.try_composed, folder("tried"), outputs={"tried": TRIED}, orders=_FOUND
    )
    proved = tried["tried"] | "prove values" >> find_proofs(plan, COMPOSITIONS)
    sent = {"numbered": facts["numbered"], "proofs": proved["proofs"]} | "send" >> GroupMap(
        partial(compositions.send_proofs, plan=plan), folder("sent"), outputs={"sent": compositions.SENT}
    )
    received = sent["sent"] | "sent" >> Regroup(folder("received"), compositions.groups_of_sent)
    settled = {**of_queries, "sent": received} | "settle compositions" >> GroupMap(
        partial(compositions.settle_compositions, plan=plan),
        folder("settled"),
        outputs=OF_QUESTIONS,
        orders=orders,
        given=(named, named_values, proofs, kinds, ranks),
        **_IN_ORDER,
    )
    return {"settled": settled, "counts": [facts[COUNTS], flagged[COUNTS], tried[COUNTS], proved["counts"]]}


def make_table_questions(pipeline: Any, plan: Plan, made: Made) -> None:
    """Makes the questions about the tables of list pages."""
    files = [(ChunkKey(0, number), None) for number in range(len(plan.pages.files))]
    read = (
        pipeline
        | "pages files" >> beam.Create(files, reshuffle=False)
        | "spread pages files" >> beam.Reshuffle()
        | "read lists" >> guarded(ReadLists(plan), plan, "lists")
    )
    facts = {"lists": read.chunks} | "make facts of tables" >> GroupMap(
        partial(lists.make_facts, plan=plan), plan.folder(TABLES, "made"), outputs=OF_FACTS
    )
    found = facts["wanted"] | "search tables" >> search_facts(plan, TABLES)
    tried = {"facts": facts["facts"], "found": found} | "try tables" >> GroupMap(
        lists.try_tables, plan.folder(TABLES, "tried"), outputs={"tried": TRIED}, orders=_FOUND
    )
    proved = tried["tried"] | "prove tables" >> find_proofs(plan, TABLES, is_judged=False)
    settled = {"lists": read.chunks, "proofs": proved["proofs"]} | "settle tables" >> GroupMap(
        partial(lists.settle_tables, plan=plan), plan.folder(TABLES, "settled"), outputs=OF_QUESTIONS, **_IN_ORDER
    )
    _add_questions(made, settled)
    made.add("lists", read.chunks)
    for counts in (facts[COUNTS], tried[COUNTS], proved["counts"]):
        made.add(TABLES, counts)
