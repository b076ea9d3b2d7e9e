"""What a guarded process does for the tables of list pages: reads those of a part of the release."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import orjson
import pyarrow.parquet as pq

from kbsource.beat import Beat
from kbsource.files import LocalStorage, atomic_write
from kbsource.release.columns import batch_to_pages
from kbsource.staging import write_json
from mapping.qampari.list_tables import list_name, list_tables
from pipelines.qampari.staging import QampariJob, numbered


def read_lists(task: dict[str, Any], job: QampariJob, beat: Beat) -> None:
    """Stages the usable tables of one pages file, those of a page in a line, and counts why others are left out.

    Raises:
        SetupError: a key column is none of its table.
    """
    left_out: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    folder, number = os.path.join(task["staging"], "lists"), task["number"]
    path = os.path.join(job.kb, job.pages[number])
    keys = {(title, table): column for title, table, column in job.key_columns}
    with (
        pq.ParquetFile(path, memory_map=True) as file,
        atomic_write(LocalStorage(), numbered(folder, "tables", number, "jsonl")) as sink,
    ):
        for group in range(file.metadata.num_row_groups):
            titles = file.read_row_group(group, columns=["title"], use_threads=False)["title"].to_pylist()
            rows = [row for row, title in enumerate(titles) if list_name(title) is not None]
            if rows:
                table = file.read_row_group(group, use_threads=False).take(rows).combine_chunks()
                for page in (one for batch in table.to_batches() for one in batch_to_pages(batch)):
                    tables, reasons = list_tables(page, key_columns=keys or None, least_rows=job.least_rows)
                    counts.update(pages=1, tables=len(page.tables), used=sum(len(one.numbers) for one in tables))
                    counts["key_columns"] += sum((page.title, one) in keys for one in range(len(page.tables)))
                    left_out.update(reasons)
                    if tables:
                        sink.write(orjson.dumps(tables, default=tuple, option=orjson.OPT_APPEND_NEWLINE))
            beat.done(pages=len(titles), n_bytes=len(titles))
    values = {"counts": dict(sorted(counts.items())), "left_out": dict(sorted(left_out.items()))}
    write_json(LocalStorage(), numbered(folder, "tables", number, "json"), values)
