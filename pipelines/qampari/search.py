"""A part of the release, searched for the sentences that may say facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.beat import Beat
from mapping.qampari.evidence import Candidate, PageSentences, Sought
from mapping.qampari.table_evidence import find_words
from pipelines.page_texts import PageTexts
from pipelines.qampari.staging import WORDS, QampariJob, numbered, wanted_spill, write_found


def search_part(task: dict[str, Any], job: QampariJob, beat: Beat) -> None:
    """Looks through some buckets, page by page in the order of the release, and stages what is found."""
    pages = PageTexts(job.kb, job.pages, job.page_rows, has_anchors=True)
    try:
        rows = (row for bucket in task["buckets"] for row in _found(task["folder"], bucket, pages, job, beat))
        write_found(rows, numbered(task["folder"], "found", task["number"]))
    finally:
        pages.close()


def _found(folder: str, bucket: int, pages: PageTexts, job: QampariJob, beat: Beat) -> Iterator[tuple[Any, ...]]:
    order = [("position", "ascending"), ("fact", "ascending"), ("direction", "ascending")]
    wanted = wanted_spill(folder).read(bucket).sort_by(order)
    in_turn = pages.pages(np.unique(wanted["position"].to_numpy()).tolist())
    # A batch at a time: rows as Python values take ten times the room.
    last, sentences = -1, None
    for batch in wanted.to_batches(max_chunksize=4096):
        for position, fact, direction, names, page_id in _rows(batch):
            if sentences is None or position != last:
                last, sentences = position, PageSentences(next(in_turn), n_before=job.n_before)
            for number, one in enumerate(_candidates(sentences, direction, names, page_id)):
                yield (fact, direction, number, *one, sentences.page.title)
        beat.done(pages=0, n_bytes=batch.num_rows)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _candidates(
    sentences: PageSentences, direction: int, names: list[str], page_id: int | None
) -> list[Candidate] | tuple[Candidate, ...]:
    if direction == WORDS:
        found = find_words(sentences.page, names, n_before=sentences.n_before)
        return () if found is None else (found,)
    return sentences.find(Sought(tuple(names), page_id))
