"""Text as HTML: the same text, with links and marks, and nothing that a browser would run; words that changed."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.inspector.marking import (
    MOST_WORDS,
    Mark,
    MarkedRange,
    Marker,
    TextLink,
    changed_words,
    mark_text,
    marked_pieces,
    read_spans,
    shown,
    spans_query,
)
from tests.support.growth import assert_linear


class _Text(HTMLParser):
    """Collects the text and the tags of some HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", set[str]()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def test_links_and_marks_stand_where_they_should() -> None:
    links = [TextLink(4, 8, "/r/x/page/1?a=1&b", 'a "note"'), TextLink(9, 10, None, "dead")]
    assert mark_text("The <b>; I", links, [Mark(6, 10, "gold")]) == (
        'The <a href="/r/x/page/1?a=1&amp;b" title="a &#34;note&#34;">&lt;b<mark title="gold">&gt;;</mark></a>'
        '<mark title="gold"> </mark><span class="dead" title="dead"><mark title="gold">I</mark></span>'
    )


def test_overlapping_marks_say_all_that_they_are() -> None:
    found = mark_text("abcdef", marked=[Mark(0, 4, "one"), Mark(2, 6, "two")])
    assert found == '<mark title="one">ab</mark><mark title="one; two">cd</mark><mark title="two">ef</mark>'


def test_notes_are_no_text_and_stand_behind_the_link_that_they_fall_into() -> None:
    notes = [Marker(3, "1", "<Lee>", "#r0"), Marker(5, "citation needed", "doubted", None)]
    assert mark_text("The red", [TextLink(4, 7, "/x", "red")], notes=notes) == (
        'The<a class="fn" href="#r0" data-label="1" aria-label="&lt;Lee&gt;" title="&lt;Lee&gt;"></a> '
        '<a href="/x" title="red">red</a>'
        '<span class="fn" role="note" data-label="citation needed" aria-label="doubted" title="doubted"></span>'
    )


_places = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted)


@given(
    st.text(max_size=40),
    st.lists(_places, max_size=4),
    st.lists(st.tuples(_places, st.text(max_size=5)), max_size=4),
    st.lists(st.integers(0, 40), max_size=4).map(sorted),
)
def test_the_text_stays_the_same_code_point_for_code_point(
    text: str, links: list[list[int]], marks: list[tuple[list[int], str]], notes: list[int]
) -> None:
    html = mark_text(
        text,
        [TextLink(start, end, "/", "<script>") for start, end in sorted(links)],
        [Mark(start, end, label) for (start, end), label in marks],
        [Marker(place, "<1>", "<b>", None) for place in notes if place <= len(text)],
    )
    parser = _Text()
    parser.feed(str(html))
    parser.close()
    assert parser.text == shown(text)
    assert len(parser.text) == len(text)
    assert parser.tags <= {"a", "mark", "span"}
    assert html.count('class="fn"') == sum(place <= len(text) for place in notes)


def test_spans_come_back_out_of_an_address() -> None:
    spans = [MarkedRange(3, 0, 4, 12, "answer, and <b>"), MarkedRange(0, 1, 0, 2)]
    assert read_spans(spans_query(spans)) == tuple(spans)
    assert read_spans(["", "x", "1:2-3", "1:2-3:4:5", "-1:2-3:4", "1:2-3:" + "4" * 10]) == ()


def test_a_span_has_its_part_of_each_element() -> None:
    span = MarkedRange(2, 5, 4, 3)
    assert [span.inside(number, 10) for number in range(1, 6)] == [None, (5, 10), (0, 10), (0, 3), None]
    assert MarkedRange(2, 5, 2, 99).inside(2, 4) is None


def marks(old: str, new: str) -> tuple[list[str], list[str]]:
    before, after = changed_words(old, new)
    return [piece.text for piece in before if piece.is_marked], [piece.text for piece in after if piece.is_marked]


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        pytest.param("the big lake", "the lake", ["big"], [], id="a word gone"),
        pytest.param("the lake", "the big lake", [], ["big"], id="a word come"),
        pytest.param("27 m high", "89 ft high", ["27 m"], ["89 ft"], id="words beside each other are one mark"),
        pytest.param("The sea , and Rain .", "the sea, and rain", [], [], id="case and punctuation do not count"),
        pytest.param("in (1901).", "in (1902).", ["1901"], ["1902"], id="punctuation around a word is not marked"),
        pytest.param("北京是城市", "北京是大城市", [], ["大"], id="scripts without blanks by the letter"),
        pytest.param("war—peace", "war — love", ["peace"], ["love"], id="dashes part words"),
        pytest.param("नमस्ते दुनिया", "नमस्ते भारत", ["दुनिया"], ["भारत"], id="marks stay with their letters"),
        pytest.param("", "a b", [], ["a b"], id="an empty text"),
        pytest.param("a x b", "a y b", ["x"], ["y"], id="replaced"),
    ],
)
def test_changed_words(old: str, new: str, gone: list[str], come: list[str]) -> None:
    assert marks(old, new) == (gone, come)


_TEXTS = st.text("ab ,.—(北É\u200b\n", max_size=30)


@given(_TEXTS, _TEXTS)
def test_pieces_are_the_texts_and_what_is_not_marked_is_the_same(old: str, new: str) -> None:
    before, after = changed_words(old, new)
    assert "".join(piece.text for piece in before) == old
    assert "".join(piece.text for piece in after) == new
    kept = [" ".join(piece.text for piece in side if not piece.is_marked) for side in (before, after)]
    assert marks(*kept) == ([], [])


def test_long_texts_take_a_bounded_time() -> None:
    def work(n_words: int) -> None:
        old, new = ([f"w{number % kinds}" for number in range(n_words)] for kinds in (997, 991))
        changed_words(" ".join(old), " ".join(new))

    assert_linear(work, 2 * MOST_WORDS)

    # Where only little in the middle differs, length does not matter.
    old = [f"w{number % 997}" for number in range(3 * MOST_WORDS)]
    assert marks(" ".join(old), " ".join([*old[:20_000], "new", *old[20_000:]])) == ([], ["new"])


def test_marked_pieces_leave_out_what_overlaps_or_lies_outside() -> None:
    pieces = marked_pieces("abcdef", [(4, 99), (1, 3), (2, 4), (9, 12)])
    assert [(piece.text, piece.is_marked) for piece in pieces] == [
        ("a", False),
        ("bc", True),
        ("d", True),
        ("ef", True),
    ]
