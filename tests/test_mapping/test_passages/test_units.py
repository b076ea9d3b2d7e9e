"""Pages cut into runs of words, as DPR cuts them, and into KILT's chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.passages.cut import CutOptions, PageText, PassageSpan, check_passages, cut_chunks, cut_words

_TEXTS = st.lists(st.text(st.sampled_from("ab .!A京\t"), max_size=40), max_size=5)


def _words(text: str) -> int:
    return len(text.split())


def _page(*parts: tuple[str, str]) -> PageText:
    """Gives a page of (heading, text)."""
    numbered = tuple(enumerate((text for _, text in parts), start=1))
    return PageText(1, "T", numbered, tuple((heading,) if heading else () for heading, _ in parts))


def test_words_are_cut_wherever_a_passage_is_full() -> None:
    page = _page(("", "One two. Three"), ("A", "four five six  seven"), ("B", "eight"))
    passages = cut_words(page, n_words=3)
    assert [(one.text, one.n_words, one.section) for one in passages] == [
        ("One two. Three", 3, ()),
        ("four five six", 3, ("A",)),
        ("seven eight", 2, ("A",)),
    ]
    assert passages[2].spans == (PassageSpan(2, 15, 20), PassageSpan(3, 0, 5))
    check_passages(page, passages)


@given(_TEXTS, st.integers(1, 6))
def test_all_words_are_there_in_passages_that_are_full(texts: list[str], n_words: int) -> None:
    page = PageText(1, "T", tuple(enumerate(texts)))
    passages = cut_words(page, n_words=n_words)
    check_passages(page, passages)
    assert "".join("".join(texts).split()) == "".join("".join(one.text for one in passages).split())
    assert all(one.n_words == n_words for one in passages[:-1])


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        pytest.param([("", "A b cc. D e ff."), ("", "G hh.")], ["A b cc.", "D e ff. G hh."], id="fewer than the limit"),
        pytest.param([("", "A bb."), ("", "C dd."), ("", "Ee.")], ["A bb. C dd.", "Ee."], id="a blank between counts"),
        pytest.param([("", "A bb."), ("S", "C dd.")], ["A bb.", "C dd."], id="one section"),
        pytest.param(
            [("", "A b c d e f g hh. I jj.")], ["A b c d e f g hh.", "I jj."], id="a long sentence is not cut"
        ),
        pytest.param(
            [("", "A b c d ee. F g hh."), ("", "Ii.")], ["A b c d ee.", "F g hh. Ii."], id="what is left joins"
        ),
    ],
)
def test_sentences_of_one_section_make_a_chunk(parts: list[tuple[str, str]], wanted: list[str]) -> None:
    page = _page(*parts)
    passages = cut_chunks(page, n_tokens=6, count=_words)
    assert [one.text for one in passages] == wanted
    check_passages(page, passages)


def _slow_chunks(page: PageText, limit: int) -> list[str]:
    """KILT's own steps, written down as they are described."""
    chunks: list[tuple[str, int, tuple[str, ...]]] = []
    for (_, text), section in zip(page.elements, page.sections, strict=True):
        buffer: list[str] = []
        for sentence in text.split("|"):
            if buffer and len(buffer) + _words(sentence) >= limit:
                chunks.append((" ".join(buffer), len(buffer), section))
                buffer = []
            buffer += sentence.split()
        if chunks and chunks[-1][2] == section and buffer and len(buffer) + chunks[-1][1] < limit:
            chunks[-1] = (f"{chunks[-1][0]} {' '.join(buffer)}", chunks[-1][1] + len(buffer) + 1, section)
        elif buffer:
            chunks.append((" ".join(buffer), len(buffer), section))
    return [text for text, _, _ in chunks]


@given(st.lists(st.tuples(st.sampled_from("AB"), st.lists(st.integers(1, 7), min_size=1, max_size=4)), max_size=6))
def test_chunks_are_those_of_the_slow_way(parts: list[tuple[str, list[int]]]) -> None:
    sentences = [(heading, [" ".join(["Xx"] * (n - 1) + ["Yy."]) for n in sizes]) for heading, sizes in parts]
    page = _page(*((heading, " ".join(own)) for heading, own in sentences))
    slow = _page(*((heading, "|".join(own)) for heading, own in sentences))
    assert [one.text for one in cut_chunks(page, n_tokens=6, count=_words)] == _slow_chunks(slow, 6)


def test_tokens_are_those_of_the_language() -> None:
    page = _page(("", "It's red, isn't it? Yes."))
    assert [one.n_words for one in CutOptions(unit="tokens-9").cutter("en")(page)] == [8, 2]
    assert [one.n_words for one in CutOptions(unit="tokens-100").cutter("zh")(_page(("", "北京是首都。")))] == [6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "words-0"}, "--unit is 'words-0'; write it like"),
        ({"unit": "words-100", "max_words": 50}, "leave --max-words"),
        ({"unit": "tokens-100", "split_long": True}, "leave --max-words"),
    ],
)
def test_a_unit_says_all_of_the_length(options: dict[str, object], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        CutOptions(**options)  # type: ignore[arg-type]
