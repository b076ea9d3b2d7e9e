"""Shards: how chunks are grouped, and what their reports sum up to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from kbsource.columns import batch_of, schema_of
from kbsource.dump.rejects import check_rejects, loss_findings
from kbsource.errors import DataError
from kbsource.pages.assembly import dump_date
from kbsource.pages.shards import (
    MIN_SHARD_BYTES,
    SHARD_BYTES,
    TemplateCounts,
    merged_templates,
    plan_shards,
    shard_file,
)
from kbsource.records import BadRecord, TemplateRow
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, write_chunk

MB = 1 << 20


def chunks_of(sizes: list[int]) -> list[tuple[ChunkKey, BatchRef]]:
    return [(ChunkKey(0, n), BatchRef("a.arrow", n, 1, 1, size)) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("total", "n_shards"),
    [(0, 1), (1 * MB, 1), (20 * MB, 2), (60 * MB, 7), (200 * MB, 16), (4000 * MB, 16), (80_000 * MB, 200)],
)
def test_the_number_of_shards_suits_the_amount_of_text(total: int, n_shards: int) -> None:
    assert len(plan_shards(chunks_of([4 * MB] * (total // (4 * MB))))) == n_shards


@given(st.lists(st.integers(1, 50 * MB), max_size=200))
def test_every_chunk_is_in_one_shard_in_order_and_shards_are_about_as_large_as_each_other(sizes: list[int]) -> None:
    chunks = chunks_of(sizes)
    shards = plan_shards(chunks)
    assert [chunk for shard in shards for chunk in shard.chunks] == chunks
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert {shard.n_shards for shard in shards} == {len(shards)}
    assert all(shard.chunks for shard in shards) or not chunks
    assert all(
        sum(stored.n_bytes for _, stored in shard.chunks) <= max(SHARD_BYTES, 2 * MIN_SHARD_BYTES) + 50 * MB
        for shard in shards
    )


def test_template_tables_are_summed_up_sorted_and_keep_the_first_example(tmp_path: Path) -> None:
    rows = [
        [TemplateRow("b", "unknown", 2, 1, 0, 0, None, None), TemplateRow("a", "rendered", 1, 1, 9, 0, None, None)],
        [TemplateRow("b", "unknown", 3, 2, 0, 7, "First", "{{b|one two}}")],
        [TemplateRow("b", "unknown", 1, 1, 0, 4, "Second", "{{b|four}}")],
    ]
    counts = TemplateCounts()
    for part in rows:
        counts.add(part)
    assert list(map(astuple, counts.rows())) == [
        ("a", "rendered", 1, 1, 9, 0, None, None),
        ("b", "unknown", 6, 4, 0, 11, "First", "{{b|one two}}"),
    ]
    for number, part in enumerate(rows):  # a shard's are sorted
        batches = [batch_of([row], TemplateRow) for row in sorted(part, key=astuple)]
        write_chunk(batches, schema_of(TemplateRow), Report(), path=shard_file(str(tmp_path), number))
    assert list(merged_templates(str(tmp_path), range(len(rows)))) == counts.rows()


@pytest.mark.parametrize(
    ("rejected", "n_pages", "share"),
    [
        ({}, 0, 0.0),
        ({}, 100, 0.0),
        ({"page_cut": 1}, 1000, 0.001),
        ({"truncated_dump": 1, "page_cut": 1}, 100, 0.0),
        ({"truncated_dump": 2, "line_cut": 1}, 100, 0.0),
    ],
)
def test_rejects_up_to_the_ceiling_pass(rejected: dict[str, int], n_pages: int, share: float) -> None:
    check_rejects(Counter(rejected), n_pages, max_share=share, allow_truncated=True)


@pytest.mark.parametrize(
    ("rejected", "message"),
    [
        (
            {"page_cut": 3, "invalid_page": 1},
            r"4 of 1000 pages rejected, 0\.400%.*3 page_cut, 1 invalid_page.*at least 0\.005",
        ),
        ({"truncated_dump": 1}, "Truncated files.*--allow-truncated"),
    ],
)
def test_rejects_above_the_ceiling_fail(rejected: dict[str, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_rejects(Counter(rejected), 1000, max_share=0.001, allow_truncated=False)


def test_the_first_rejects_are_shown_with_reason_place_and_detail() -> None:
    every = [BadRecord("read", str(n), "invalid_page", f"no title {n}", "ltgwiki.xml", n) for n in range(1, 6)]
    with pytest.raises(DataError) as told:
        check_rejects(Counter(invalid_page=5), 100, max_share=0.001, allow_truncated=False, first=every)
    shown = str(told.value).partition("The first of them:")[2].splitlines()[1:]
    assert shown == [f"  invalid_page: ltgwiki.xml, {n}: no title {n}" for n in (1, 2, 3)]


def test_what_is_cut_elsewhere_than_at_a_break_counts() -> None:
    with pytest.raises(DataError, match="2 of 100 pages rejected"):
        check_rejects(Counter({"truncated_dump": 1, "page_cut": 3}), 100, max_share=0.001, allow_truncated=True)


def test_what_damaged_blocks_may_have_held_counts_for_the_ceiling() -> None:
    loss = loss_findings(1000, n_bytes=11_000, damaged_bytes=1000)
    assert loss_findings(1000, n_bytes=11_000, damaged_bytes=0) == {}
    with pytest.raises(DataError, match=r"1 of 1000 pages .* about 100 more lost in 1000 damaged bytes, 9\."):
        check_rejects(Counter({"damaged_block": 1}), 1000, max_share=0.05, allow_truncated=False, loss=loss)
    check_rejects(Counter({"damaged_block": 1}), 1000, max_share=0.1, allow_truncated=False, loss=loss)


@pytest.mark.parametrize(
    ("files", "date"),
    [
        (["enwiki-20261001-pages-articles.xml.bz2"], "20261001"),
        (["enwiki-2026-10-01-p1p2.xml.bz2", "enwiki-2026-10-01-p3p4.xml.bz2"], "2026-10-01"),
        (["a-20260101-x.xml", "b-20260201-x.xml"], None),
        (["wiki.xml"], None),
    ],
)
def test_the_date_of_a_dump_is_in_its_names(files: list[str], date: str | None) -> None:
    assert dump_date(files) == date
