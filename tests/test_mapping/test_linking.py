"""Links of pages as records, keys and mentions: each by itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from kbsource.columns import batch_of
from kbsource.records import Anchor, Page
from kbsource.runtime.chunks import Report, rows_batch, write_chunk
from kbsource.runtime.database import MEMORY_MB, ordered_batches
from kbsource.runtime.regroup import one_run_each
from kbsource.runtime.warehouse import StoredTable, warehouse
from mapping.entity_linking.aliases import ALIAS_ROWS, count_occurrences, mention_rows
from mapping.entity_linking.links import (
    CHOSEN_LINKS,
    DISTINCT_KEYS,
    KEYS_OF_BUCKETS,
    N_BUCKETS,
    Sampling,
    Targets,
    chosen_lines,
    dev_buckets,
    scan_links,
)
from mapping.entity_linking.records import (
    ALIASES,
    CHOSEN,
    KEYS,
    MENTIONS,
    SKIPPED,
    ContextCutter,
    ContextOptions,
    MentionContext,
    cut_context,
    link_line,
)
from tests.support.passages import page

SAMPLING = Sampling(train=5, dev=5, seed="kilt", context=ContextOptions())
TEXT = "The Sorn is a river of  Brack, near Tey."
NONE = np.empty(0, np.int64)


def linked(page_id: int, *spans: tuple[int, str, int | None], texts: tuple[str, ...] = (TEXT,), **kinds: Any) -> Page:
    """A page with links: element, mention and target."""
    made = page(page_id, f"Page {page_id}", *texts, **kinds)
    anchors = []
    for element, mention, target in spans:
        start = made.elements[element].text.index(mention)
        title = f"Page {target}"
        anchors.append(Anchor(element, start, start + len(mention), mention, title, None, target, title))
    return Page(**{name: getattr(made, name) for name in made.__slots__} | {"anchors": tuple(anchors)})


def scan(*pages: Page, excluded: tuple[int, ...] = (), disambiguation: tuple[int, ...] = (), n: int = 20) -> Any:
    ids = np.arange(1, n)
    codes = Targets.code(ids, np.isin(ids, disambiguation))
    return scan_links(
        batch_of(pages, Page), 7, sampling=SAMPLING, targets=Targets(codes), excluded=np.array(excluded, np.int64)
    )


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        ("a b [c d] e f", {}, ("a b", "c d", "e f")),
        ("a b [c] d e", {"context_tokens": 1}, ("b", "c", "d")),
        ("a  b\u00a0[c\u00a0 d]\te", {}, ("a b", "c d", "e")),
        ("pre-[Roman]s now", {}, ("pre-", "Roman", "s now")),
        ("one two [x] three four", {"context_chars": 5}, ("two", "x", "three")),
        ("one two [x] three four", {"context_chars": 7}, ("one two", "x", "three")),
        ("one two [x] three four", {"context_chars": 2}, ("", "x", "")),
        ("[x]", {"context_chars": 2}, ("", "x", "")),
    ],
)
def test_a_context_is_the_nearest_whole_tokens(given: str, options: dict[str, int], expected: tuple[str, ...]) -> None:
    start, end = given.index("["), given.index("]") - 1
    text = given.replace("[", "").replace("]", "")
    assert cut_context(text, start, end, ContextOptions(**options)) == expected
    assert ContextCutter(ContextOptions(**options)).cut(text, start, end) == expected


def test_a_record_is_in_the_published_form_with_a_window_of_its_tokens() -> None:
    line = link_line("blink-dev-3", MentionContext("a b c", "é", "d e"), page_id=5, title="É", max_tokens=6)
    assert line.isascii()
    assert line.endswith(b"}}\n")
    assert list(json.loads(line).items()) == [
        ("id", "blink-dev-3"),
        ("input", "b c [START_ENT] é [END_ENT] d"),
        ("output", [{"answer": "É", "provenance": [{"wikipedia_id": "5", "title": "É"}]}]),
        ("meta", {"left_context": "a b c", "mention": "é", "right_context": "d e"}),
    ]


def test_links_that_are_not_taken_are_counted_by_reason() -> None:
    spans = [(1, "Sorn", 2), (1, "river", None), (1, "Brack", 99), (1, "near", 4), (1, "Tey", 3), (2, "Headed", 2)]
    headed = linked(3, *spans, (3, " ", 2), (4, "tag", 2), texts=(TEXT, "Headed", "a b", "a [END_ENT] tag"))
    elements = tuple(
        replace(element, kind="heading") if element.text == "Headed" else element for element in headed.elements
    )
    made = Page(**{name: getattr(headed, name) for name in headed.__slots__} | {"elements": elements})
    scanned = scan(made, linked(5, (1, "Sorn", 2)), disambiguation=(4,), excluded=(5,))

    counts = scanned.counts
    assert {name: counts[name] for name in SKIPPED} == dict.fromkeys(SKIPPED, 1)
    assert {name: counts[name] for name in ("pages", "excluded_pages", "links", "taken")} == {
        "pages": 2,
        "excluded_pages": 1,
        "links": 8,
        "taken": 1,
    }
    assert scanned.keys["link"].to_pylist() == [0]
    assert scanned.keys["place"].to_pylist() == [7]
    assert scanned.mentions.select(["mention", "page_id", "title", "count"]).to_pylist() == [
        {"mention": "Sorn", "page_id": 2, "title": "Page 2", "count": 1}
    ]


def test_links_that_say_the_same_have_the_same_hash_and_those_of_a_page_the_same_bucket() -> None:
    same = [linked(page_id, (1, "Sorn", 2), (1, "Tey", 4)) for page_id in (3, 5)]
    other = linked(6, (1, "Sorn", 4), (1, "Tey", 4), texts=(f"{TEXT} It is.",))
    keys = scan(*same, other).keys
    hashes = list(zip(keys["hash"].to_pylist(), keys["more_hash"].to_pylist(), strict=True))
    assert hashes[:2] == hashes[2:4]
    assert len(set(hashes)) == 4
    buckets = keys["bucket"].to_pylist()
    assert buckets[::2] == buckets[1::2] == [SAMPLING.bucket(page_id) for page_id in (3, 5, 6)]
    assert min(buckets) >= 0
    assert max(buckets) < N_BUCKETS


def test_without_links_there_is_nothing() -> None:
    scanned = scan(linked(3))
    assert (scanned.keys.num_rows, scanned.mentions.num_rows, scanned.counts["taken"]) == (0, 0, 0)
    assert scan(linked(3, (1, "Sorn", 2)), n=1).counts["not_released"] == 1


def test_chosen_links_are_written_with_their_numbers_in_the_order_of_the_release() -> None:
    pages = batch_of([linked(3, (1, "Sorn", 2), (1, "Brack", 4)), linked(5, (1, "Tey", 3))], Page)
    chosen = rows_batch([(7, 0, False, 10), (7, 1, True, 0), (7, 2, False, 11)], CHOSEN)
    lines = chosen_lines(pages, chosen, ContextOptions()).to_pylist()
    assert [tuple(row.values())[:-1] for row in lines] == [
        ("blink-train-10", 3, 1, 4, 8, 2, False),
        ("blink-dev-0", 3, 1, 24, 29, 4, True),
        ("blink-train-11", 5, 1, 36, 39, 3, False),
    ]
    assert json.loads(lines[1]["line"])["input"] == "The Sorn is a river of [START_ENT] Brack [END_ENT] , near Tey."


def stored(folder: Path, schema: pa.Schema, *chunks: list[Any]) -> StoredTable:
    """Rows as chunks in files."""
    paths = [str(folder / f"{schema.names[0]}-{number}.arrow") for number in range(len(chunks))]
    written = [
        write_chunk([rows_batch(rows, schema)], schema, Report(), path=path)
        for rows, path in zip(chunks, paths, strict=True)
    ]
    return StoredTable(schema, written)


def drawn(keys: StoredTable, *, threads: int = 1, **counts: int) -> list[tuple[Any, ...]]:
    """Rows of CHOSEN."""
    with warehouse({"keys": keys}, threads=threads, memory_mb=MEMORY_MB) as db:
        db.execute(DISTINCT_KEYS)
        batches = list(ordered_batches(db, CHOSEN_LINKS.format(**counts), CHOSEN))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_of_equal_records_the_first_is_drawn_and_of_a_split_the_smallest_hashes(tmp_path: Path) -> None:
    rows = [(1, 1, 9, 4, 0), (1, 1, 3, 0, 5), (1, 2, 3, 1, 0), (2, 2, 5, 5, 9), (2, 2, 5, 0, 9), (3, 2, 1, 1, 9)]
    keys = stored(tmp_path, KEYS, rows[:1], rows[1:4], rows[4:])
    assert drawn(keys, n_dev_buckets=5, train=9, dev=9) == [
        (1, 1, False, 0),
        (3, 0, False, 1),
        (3, 1, True, 0),
        (5, 0, False, 2),
    ]
    assert drawn(keys, n_dev_buckets=5, train=1, dev=0) == [(3, 0, False, 0)]
    assert drawn(keys, n_dev_buckets=0, train=2, dev=1) == [(3, 0, False, 0), (3, 1, False, 1)]
    with warehouse({"keys": keys}, memory_mb=MEMORY_MB) as db:
        db.execute(DISTINCT_KEYS)
        assert db.execute(KEYS_OF_BUCKETS).fetchall() == [(0, 1), (5, 1), (9, 2)]


@pytest.mark.slow  # many rows
def test_any_number_of_threads_draws_the_same_as_a_dictionary(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    hashes, more_hashes, places, buckets = (random.integers(0, top, 300_000).tolist() for top in (400, 400, 50, 4))
    rows = list(zip(hashes, more_hashes, places, range(300_000), buckets, strict=True))
    first: dict[Any, Any] = {}
    for row in sorted(rows):
        first.setdefault(row[:2], row)
    splits = [[row for _, row in sorted(first.items()) if (row[4] < 1) == is_dev] for is_dev in (False, True)]
    chosen = [
        (*row[2:4], bool(is_dev), number)
        for is_dev, own in enumerate(splits)
        for number, row in enumerate(sorted(own[:9_000], key=lambda row: row[2:4]))
    ]
    keys = stored(tmp_path, KEYS, rows[:100_000], rows[100_000:])
    for threads in (1, 2, 7):
        assert drawn(keys, threads=threads, n_dev_buckets=1, train=9_000, dev=9_000) == sorted(chosen)


def test_dev_gets_the_buckets_that_give_it_its_share() -> None:
    even = dict.fromkeys(range(N_BUCKETS), 20)
    assert dev_buckets(even, Sampling(900, 100, "kilt", ContextOptions())) == -(-N_BUCKETS // 10)
    assert dev_buckets({}, SAMPLING) == 0
    assert dev_buckets({5: 3}, SAMPLING) == 6
    assert dev_buckets({5: 3}, Sampling(2, 0, "kilt", ContextOptions())) == 0
    assert dev_buckets({5: 3}, Sampling(0, 2, "kilt", ContextOptions())) == 6


def test_every_range_has_a_batch_of_its_own() -> None:
    places = [[3, 3, 4], [], [4], [5, 9, 9]]
    batches = [rows_batch([(place, 0, False, 0) for place in own], CHOSEN) for own in places]
    assert [batch["place"].to_pylist() for batch in one_run_each(batches, "place")] == [[3, 3], [4, 4], [5], [9, 9]]


@pytest.mark.parametrize("more", ["", "Übrigens."])
def test_occurrences_are_whole_words(more: str) -> None:
    texts = ["Art is art, not party. C++ and C.", "art", more]
    found = count_occurrences(texts, ["art", "C++", "is art not", "C art", "not", "++", "missing", "Art isn't", ""])
    assert {mention: n for mention, n in found.items() if n} == {"art": 2, "C++": 2, "is art not": 1, "not": 1}


def test_aliases_are_summed_over_chunks_and_have_the_shares_of_their_links(tmp_path: Path) -> None:
    long = "a name of more than 16 bytes "
    counts: Any = [
        {("Sorn", 3): 2, ("Sorn", 4): 2, (f"{long}b", 9): 1, (f"{long}a", 9): 1},
        {("Sorn", 4): 1, ("Sorn", 2): 3, ("Sorn", 7): 1},
    ]
    occurrences: Any = [{"Sorn": 8, f"{long}b": 4, f"{long}a": 1}, {"Sorn": 10}]
    titles = {number: str(number) for number in range(10)}
    chunks = [list(mention_rows(count, titles, of)) for count, of in zip(counts, occurrences, strict=True)]
    expected = [
        ("Sorn", 2, "2", 3, 3 / 9, 0.5),
        ("Sorn", 4, "4", 3, 3 / 9, 0.5),
        ("Sorn", 3, "3", 2, 2 / 9, 0.5),
        ("Sorn", 7, "7", 1, 1 / 9, 0.5),
        (f"{long}a", 9, "9", 1, 1.0, 1.0),
        (f"{long}b", 9, "9", 1, 1.0, 0.25),
    ]
    assert aliases(stored(tmp_path, MENTIONS, *chunks)) == expected
    assert aliases(StoredTable(MENTIONS, ())) == []


def aliases(mentions: StoredTable, *, threads: int = 1) -> list[tuple[Any, ...]]:
    """Rows of the alias table."""
    with warehouse({"mentions": mentions}, threads=threads, memory_mb=MEMORY_MB) as db:
        batches = list(ordered_batches(db, ALIAS_ROWS, ALIASES))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.slow  # many rows
def test_any_number_of_threads_makes_the_same_aliases_in_code_point_order(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    texts = [f"{first}{number}" for first in ("a", "Z", "É", "ﬀ", "𝔘") for number in range(10_000)]
    picks = zip(*(random.integers(0, top, 260_000).tolist() for top in (len(texts), 3, 9)), strict=True)
    rows = [(texts[text], page_id, str(page_id), n + 1, n + 2) for text, page_id, n in picks]
    own, links, occurrences = Counter[tuple[str, int]](), Counter[str](), Counter[str]()
    for mention, page_id, _, n, of in rows:
        own[mention, page_id] += n
        links[mention] += n
        occurrences[mention] += of
    expected = [
        (mention, page_id, str(page_id), n, n / links[mention], links[mention] / occurrences[mention])
        for (mention, page_id), n in sorted(own.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    ]
    table = stored(tmp_path, MENTIONS, rows[:100_000], rows[100_000:])
    for threads in (1, 2, 7):
        assert aliases(table, threads=threads) == expected
