"""Simple queries, from the facts of Wikidata to validated queries, and the questions made from decided queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from kbsource.runtime.chunks import BatchRef, ChunkKey
from kbsource.runtime.regroup import whole_runs
from mapping.qampari.classes import Numbers, type_breadths, wider_twins
from mapping.qampari.evidence import Sought
from mapping.qampari.names import ItemNames, Name, ValueNames
from mapping.qampari.questions import (
    FAMILY_BITS,
    SUBSETS,
    CompositionQuery,
    IntersectionQuery,
    SimpleQuery,
    composition_question,
    intersection_question,
    query_row,
    question_of,
    simple_question,
)
from mapping.qampari.records import ProofText, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.selection import KEPT
from mapping.qampari.statements import PairAnswers, simple_answers
from pipelines.primitives.group_map import GroupWork
from pipelines.qampari.facts import FactWriter, Flags, both_ways, count_found, count_proofs, write_tried
from pipelines.qampari.lookups import open_item_names, proof_texts, read_types
from pipelines.qampari.plan import FACT_BITS, FOUND, ORDER_BUCKETS, PROOFS, OrderedQuestion, QampariPlan


def write_question(work: GroupWork, question: Question, first: int, second: int) -> None:
    """Writes a question, with its sort key, to the outputs ``questions`` and ``candidates``."""
    kind = SUBSETS.index(question.subset)
    work.add("questions", OrderedQuestion(kind, first, second, question))
    work.add("candidates", (kind, first, second, question.key, question.subset, question.property_ids))


def write_query(work: GroupWork, row: QueryRow, kind: int, first: int, second: int) -> None:
    """Writes a considered query, with its sort key, to the output ``queries``."""
    work.add("queries", (kind, first, second, *astuple(row)))


def write_simple(
    work: GroupWork,
    plan: QampariPlan,
    number: int,
    subjects: Numbers,
    proofs: Sequence[ProofText],
    names: ItemNames,
    *,
    n_answers: int,
) -> None:
    """Writes the question of a simple query."""
    query = plan.numbers.query(number)
    item = int(query.entity_id[1:])
    named = names.rows(np.append(subjects, item))
    entity = _entity(named[item])
    answers = tuple(_answer(named[subject], (proof,)) for subject, proof in zip(subjects.tolist(), proofs, strict=True))
    text = simple_question(plan.relations, query, entity.text)
    question = question_of(query, text, (entity,), answers, n_answers=n_answers, n_validated=len(answers))
    write_question(work, question, number, 0)


def write_intersection(
    work: GroupWork,
    plan: QampariPlan,
    query: IntersectionQuery,
    pair: PairAnswers,
    proofs: tuple[Sequence[ProofText], Sequence[ProofText]],
    names: ItemNames,
) -> None:
    """Writes the question of an intersection, with the proofs of both queries."""
    items = [int(fact.entity_id[1:]) for fact in query]
    named = names.rows(np.append(pair.subjects, items))
    entities = tuple(_entity(named[item]) for item in items)
    answers = tuple(
        _answer(named[subject], of_both) for subject, *of_both in zip(pair.subjects.tolist(), *proofs, strict=True)
    )
    text = intersection_question(plan.relations, query, entities[0].text, entities[1].text)
    question = question_of(query, text, entities, answers, n_answers=len(answers), n_validated=len(answers))
    write_question(work, question, pair.first, pair.second)


def write_composition(
    work: GroupWork,
    plan: QampariPlan,
    query: CompositionQuery,
    base: int,
    pairs: Sequence[tuple[int, str, ProofText, ProofText]],
    names: ItemNames,
    values: ValueNames,
    *,
    n_pairs: int,
) -> None:
    """Writes the question of a composition.

    Args:
        pairs: validated pairs, by subject, then value: subject, value, proof of the base fact, proof of the value.
    """
    item = int(query.base.entity_id[1:])
    named = names.rows(np.array([item, *(subject for subject, *_ in pairs)], np.int64))
    entity = _entity(named[item])
    options = plan.options
    text = composition_question(plan.relations, query, entity.text, as_released=options.is_released_wording)
    answers = tuple(_composed(query, pairs, named, values, all_proofs=options.all_proofs))
    question = question_of(query, text, (entity,), answers, n_answers=n_pairs, n_validated=len(pairs))
    write_question(work, question, int(query.property_id[1:]), base)


def _composed(
    query: CompositionQuery,
    pairs: Sequence[tuple[int, str, ProofText, ProofText]],
    named: dict[int, Name],
    values: ValueNames,
    *,
    all_proofs: bool,
) -> Iterator[QuestionAnswer]:
    by_key: dict[str, tuple[str, list[tuple[int, ProofText, ProofText]]]] = {}
    keys = values.keys(query.property_id, [value for _, value, *_ in pairs])
    for key, (subject, value, of_base, of_value) in zip(keys, pairs, strict=True):
        by_key.setdefault(key, (value, []))[1].append((subject, of_base, of_value))
    of_answers = values.take([(query.property_id, value) for value, _ in by_key.values()])
    for (_, ways), name in zip(by_key.values(), of_answers, strict=True):
        proofs = tuple(proof for _, *both in islice(ways, None if all_proofs else 1) for proof in both)
        via = _entity(named[ways[0][0]])
        yield QuestionAnswer(name.names[0], name.names, name.title, name.item_id, proofs, via)


def _entity(name: Name) -> QuestionEntity:
    return QuestionEntity(name.names[0], name.names, name.title, name.item_id)


def _answer(name: Name, proofs: Sequence[ProofText]) -> QuestionAnswer:
    return QuestionAnswer(name.names[0], name.names, name.title, name.item_id, tuple(proofs))


FACT_ORDER = ("value", "property", "subject")
TOO_MANY, UNNAMED, SETTLED = range(3)
"""Kinds of considered queries, in table order."""
_SUBJECTS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 16
_VALUE_BITS = 40


def ask_simple(work: GroupWork, types_path: str, *, plan: QampariPlan) -> None:
    """Makes the queries of a group's properties and values from their facts.

    Input: ``facts``, in ``FACT_ORDER``. Outputs: ``asked``; ``items``, each once; ``queries``.
    """
    options = plan.options
    tally: Counter[str] = Counter()
    answers = simple_answers(
        whole_runs(work.rows("facts"), FACT_ORDER[:2]),
        plan.relations,
        read_types(types_path),
        least=options.answer_filter.least,
        most=options.most_subjects,
        tally=tally,
    )
    items = [np.empty(0, np.int64)]
    n_items = 0
    numbers = plan.numbers
    for query, subjects in answers:
        if options.composition_base == "kept" and not options.answer_filter.may_keep(len(subjects)):
            row = query_row(query, (len(subjects), None, None, None), "too_many_answers")
            write_query(work, row, TOO_MANY, *_order(query, plan))
            continue
        work.add("asked", (numbers.number(query), subjects))
        items += [subjects, np.array([int(query.entity_id[1:])], np.int64)]
        n_items += len(subjects) + 1
        if n_items > 2 * max(len(items[0]), _NUMBERS_AT_ONCE):
            items = [np.unique(np.concatenate(items))]
            n_items = len(items[0])
    work.counts.update(tally)
    every = np.unique(np.concatenate(items))
    work.extend("items", (every,))


def make_simple_facts(work: GroupWork, named: list[tuple[ChunkKey, BatchRef]], *, plan: QampariPlan) -> None:
    """Makes the facts of each property and value of a group, each once, and records which query needs which fact.

    Input: ``asked``. Outputs: ``staged``, ``OF_FACTS``, ``queries``.
    """
    names, facts, numbers = open_item_names(named, plan), FactWriter(work, plan), plan.numbers
    for families in _at_once(list_rows(work.rows("asked"))):
        entities = np.array([int(numbers.query(rows[0]["query"]).entity_id[1:]) for rows in families], np.int64)
        found = names.rows(np.concatenate([entities, *(row["subjects"] for rows in families for row in rows)]))
        for entity, rows in zip(entities.tolist(), families, strict=True):
            if not found[entity].names:
                for row in rows:
                    query, n_answers = numbers.query(row["query"]), len(row["subjects"])
                    may_keep = plan.options.answer_filter.may_keep(n_answers)
                    outcome, kind = ("entity_unnamed", UNNAMED) if may_keep else ("too_many_answers", TOO_MANY)
                    unnamed = query_row(query, (n_answers, None, None, None), outcome)
                    write_query(work, unnamed, kind, *_order(query, plan))
                continue
            subjects = np.unique(np.concatenate([row["subjects"] for row in rows]))
            of_entity = Sought(found[entity].names, found[entity].page_id)
            relation = plan.relations.simple[numbers.query(rows[0]["query"]).property_id]
            first, has_page = facts.next, np.zeros(len(subjects), np.bool_)
            for place, subject_entity in enumerate(found[subject] for subject in subjects.tolist()):
                has_page[place] = subject_entity.page_id is not None
                hypothesis = (
                    relation.hypothesis(subject_entity.names[0], of_entity.names[0]) if subject_entity.names else None
                )
                facts.add(hypothesis, *both_ways(Sought(subject_entity.names, subject_entity.page_id), of_entity))
            for row in rows:
                places = np.searchsorted(subjects, row["subjects"])
                work.add("staged", (*row.values(), first + places, int(has_page[places].sum())))
    facts.close()


def _order(query: SimpleQuery, plan: QampariPlan) -> tuple[int, int]:
    """Returns the sort key of simple queries in the table: a remainder of the value, value, property, position of the
    type."""
    value, relation = int(query.entity_id[1:]), plan.relations.simple[query.property_id]
    place = 0 if query.type_label is None else relation.types.index(query.type_label)
    return value % ORDER_BUCKETS << _VALUE_BITS | value, int(query.property_id[1:]) << FAMILY_BITS | place


def _at_once(rows: Iterable[dict[str, Any]]) -> Iterator[list[list[dict[str, Any]]]]:
    """Yields the queries of each property and value, in batches of several values."""
    families: list[list[dict[str, Any]]] = []
    n_subjects = 0
    for _, family in groupby(rows, key=_family):
        families.append(list(family))
        n_subjects += sum(len(row["subjects"]) for row in families[-1])
        if n_subjects >= _SUBJECTS_AT_ONCE:
            yield families
            families, n_subjects = [], 0
    if families:
        yield families


def _family(row: dict[str, Any]) -> int:
    family: int = row["query"] >> FAMILY_BITS
    return family


def try_simple(work: GroupWork, *, plan: QampariPlan) -> None:
    """Writes the sentences found for facts that a question may need: the facts of every query used in compositions.

    Inputs: ``staged``, ``facts``, ``found``. Outputs: ``tried``; ``said``, the facts with a sentence.
    """
    found = work.table("found", FOUND)
    said = count_found(work, found)
    first, keep = work.group << FACT_BITS, plan.options.answer_filter
    is_found = np.zeros(sum(batch.num_rows for batch in work.rows("facts")), np.bool_)
    is_found[said] = True
    is_needed = np.full_like(is_found, plan.options.composition_base == "all")
    for row in list_rows(work.rows("staged")):
        facts = row["facts"] - first
        if keep.keeps(min(int(is_found[facts].sum()), keep.most), len(facts)):
            is_needed[facts] = True
    work.extend("said", (said + first,))
    write_tried(work, is_needed, found)


class _Settled(NamedTuple):
    """A query with its outcome."""

    row: dict[str, Any]
    outcome: str
    n_found: int
    is_validated: Flags


def settle_simple(
    work: GroupWork, types_path: str, named: list[tuple[ChunkKey, BatchRef]], *, plan: QampariPlan
) -> None:
    """Decides the queries of a group, and makes questions from the accepted ones.

    Inputs: ``staged``, ``said``, ``proofs``. Outputs: ``settled``, the queries for compositions, with their ``bases``
        and ``subjects``; ``answers`` of the accepted queries; ``OF_QUESTIONS``.
    """
    takes_all = plan.options.composition_base == "all"
    names, numbers = open_item_names(named, plan), plan.numbers
    count_proofs(work)
    proofs = work.table("proofs", PROOFS)
    proved = proofs["fact"].to_numpy()
    said = np.concatenate([np.empty(0, np.int64), *(batch["fact"].to_numpy() for batch in work.rows("said"))])
    breadths = type_breadths(read_types(types_path)) if plan.options.most_specific_types else None
    bases: list[_Settled] = []
    for settled in _settled(work.rows("staged"), said, proved, plan, breadths):
        n_answers = len(settled.row["facts"])
        is_judged = takes_all or settled.outcome != "too_few_found"
        n_validated = int(settled.is_validated.sum()) if is_judged else None
        counts = n_answers, settled.row["n_with_page"], settled.n_found, n_validated
        query = numbers.query(settled.row["query"])
        kind = TOO_MANY if settled.outcome == "too_many_answers" else SETTLED
        write_query(work, query_row(query, counts, settled.outcome), kind, *_order(query, plan))
        if takes_all or settled.outcome == KEPT:
            bases.append(settled)
    bases.sort(key=_number)
    for base in bases:
        number, subjects, facts = (base.row[name] for name in ("query", "subjects", "facts"))
        work.add("settled", (number, subjects, facts, base.is_validated))
        own = int(numbers.query(number).property_id[1:])
        work.extend("bases", (_repeated(number, subjects), _repeated(own, subjects), subjects))
        work.extend("subjects", (subjects,))
        if base.outcome != KEPT:
            continue
        right, right_facts = subjects[base.is_validated], facts[base.is_validated]
        work.extend("answers", (_repeated(number, right), _repeated(len(right), right), right, right_facts))
        texts = proof_texts(proofs.take(pa.array(np.searchsorted(proved, right_facts))))
        write_simple(work, plan, number, right, texts, names, n_answers=len(subjects))


def _number(settled: _Settled) -> int:
    number: int = settled.row["query"]
    return number


def _repeated(value: int, like: Numbers) -> Numbers:
    return np.full(len(like), value, np.int64)


def _settled(
    batches: Iterable[pa.RecordBatch],
    said: Numbers,
    proved: Numbers,
    plan: QampariPlan,
    breadths: Mapping[str, int] | None,
) -> Iterator[_Settled]:
    """Yields queries with their outcomes; all queries of a property and value are decided together."""
    keep = plan.options.answer_filter
    for _, rows in groupby(list_rows(batches), key=_family):
        found = []
        for row in rows:
            facts = row["facts"]
            n_found, is_validated = int(np.isin(facts, said).sum()), np.isin(facts, proved)
            outcome = "too_few_found" if keep.may_keep(len(facts)) else "too_many_answers"
            if keep.keeps(min(n_found, keep.most), len(facts)):
                outcome = keep.outcome(int(is_validated.sum()), len(facts))
            found.append(_Settled(row, outcome, n_found, is_validated))
        if breadths is not None:
            twins = _wider([item for item in found if item.outcome == KEPT], plan, breadths)
            found = [item._replace(outcome="wider_type") if item.row["query"] in twins else item for item in found]
        yield from found


def _wider(kept: Sequence[_Settled], plan: QampariPlan, breadths: Mapping[str, int]) -> set[int]:
    """Returns the queries with the same validated answers as a query with a more specific type."""
    numbered = [(query.row["query"], plan.numbers.query(query.row["query"]).type_label, query) for query in kept]
    typed = [(number, label, query) for number, label, query in numbered if label is not None]
    is_wider = wider_twins([(label, query.row["subjects"][query.is_validated]) for _, label, query in typed], breadths)
    return {number for (number, *_), wider in zip(typed, is_wider, strict=True) if wider}


def list_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yields rows whose lists are slices of the batch's arrays."""
    for batch in batches:
        columns = [
            number_lists(column) if pa.types.is_list(column.type) else column.to_pylist() for column in batch.columns
        ]
        for values in zip(*columns, strict=True):
            yield dict(zip(batch.schema.names, values, strict=True))


def number_lists(column: pa.ListArray) -> list[Any]:
    """Returns lists of numbers or flags as slices of a single array."""
    values, edges = column.flatten(), column.offsets.to_numpy() - column.offsets[0].as_py()
    numbers = values.to_numpy(zero_copy_only=False)
    return [numbers[start:end] for start, end in pairwise(edges.tolist())]
