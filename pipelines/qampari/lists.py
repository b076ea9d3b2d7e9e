"""The tables of list pages: makes their facts and questions, file by file of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apache_beam as beam
import msgspec
import numpy as np
import pyarrow as pa

from kbsource.columns import batch_of, schema_of
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from mapping.qampari import joins
from mapping.qampari.list_tables import ListTable
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question
from mapping.qampari.selection import KEPT
from mapping.qampari.table_questions import DroppedQuestion, make_questions, table_facts, value_names
from pipelines.primitives.join_tables import Join, TableJoin
from pipelines.qampari.joins import by_group, count_timed_out, rows_of_query, write_looks
from pipelines.qampari.lookups import proof_texts
from pipelines.qampari.plan import ANSWER_PAGE, ENTITY_PAGE, FACT_BITS, PROOFS, WANTED, WORDS, QampariPlan

QUERIES = "table_queries"
_LOOKS_AT_ONCE = 4096
_QUESTIONS_AT_ONCE = 16
_Chunk = tuple[ChunkKey, BatchRef]


def find_list_looks(element: _Chunk, *, plan: QampariPlan) -> Iterator[_Chunk]:
    """Lists the texts that pages are searched for, to prove the facts of tables.

    (key, ``BatchRef`` of LISTS) -> (key, ``BatchRef`` of WANTED).
    """
    key, lists = ChunkKey(*element[0]), BatchRef(*element[1])

    def make(path: str) -> None:
        report = Report()
        looks = _looks(lists, key.chunk << FACT_BITS, report)
        write_chunk(_batches(looks, plan.pages.of_items()), WANTED, report, path=path)

    yield key, keep_chunk(plan.folder("tables", "looks"), key, make)


def _batches(looks: Iterator[tuple[int, int, int, tuple[str, ...]]], pages: ItemPages) -> Iterator[pa.RecordBatch]:
    while part := list(islice(looks, _LOOKS_AT_ONCE)):
        positions, is_there = pages.positions(np.array([page_id for page_id, *_ in part], np.int64))
        # Articles that the release rejected are missing.
        rows = [look for look, there in zip(part, is_there.tolist(), strict=True) if there]
        looks_at = zip(positions.tolist(), rows, strict=True)
        yield rows_batch(((position, *look, None) for position, (_, *look) in looks_at), WANTED)


def _looks(lists: BatchRef, first: int, report: Report) -> Iterator[tuple[int, int, int, tuple[str, ...]]]:
    """Iterates over the searches, each with page, fact, direction and names, and counts the facts."""
    number = first
    for tables in _tables(lists):
        for fact in table_facts(tables):
            # Without links: the rule requires the name of a value in a sentence.
            looks: list[tuple[int, int | None, tuple[str, ...]]] = [(WORDS, fact.page_id, fact.names)]
            if fact.column is not None:
                of_key = (ENTITY_PAGE, fact.value_page_id, value_names(fact.text))
                looks = [(ANSWER_PAGE, fact.page_id, fact.names), of_key]
            for direction, page_id, names in looks:
                if page_id is not None and names:
                    yield page_id, number, direction, names
            number += 1
    report.counts["all"] = number - first


def sort_list_looks(work: TableJoin, *, plan: QampariPlan) -> None:
    """Sorts searches by page. Input: ``looks``. Output: ``wanted``."""
    for report in work.reports("looks"):
        work.counts.update(report.counts)
    with work.open() as db:
        write_looks(work, rows_of_query(db, joins.LOOKS_IN_ORDER, WANTED, plan, n_rows=_LOOKS_AT_ONCE), plan)


SORT_LOOKS = Join(sort_list_looks, {"wanted": WANTED})


def prove_list_facts(work: TableJoin, *, plan: QampariPlan) -> None:
    """Uses the first sentence found for a fact as its proof. Input: ``found``; output: ``proved``, sorted by file."""
    count_timed_out(work)
    with work.open() as db:
        ((n_facts, n_candidates),) = db.execute(joins.FOUND_COUNTS).fetchall()
        work.counts.update(found=n_facts, candidates=n_candidates)
        if n_facts:
            work.counts.update(facts=n_facts, judged=0, unjudged=0, proved=n_facts)
        rows = rows_of_query(db, joins.FIRST_SENTENCES, PROOFS, plan)
        for file, own in by_group(rows, lambda batch: batch["fact"].to_numpy() >> FACT_BITS):
            work.write("proved", own, number=file)


PROVE_ROWS = Join(prove_list_facts, {"proved": PROOFS})


def ask_about_lists(element: _Chunk, proved: Sequence[_Chunk], *, plan: QampariPlan) -> Iterator[Any]:
    """Makes the questions about tables, and the rows of their queries.

    (key, ``BatchRef`` of LISTS) and all proofs -> named outputs with (key, ``BatchRef``) of the questions of each of
    the two subsets, and of the rows of the queries.
    """
    key, lists = ChunkKey(*element[0]), BatchRef(*element[1])
    paths = {name: chunk_path(plan.folder("tables", name), key) for name in (TABLE_SIMPLE, TABLE_COMPOSITION)}

    def make(path: str) -> None:
        chunks = [BatchRef(*ref) for (_, file), ref in proved if file == key.chunk]
        proofs: dict[int, ProofText] = {}
        for chunk in chunks:
            for batch in read_stored(chunk):
                proofs |= zip(batch["fact"].to_pylist(), proof_texts(batch), strict=True)
        rows: list[QueryRow] = []
        # One pass per subset: questions of the second subset come after all of the first, and are not held in memory.
        for subset, own_path in paths.items():
            made = _questions(lists, key.chunk, proofs, plan, subset, rows)
            write_chunk(_question_batches(made), schema_of(Question), Report(), path=own_path)
        write_chunk([batch_of(rows, QueryRow)], schema_of(QueryRow), Report(), path=path)

    queries = keep_chunk(plan.folder("tables", QUERIES), key, make)
    for name, path in paths.items():
        yield beam.pvalue.TaggedOutput(name, (key, read_chunk_report(path)[0]))
    yield key, queries


def _question_batches(made: Iterator[Question]) -> Iterator[pa.RecordBatch]:
    while part := list(islice(made, _QUESTIONS_AT_ONCE)):
        yield batch_of(part, Question)


def _questions(
    lists: BatchRef,
    file: int,
    proofs: Mapping[int, ProofText],
    plan: QampariPlan,
    subset: str,
    rows: list[QueryRow],
) -> Iterator[Question]:
    """Iterates over the questions of a subset. With the first subset, also adds the rows of all queries."""
    options, number = plan.options, file << FACT_BITS
    for tables in _tables(lists):
        found = {}
        for fact in table_facts(tables):
            if number in proofs:
                found[fact.key] = proofs[number]
            number += 1
        redirects = _redirects(tables, plan.pages.of_items()) if options.redirect_aliases else None
        kept, unkept = make_questions(
            tables,
            found,
            seed=options.seed,
            keep=options.answer_filter,
            redirects=redirects,
            share_of=options.table_rows,
        )
        yield from (question for question in kept if question.subset == subset)
        if subset == TABLE_SIMPLE:
            rows += [_considered(query, KEPT) for query in kept]
            rows += [_considered(query, query.reason) for query in unkept]


def _tables(lists: BatchRef) -> Iterator[list[ListTable]]:
    """Iterates over the pages, each with its tables."""
    decode = msgspec.json.Decoder(list[ListTable]).decode
    for batch in read_stored(lists):
        for line in batch["tables"].to_pylist():
            yield decode(line)


def _redirects(tables: list[ListTable], pages: ItemPages) -> Mapping[int, tuple[str, ...]]:
    ids = {row.key.page_id for table in tables for row in table.rows if row.key.page_id is not None}
    return {page_id: pages.redirects_to(page_id) for page_id in sorted(ids)}


def _considered(query: Question | DroppedQuestion, outcome: str) -> QueryRow:
    n_answers, n_validated = query.n_answers, query.n_validated
    return QueryRow(query.subset, query.key, (), (), None, n_answers, n_answers, n_validated, n_validated, outcome)
