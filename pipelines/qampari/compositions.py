"""Compositions and intersections: made from the answers of simple queries, and validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.runtime.chunks import BatchRef, ChunkKey
from kbsource.runtime.regroup import whole_runs
from mapping.qampari.classes import Numbers, required
from mapping.qampari.evidence import Sought
from mapping.qampari.names import ItemNames, ValueKind, ValueNames, answer_key
from mapping.qampari.questions import FAMILY_BITS, CompositionQuery, IntersectionQuery, query_row
from mapping.qampari.selection import KEPT, AnswerFilter
from mapping.qampari.statements import BASES, VALUES, compositions, intersections, pairs_of_queries, values_of_queries
from pipelines.primitives.group_map import GroupWork
from pipelines.primitives.lookup import Lookup
from pipelines.qampari.facts import FactWriter, Flags, both_ways, count_found, count_proofs, write_tried
from pipelines.qampari.lookups import open_item_names, order_of, proof_texts, read_ranks
from pipelines.qampari.plan import BY_FACT, FACT_BITS, FOUND, PROOFS, QampariPlan, by_query
from pipelines.qampari.simple import list_rows, number_lists, write_composition, write_intersection, write_query

COMPOSITION_KIND = 3
"""Kinds of considered queries, in table order."""
_FACTS_AT_ONCE = 1 << 13


COMPOSED = pa.schema(
    [
        *required("query", "property"),
        *required("subjects", of=pa.list_(pa.int64())),
        *required("values", of=pa.list_(pa.string())),
    ]
)
"""Compositions with their pairs."""
PLACED = pa.schema([*required("query", "place", "subject", "property"), *required("value", of=pa.string())])
"""The pairs, one per row."""
_FACT_KEY = ["subject", "property", "value"]
FLAGGED = pa.schema(
    [
        *required("query", "property", "place", "fact"),
        *required("has_page", "is_found", of=pa.bool_()),
    ]
)
"""The pairs with their facts."""
PAIR_ORDER = ("property", "query", "subject")
FLAGGED_ORDER = ("property", "query", "place")
SENT = pa.schema([*required("group"), *PROOFS])
"""Proofs being sent to the groups of queries."""


def join_values(work: GroupWork) -> None:
    """Joins queries with the values of their answers, and finds pairs of queries that a subject of the group answers.

    Inputs: ``bases``; ``values``; ``answers``, in ``ANSWER_ORDER``. Outputs: ``paired``, ``pairs``.
    """
    for batch in values_of_queries(work.table("bases", BASES), work.table("values", VALUES)).to_batches():
        work.write("paired", batch)
    for batch in pairs_of_queries(whole_runs(work.rows("answers"), ANSWER_ORDER[:1]), FAMILY_BITS):
        work.extend("pairs", [column.to_numpy() for column in batch.columns])


def compose(work: GroupWork, kinds: dict[str, ValueKind], *, plan: QampariPlan) -> None:
    """Writes the compositions of the queries of a group.

    Input: ``paired``, in ``PAIR_ORDER``. Outputs: ``composed``; ``placed``; ``items`` of the values.
    """
    least = plan.options.answer_filter.least
    for composition in compositions(whole_runs(work.rows("paired"), PAIR_ORDER[:2]), least=least):
        subjects, said = zip(*composition.pairs, strict=True)
        kind, property_ = kinds[composition.property_id], int(composition.property_id[1:])
        if len({answer_key(kind, value) for value in said}) < least:
            continue
        work.add("composed", (composition.query, property_, subjects, said))
        for place, (subject, value) in enumerate(composition.pairs):
            work.add("placed", (composition.query, place, subject, property_, value))
        if kind == "item":
            work.extend("items", (np.array([int(value[1:]) for value in said], np.int64),))


def make_composition_facts(
    work: GroupWork,
    named: Sequence[tuple[ChunkKey, BatchRef]],
    named_values: Sequence[tuple[ChunkKey, BatchRef]],
    kinds: dict[str, ValueKind],
    *,
    plan: QampariPlan,
) -> None:
    """Makes each fact of a group of subjects once, even if several queries use it.

    Input: ``placed``. Outputs: ``OF_FACTS``; ``numbered``.
    """
    names, values = open_item_names(named, plan), ValueNames(open_item_names(named_values, plan), kinds)
    table = work.table("placed", PLACED).sort_by([(name, "ascending") for name in _FACT_KEY]).combine_chunks()
    is_new = np.zeros(table.num_rows, np.bool_)
    is_new[:1] = True
    for name in _FACT_KEY:
        is_new[1:] |= pc.not_equal(table[name][1:], table[name][:-1]).to_numpy()
    once = table.select(_FACT_KEY).filter(pa.array(is_new))
    facts, has_page = FactWriter(work, plan), [np.empty(0, np.bool_)]
    for batch in once.to_batches(max_chunksize=_FACTS_AT_ONCE):
        subjects = batch["subject"].to_numpy()
        property_ids = [f"P{number}" for number in batch["property"].to_pylist()]
        of_values = values.take(list(zip(property_ids, batch["value"].to_pylist(), strict=True)))
        of_subjects = names.rows(subjects)
        flags = []
        for subject, property_id, value in zip(subjects.tolist(), property_ids, of_values, strict=True):
            subject_entity = of_subjects[subject]
            hypothesis = None
            if subject_entity.names and value.names:
                hypothesis = plan.relations.composition[property_id].hypothesis(value.names[0], subject_entity.names[0])
            things = Sought(subject_entity.names, subject_entity.page_id), Sought(value.names, value.page_id)
            facts.add(hypothesis, *both_ways(*things))
            flags.append(subject_entity.page_id is not None or value.page_id is not None)
        has_page.append(np.array(flags))
    facts.close()
    places = np.cumsum(is_new) - 1
    columns = [table[name].to_numpy() for name in ("query", "property", "place")]
    flags_of = np.concatenate(has_page)[places]
    work.extend("numbered", (*columns, facts.first + places, flags_of, np.zeros(len(places), np.bool_)))


def flag_facts(work: GroupWork) -> None:
    """Records which facts of a group have a sentence. Inputs: ``numbered``, ``found``. Output: ``flagged``."""
    said = count_found(work, work.table("found", FOUND)) + (work.group << FACT_BITS)
    for batch in work.rows("numbered"):
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        work.extend("flagged", (*columns[:-1], np.isin(columns[3], said)))


class _Composed(NamedTuple):
    """A composition with the facts of its pairs."""

    base: int
    property_id: str
    subjects: Numbers
    values: list[str]
    facts: Numbers
    has_page: Flags
    is_base: Flags
    is_found: Flags


def _composed(work: GroupWork, validated: dict[int, tuple[Numbers, Numbers]]) -> Iterator[_Composed]:
    """Yields compositions in order, from a group's inputs ``composed`` and ``flagged``, in ``FLAGGED_ORDER``."""
    flagged = work.table("flagged", FLAGGED)
    facts, *flags = (flagged[name].to_numpy() for name in ("fact", "has_page", "is_found"))
    start = 0
    for batch in work.rows("composed"):
        columns = batch["query"].to_pylist(), batch["property"].to_pylist(), number_lists(batch["subjects"])
        # Values last and one list at a time, because they are texts.
        for base, property_, subjects, said in zip(*columns, batch["values"], strict=True):
            end = start + len(subjects)
            has_page, is_found = (flag[start:end] for flag in flags)
            is_base = np.isin(subjects, validated[base][0])
            values = said.values.to_pylist()
            yield _Composed(base, f"P{property_}", subjects, values, facts[start:end], has_page, is_base, is_found)
            start = end


def _validated(work: GroupWork) -> dict[int, tuple[Numbers, Numbers]]:
    """Returns the validated answers of the simple queries of a group, by number, and their facts."""
    found = {}
    for row in list_rows(work.rows("settled")):
        is_validated = row["is_validated"]
        found[row["query"]] = row["subjects"][is_validated], row["facts"][is_validated]
    return found


def _may_keep(composed: _Composed, keys: Sequence[str], keep: AnswerFilter) -> bool:
    """Returns whether a composition could be accepted if some or all pairs with a candidate sentence were validated."""
    is_said = composed.is_base & composed.is_found
    n_values = min(len(set(compress(keys, is_said))), keep.most)
    return keep.outcome(n_values, n_values, n_pairs=(int(is_said.sum()), len(composed.facts))) == KEPT


def need_facts(work: GroupWork, kinds: dict[str, ValueKind], *, plan: QampariPlan) -> None:
    """Writes the facts that a question may need.

    Inputs: ``composed``, ``flagged``, ``settled``. Output: ``needed``.
    """
    for query in _composed(work, _validated(work)):
        keys = [answer_key(kinds.get(query.property_id, "text"), value) for value in query.values]
        if _may_keep(query, keys, plan.options.answer_filter):
            work.extend("needed", (query.facts[query.is_base & query.is_found],))


def try_composed(work: GroupWork) -> None:
    """Writes the sentences found for needed facts. Inputs: ``needed``, ``facts``, ``found``. Output: ``tried``."""
    is_needed = np.zeros(sum(batch.num_rows for batch in work.rows("facts")), np.bool_)
    for batch in work.rows("needed"):
        is_needed[batch["fact"].to_numpy() - (work.group << FACT_BITS)] = True
    write_tried(work, is_needed, work.table("found", FOUND))


def send_proofs(work: GroupWork, *, plan: QampariPlan) -> None:
    """Sends the proofs of a group of facts to the groups of their queries, once to each.

    Inputs: ``numbered``, ``proofs``. Output: ``sent``.
    """
    count_proofs(work)
    proofs = work.table("proofs", PROOFS)
    proved = proofs["fact"].to_numpy()
    pairs = [np.empty(0, np.int64)]
    for batch in work.rows("numbered"):
        facts = batch["fact"].to_numpy()
        is_proved = np.isin(facts, proved)
        groups = by_query("query", plan.n_groups).of(batch["query"].to_numpy()[is_proved])
        pairs.append(groups * len(proved) + np.searchsorted(proved, facts[is_proved]))
    ways = np.unique(np.concatenate(pairs))
    for start in range(0, len(ways), _FACTS_AT_ONCE):
        groups, places = np.divmod(ways[start : start + _FACTS_AT_ONCE], max(len(proved), 1))
        rows = proofs.take(pa.array(places)).combine_chunks()
        arrays = [pa.array(groups), *(rows[name].combine_chunks() for name in PROOFS.names)]
        work.write("sent", pa.RecordBatch.from_arrays(arrays, schema=SENT))


def settle_pairs(
    work: GroupWork,
    named: Sequence[tuple[ChunkKey, BatchRef]],
    named_values: Sequence[tuple[ChunkKey, BatchRef]],
    proved: Sequence[tuple[ChunkKey, BatchRef]],
    kinds: dict[str, ValueKind],
    ranks_path: str,
    *,
    plan: QampariPlan,
) -> None:
    """Decides the compositions and intersections of the queries of a group, and makes questions from the accepted ones.

    Inputs: ``composed``, ``flagged``, ``settled``, ``sent``; ``pairs``, in ``INTERSECTION_ORDER``. Outputs:
    ``OF_QUESTIONS``.
    """
    names, values = open_item_names(named, plan), ValueNames(open_item_names(named_values, plan), kinds)
    proofs, ranks = Lookup(proved, "fact", BY_FACT.of), read_ranks(ranks_path)
    _settle_compositions(work, names, values, proofs, ranks, plan=plan)
    _settle_intersections(work, names, proofs, ranks, plan=plan)


def _settle_compositions(
    work: GroupWork, names: ItemNames, values: ValueNames, of_bases: Lookup, ranks: Numbers, *, plan: QampariPlan
) -> None:
    """A pair is validated if both of its facts are: that the subject answers the base query, and that it has the
    value."""
    sent = work.table("sent", SENT).sort_by("fact").combine_chunks()
    known, validated = sent["fact"].to_numpy(), _validated(work)
    keep, numbers = plan.options.answer_filter, plan.numbers
    for composition in _composed(work, validated):
        query = CompositionQuery(composition.property_id, numbers.query(composition.base))
        keys = values.keys(composition.property_id, composition.values)
        is_right = composition.is_base & np.isin(composition.facts, known)
        n_all, n_right = len(composition.facts), int(is_right.sum())
        is_judged, outcome = _may_keep(composition, keys, keep), "too_few_found"
        if is_judged:
            n_distinct = len(set(compress(keys, is_right)))
            outcome = keep.outcome(n_distinct, n_distinct, n_pairs=(n_right, n_all))
        n_with_page, n_found = int(composition.has_page.sum()), int((composition.is_base & composition.is_found).sum())
        row = query_row(query, (n_all, n_with_page, n_found, n_right if is_judged else None), outcome)
        write_query(work, row, COMPOSITION_KIND, order_of(composition.base, ranks), int(composition.property_id[1:]))
        if outcome == KEPT:
            subjects = composition.subjects[is_right]
            bases, facts = validated[composition.base]
            of_base = proof_texts(of_bases.take(facts[np.searchsorted(bases, subjects)]))
            of_value = proof_texts(sent.take(pa.array(np.searchsorted(known, composition.facts[is_right]))))
            pairs: list[Any] = list(
                zip(subjects.tolist(), compress(composition.values, is_right), of_base, of_value, strict=True)
            )
            write_composition(work, plan, query, composition.base, pairs, names, values, n_pairs=n_all)


ANSWER_ORDER = ("subject", "query")
INTERSECTION_ORDER = ("first", "second", "subject")
INTERSECTION_KIND = 4
"""Kinds of considered queries, in table order."""


def _settle_intersections(
    work: GroupWork, names: ItemNames, proofs: Lookup, ranks: Numbers, *, plan: QampariPlan
) -> None:
    """All answers of intersections are validated. An intersection belongs to the group of its first query."""
    keep, numbers = plan.options.answer_filter, plan.numbers
    for pair in intersections(whole_runs(work.rows("pairs"), INTERSECTION_ORDER[:2]), least=keep.least):
        query = IntersectionQuery(numbers.query(pair.first), numbers.query(pair.second))
        n_answers = len(pair.subjects)
        outcome = keep.outcome(n_answers, n_answers)
        row = query_row(query, (n_answers, None, n_answers, n_answers), outcome)
        write_query(work, row, INTERSECTION_KIND, order_of(pair.first, ranks), pair.second)
        if outcome == KEPT:
            first, second = (proof_texts(proofs.take(facts)) for facts in (pair.first_facts, pair.second_facts))
            write_intersection(work, plan, query, pair, (first, second), names)
