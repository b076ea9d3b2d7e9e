"""The steps of an alignment: pages read, rows cut into chunks, and records settled, nothing lost and nothing twice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.columns import batch_of, schema_of
from kbsource.errors import DataError
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, read_rows, read_stored, write_chunk
from mapping.records import Alignment, Evidence, Example, Output, PageKey
from pipelines.alignment import reading, search
from pipelines.alignment.reading import Chunks
from pipelines.alignment.settling import AlignedChunk, filter_records
from pipelines.options.map_dataset import DatasetOptions
from pipelines.primitives.page_texts import PageTexts, ReleasePages
from tests.support.aligned import aligned
from tests.support.builds import open_release
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, write_release


def row(number: int, position: int) -> Alignment:
    return Alignment(PageKey("title", "T"), "x", part=2, ordinal=number, position=position)


def search_chunks(folder: Path, *files: Sequence[int], batch_rows: int = 3) -> list[list[tuple[int, int]]]:
    """Gives position and file of every row of each chunk of a search, for files of rows with sorted positions."""
    stored = []
    for number, positions in enumerate(files):
        rows = [row(number, position) for position in sorted(positions)]
        batches = [batch_of(rows[at : at + batch_rows], Alignment) for at in range(0, len(rows), batch_rows)]
        path = str(folder / f"{number}.arrow")
        stored.append(write_chunk(batches, schema_of(Alignment), Report(), path=path))
    return [
        [(found.position, found.ordinal) for part in chunk for found in read_rows(part, Alignment)]
        for chunk in search.search_chunks(stored)
    ]


@given(
    files=st.lists(st.lists(st.integers(-4, 5), max_size=20), max_size=4),
    limit=st.integers(1, 10),
    batch_rows=st.integers(1, 7),
)
def test_chunks_have_every_row_once_in_page_order_and_no_more_than_memory_may_hold(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], limit: int, batch_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MOST_BYTES", limit * (search.ROW_BYTES + 1))
        patch.setattr(search, "MISSING_BYTES", limit * (search.ROW_BYTES + 1))
        chunks = search_chunks(tmp_path_factory.mktemp("files"), *files, batch_rows=batch_rows)

    every = sorted((position, number) for number, positions in enumerate(files) for position in positions)
    assert sorted(found for chunk in chunks for found in chunk) == every
    assert all(1 <= len(chunk) <= limit for chunk in chunks)
    for before, after in pairwise(chunks):
        last, first = max(before)[0], min(after)[0]
        n_first = sum(position == first for position, _ in after)
        assert last < first or n_first + sum(position == last for position, _ in before) > limit
        assert len(before) + n_first > limit or last < 0 <= first


@pytest.mark.parametrize(("n_shares", "n_chunks"), [(1, 1), (4, 4), (100, 12)])
def test_a_search_is_divided_between_pages_for_many_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_shares: int, n_chunks: int
) -> None:
    monkeypatch.setattr(search, "N_SHARES", n_shares)
    monkeypatch.setattr(search, "LEAST_BYTES", 1)

    chunks = search_chunks(tmp_path, range(12), range(12), range(12))

    assert len(chunks) == n_chunks
    assert {len(chunk) for chunk in chunks} == {36 // n_chunks}
    assert [position for chunk in chunks for position in sorted({found for found, _ in chunk})] == [*range(12)]


def test_a_small_search_is_not_divided(tmp_path: Path) -> None:
    assert len(search_chunks(tmp_path, range(12), range(12))) == 1


def test_rows_without_a_page_come_by_so_many_titles_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "QUERIES_AT_ONCE", 2)

    chunks = search_chunks(tmp_path, (-9, -7, -4, -3, -1), (-7, -7, -3, -1))

    assert [sorted(position for position, _ in chunk) for chunk in chunks] == [
        [-9, -7, -7, -7],
        [-4, -3, -3],
        [-1, -1],
    ]


Key3 = tuple[int, int, int]


def stage(folder: Path, *pieces: tuple[Key3, ...]) -> AlignedChunk:
    """Gives a chunk of two records, of two evidences and of one, and outcomes for the keys of each piece."""
    evidence = Evidence(PageKey("title", "Nowhere"), "x")
    chunks = Chunks(DatasetOptions(dataset="jsonl", inputs=()), 0, str(folder))
    for number, n_evidences in enumerate((2, 1)):
        output = Output("yes", (evidence,) * n_evidences)
        chunks.add(Example(f"r{number}", "?", (output,), None, file="own.jsonl", line=number + 1))
    chunks.end()
    outcomes = []
    for number, keys in enumerate(pieces):
        rows = [
            aligned("page_missing", ordinal=ordinal, output=output, evidence=piece) for ordinal, output, piece in keys
        ]
        path, schema = str(folder / f"outcomes-{number}.arrow"), schema_of(Alignment)
        outcomes.append(write_chunk([batch_of(rows, Alignment)], schema, Report(), path=path))
    (examples,) = chunks.examples.stored
    return AlignedChunk(examples, tuple(outcomes))


def test_every_record_comes_with_the_outcomes_of_its_evidences_wherever_they_were_found(tmp_path: Path) -> None:
    chunk = stage(tmp_path, ((0, 0, 1), (1, 0, 0)), ((0, 0, 0),))

    found = list(filter_records(chunk, DatasetOptions(dataset="jsonl", inputs=())))

    assert [(record.ordinal, record.example.example_id, list(record.found)) for record in found] == [
        (0, "r0", [(0, 0), (0, 1)]),
        (1, "r1", [(0, 0)]),
    ]
    assert {alignment.outcome for record in found for alignment in record.found.values()} == {"page_missing"}


def _ordinals(stored: list[BatchRef]) -> list[list[int]]:
    return [[number for batch in read_stored(ref) for number in batch["ordinal"].to_pylist()] for ref in stored]


@pytest.mark.parametrize(
    ("chunk_records", "lengths", "chunks"),
    [(2, (1, 1, 1, 2_000, 1, 1), [[0, 1], [2, 3], [4, 5]]), (9, (1, 2_000, 1, 1), [[0, 1], [2, 3]]), (9, (), [[]])],
)
def test_a_chunk_ends_when_it_has_as_many_records_or_characters_as_memory_may_hold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk_records: int,
    lengths: tuple[int, ...],
    chunks: list[list[int]],
) -> None:
    monkeypatch.setattr(reading, "CHUNK_CHARS", 1_000)
    written = Chunks(DatasetOptions(dataset="jsonl", inputs=(), chunk_records=chunk_records), 3, str(tmp_path))
    output = Output("yes", (Evidence(PageKey("title", "Nowhere"), "x"),))
    for n_chars in lengths:
        written.add(Example("r", "?" * n_chars, (output,), None, file="own.jsonl", line=1))
    written.end()

    assert _ordinals(written.examples.stored) == _ordinals(written.evidence.stored) == chunks
    for number, stored in enumerate(written.evidence.stored):
        keys = {
            ChunkKey(*key)
            for batch in read_stored(stored)
            for key in zip(batch["part"].to_pylist(), batch["chunk"].to_pylist(), strict=True)
        }
        assert keys <= {ChunkKey(3, number)}


@pytest.mark.parametrize(("sorted_bytes", "n_files"), [(1, 3), (64 << 20, 1)])
def test_evidence_with_pages_is_sorted_by_page_over_many_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sorted_bytes: int, n_files: int
) -> None:
    monkeypatch.setattr(reading, "SORTED_BYTES", sorted_bytes)
    positions = iter((5, -3, 2, 2, 0, 7))
    chunks = Chunks(
        DatasetOptions(dataset="jsonl", inputs=(), chunk_records=2),
        3,
        str(tmp_path),
        lambda wanted: replace(wanted, position=next(positions)),
    )
    for number in range(6):
        output = Output("yes", (Evidence(PageKey("title", "Nowhere"), "x"),))
        chunks.add(Example(f"r{number}", "?", (output,), None, file="own.jsonl", line=1))
    chunks.end()

    found = [
        [(row.position, row.chunk, row.ordinal) for row in read_rows(stored, Alignment)]
        for stored in chunks.evidence.stored
    ]
    assert len(chunks.examples.stored) == 3
    assert len(found) == n_files
    assert all(rows == sorted(rows) for rows in found)
    assert sorted(row for rows in found for row in rows) == [
        (-3, 0, 1),
        (0, 2, 4),
        (2, 1, 2),
        (2, 1, 3),
        (5, 0, 0),
        (7, 2, 5),
    ]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((((0, 0, 0), (1, 0, 0)),), r"own\.jsonl, line 1: evidence 0, 1 has no outcome"),
        ((((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)),), "1 outcomes belong to no evidence"),
        ((((0, 0, 0), (0, 0, 1), (1, 0, 0)), ((0, 0, 1),)), r"evidence \(0, 0, 1\) has two outcomes"),
    ],
    ids=["none", "of nothing", "twice"],
)
def test_outcomes_that_do_not_fit_the_evidences_end_the_job(
    tmp_path: Path, pieces: tuple[tuple[Key3, ...], ...], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        list(filter_records(stage(tmp_path, *pieces), DatasetOptions(dataset="jsonl", inputs=())))


N_PAGES = 23


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    pages = list(synthetic_pages(N_PAGES, n_paragraphs=3))
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    write_release(folder, pages, titles=titles, rows_per_shard=7, n_shards=4)
    return folder / "release"


@pytest.mark.parametrize("further", [(), ("anchors",)])
@pytest.mark.parametrize("order", ["as stored", "backwards", "drawn"])
def test_every_page_is_given_at_its_position_in_any_order(kb: Path, further: tuple[str, ...], order: str) -> None:
    texts = PageTexts(ReleasePages.open(str(kb)), further=further)
    whole = list(open_release(kb))
    positions = list(range(N_PAGES))
    if order == "backwards":
        positions.reverse()
    if order == "drawn":
        positions = random.Random(1).choices(positions, k=40)

    for position in positions:
        page, expected = texts.page(position), whole[position]
        assert (page.page_id, page.title, page.elements) == (expected.page_id, expected.title, expected.elements)
        assert page.is_disambiguation == expected.is_disambiguation
        assert not further or page.anchors == expected.anchors
    texts.close()
