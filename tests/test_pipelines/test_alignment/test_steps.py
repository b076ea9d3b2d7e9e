"""The steps of an alignment: pages read, rows cut into chunks, and records settled, nothing lost and nothing twice."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.errors import DataError
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, read_stored, write_chunk
from mapping.records import NOWHERE, Alignment, Evidence, Example, Output, PageKey
from pipelines.alignment import reading, search
from pipelines.alignment.reading import Chunks, EvidenceFiles
from pipelines.alignment.search import cut_rows, page_groups
from pipelines.alignment.settling import AlignedChunk, FilterOptions, filter_records
from pipelines.primitives.page_texts import PageTexts, ReleasePages
from tests.support.aligned import aligned
from tests.support.builds import open_release
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, write_release


def row(number: int, position: int) -> Alignment:
    return Alignment(PageKey("title", "T"), "x", part=2, ordinal=number, position=position)


def cut(wanted: list[Alignment], *, have_pages: bool) -> list[list[Alignment]]:
    """Gives the rows of each chunk."""
    return [
        [alignment for batch in chunk for alignment in rows_of(batch, Alignment)]
        for chunk in cut_rows(search.in_batches(wanted), have_pages=have_pages)
    ]


@given(
    positions=st.lists(st.integers(0, 5), max_size=40).map(sorted), limit=st.integers(1, 10), at_once=st.integers(1, 7)
)
def test_chunks_hold_every_row_once_and_no_more_than_memory_may(positions: list[int], limit: int, at_once: int) -> None:
    wanted = [row(number, position) for number, position in enumerate(positions)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "ROWS_AT_ONCE", at_once)
        patch.setattr(search, "PIECE_BYTES", limit * (search.ROW_BYTES + 1))
        chunks = cut(wanted, have_pages=True)

    assert [alignment for chunk in chunks for alignment in chunk] == wanted
    assert all(1 <= len(chunk) <= limit for chunk in chunks)
    for before, after in pairwise(chunks):
        assert len(before) + len([alignment for alignment in after if alignment.position == after[0].position]) > limit


def test_rows_without_a_page_come_by_so_many_titles_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "QUERIES_AT_ONCE", 2)
    wanted = [row(number, position) for number, position in enumerate((-9, -7, -7, -7, -4, -3, -3, -1, -1))]

    chunks = cut(wanted, have_pages=False)

    assert [[alignment.position for alignment in chunk] for chunk in chunks] == [
        [-9, -7, -7, -7],
        [-4, -3, -3],
        [-1, -1],
    ]


@pytest.mark.parametrize(("n_pages", "n_groups"), [(1, 1), (5, 3), (63, 64), (1000, 7)])
def test_neighbours_are_in_one_group_and_those_without_a_page_in_that_of_their_dataset(
    n_pages: int, n_groups: int
) -> None:
    groups_of = partial(page_groups, n_pages=n_pages, n_groups=n_groups)

    groups = groups_of(batch_of([row(0, position) for position in range(n_pages)], Alignment)).tolist()

    assert groups == sorted(groups)
    assert set(groups) <= set(range(n_groups))
    assert groups_of(batch_of([row(0, NOWHERE), row(1, -77)], Alignment)).tolist() == [n_groups + 2] * 2


Key3 = tuple[int, int, int]


def stage(folder: Path, *pieces: tuple[Key3, ...]) -> AlignedChunk:
    """Gives a chunk of two records, of two evidences and of one, and outcomes for the keys of each piece."""
    evidence = Evidence(PageKey("title", "Nowhere"), "x")
    chunks = Chunks(EvidenceFiles("jsonl", ()), 0, str(folder))
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

    found = list(filter_records(chunk, FilterOptions("jsonl")))

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
    written = Chunks(EvidenceFiles("jsonl", (), chunk_records=chunk_records), 3, str(tmp_path))
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
        list(filter_records(stage(tmp_path, *pieces), FilterOptions("jsonl")))


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
