"""Text as HTML: the same text, with links and marks, and nothing that a browser would run."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from mapping.inspector.marking import Link, Marked, Span, mark_text, read_spans, shown, spans_query


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
    links = [Link(4, 8, "/r/x/page/1?a=1&b", 'a "note"'), Link(9, 10, None, "dead")]
    assert mark_text("The <b>; I", links, [Marked(6, 10, "gold")]) == (
        'The <a href="/r/x/page/1?a=1&amp;b" title="a &#34;note&#34;">&lt;b<mark title="gold">&gt;;</mark></a>'
        '<mark title="gold"> </mark><span class="dead" title="dead"><mark title="gold">I</mark></span>'
    )


def test_overlapping_marks_say_all_that_they_are() -> None:
    found = mark_text("abcdef", marked=[Marked(0, 4, "one"), Marked(2, 6, "two")])
    assert found == '<mark title="one">ab</mark><mark title="one; two">cd</mark><mark title="two">ef</mark>'


_places = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted)


@given(
    st.text(max_size=40), st.lists(_places, max_size=4), st.lists(st.tuples(_places, st.text(max_size=5)), max_size=4)
)
def test_the_text_stays_the_same_code_point_for_code_point(
    text: str, links: list[list[int]], marks: list[tuple[list[int], str]]
) -> None:
    html = mark_text(
        text,
        [Link(start, end, "/", "<script>") for start, end in sorted(links)],
        [Marked(start, end, label) for (start, end), label in marks],
    )
    parser = _Text()
    parser.feed(html)
    parser.close()
    assert parser.text == shown(text)
    assert len(parser.text) == len(text)
    assert parser.tags <= {"a", "mark"}


def test_spans_come_back_out_of_an_address() -> None:
    spans = [Span(3, 0, 4, 12, "answer, and <b>"), Span(0, 1, 0, 2)]
    assert read_spans(spans_query(spans)) == tuple(spans)
    assert read_spans(["", "x", "1:2-3", "1:2-3:4:5", "-1:2-3:4", "1:2-3:" + "4" * 10]) == ()


def test_a_span_has_its_part_of_each_element() -> None:
    span = Span(2, 5, 4, 3)
    assert [span.inside(number, 10) for number in range(1, 6)] == [None, (5, 10), (0, 10), (0, 3), None]
    assert Span(2, 5, 2, 99).inside(2, 4) is None
