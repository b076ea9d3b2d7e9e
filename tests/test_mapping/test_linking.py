"""Links of pages as records, keys and mentions: each by itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from kbsource.columns import batch_of
from kbsource.records import Anchor, Page
from kbsource.runtime.chunks import rows_batch
from mapping.entity_linking.aliases import alias_rows, count_occurrences, mention_rows, prefixes
from mapping.entity_linking.links import N_BUCKETS, Sampling, Targets, chosen_lines, distinct_keys, draw, scan_links
from mapping.entity_linking.records import (
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


def test_chosen_links_are_numbered_by_split_in_the_order_of_the_release() -> None:
    pages = batch_of([linked(3, (1, "Sorn", 2), (1, "Brack", 4)), linked(5, (1, "Tey", 3))], Page)
    chosen = {"train": np.array([0, 2]), "dev": np.array([1])}
    lines = chosen_lines(pages, chosen, {"train": 10, "dev": 0}, ContextOptions()).to_pylist()
    assert [tuple(row.values())[:-1] for row in lines] == [
        ("blink-train-10", 3, 1, 4, 8, 2, False),
        ("blink-dev-0", 3, 1, 24, 29, 4, True),
        ("blink-train-11", 5, 1, 36, 39, 3, False),
    ]
    assert json.loads(lines[1]["line"])["input"] == "The Sorn is a river of [START_ENT] Brack [END_ENT] , near Tey."


def test_of_keys_that_say_the_same_the_first_stays_over_batches_too() -> None:
    rows = [(1, 1, 3, 0, 0), (1, 1, 9, 4, 0), (1, 2, 3, 1, 0), (2, 2, 0, 0, 0), (2, 2, 5, 5, 0), (3, 2, 1, 1, 0)]
    batches = [rows_batch(rows[:2], KEYS), rows_batch(rows[2:4], KEYS), rows_batch(rows[4:], KEYS)]
    kept = [tuple(row.values()) for batch in distinct_keys(batches) for row in batch.to_pylist()]
    assert kept == [rows[0], rows[2], rows[3], rows[5]]


def test_dev_gets_the_buckets_that_give_it_its_share_and_no_split_more_than_is_wanted() -> None:
    even = [np.full(N_BUCKETS, 10)] * 2
    drawn = draw(even, Sampling(900, 100, "kilt", ContextOptions()))
    assert drawn.n_dev_buckets == -(-N_BUCKETS // 10)
    assert drawn.groups == [{"train": 900, "dev": 100}, {"train": 0, "dev": 0}]
    assert draw([], SAMPLING).groups == []
    few = np.zeros(N_BUCKETS, np.int64)
    few[5] = 3
    assert draw([few], SAMPLING) == (6, {"train": 0, "dev": 3}, [{"train": 0, "dev": 3}])
    assert draw([few], Sampling(2, 0, "kilt", ContextOptions())).groups == [{"train": 2, "dev": 0}]
    assert draw([few], Sampling(0, 2, "kilt", ContextOptions())).groups == [{"train": 0, "dev": 2}]


@pytest.mark.parametrize("more", ["", "Übrigens."])
def test_occurrences_are_whole_words(more: str) -> None:
    texts = ["Art is art, not party. C++ and C.", "art", more]
    found = count_occurrences(texts, ["art", "C++", "is art not", "C art", "not", "++", "missing", "Art isn't", ""])
    assert {mention: n for mention, n in found.items() if n} == {"art": 2, "C++": 2, "is art not": 1, "not": 1}


def test_prefixes_are_in_the_order_of_the_texts() -> None:
    texts = ["", "A", "A b", "Zürich", "a", "article of some length", "é", "Łódź", "北京", "𝔘"]
    numbers = [tuple(pair) for pair in prefixes(texts).tolist()]
    assert sorted(zip(numbers, texts, strict=True)) == sorted(
        zip(numbers, texts, strict=True), key=lambda pair: pair[1].encode()
    )


def test_aliases_are_summed_over_chunks_and_have_the_shares_of_their_links() -> None:
    long = "a name of more than 16 bytes "
    counts: Any = [
        {("Sorn", 3): 2, ("Sorn", 4): 2, (f"{long}b", 9): 1, (f"{long}a", 9): 1},
        {("Sorn", 4): 1, ("Sorn", 2): 3, ("Sorn", 7): 1},
    ]
    occurrences: Any = [{"Sorn": 8, f"{long}b": 4, f"{long}a": 1}, {"Sorn": 10}]
    titles = {number: str(number) for number in range(10)}
    rows = [row for count, of in zip(counts, occurrences, strict=True) for row in mention_rows(count, titles, of)]
    rows.sort(key=lambda row: (row[0], row[1], row[3]))
    batches = [rows_batch(rows[:3], MENTIONS), rows_batch(rows[3:], MENTIONS)]
    made = [tuple(row.values()) for batch in alias_rows(batches) for row in batch.to_pylist()]
    assert made == [
        ("Sorn", 2, "2", 3, 3 / 9, 0.5),
        ("Sorn", 4, "4", 3, 3 / 9, 0.5),
        ("Sorn", 3, "3", 2, 2 / 9, 0.5),
        ("Sorn", 7, "7", 1, 1 / 9, 0.5),
        (f"{long}a", 9, "9", 1, 1.0, 1.0),
        (f"{long}b", 9, "9", 1, 1.0, 0.25),
    ]
    assert list(alias_rows([pa.RecordBatch.from_pylist([], MENTIONS)])) == []
