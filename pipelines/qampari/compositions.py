"""Compositions: the values that the answers of simple queries have, down to those that are validated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import LocalStorage
from kbsource.spill import BucketSpill
from kbsource.staging import read_batches, staged_rows
from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.classes import Numbers, item_numbers
from mapping.qampari.evidence import Sought
from mapping.qampari.facts import values_of
from mapping.qampari.joins import compositions
from mapping.qampari.names import ItemNames, ItemPages, write_names
from mapping.qampari.ordered import N_BUCKETS, KeySample, open_spill
from mapping.qampari.questions import COMPOSITION, CompositionQuery
from mapping.qampari.relations import Relations
from mapping.qampari.rows import QueryRow
from mapping.qampari.selection import KEPT, AnswerFilter
from pipelines.qampari.considered import Considerations
from pipelines.qampari.facts import FactStage, Flags, Proofs, Runs
from pipelines.qampari.kept import KeptCompositions, KeptSimple, composition_key, composition_rows
from pipelines.qampari.simple import ItemSet, mapped_numbers, number_lists
from pipelines.qampari.values import ValueKind, Values, answer_key, types_of_values, value_kinds

_ROWS_AT_ONCE = 1024
_FACTS_AT_ONCE = 1 << 13
_PAIRS = pa.schema(
    [
        pa.field("base", pa.int64(), nullable=False),
        pa.field("property_id", pa.string(), nullable=False),
        pa.field("subjects", pa.list_(pa.int64()), nullable=False),
        pa.field("values", pa.list_(pa.string()), nullable=False),
    ]
)
_PLACED = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in ("query", "place", "subject", "property")),
        pa.field("value", pa.string(), nullable=False),
    ]
)
_FACT_KEY = ["subject", "property", "value"]
_NUMBERED = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("query", "place", "fact")])


class Compositions(NamedTuple):
    """The compositions that passed.

    Attributes:
        kept: in their order.
        proofs: of their facts, those about values.
        values: what the values are called.
    """

    kept: KeptCompositions
    proofs: Proofs
    values: Values


def validate_compositions(
    bases: KeptSimple,
    relations: Relations,
    tables: WikidataTables,
    pages: ItemPages,
    *,
    answer_filter: AnswerFilter,
    considerations: Considerations,
    runs: Runs,
    scratch: str,
) -> Compositions:
    """Gives the compositions whose pairs of subject and value the pages say.

    A pair counts as validated when both of its facts are: that the subject answers the base query, and that it has the
    value.

    Args:
        bases: in their order.
        relations: hold the words.
        tables: of Wikidata.
        pages: of the release.
        answer_filter: what is kept; its share is of the pairs.
        considerations: takes what became of each query.
        runs: how pipelines are run.
        scratch: local folder for scratch files.
    """
    folder = os.path.join(runs.staging, "compositions")
    asked = os.path.join(folder, "asked.arrow")
    properties = [one.property_id for one in relations.composition.values() if one.is_enabled]
    kinds = value_kinds(tables, properties)
    with runs.reading.stage(runs.progress, "compositions, values", tables, "statements"):
        items = _stage_asked(asked, bases, relations, tables, kinds, least=answer_filter.least, scratch=scratch)
    names_path = os.path.join(runs.staging, "names", "compositions.arrow")
    with runs.reading.stage(runs.progress, f"compositions, names of {len(items):,} items", tables, "items"):
        write_names(names_path, items, tables, pages, scratch=scratch)
    names = ItemNames(names_path, items)
    values = Values(names, kinds)
    n_queries = sum(batch.num_rows for batch in read_batches(LocalStorage(), asked))
    with open_spill(os.path.join(scratch, "numbered"), _NUMBERED) as numbered:
        with (
            FactStage("compositions", runs, pages) as stage,
            open_spill(os.path.join(scratch, "placed"), _PLACED) as placed,
        ):
            _spill_pairs(asked, placed)
            has_page = _add_facts(placed, numbered, stage, n_queries, relations, names, values)
        runs.progress.note(f"compositions: {stage.n_facts:,} facts, {stage.n_searches:,} looks into pages")
        is_found = stage.search()
        needed = stage.needed()
        sample = KeySample()
        for one in _with_facts(asked, numbered, n_queries, values):
            is_said = one.is_base_validated(bases) & is_found[one.facts]
            if one.may_keep(is_said, answer_filter):
                needed[one.facts[is_said]] = True
                sample.add(composition_key(one.property_id, one.base))
        is_proved = stage.prove(needed)
        path = os.path.join(folder, "kept.arrow")
        with composition_rows(scratch, sample) as kept:
            for one in _with_facts(asked, numbered, n_queries, values):
                query = CompositionQuery(one.property_id, bases.query(one.base))
                is_base = one.is_base_validated(bases)
                is_said, is_right = is_base & is_found[one.facts], is_base & is_proved[one.facts]
                n_all, n_right = len(one.facts), int(is_right.sum())
                n_distinct = one.n_distinct(is_right)
                is_judged = one.may_keep(is_said, answer_filter)
                outcome = "too_few_found"
                if is_judged:
                    outcome = answer_filter.outcome(n_distinct, n_distinct, n_pairs=(n_right, n_all))
                considerations.add(
                    QueryRow(
                        COMPOSITION,
                        query.key,
                        query.property_ids,
                        (query.base.entity_id,),
                        query.base.type_label,
                        n_all,
                        int(has_page[one.facts].sum()),
                        int(is_said.sum()),
                        n_right if is_judged else None,
                        outcome,
                    )
                )
                if outcome == KEPT:
                    said = list(compress(one.values, is_right))
                    row = one.property_id, one.base, one.subjects[is_right], said, one.facts[is_right], n_all
                    kept.add(composition_key(one.property_id, one.base), row)
            kept.write(path)
    considerations.count_stage("compositions", stage)
    return Compositions(KeptCompositions(path, bases), stage.proofs(), values)


def _stage_asked(
    path: str,
    bases: KeptSimple,
    relations: Relations,
    tables: WikidataTables,
    kinds: Mapping[str, ValueKind],
    *,
    least: int,
    scratch: str,
) -> Numbers:
    """Writes every query with its pairs; gives the items that need a name."""
    items = ItemSet()
    for base in bases:
        items.add(base.subjects)
    properties = [one.property_id for one in relations.composition.values() if one.is_enabled]
    rows = values_of(tables, items.sorted(), properties, value_types=types_of_values(kinds, properties))
    queries = ((number, one.query.property_id, one.subjects) for number, one in enumerate(bases))
    with staged_rows(LocalStorage(), path, _PAIRS) as sink:
        for one in compositions(queries, rows, scratch=os.path.join(scratch, "compositions"), least=least):
            subjects, said = zip(*one.pairs, strict=True)
            kind = kinds[one.property_id]
            if len({answer_key(kind, value) for value in said}) < least:
                continue
            sink.add((one.query, one.property_id, subjects, said))
            if kind == "item":
                items.add(np.array([int(value[1:]) for value in said], np.int64))
            if sink.n_pending == _ROWS_AT_ONCE:
                sink.flush()
    return mapped_numbers(items.sorted(), os.path.join(os.path.dirname(path), "items.npy"))


def _spill_pairs(asked: str, placed: BucketSpill) -> None:
    """Puts every pair of every query into the bucket of its subject."""
    query = 0
    for batch in read_batches(LocalStorage(), asked):
        rows, subjects = pc.list_parent_indices(batch["subjects"]).to_numpy(), batch["subjects"].flatten().to_numpy()
        starts = np.flatnonzero(np.diff(rows, prepend=-1))  # no query is without pairs
        columns = [
            query + rows,
            np.arange(len(rows)) - starts[rows],
            subjects,
            item_numbers(batch["property_id"])[rows],
            batch["values"].flatten(),
        ]
        arrays = [pa.array(*one) for one in zip(columns, _PLACED.types, strict=True)]
        placed.add(pa.RecordBatch.from_arrays(arrays, schema=_PLACED), subjects % N_BUCKETS)
        query += batch.num_rows
    placed.flush()


def _add_facts(
    placed: BucketSpill,
    numbered: BucketSpill,
    stage: FactStage,
    n_queries: int,
    relations: Relations,
    names: ItemNames,
    values: Values,
) -> Flags:
    """Adds each fact once, whichever queries it is of; says which have a page that can be searched."""
    has_page = [np.empty(0, np.bool_)]
    for bucket in range(N_BUCKETS):
        table = placed.read(bucket).sort_by([(name, "ascending") for name in _FACT_KEY]).combine_chunks()
        is_new = np.zeros(table.num_rows, np.bool_)
        is_new[:1] = True
        for name in _FACT_KEY:
            is_new[1:] |= pc.not_equal(table[name][1:], table[name][:-1]).to_numpy()
        facts = stage.n_facts - 1 + np.cumsum(is_new)
        once = table.select(_FACT_KEY).filter(pa.array(is_new))
        has_page += [
            _add_once(one, stage, relations, names, values) for one in once.to_batches(max_chunksize=_FACTS_AT_ONCE)
        ]
        queries = table["query"].to_numpy()
        batch = pa.RecordBatch.from_arrays(
            [pa.array(queries), pa.array(table["place"].to_numpy()), pa.array(facts)], schema=_NUMBERED
        )
        numbered.add(batch, queries * N_BUCKETS // max(n_queries, 1))
    numbered.flush()
    return np.concatenate(has_page)


def _add_once(batch: pa.RecordBatch, stage: FactStage, relations: Relations, names: ItemNames, values: Values) -> Flags:
    subjects = batch["subject"].to_numpy()
    property_ids = [f"P{number}" for number in batch["property"].to_pylist()]
    of_values = values.take(list(zip(property_ids, batch["value"].to_pylist(), strict=True)))
    named = names.rows(subjects)
    has_page = np.zeros(len(subjects), np.bool_)
    for place, (subject, property_id, value) in enumerate(zip(subjects.tolist(), property_ids, of_values, strict=True)):
        one = named[subject]
        hypothesis = None
        if one.names and value.names:
            hypothesis = relations.composition[property_id].hypothesis(value.names[0], one.names[0])
        stage.add(Sought(one.names, one.page_id), Sought(value.names, value.page_id), hypothesis)
        has_page[place] = one.page_id is not None or value.page_id is not None
    return has_page


class _Composed(NamedTuple):
    """A composition with the fact of each of its pairs, and the ``answer_key`` of their values."""

    base: int
    property_id: str
    subjects: Numbers
    values: list[str]
    keys: list[str]
    facts: Numbers

    def is_base_validated(self, bases: KeptSimple) -> Flags:
        """Says which of the subjects are validated answers of the base query."""
        return np.isin(self.subjects, bases[self.base].validated())

    def n_distinct(self, is_chosen: Flags) -> int:
        """Gives the number of distinct values of chosen pairs."""
        return len(set(compress(self.keys, is_chosen)))

    def may_keep(self, is_said: Flags, answer_filter: AnswerFilter) -> bool:
        """Says whether it could be kept if some of the pairs that a sentence may say were validated, or all of them."""
        n_values = min(self.n_distinct(is_said), answer_filter.most)
        return answer_filter.outcome(n_values, n_values, n_pairs=(int(is_said.sum()), len(self.facts))) == KEPT


def _with_facts(asked: str, numbered: BucketSpill, n_queries: int, values: Values) -> Iterator[_Composed]:
    """Gives the queries in their order."""
    query, bucket = 0, -1
    facts: dict[int, Numbers] = {}
    for batch in read_batches(LocalStorage(), asked):
        columns = batch["base"].to_pylist(), batch["property_id"].to_pylist(), number_lists(batch["subjects"])
        # Values last and one list at a time: they are texts.
        for base, property_id, subjects, said in zip(*columns, batch["values"], strict=True):
            if bucket != query * N_BUCKETS // n_queries:
                bucket = query * N_BUCKETS // n_queries
                facts = _facts_by_query(numbered.read(bucket))
            said = said.values.to_pylist()
            yield _Composed(base, property_id, subjects, said, values.keys(property_id, said), facts[query])
            query += 1


def _facts_by_query(table: pa.Table) -> dict[int, Numbers]:
    table = table.sort_by([("query", "ascending"), ("place", "ascending")])
    queries, facts = table["query"].to_numpy(), table["fact"].to_numpy()
    edges = np.flatnonzero(np.diff(queries, prepend=-1, append=-1))
    return {int(queries[start]): facts[start:end] for start, end in pairwise(edges.tolist())}
