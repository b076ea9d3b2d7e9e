"""The steps of QAMPARI, in order: SQL over the tables of two releases, page search, SQL, the model, SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.runtime.chunks import ChunkKey
from mapping.qampari.classes import ClassTypes, ItemSet
from mapping.qampari.joins import SAID, said_values
from mapping.qampari.names import NAMES, ValueKind, kinds_of_types, types_of_values
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.statements import FACTS, STATEMENT_COLUMNS, cut_facts, simple_facts, values_of
from pipelines.primitives.join_tables import Join, StepTable, join_tables
from pipelines.primitives.lookup import MapRows, read_item_set, write_item_set
from pipelines.primitives.shuffle import Checkpoint, CollectSorted
from pipelines.qampari import joins, lists
from pipelines.qampari.facts import find_proofs, guarded, search_facts
from pipelines.qampari.lookups import find_classes, name_listed_items, read_types
from pipelines.qampari.pages import ListReading
from pipelines.qampari.plan import FOUND, PROOFS, WANTED, QampariPlan
from pipelines.runners.workers import do
from pipelines.transforms.tables import find_places, read_places

Given, AllOf = beam.pvalue.AsSingleton, beam.pvalue.AsList
SIMPLE, COMPOSITIONS, TABLES = "simple", "compositions", "tables"
"""Kinds of facts; counts are grouped by them."""
N_JOINS, N_JOINS_OF_TABLES = 10, 2
"""Numbers of all joins, and of those for the tables of list pages."""


class QampariSteps:
    """The graph of the job.

    Args:
        paths: paths of the files of a release of Wikidata, by table.
        kinds: kinds of the properties' values, if their datatypes determine them.
    """

    def __init__(
        self,
        pipeline: Any,
        plan: QampariPlan,
        paths: Mapping[str, tuple[str, ...]],
        kinds: Mapping[str, ValueKind],
    ) -> None:
        self._pipeline, self._plan, self._paths = pipeline, plan, paths
        self._counts: list[Any] = []
        self._places = {
            name: pipeline | f"{name} to read" >> find_places(paths[name]) for name in ("items", "statements")
        }
        lacking = tuple(sorted(set(plan.composed) - kinds.keys()))
        classes = find_classes(plan, paths, self._places, lacking)
        self._classes, self._types = map(Given, pipeline | "classes" >> classes)
        self._kinds = Given(self._classes.pvalue | "kinds" >> beam.Map(_kinds, dict(kinds)))

    def make_questions(self, write_files: Callable[..., None], **bound: Any) -> Any:
        """Makes all questions, and writes the files of the release; returns (counts, facts) of the last join.

        Args:
            write_files: called with a ``TableJoin``, the path of the types, the choices of ``find_classes``, the counts
                of the joins by kind of facts and step, and the chunks of ``_ask_about_lists``.
            bound: arguments that are bound to it.
        """
        asked = self._join(SIMPLE, joins.FIND_QUERIES, {"facts": self._read_facts()}, self._types)
        named = self._name_items("names", asked["items"])
        stated = self._join(SIMPLE, joins.STATE_ANSWERS, {"answers": asked["answers"], "named": named})
        found = self._search(SIMPLE, stated["wanted"])
        of_answers = {"answers": stated["answers"], "facts": stated["facts"], "found": found}
        chosen = self._join(SIMPLE, joins.CHOOSE_ANSWERS, of_answers)
        proofs = self._prove(SIMPLE, chosen["tried"])
        judged = {"answers": stated["answers"], "counted": chosen["counted"], "proved": proofs.only("fact")}
        decided = self._join(SIMPLE, joins.DECIDE_QUERIES, judged, self._types)

        of_subjects = {"bases": decided["bases"], "said": self._read_values(decided["items"])}
        composed = self._join(COMPOSITIONS, joins.COMPOSE, of_subjects)
        names = {"named": named, "unlisted": stated["unlisted"], "value_names": composed["value_names"]}
        names["named_values"] = self._name_items("names of values", composed["items"])
        stated_values = self._join(COMPOSITIONS, joins.STATE_VALUES, {"facts": composed["facts"], **names})
        found = self._search(COMPOSITIONS, stated_values["wanted"])
        pairs = {"pairs": composed["pairs"], "bases": decided["bases"], "keys": composed["keys"]}
        of_values = {**pairs, "facts": stated_values["facts"], "found": found}
        chosen_values = self._join(COMPOSITIONS, joins.CHOOSE_VALUES, of_values)
        value_proofs = self._prove(COMPOSITIONS, chosen_values["tried"])

        of_lists = self._ask_about_lists() if self._plan.options.has_tables else ()
        joined = {
            "queries": asked["queries"],
            "decided": decided["decided"],
            "crossed": decided["crossed"],
            "proofs": proofs,
            "value_proofs": value_proofs,
            "composed": chosen_values["composed"],
            "value_facts": composed["facts"],
            "unlisted_values": stated_values["unlisted"],
            **pairs,
            **names,
        }
        counts = tuple(self._counts) | "counts of joins" >> beam.Flatten() | "all counts" >> CollectSorted()
        given = self._types, self._classes, Given(counts), *map(AllOf, of_lists)
        _, done = self._run("release", Join(write_files, {}), joined, *given, **bound)
        return done

    def _join(self, kind: str, step: Join, inputs: Mapping[str, StepTable], *given: Any) -> dict[str, StepTable]:
        outputs, done = self._run(kind, step, inputs, *given)
        name = step.function.__name__
        self._counts.append(done | f"{kind}: counts of {name}" >> beam.Map(_with_name, kind, name))
        return outputs

    def _run(
        self, kind: str, step: Join, inputs: Mapping[str, StepTable], *given: Any, **bound: Any
    ) -> tuple[dict[str, StepTable], Any]:
        plan, name = self._plan, step.function.__name__
        return join_tables(
            f"{kind}: {name.replace('_', ' ')}",
            step,
            inputs,
            *given,
            folder=plan.folder(kind, name),
            memory_mb=plan.options.memory,
            plan=plan,
            **bound,
        )

    def _read_facts(self) -> StepTable:
        to_facts = MapRows(partial(_simple_facts, plan=self._plan), opens=read_types)
        return self._read_statements("facts", FACTS, beam.ParDo(to_facts, self._types))

    def _read_values(self, items: StepTable) -> StepTable:
        """Reads the values of items."""
        subjects = items.chunks | "subjects" >> write_item_set(self._plan.folder("subjects.npy"))
        to_values = MapRows(partial(_values, plan=self._plan), opens=read_item_set)
        return self._read_statements("values", SAID, beam.ParDo(to_values, Given(subjects), self._kinds))

    def _read_statements(self, name: str, schema: pa.Schema, convert: Any) -> StepTable:
        read = read_places(self._paths["statements"], STATEMENT_COLUMNS, together="entity_id")
        rows = self._places["statements"] | f"statements for {name}" >> read | name >> convert
        return StepTable(rows | f"store {name}" >> Checkpoint(self._plan.folder(name)), schema)

    def _name_items(self, name: str, items: StepTable) -> StepTable:
        paths, places = self._paths["items"], self._places["items"]
        return StepTable(items.chunks | name >> name_listed_items(self._plan, name, paths, places), NAMES)

    def _search(self, kind: str, wanted: StepTable) -> StepTable:
        return StepTable(wanted.chunks | f"{kind}: search pages" >> search_facts(self._plan, kind), FOUND)

    def _prove(self, kind: str, tried: StepTable) -> StepTable:
        proofs = find_proofs(self._plan.options, self._plan.folder(kind, "proofs"))
        return StepTable(tried.chunks | f"{kind}: prove" >> proofs, PROOFS)

    def _ask_about_lists(self) -> tuple[Any, ...]:
        """Makes the questions about the tables of list pages: returns the chunks that were read, those of the questions
        of both subsets, and those of the queries."""
        plan = self._plan
        read = (
            self._pipeline
            | "begin" >> beam.Impulse()
            | "pages files" >> beam.FlatMap(_files, len(plan.pages.files))
            | "spread pages files" >> beam.Reshuffle()
            | "read lists" >> guarded(partial(ListReading, plan), plan, TABLES, "lists")
        ).chunks
        looks = StepTable(read | "look for rows of tables" >> do(lists.find_list_looks, plan=plan), WANTED)
        wanted = self._join(TABLES, lists.SORT_LOOKS, {"looks": looks})["wanted"]
        proved = self._join(TABLES, lists.PROVE_ROWS, {"found": self._search(TABLES, wanted)})["proved"]
        ask = do(lists.ask_about_lists, AllOf(proved.chunks), plan=plan)
        made = read | "ask about tables" >> ask.with_outputs(TABLE_SIMPLE, TABLE_COMPOSITION, main=lists.QUERIES)
        return read, made[TABLE_SIMPLE], made[TABLE_COMPOSITION], made[lists.QUERIES]


def _with_name(done: tuple[dict[str, int], Any], kind: str, step: str) -> tuple[tuple[str, str], dict[str, int]]:
    return (kind, step), done[0]


def _kinds(chosen: dict[str, dict[str, str]], known: dict[str, ValueKind]) -> dict[str, ValueKind]:
    return {**kinds_of_types(chosen["types"]), **known}


def _simple_facts(batch: pa.RecordBatch, types: ClassTypes, *, plan: QampariPlan) -> pa.RecordBatch:
    return cut_facts(simple_facts(batch, plan.enabled, types), plan.options.most_subjects)


def _values(
    batch: pa.RecordBatch, subjects: ItemSet, kinds: dict[str, ValueKind], *, plan: QampariPlan
) -> pa.RecordBatch:
    value_types = types_of_values(kinds, plan.composed)
    return said_values(values_of(batch, subjects, plan.composed, value_types=value_types), kinds)


def _files(_: bytes, n: int) -> Iterator[tuple[ChunkKey, None]]:
    for number in range(n):
        yield ChunkKey(0, number), None
