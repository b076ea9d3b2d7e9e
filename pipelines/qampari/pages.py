"""Processes pages in guarded processes: finds sentences that may state facts, and reads the tables of lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from kbsource.files import Folder, join
from kbsource.release.pages.reading import pages_of
from kbsource.release.reader import parquet_file
from kbsource.runtime.chunks import Work, rows_batch
from mapping.qampari.evidence import CandidateSentence, PageSentences, SearchTarget
from mapping.qampari.list_tables import list_name, list_tables
from mapping.qampari.table_questions import find_words
from pipelines.primitives.page_texts import PageTexts
from pipelines.qampari.plan import FOUND, WORDS, QampariPlan

_ROWS_AT_ONCE = 4096


class FactSearch:
    """Searches pages for facts: rows of WANTED, by page position -> rows of FOUND. A search that crashes its process
    finds nothing.

    The facts of the report contain ``timed_out``, the number of searches that took too long.
    """

    schema = FOUND

    def __init__(self, plan: QampariPlan) -> None:
        self._pages = PageTexts(plan.pages, further=("anchors",))
        self._n_before = plan.options.sentences_before

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        found = self._found(rows, work)
        while part := list(islice(found, _ROWS_AT_ONCE)):
            yield rows_batch(part, FOUND)

    def _found(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[tuple[Any, ...]]:
        last, sentences, n_timed_out = -1, None, 0
        for first, batch in rows:
            numbered = enumerate(zip(*(column.to_pylist() for column in batch.columns), strict=True), first)
            looks = [(number, look) for number, look in numbered if number not in work.verdicts]
            n_timed_out += batch.num_rows - len(looks)
            in_turn = self._pages.pages(dict.fromkeys(position for _, (position, *_) in looks if position != last))
            for number, (position, fact, direction, names, page_id) in looks:
                work.beat.enter(number)
                if sentences is None or position != last:
                    last, sentences = position, PageSentences(next(in_turn), n_before=self._n_before)
                for place, candidate in enumerate(_candidates(sentences, direction, names, page_id)):
                    yield (fact, direction, place, *candidate)
                work.beat.leave()
            work.beat.done(pages=0, amount=batch.num_rows)
        work.report.facts["timed_out"] = n_timed_out


def _candidates(
    sentences: PageSentences, direction: int, names: list[str], page_id: int | None
) -> list[CandidateSentence] | tuple[CandidateSentence, ...]:
    if direction == WORDS:
        found = find_words(sentences, names)
        return () if found is None else (found,)
    return sentences.find(SearchTarget(tuple(names), page_id))


LISTS = pa.schema([pa.field("tables", pa.binary(), nullable=False)])
"""One row per page: its usable tables as JSON."""


class ListReading:
    """Reads the tables of the list pages in a file of pages: returns rows of LISTS. The chunk of the key is the number
    of the file.

    The report contains counts, and its facts the reasons for skipping tables.
    """

    schema = LISTS

    def __init__(self, plan: QampariPlan) -> None:
        self._plan = plan
        self._keys = {(title, table): column for title, table, column in plan.key_columns}

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        """Iterates over the rows of LISTS.

        Raises:
            SetupError: a key column is not a column of its table.
        """
        path = join(self._plan.pages.folder, self._plan.pages.files[work.key.chunk])
        left_out: Counter[str] = Counter()
        with Folder.of(path).open() as raw, parquet_file(raw) as file:
            for group in range(file.metadata.num_row_groups):
                titles = file.read_row_group(group, columns=["title"], use_threads=False)["title"].to_pylist()
                places = [row for row, title in enumerate(titles) if list_name(title) is not None]
                if places:
                    table = file.read_row_group(group, use_threads=False).take(places).combine_chunks()
                    lines = [a_list for batch in table.to_batches() for a_list in self._lists(batch, work, left_out)]
                    yield pa.record_batch({"tables": lines}, schema=LISTS)
                work.beat.done(pages=len(titles), amount=len(titles))
        work.report.facts["left_out"] = dict(sorted(left_out.items()))

    def _lists(self, batch: pa.RecordBatch, work: Work, left_out: Counter[str]) -> Iterator[bytes]:
        for page in pages_of(batch):
            tables, reasons = list_tables(
                page,
                key_columns=self._keys or None,
                least_rows=self._plan.options.least_rows,
                key_rule=self._plan.options.key_rule,
            )
            counts = work.report.counts
            counts.update(pages=1, tables=len(page.tables), used=sum(len(table.numbers) for table in tables))
            counts["key_columns"] += sum((page.title, number) in self._keys for number in range(len(page.tables)))
            left_out.update(reasons)
            if tables:
                yield msgspec.json.encode(tables)
