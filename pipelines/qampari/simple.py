"""Simple queries: from the facts of Wikidata to those that are validated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kbsource.files import LocalStorage
from kbsource.staging import read_batches, staged_rows
from mapping.qampari.classes import Numbers
from mapping.qampari.evidence import Sought
from mapping.qampari.joins import SimpleAnswers
from mapping.qampari.names import ItemNames, ItemPages, write_names
from mapping.qampari.ordered import KeySample
from mapping.qampari.questions import SIMPLE, SimpleQuery
from mapping.qampari.relations import Relations
from mapping.qampari.rows import QueryRow
from mapping.qampari.selection import KEPT, AnswerFilter
from mapping.qampari.specific_types import wider_twins
from pipelines.qampari.considered import Considerations
from pipelines.qampari.facts import FactStage, Flags, Proofs, Runs
from pipelines.qampari.kept import KeptSimple, simple_key, simple_rows

_ROWS_AT_ONCE = 1024
_SUBJECTS_AT_ONCE = 1 << 14
_NUMBERS_AT_ONCE = 1 << 16


def _lists(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.list_(pa.int64()), nullable=False) for name in names]


_ASKED = pa.schema(
    [
        pa.field("property_id", pa.string(), nullable=False),
        pa.field("entity_id", pa.string(), nullable=False),
        pa.field("type_label", pa.string()),
        *_lists("subjects"),
    ]
)
_STAGED = pa.schema([*_ASKED, *_lists("facts"), pa.field("n_with_page", pa.int64(), nullable=False)])


class SimpleQueries(NamedTuple):
    """The simple queries that passed.

    Attributes:
        kept: in their order.
        proofs: of their facts.
        names: of their answers and entities.
    """

    kept: KeptSimple
    proofs: Proofs
    names: ItemNames


class ItemSet:
    """Numbers of items, each once. Memory: 8 bytes each, and some more while they are added."""

    def __init__(self) -> None:
        self._known = np.empty(0, np.int64)
        self._added = np.empty(_NUMBERS_AT_ONCE, np.int64)
        self._n_added = 0

    def add(self, numbers: Numbers) -> None:
        """Takes numbers."""
        if self._n_added + len(numbers) > len(self._added):
            n_known = len(self.sorted())
            self._added = np.empty(max(_NUMBERS_AT_ONCE, n_known // 4, len(numbers)), np.int64)
        self._added[self._n_added : self._n_added + len(numbers)] = numbers
        self._n_added += len(numbers)

    def sorted(self) -> Numbers:
        """Gives all of them, ascending."""
        if self._n_added:
            self._known = np.unique(np.concatenate([self._known, np.unique(self._added[: self._n_added])]))
            self._n_added = 0
        return self._known


def validate_simple(
    answers: Iterator[SimpleAnswers],
    relations: Relations,
    tables: Any,
    pages: ItemPages,
    *,
    answer_filter: AnswerFilter,
    breadths: Mapping[str, int] | None,
    considerations: Considerations,
    runs: Runs,
    scratch: str,
) -> SimpleQueries:
    """Gives the simple queries whose answers the pages say.

    Args:
        answers: of ``joins.simple_answers``; those of one property and value stand together.
        relations: hold the words.
        tables: of Wikidata.
        pages: of the release.
        answer_filter: what is kept.
        breadths: of ``type_breadths``: of the types of one property and value that have the same validated answers the
            most specific is kept; None keeps all.
        considerations: takes what became of each query.
        runs: how pipelines are run.
        scratch: local folder for scratch files.
    """
    asked, staged = (os.path.join(runs.staging, "simple", f"{name}.arrow") for name in ("asked", "staged"))
    with runs.reading.stage(runs.progress, "simple, facts", tables, "statements"):
        items = _stage_asked(answers, asked, answer_filter, considerations)
    names_path = os.path.join(runs.staging, "names", "simple.arrow")
    with runs.reading.stage(runs.progress, f"simple, names of {len(items):,} items", tables, "items"):
        write_names(names_path, items, tables, pages, scratch=scratch)
    names = ItemNames(names_path, items)
    with FactStage("simple", runs, pages) as stage:
        _stage_facts(asked, staged, stage, relations, names, considerations)
    runs.progress.note(f"simple: {stage.n_facts:,} facts, {stage.n_searches:,} looks into pages")
    is_found = stage.search()
    needed = stage.needed()
    sample = KeySample()
    for row in _read(staged):
        facts = row["facts"]
        if answer_filter.keeps(min(int(is_found[facts].sum()), answer_filter.most), len(facts)):
            needed[facts] = True
            sample.add(simple_key(row["property_id"], row["entity_id"]))
    is_proved = stage.prove(needed)
    path = os.path.join(stage.folder, "kept.arrow")
    with simple_rows(scratch, sample) as kept:
        for row, outcome in _with_outcomes(staged, is_found, is_proved, answer_filter, breadths):
            query = SimpleQuery(row["property_id"], row["entity_id"], row["type_label"])
            facts = row["facts"]
            is_validated = is_proved[facts]
            n_validated = None if outcome == "too_few_found" else int(is_validated.sum())
            n_found = int(is_found[facts].sum())
            considerations.add(_considered(query, len(facts), outcome, row["n_with_page"], n_found, n_validated))
            if outcome == KEPT:
                # Copies: what is kept of a batch must not keep the batch.
                kept.add(simple_key(*query[:2]), (*query, row["subjects"].copy(), facts.copy(), is_validated))
        kept.write(path)
    considerations.count_stage("simple", stage)
    return SimpleQueries(KeptSimple(path), stage.proofs(), names)


def mapped_numbers(numbers: Numbers, path: str) -> Numbers:
    """Gives numbers back as a mapped file."""
    np.save(path, numbers, allow_pickle=False)
    mapped: Numbers = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def _with_outcomes(
    staged: str, is_found: Flags, is_proved: Flags, answer_filter: AnswerFilter, breadths: Mapping[str, int] | None
) -> Iterator[tuple[dict[str, Any], str]]:
    """Gives the queries with what becomes of them; those of one property and value are looked at together."""
    for _, rows in groupby(_read(staged), key=itemgetter("property_id", "entity_id")):
        found = []
        for row in rows:
            facts = row["facts"]
            is_near = answer_filter.keeps(min(int(is_found[facts].sum()), answer_filter.most), len(facts))
            n_validated = int(is_proved[facts].sum())
            found.append((row, answer_filter.outcome(n_validated, len(facts)) if is_near else "too_few_found"))
        if breadths is not None:
            twins = _wider(((row for row, outcome in found if outcome == KEPT)), is_proved, breadths)
            found = [(row, "wider_type" if row["type_label"] in twins else outcome) for row, outcome in found]
        yield from found


def _wider(rows: Iterable[dict[str, Any]], is_proved: Flags, breadths: Mapping[str, int]) -> set[str]:
    """Gives the types of queries with the same validated answers as one with a more specific type."""
    typed = [
        (row["type_label"], row["subjects"][is_proved[row["facts"]]]) for row in rows if row["type_label"] is not None
    ]
    is_wider = wider_twins(typed, breadths)
    return {label for (label, _), wider in zip(typed, is_wider, strict=True) if wider}


def _stage_asked(
    answers: Iterator[SimpleAnswers], path: str, answer_filter: AnswerFilter, considerations: Considerations
) -> Numbers:
    items = ItemSet()
    with staged_rows(LocalStorage(), path, _ASKED) as sink:
        for query, subjects in answers:
            if not answer_filter.may_keep(len(subjects)):
                considerations.add(_considered(query, len(subjects), "too_many_answers"))
                continue
            sink.add((*query, subjects))
            items.add(subjects)
            items.add(np.array([int(query.entity_id[1:])], np.int64))
            if sink.n_pending == _ROWS_AT_ONCE:
                sink.flush()
    return mapped_numbers(items.sorted(), os.path.join(os.path.dirname(path), "items.npy"))


def _considered(
    query: SimpleQuery,
    n_answers: int,
    outcome: str,
    n_with_page: int | None = None,
    n_found: int | None = None,
    n_validated: int | None = None,
) -> QueryRow:
    return QueryRow(
        SIMPLE,
        query.key,
        query.property_ids,
        (query.entity_id,),
        query.type_label,
        n_answers,
        n_with_page,
        n_found,
        n_validated,
        outcome,
    )


def _read(path: str) -> Iterator[dict[str, Any]]:
    """Gives rows whose lists are parts of the batch's arrays."""
    for batch in read_batches(LocalStorage(), path):
        columns = [number_lists(one) if pa.types.is_list(one.type) else one.to_pylist() for one in batch.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(batch.schema.names, values, strict=True))


def number_lists(column: pa.ListArray) -> list[Numbers]:
    """Gives lists of numbers, parts of one array."""
    numbers, edges = column.flatten().to_numpy(), column.offsets.to_numpy() - column.offsets[0].as_py()
    return [numbers[start:end] for start, end in pairwise(edges.tolist())]


def _read_groups(path: str) -> Iterator[list[list[dict[str, Any]]]]:
    """Gives the queries of each property and value, those of several at once."""
    groups: list[list[dict[str, Any]]] = []
    n_subjects = 0
    for _, group in groupby(_read(path), key=itemgetter("property_id", "entity_id")):
        groups.append(list(group))
        n_subjects += sum(len(row["subjects"]) for row in groups[-1])
        if n_subjects >= _SUBJECTS_AT_ONCE:
            yield groups
            groups, n_subjects = [], 0
    if groups:
        yield groups


def _stage_facts(
    asked: str,
    staged: str,
    stage: FactStage,
    relations: Relations,
    names: ItemNames,
    considerations: Considerations,
) -> None:
    """Makes the facts of each property and value, each once, and notes which query needs which."""
    with staged_rows(LocalStorage(), staged, _STAGED) as sink:
        for groups in _read_groups(asked):
            entities = np.array([int(rows[0]["entity_id"][1:]) for rows in groups], np.int64)
            named = names.rows(np.concatenate([entities, *(row["subjects"] for rows in groups for row in rows)]))
            for entity, rows in zip(entities.tolist(), groups, strict=True):
                property_id, entity_id = rows[0]["property_id"], rows[0]["entity_id"]
                if not named[entity].names:
                    for row in rows:
                        query = SimpleQuery(property_id, entity_id, row["type_label"])
                        considerations.add(_considered(query, len(row["subjects"]), "entity_unnamed"))
                    continue
                subjects = np.unique(np.concatenate([row["subjects"] for row in rows]))
                of_entity = Sought(named[entity].names, named[entity].page_id)
                relation = relations.simple[property_id]
                first, has_page = stage.n_facts, np.zeros(len(subjects), np.bool_)
                for place, one in enumerate(named[subject] for subject in subjects.tolist()):
                    has_page[place] = one.page_id is not None
                    hypothesis = relation.hypothesis(one.names[0], of_entity.names[0]) if one.names else None
                    stage.add(Sought(one.names, one.page_id), of_entity, hypothesis)
                for row in rows:
                    places = np.searchsorted(subjects, row["subjects"])
                    sink.add((*row.values(), first + places, int(has_page[places].sum())))
            if sink.n_pending >= _ROWS_AT_ONCE:
                sink.flush()
