"""CutPassages: every output, from pages in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.columns import batch_of
from kbsource.records import Page
from kbsource.runtime.chunks import ChunkKey
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import CutOptions
from pipelines.runners.running import run_pipeline
from pipelines.transforms.passages import CutPassages
from tests.support.passages import page


def pages(*given: Page) -> pa.RecordBatch:
    return batch_of(given, Page).select(["page_id", "title", "elements"])


def texts(element: tuple[ChunkKey, pa.RecordBatch]) -> tuple[Any, ...]:
    key, batch = element
    assert batch.schema.equals(PASSAGES, check_metadata=False)
    return tuple(key), batch["passage_id"].to_pylist(), batch["text"].to_pylist()


def cut(chunks: Iterable[tuple[ChunkKey, pa.RecordBatch]], options: CutOptions) -> tuple[beam.Pipeline, Any]:
    pipeline = TestPipeline(runner="FnApiRunner")
    return pipeline, pipeline | beam.Create(chunks) | CutPassages(options)


def test_passages_and_counts_come_of_every_chunk() -> None:
    chunks = [
        (
            ChunkKey(0, 0),
            pages(page(3, "Sorn", "The Sorn is a river. It rises here."), page(4, "Empty", "x", kinds=["heading"])),
        ),
        (ChunkKey(0, 1), pages(page(5, "Tey", "A town of no more than forty goats."))),
        (ChunkKey(1, 0), pages()),
    ]

    pipeline, results = cut(chunks, CutOptions(max_words=5))

    expected = [
        ((0, 0), ["3__0", "3__1"], ["The Sorn is a river.", "It rises here."]),
        ((0, 1), ["5__0"], ["A town of no more than forty goats."]),
        ((1, 0), [], []),
    ]
    names = ("pages", "pages_without_text", "passages", "words", "long_passages", "taken_over")
    values = {(0, 0): (2, 1, 2, 8, 0, 0), (0, 1): (1, 0, 1, 8, 1, 0), (1, 0): (0, 0, 0, 0, 0, 0)}
    counts = [(ChunkKey(*key), dict(zip(names, counted, strict=True))) for key, counted in values.items()]
    assert_that(results.chunks | beam.Map(texts), equal_to(expected), label="chunks")
    assert_that(results.counts, equal_to(counts), label="counts")
    assert_that(results.rejected, equal_to([]), label="rejected")
    run_pipeline(pipeline, "test")
