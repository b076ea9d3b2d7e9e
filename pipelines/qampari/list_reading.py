"""What a guarded process does with a pages file: it reads the tables of its list pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import pyarrow as pa

from kbsource.files import join
from kbsource.release.columns import batch_to_pages
from kbsource.release.reader import parquet_file
from kbsource.runtime.chunks import Work
from mapping.qampari.lists.list_tables import list_name, list_tables
from pipelines.qampari.plan import Plan
from pipelines.stores.storage import storage_for

LISTS = pa.schema([pa.field("tables", pa.binary(), nullable=False)])
"""A row a page: its usable tables as JSON."""


@dataclass(frozen=True, slots=True)
class ReadLists:
    """Makes what reads the list pages of one pages file, that of the number of the key's part.

    Attributes:
        plan: names the release and its files.
    """

    plan: Plan

    def __call__(self) -> ListReading:
        return ListReading(self.plan)


class ListReading:
    """A chunk without rows -> rows of LISTS; counts are in its report, and why tables are left out in its facts."""

    schema = LISTS

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._keys = {(title, table): column for title, table, column in plan.key_columns}

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        """Gives the rows.

        Raises:
            SetupError: a key column is none of its table.
        """
        path = join(self._plan.kb, self._plan.pages[work.key.part])
        left_out: Counter[str] = Counter()
        with storage_for(path).open_read(path) as raw, parquet_file(raw) as file:
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
        for page in batch_to_pages(batch):
            tables, reasons = list_tables(
                page, key_columns=self._keys or None, least_rows=self._plan.options.least_rows
            )
            counts = work.report.counts
            counts.update(pages=1, tables=len(page.tables), used=sum(len(table.numbers) for table in tables))
            counts["key_columns"] += sum((page.title, number) in self._keys for number in range(len(page.tables)))
            left_out.update(reasons)
            if tables:
                yield orjson.dumps(tables, default=tuple)
