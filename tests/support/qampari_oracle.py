"""What a QAMPARI release must hold, worked out in memory, one thing after the other: slow and obvious."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from msgspec import convert

from mapping.entail.signal import Pair
from mapping.qampari.list_tables import KeyRule, list_tables
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    CompositionQuery,
    IntersectionQuery,
    Query,
    Relations,
    SimpleQuery,
    composition_question,
    intersection_question,
    simple_question,
)
from mapping.qampari.records import QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.selection import AnswerFilter
from mapping.qampari.table_questions import TableRows, make_questions, table_facts
from pipelines.jobs.shared_inputs import MadeRelease
from tests.support.builds import rows
from tests.support.qampari import undrawn_row
from tests.support.qampari_known import Fact, Known, number_of
from tests.support.qampari_proofs import prove_fact

_SUBSETS = {SimpleQuery: SIMPLE, CompositionQuery: COMPOSITION, IntersectionQuery: INTERSECTION}


class _Kept(NamedTuple):
    """A simple query with all of its subjects and with those that are validated."""

    query: SimpleQuery
    subjects: list[str]
    validated: list[str]
    is_kept: bool  # whether it passed


def order_key(query: SimpleQuery | CompositionQuery) -> tuple[int | str, ...]:
    """What queries of one kind are ordered by: numbers of properties and entities, then types."""
    if isinstance(query, SimpleQuery):
        return int(query.property_id[1:]), int(query.entity_id[1:]), query.type_label or ""
    return int(query.property_id[1:]), *order_key(query.base)


class Oracle:
    """Works a release out of two releases.

    Args:
        wikidata: release of Wikidata.
        kb: knowledge source.
        relations: that questions are made of.
        judge: gives the probability that a premise entails a hypothesis; None: the first candidate is the proof.
        others: options of the job by name.

    Attributes:
        queries: every query that is considered, by subset and key.
        questions: those that pass, in the order of the release.
        skipped: properties and values that make no query.
        facts: counts of facts as in ``report.json``.
    """

    def __init__(
        self,
        wikidata: Path,
        kb: Path,
        relations: Relations,
        *,
        judge: Callable[[Pair], float] | None = None,
        answer_filter: AnswerFilter | None = None,
        most_subjects: int = 3000,
        least_entailment: float = 0.0019540872,
        sentences_before: int = 2,
        all_proofs: bool = False,
        has_tables: bool = True,
        composition_base: str = "kept",
        key_rule: KeyRule = "any",
        table_rows: TableRows = "linked",
        seed: str = "qampari",
    ) -> None:
        self._relations, self._n_before, self._all_proofs = relations, sentences_before, all_proofs
        self._filter = AnswerFilter() if answer_filter is None else answer_filter
        self._most_subjects = most_subjects
        self._takes_all, self._key_rule, self._table_rows = composition_base == "all", key_rule, table_rows
        self._known = Known(wikidata, kb, relations, judge=judge, least=least_entailment, n_before=sentences_before)
        self._simple_facts: set[Fact] = set()
        self._composition_facts: set[Fact] = set()
        self.queries: dict[tuple[str, str], QueryRow] = {}
        self.questions: list[Question] = []
        self.skipped: Counter[str] = Counter()
        self.facts: dict[str, dict[str, int]] = {}
        self._work_out(has_tables=has_tables, seed=seed)

    def _work_out(self, *, has_tables: bool, seed: str) -> None:
        bases = sorted(self._simple(), key=lambda base: order_key(base.query))
        kept = [base for base in bases if base.is_kept]
        self.facts["simple"] = self._known.count(self._simple_facts)
        self._known.judged.clear()
        self.questions = [self._simple_question(base) for base in kept]
        composed = sorted(
            self._compositions(bases if self._takes_all else kept), key=lambda composition: order_key(composition[0])
        )
        self.facts["compositions"] = self._known.count(self._composition_facts)
        self.questions += [self._composition_question(*composition) for composition in composed]
        self.questions += list(self._intersections(kept))
        if has_tables:
            self._tables(seed)

    def _outcome(self, n_distinct: int, n_right: int, n_all: int) -> str:
        if n_distinct < self._filter.least:
            return "too_few_validated"
        if n_distinct > self._filter.most:
            return "too_many_validated"
        return "kept" if n_right / n_all >= self._filter.share else "share_too_low"

    def _consider(
        self,
        query: Query,
        counts: tuple[int, int | None, int | None, int | None],
        outcome: str,
        entities: list[str],
        label: str | None,
    ) -> None:
        row = QueryRow(_SUBSETS[type(query)], query.key, query.property_ids, tuple(entities), label, *counts, outcome)
        assert (row.subset, row.key) not in self.queries
        self.queries[row.subset, row.key] = row

    # --- simple -----------------------------------------------------------------------------------------------------

    def _simple(self) -> list[_Kept]:
        by_value = defaultdict(set)
        for row in self._known.statements:
            if row["value_type"] == "entity" and row["value"].startswith("Q"):
                by_value[row["property_id"], row["value"]].add(row["entity_id"])
        kept = []
        for (property_id, value), subjects in by_value.items():
            relation = self._relations.simple.get(property_id)
            if relation is None or not relation.is_enabled or len(subjects) < self._filter.least:
                continue
            if len(subjects) > self._most_subjects:
                self.skipped["too_many_subjects"] += 1
                continue
            groups: dict[str | None, set[str]] = {None: subjects}
            if relation.types:
                labels = [label for label in relation.types if label in self._known.class_of]
                groups = {
                    label: {subject for subject in subjects if self._known.has_type(subject, label)} for label in labels
                }
                groups = {label: group for label, group in groups.items() if len(group) >= self._filter.least}
                self.skipped["no_type"] += not groups
            for label, group in groups.items():
                query = SimpleQuery(property_id, value, label)
                if (found := self._validate(query, sorted(group, key=number_of))) is not None:
                    kept.append(found)
        return kept

    def _validate(self, query: SimpleQuery, subjects: list[str]) -> _Kept | None:
        n_all, entities = len(subjects), [query.entity_id]
        is_too_many = n_all > self._filter.most and self._filter.most / n_all < self._filter.share
        if is_too_many and not (self._takes_all and self._known.item(query.entity_id).names):
            self._consider(query, (n_all, None, None, None), "too_many_answers", entities, query.type_label)
            return None
        if not self._known.item(query.entity_id).names:
            self._consider(query, (n_all, None, None, None), "entity_unnamed", entities, query.type_label)
            return None
        facts = [Fact(subject, query.property_id, query.entity_id, True) for subject in subjects]
        self._simple_facts.update(facts)
        n_with_page = sum(subject in self._known.page_of for subject in subjects)
        n_found = sum(bool(self._known.found(fact)) for fact in facts)
        is_too_few = n_found < self._filter.least or n_found / n_all < self._filter.share
        if is_too_few and not self._takes_all:
            self._consider(query, (n_all, n_with_page, n_found, None), "too_few_found", entities, query.type_label)
            return None
        validated = [fact.subject for fact in facts if self._known.is_proved(fact)]
        outcome = self._outcome(len(validated), len(validated), n_all)
        if is_too_many or is_too_few:
            outcome = "too_many_answers" if is_too_many else "too_few_found"
        counts = n_all, n_with_page, n_found, len(validated)
        self._consider(query, counts, outcome, entities, query.type_label)
        return _Kept(query, subjects, validated, outcome == "kept")

    def _simple_question(self, kept: _Kept) -> Question:
        query, entity = kept.query, self._known.item(kept.query.entity_id).entity
        answers = tuple(self._answer(subject, [(query, subject)]) for subject in kept.validated)
        text = simple_question(self._relations, query, entity.text)
        return self._question(query, text, query.type_label, (entity,), (len(kept.subjects), len(answers)), answers)

    def _answer(self, subject: str, facts: list[tuple[SimpleQuery, str]]) -> QuestionAnswer:
        thing, proofs = self._known.item(subject), []
        for query, of_whom in facts:
            proof = self._known.proof(Fact(of_whom, query.property_id, query.entity_id, True))
            assert proof is not None
            proofs.append(proof)
        return QuestionAnswer(thing.names[0], thing.names, thing.title, subject, tuple(proofs))

    def _question(
        self,
        query: Query,
        text: str,
        label: str | None,
        entities: tuple[QuestionEntity, ...],
        counts: tuple[int, int],
        answers: tuple[QuestionAnswer, ...],
    ) -> Question:
        of_query = (_SUBSETS[type(query)], query.key, text, None, query.property_ids, label)
        return Question(*of_query, entities, answers, *counts)

    # --- intersections ----------------------------------------------------------------------------------------------

    def _intersections(self, kept: list[_Kept]) -> list[Question]:
        questions = []
        for first, second in combinations(kept, 2):
            both, sets = set(first.validated) & set(second.validated), (set(first.validated), set(second.validated))
            same_fact = first.query[:2] == second.query[:2]
            if same_fact or len(both) < self._filter.least or both in sets:
                continue
            query, n = IntersectionQuery(first.query, second.query), len(both)
            outcome = self._outcome(n, n, n)
            entities = tuple(self._known.item(base.query.entity_id).entity for base in (first, second))
            ids = [first.query.entity_id, second.query.entity_id]
            self._consider(query, (n, None, n, n), outcome, ids, first.query.type_label)
            if outcome == "kept":
                answers = tuple(
                    self._answer(subject, [(first.query, subject), (second.query, subject)])
                    for subject in sorted(both, key=number_of)
                )
                text = intersection_question(self._relations, query, entities[0].text, entities[1].text)
                questions.append(self._question(query, text, first.query.type_label, entities, (n, n), answers))
        return questions

    # --- compositions -----------------------------------------------------------------------------------------------

    def _compositions(self, kept: list[_Kept]) -> list[tuple[CompositionQuery, _Kept, list[Fact], int]]:
        passed = []
        for base in kept:
            for relation in self._relations.composition.values():
                if not relation.is_enabled or relation.property_id == base.query.property_id:
                    continue
                facts = [
                    Fact(subject, relation.property_id, value, False)
                    for subject in base.subjects
                    for value in sorted(set(self._known.values(subject, relation.property_id)))
                ]
                if len({self._known.answer(fact) for fact in facts}) < self._filter.least:
                    continue
                query = CompositionQuery(relation.property_id, base.query)
                right = self._validate_pairs(query, base, facts)
                if right is not None:
                    passed.append((query, base, right, len(facts)))
        return passed

    def _validate_pairs(self, query: CompositionQuery, base: _Kept, facts: list[Fact]) -> list[Fact] | None:
        self._composition_facts.update(facts)
        n_all, entities, label = len(facts), [base.query.entity_id], base.query.type_label
        things = [(self._known.item(fact.subject), self._known.value(fact.property_id, fact.value)) for fact in facts]
        n_with_page = sum(subject.page is not None or value.page is not None for subject, value in things)
        found = [fact for fact in facts if fact.subject in base.validated and self._known.found(fact)]
        if (
            len({self._known.answer(fact) for fact in found}) < self._filter.least
            or len(found) / n_all < self._filter.share
        ):
            self._consider(query, (n_all, n_with_page, len(found), None), "too_few_found", entities, label)
            return None
        right = [fact for fact in found if self._known.is_proved(fact)]
        outcome = self._outcome(len({self._known.answer(fact) for fact in right}), len(right), n_all)
        self._consider(query, (n_all, n_with_page, len(found), len(right)), outcome, entities, label)
        return right if outcome == "kept" else None

    def _composition_question(self, query: CompositionQuery, base: _Kept, right: list[Fact], n_all: int) -> Question:
        by_value = defaultdict(list)
        for fact in right:
            by_value[self._known.answer(fact)].append(fact)
        answers = []
        for ways in by_value.values():
            thing, proofs = self._known.value(query.property_id, ways[0].value), []
            for fact in ways if self._all_proofs else ways[:1]:
                of_base = Fact(fact.subject, base.query.property_id, base.query.entity_id, True)
                for proof in (self._known.proof(of_base), self._known.proof(fact)):
                    assert proof is not None
                    proofs.append(proof)
            via = self._known.item(ways[0].subject).entity
            answers.append(QuestionAnswer(thing.names[0], thing.names, thing.title, thing.item_id, tuple(proofs), via))
        entity = self._known.item(base.query.entity_id).entity
        text = composition_question(self._relations, query, entity.text)
        counts = n_all, len(right)
        return self._question(query, text, base.query.type_label, (entity,), counts, tuple(answers))

    # --- tables -----------------------------------------------------------------------------------------------------

    def _tables(self, seed: str) -> None:
        by_id = {page.page_id: page for page in self._known.pages}
        every = []
        for page in self._known.pages:
            tables, _ = list_tables(page, key_rule=self._key_rule)
            proofs = {}
            for fact in table_facts(tables):
                of_value = None if fact.value_page_id is None else by_id.get(fact.value_page_id)
                proof = prove_fact(fact, by_id.get(fact.page_id), of_value, n_before=self._n_before)
                if proof is not None:
                    proofs[fact.key] = proof
            questions, unkept = make_questions(tables, proofs, seed=seed, keep=self._filter, share_of=self._table_rows)
            every += questions
            for question in questions:
                self._consider_table(question.subset, question.key, question.n_answers, question.n_validated, "kept")
            for missed in unkept:
                self._consider_table(missed.subset, missed.key, missed.n_answers, missed.n_validated, missed.reason)
        self.questions += sorted(every, key=lambda question: question.subset, reverse=True)

    def _consider_table(self, subset: str, key: str, n_answers: int, n_validated: int, outcome: str) -> None:
        counts = n_answers, n_answers, n_validated, n_validated
        self.queries[subset, key] = QueryRow(subset, key, (), (), None, *counts, outcome)


def considered(output: str | Path) -> dict[tuple[str, str], QueryRow]:
    """The queries of a release, by subset and key."""
    return {(row["subset"], row["key"]): convert(row, QueryRow) for row in rows(Path(output), "queries")}


def undrawn_questions(output: str | Path) -> list[Question]:
    """The questions of a release, without what became of them."""
    return [undrawn_row(row) for row in rows(Path(output), "questions")]


def check(made: MadeRelease, expected: Oracle) -> None:
    """Asserts that a release holds what was worked out."""
    assert considered(made.output) == expected.queries
    assert undrawn_questions(made.output) == expected.questions
    assert made.report["skipped"] == dict(expected.skipped)
    for kind, counts in expected.facts.items():
        assert {name: made.report["facts"][kind][name] for name in counts} == counts
