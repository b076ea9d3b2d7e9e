"""The tables of list pages: staged, then their facts, and their questions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from kbsource.chunks import Key, Stored, chunk_path, read_chunk_report, read_stored
from kbsource.files import LocalStorage
from kbsource.staging import read_batches, staged_rows
from mapping.qampari.evidence import Sought
from mapping.qampari.list_tables import LinkedText, ListRow, ListTable
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, Question
from mapping.qampari.rows import DrawnQuestion, QueryRow, question_of_row, question_row
from mapping.qampari.schema import QUESTIONS
from mapping.qampari.selection import KEPT, AnswerFilter, Candidate
from mapping.qampari.table_evidence import TableFact, table_facts, value_names
from mapping.qampari.table_questions import make_questions
from pipelines.qampari.considered import Considerations
from pipelines.qampari.facts import FactStage, Flags, Runs
from pipelines.qampari.list_reading import ReadLists

_QUESTIONS_AT_ONCE = 256
_SUBSETS = (TABLE_SIMPLE, TABLE_COMPOSITION)


class _Lists(NamedTuple):
    """The tables of one page with the numbers of their facts, by key of the fact."""

    tables: list[ListTable]
    facts: dict[str, int]


class TableQuestions:
    """Questions about tables, on disk: simple ones, then compositions, each by page in the order of the release."""

    def __init__(self, staging: str) -> None:
        self._folder = os.path.join(staging, "tables")
        self._counts = dict.fromkeys(_SUBSETS, 0)

    def __len__(self) -> int:
        """Gives their number."""
        return sum(self._counts.values())

    def __iter__(self) -> Iterator[Question]:
        """Gives all."""
        for _, batch in self._batches():
            yield from (question_of_row(row).question for row in batch.to_pylist())

    def candidates(self) -> Iterator[Candidate]:
        """Gives all as they may be drawn."""
        for subset, batch in self._batches():
            yield from (Candidate(key, subset) for key in batch["key"].to_pylist())

    def _batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        for subset, n_questions in self._counts.items():
            if n_questions:
                for batch in read_batches(LocalStorage(), self._path(subset)):
                    yield subset, batch

    def write(self, made: Iterable[Question]) -> None:
        """Takes the questions, once."""
        storage = LocalStorage()
        with ExitStack() as stack:
            sinks = {
                subset: stack.enter_context(staged_rows(storage, self._path(subset), QUESTIONS)) for subset in _SUBSETS
            }
            for one in made:
                self._counts[one.subset] += 1
                sinks[one.subset].add(question_row(DrawnQuestion(one, None, None, None)))
                if sinks[one.subset].n_pending == _QUESTIONS_AT_ONCE:
                    sinks[one.subset].flush()

    def _path(self, subset: str) -> str:
        return os.path.join(self._folder, f"{subset}.arrow")


def find_lists(runs: Runs) -> dict[str, dict[str, int]]:
    """Stages the tables of all list pages; gives how many pages and tables there are, and why tables are left out.

    Raises:
        SetupError: the work cannot be done, or a key column is none of its table; a DataError where the data are at
            fault.
    """
    chunks: list[tuple[Key, Stored | None]] = [(Key(number, 0), None) for number in range(len(runs.job.pages))]
    runs.map("lists", chunks, ReadLists(runs.job), runs.job.n_pages, "pages")
    counts, left_out = _lists_counts(runs.staging, len(chunks))
    n_keys = len(runs.job.key_columns)
    if n_unknown := n_keys - counts.get("key_columns", 0):
        runs.progress.note(f"lists: {n_unknown:,} of {n_keys:,} key columns are of no table of a list page")
    return {"counts": counts, "left_out": left_out}


def validate_tables(
    pages: ItemPages,
    *,
    answer_filter: AnswerFilter,
    seed: str,
    has_redirects: bool,
    considerations: Considerations,
    runs: Runs,
) -> TableQuestions:
    """Gives the questions about the tables of list pages that the pages of their rows prove; after ``find_lists``.

    Args:
        pages: of the release.
        answer_filter: what is kept.
        seed: of the values that numbers and years are compared with.
        has_redirects: titles that lead to the page of an answer are aliases of it.
        considerations: takes what became of each query.
        runs: how pipelines are run.
    """
    n_files = len(runs.job.pages)
    with FactStage("tables", runs, pages) as stage:
        for tables in _read_tables(runs.staging, n_files):
            for fact in table_facts(tables):
                _add_fact(fact, stage)
    is_proved = stage.prove(stage.search())
    proofs = stage.proofs()

    def made() -> Iterator[Question]:
        for lists in _numbered(runs.staging, n_files):
            found = _proofs_of(lists, is_proved, proofs.take)
            redirects = _redirects(lists.tables, pages) if has_redirects else None
            kept, unkept = make_questions(lists.tables, found, seed=seed, keep=answer_filter, redirects=redirects)
            for one in kept:
                considerations.add(_considered(one.subset, one.key, one.n_answers, one.n_validated, KEPT))
            for missed in unkept:
                considerations.add(
                    _considered(missed.subset, missed.key, missed.n_answers, missed.n_validated, missed.reason)
                )
            yield from kept

    questions = TableQuestions(runs.staging)
    questions.write(made())
    considerations.count_stage("tables", stage)
    return questions


def _lists_counts(staging: str, n_files: int) -> tuple[dict[str, int], dict[str, int]]:
    """Gives what the tasks counted."""
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for number in range(n_files):
        _, report = read_chunk_report(_lists_path(staging, number), LocalStorage())
        counts.update(report.counts)
        left_out.update(report.facts["left_out"])
    return dict(sorted(counts.items())), dict(sorted(left_out.items()))


def _read_tables(staging: str, n_files: int) -> Iterator[list[ListTable]]:
    """Gives the tables of each page."""
    for number in range(n_files):
        stored, _ = read_chunk_report(_lists_path(staging, number), LocalStorage())
        for batch in read_stored(stored, LocalStorage()):
            for line in batch["tables"].to_pylist():
                yield [_table_of(values) for values in orjson.loads(line)]


def _lists_path(staging: str, number: int) -> str:
    return chunk_path(os.path.join(staging, "lists"), Key(number, 0))


def _table_of(values: list[Any]) -> ListTable:
    page_id, title, name, numbers, columns, key_column, value_columns, rows = values
    read = tuple(ListRow(LinkedText(*key), tuple(LinkedText(*one) for one in cells)) for key, cells in rows)
    return ListTable(page_id, title, name, tuple(numbers), tuple(columns), key_column, tuple(value_columns), read)


def _add_fact(fact: TableFact, stage: FactStage) -> int:
    if fact.column is None:
        return stage.add_words(fact.page_id, fact.names)
    # Without links: the name of a value in a sentence, as the rule has it.
    first, second = Sought(value_names(fact.text)), Sought(fact.names)
    return stage.add_named(fact.page_id, first, fact.value_page_id, second)


def _numbered(staging: str, n_files: int) -> Iterator[_Lists]:
    """Gives the tables of each page with their facts, which were added in this order."""
    number = 0
    for tables in _read_tables(staging, n_files):
        facts = {}
        for fact in table_facts(tables):
            facts[fact.key] = number
            number += 1
        yield _Lists(tables, facts)


def _proofs_of(lists: _Lists, is_proved: Flags, take: Any) -> Mapping[str, ProofText]:
    keys = [key for key, number in lists.facts.items() if is_proved[number]]
    return dict(zip(keys, take(lists.facts[key] for key in keys), strict=True))


def _redirects(tables: list[ListTable], pages: ItemPages) -> dict[int, tuple[str, ...]]:
    ids = {row.key.page_id for table in tables for row in table.rows if row.key.page_id is not None}
    return {page_id: pages.redirects_to(page_id) for page_id in sorted(ids)}


def _considered(subset: str, key: str, n_answers: int, n_validated: int, outcome: str) -> QueryRow:
    return QueryRow(subset, key, (), (), None, n_answers, n_answers, n_validated, n_validated, outcome)
