"""bzip2 by blocks: every way of cutting a file gives what reading it in one go gives."""

from __future__ import annotations

import bz2
import io
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.compressed.bzip2 import (
    BLOCK_MAGIC,
    END_MAGIC,
    Damage,
    DecodedBlock,
    find_magics,
    iter_blocks,
    read_bzip2_tail,
)
from tests.support.dumps import block_with_chance_magic, flip, one_stream
from tests.support.examples import examples

_random = random.Random(20)
CHUNKS = [bytes(_random.choices(b"abcdefgh <>\n", k=size)) for size in (300, 1, 700, 45, 1200, 333)]
CONTENT = b"".join(CHUNKS)
EMPTY = bz2.compress(b"")
FORMS = {
    "one_stream": one_stream(CHUNKS),
    "stream_per_chunk": b"".join(map(bz2.compress, CHUNKS)),
    "empty_streams_between": EMPTY + EMPTY.join(map(bz2.compress, CHUNKS)) + EMPTY,
    "streams_of_several_blocks": one_stream(CHUNKS[:2]) + one_stream(CHUNKS[2:]),
}


def read(data: bytes, start: int = 0) -> list[DecodedBlock | Damage]:
    return list(iter_blocks(io.BytesIO(data), start=start))


def owner(item: DecodedBlock | Damage) -> int:
    return item.offset if isinstance(item, DecodedBlock) else item.owner


def content(items: list[DecodedBlock | Damage]) -> bytes:
    return b"".join(item.data for item in items if isinstance(item, DecodedBlock))


def read_in_ranges(data: bytes, cuts: list[int]) -> list[DecodedBlock | Damage]:
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    found: list[DecodedBlock | Damage] = []
    for start, end in pairwise(bounds):
        for item in read(data, start):
            if owner(item) >= end:
                break
            found.append(item)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_its_content_block_by_block(form: str) -> None:
    items = read(FORMS[form])
    assert content(items) == CONTENT == bz2.decompress(FORMS[form])
    assert len(items) == len(CHUNKS)


def test_blocks_of_900_kB_at_any_bit_give_what_bz2_gives() -> None:
    data = bytes(random.Random(3).choices(b"abcdefgh", k=350_000))
    packed = bz2.compress(data, 1)
    items = read(packed)
    assert len(items) == 4
    assert content(items) == data
    assert read_in_ranges(packed, [40_000, 40_001, 90_000]) == items


@given(
    form=st.sampled_from(sorted(FORMS)),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=8),
    damage=st.one_of(
        st.none(),
        st.tuples(st.just("flip"), st.integers(10, 1 << 16)),
        st.tuples(st.just("truncate"), st.integers(10, 1 << 16)),
        st.tuples(st.just("append"), st.integers(1, 30)),
        st.tuples(st.just("insert"), st.integers(10, 1 << 16)),
    ),
)
@settings(max_examples=examples(150))
def test_ranges_together_give_what_one_reading_gives(
    form: str, cuts: list[int], damage: tuple[str, int] | None
) -> None:
    data = FORMS[form]
    if damage is not None:
        kind, number = damage
        place = number % len(data)
        data = {
            "flip": flip(data, place),
            "truncate": data[: max(place, 10)],
            "append": data + b"x" * number,
            "insert": data[:place] + b"garbage" + data[place:],
        }[kind]
    assert read_in_ranges(data, cuts) == read(data)


@pytest.mark.parametrize("is_end", [False, True], ids=["block_magic", "end_magic"])
def test_a_magic_by_chance_inside_a_block_is_no_block(is_end: bool) -> None:
    packed, expected = block_with_chance_magic(is_end=is_end)
    assert bz2.decompress(packed) == expected
    data = bz2.compress(CHUNKS[0]) + packed + bz2.compress(CHUNKS[2])
    assert len(find_magics(data)) == 7
    items = read(data)
    assert content(items) == CHUNKS[0] + expected + CHUNKS[2]
    for cut in range(len(data) + 1):
        assert read_in_ranges(data, [cut]) == items


def test_a_damaged_block_costs_that_block_alone() -> None:
    data = FORMS["one_stream"]
    blocks = read(data)
    items = read(flip(data, blocks[2].offset + 60))
    assert [owner(item) for item in items] == [block.offset for block in blocks]
    assert [type(item) for item in items] == [
        DecodedBlock,
        DecodedBlock,
        Damage,
        DecodedBlock,
        DecodedBlock,
        DecodedBlock,
    ]
    damage = items[2]
    assert isinstance(damage, Damage)
    assert (damage.reason, damage.offset) == ("damaged_block", blocks[2].offset)


@pytest.mark.parametrize("missing", range(1, 11), ids=lambda count: f"without_the_last_{count}_bytes")
def test_a_file_cut_inside_its_trailer_keeps_all_blocks(missing: int) -> None:
    items = read(FORMS["one_stream"][:-missing])
    assert content(items) == CONTENT
    assert isinstance(items[-1], Damage)
    assert items[-1].reason == "truncated"


def test_a_file_cut_inside_a_block_keeps_the_blocks_before() -> None:
    items = read(FORMS["one_stream"][:-60])
    assert content(items) == b"".join(CHUNKS[:-1])
    assert [item.reason for item in items if isinstance(item, Damage)] == ["truncated"]


def test_garbage_behind_the_last_stream_is_told() -> None:
    data = FORMS["stream_per_chunk"]
    last = read(data + b"garbage")[-1]
    assert isinstance(last, Damage)
    assert (last.reason, last.offset) == ("trailing_garbage", len(data))


def test_a_file_whose_first_magic_is_damaged_tells_so() -> None:
    items = read(flip(FORMS["stream_per_chunk"], 6))
    assert isinstance(items[0], Damage)
    assert content(items) == b"".join(CHUNKS[1:])


@pytest.mark.parametrize("count", [1, 20, 400, 100_000])
@pytest.mark.parametrize("form", FORMS)
def test_the_tail_is_the_end_of_the_content(form: str, count: int) -> None:
    data = FORMS[form]
    assert read_bzip2_tail(io.BytesIO(data), len(data), count) == (CONTENT[-count:], None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (FORMS["one_stream"][:-60], "truncated"),
        (flip(FORMS["one_stream"], len(FORMS["one_stream"]) - 60), "damaged_block"),
        (FORMS["one_stream"] + b"garbage", "trailing_garbage"),
    ],
    ids=["truncated", "damaged", "garbage"],
)
def test_the_tail_tells_how_the_file_ends(data: bytes, reason: str) -> None:
    assert read_bzip2_tail(io.BytesIO(data), len(data), 100)[1] == reason


def slow_magics(data: bytes) -> list[tuple[int, bool]]:
    bits = "".join(f"{byte:08b}" for byte in data)
    return [
        (place, magic == END_MAGIC)
        for place in range(len(bits) - 47)
        for magic in (BLOCK_MAGIC, END_MAGIC)
        if bits[place : place + 48] == f"{magic:048b}" and place // 8 + 7 <= len(data)
    ]


@given(pieces=st.lists(st.one_of(st.binary(max_size=9), st.integers(0, 15)), max_size=6))
@settings(max_examples=examples(100))
def test_magics_are_found_as_a_search_bit_by_bit_finds_them(pieces: list[bytes | int]) -> None:
    bits = ""
    for piece in pieces:
        if isinstance(piece, int):
            bits += "0" * (piece // 2) + f"{END_MAGIC if piece % 2 else BLOCK_MAGIC:048b}"
        else:
            bits += "".join(f"{byte:08b}" for byte in piece)
    bits += "0" * (-len(bits) % 8)
    data = int(bits or "0", 2).to_bytes(len(bits) // 8, "big")
    assert find_magics(data) == slow_magics(data)
