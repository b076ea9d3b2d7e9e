"""Pages cut into passages of whole sentences."""

from __future__ import annotations

import csv
import doctest
import io
import json
import unicodedata
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import RecordError, SetupError
from mapping.contexts import negatives
from mapping.passages import cut
from mapping.passages.cut import CutOptions, PageText, Passage, PassageSpan, check_passages, count_words, cut_page
from mapping.passages.forms import FORMS, KiltPages
from mapping.search.sentences import sentence_spans

NO_PAGES = KiltPages((), "pages")
PAGE = PageText(
    12,
    "Sorn",
    (
        (1, "The Sorn is a river. It rises in Brack. It ends in a lake."),
        (3, "Its fish are old."),
        (4, "  Goats drink. "),
    ),
)


def _cut(*texts: str, max_words: int = 100, split_long: bool = False) -> list[str]:
    page = PageText(1, "T", tuple(enumerate(texts, start=1)))
    passages = cut_page(page, max_words=max_words, split_long=split_long)
    check_passages(page, passages)
    return [one.text for one in passages]


def test_passages_have_id_title_number_words_and_place() -> None:
    assert cut_page(PAGE, max_words=9) == [
        Passage("12__0", 12, "Sorn", 0, 9, "The Sorn is a river. It rises in Brack.", (PassageSpan(1, 0, 39),)),
        Passage(
            "12__1",
            12,
            "Sorn",
            1,
            9,
            "It ends in a lake. Its fish are old.",
            (PassageSpan(1, 40, 58), PassageSpan(3, 0, 17)),
        ),
        Passage("12__2", 12, "Sorn", 2, 2, "Goats drink.", (PassageSpan(4, 2, 14),)),
    ]


@pytest.mark.parametrize(
    ("texts", "max_words", "wanted"),
    [
        pytest.param((), 5, [], id="no text"),
        pytest.param(("  ",), 5, [], id="white space alone"),
        pytest.param(("One two. Three four.",), 4, ["One two. Three four."], id="as many words as there may be"),
        pytest.param(("One two. Three four.",), 3, ["One two.", "Three four."], id="one word too many"),
        pytest.param(("A b.  C d.",), 4, ["A b.  C d."], id="blanks within an element stay"),
        pytest.param(("One", "two", "three"), 2, ["One two", "three"], id="over elements, one blank between"),
        pytest.param(
            ("A b. One two three four five. C d. E f.",),
            4,
            ["A b.", "One two three four five.", "C d. E f."],
            id="a longer sentence is a passage by itself and nothing behind it is lost",
        ),
        pytest.param(("One two three four five.",), 1, ["One two three four five."], id="nothing but a longer one"),
    ],
)
def test_sentences_are_packed(texts: tuple[str, ...], max_words: int, wanted: list[str]) -> None:
    assert _cut(*texts, max_words=max_words) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A b. One two three four five. C d.", ["A b.", "One two three", "four five.", "C d."]),
        ("One two three four. C d.", ["One two three", "four. C d."]),
        ("One two  three   four.", ["One two  three", "four."]),
        ("北京是首都。东京也是。", ["北京是", "首都。", "东京也", "是。"]),
    ],
)
def test_a_longer_sentence_is_cut_where_asked_for(text: str, wanted: list[str]) -> None:
    assert _cut(text, max_words=3, split_long=True) == wanted


@pytest.mark.parametrize(
    ("text", "n_words"),
    [
        ("", 0),
        (" \t ", 0),
        ("It rises – here, in 1901.", 6),
        ("naïve café", 2),
        ("東京タワー (Tokyo)", 6),
        ("한국어 문장", 2),
        ("\U00020000\u3000x", 2),
        ("กรุงเทพ", 2),  # six letters, one of them with a mark
        ("กรุงเทพ กรุง A", 4),
        ("ភ្នំពេញ", 1),
        ("ລາວ", 1),
        ("ရန်ကုန်မြို့", 2),
        ("ལྷ་ས་ནི", 2),
        ("๑๒๓๔๕", 2),
    ],
)
def test_words_are_runs_without_white_space_or_one_ideograph(text: str, n_words: int) -> None:
    assert count_words(text) == n_words


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"passage_id": "12__5"}, "passage_law"),
        ({"page_id": 13}, "passage_law"),
        ({"title": "Tey"}, "passage_law"),
        ({"number": 5}, "passage_law"),
        ({"text": "It ends in a lake. Its fish are new."}, "offset_law"),
        ({"text": "", "spans": ()}, "offset_law"),
        (
            {"spans": (PassageSpan(1, 41, 58), PassageSpan(3, 0, 17)), "text": "t ends in a lake. Its fish are old."},
            "lost_text",
        ),
        ({"spans": (PassageSpan(1, 40, 58),), "text": "It ends in a lake."}, "lost_text"),
        ({"spans": (PassageSpan(1, 40, 59), PassageSpan(3, 0, 17))}, "offset_law"),
        ({"spans": (PassageSpan(1, 40, 40), PassageSpan(3, 0, 17)), "text": " Its fish are old."}, "offset_law"),
        ({"spans": (PassageSpan(2, 0, 18), PassageSpan(3, 0, 17))}, "offset_law"),
        (
            {"spans": (PassageSpan(3, 0, 17), PassageSpan(1, 40, 58)), "text": "Its fish are old. It ends in a lake."},
            "offset_law",
        ),
        (
            {
                "spans": (PassageSpan(1, 30, 58), PassageSpan(3, 0, 17)),
                "text": PAGE.elements[0][1][30:] + " Its fish are old.",
            },
            "offset_law",
        ),
    ],
)
def test_what_is_no_passage_of_the_page_is_refused(changed: dict[str, object], reason: str) -> None:
    passages = cut_page(PAGE, max_words=9)
    check_passages(PAGE, passages)
    passages[1] = passages[1]._replace(**changed)  # type: ignore[arg-type]
    with pytest.raises(RecordError) as raised:
        check_passages(PAGE, passages)
    assert raised.value.reason == reason


def test_a_page_without_its_last_passage_is_refused() -> None:
    with pytest.raises(RecordError) as raised:
        check_passages(PAGE, cut_page(PAGE, max_words=9)[:-1])
    assert raised.value.reason == "lost_text"


_TEXTS = st.lists(
    st.text(st.sampled_from("ab .!?A1“”。京\u3000\x1c\t\u00a0–"), max_size=60)
    | st.text(max_size=30).map(lambda t: t.replace("\n", " ")),
    max_size=5,
)


@given(_TEXTS, st.integers(1, 8))
def test_nothing_is_lost_and_no_passage_could_take_more(texts: list[str], max_words: int) -> None:
    page = PageText(1, "T", tuple(enumerate(texts)))
    passages = cut_page(page, max_words=max_words)
    check_passages(page, passages)

    sentences = [(number, *span) for number, text in page.elements for span in sentence_spans(text)]
    sizes = {one: count_words(texts[one[0]][one[1] : one[2]]) for one in sentences}
    held = [[one for one in sentences if passage.holds(*one)] for passage in passages]
    assert [one for group in held for one in group] == sentences
    for passage, group in zip(passages, held, strict=True):
        assert [passage.piece(*one) for one in group] == [texts[number][start:end] for number, start, end in group]
    for passage, group in zip(passages, held, strict=True):
        assert passage.n_words == sum(sizes[one] for one in group)
        assert passage.n_words <= max_words or len(group) == 1
    for group, after in pairwise(held):
        assert sum(sizes[one] for one in group) + sizes[after[0]] > max_words


@given(_TEXTS, st.integers(1, 8))
def test_with_sentences_cut_no_passage_is_too_long(texts: list[str], max_words: int) -> None:
    page = PageText(1, "T", tuple(enumerate(texts)))
    passages = cut_page(page, max_words=max_words, split_long=True)
    check_passages(page, passages)
    assert all(0 < one.n_words <= max_words for one in passages)


def test_scripts_without_blanks_are_cut_between_letters_and_never_before_a_mark() -> None:
    texts = _cut("กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุด" * 9, max_words=5, split_long=True)
    assert len(texts) > 9
    assert not any(unicodedata.category(one[0]).startswith("M") for one in texts)


@pytest.mark.parametrize("text", ["a\rb. C.", "a\r", "\ra\tb", "a\nb", 'a"\r"b', "\x0b\x1c\x85\u2028"])
def test_a_table_for_dpr_has_one_row_a_passage_whatever_breaks_lines(text: str) -> None:
    passage = Passage("7__0", 7, "A", 0, 3, text, (PassageSpan(1, 0, len(text)),))
    table = FORMS["dpr"].files[0].line(passage, NO_PAGES).decode()
    assert list(csv.reader(io.StringIO(table, newline=""), delimiter="\t")) == [["7__0", text, "A"]]


def test_lines_are_read_back_as_retrievers_read_them() -> None:
    odd = Passage("7__0", 7, 'A "B"', 0, 3, 'He said\t"no". \\N “x”', (PassageSpan(1, 0, 20),), ("Course", "Mouth"))
    assert json.loads(FORMS["pyserini"].files[0].line(odd, NO_PAGES)) == {
        "id": "7__0",
        "contents": 'A "B"\nHe said\t"no". \\N “x”',
        "section": "Course > Mouth",
    }
    table = FORMS["dpr"].files[0].head + FORMS["dpr"].files[0].line(odd, NO_PAGES)
    assert list(csv.reader(io.StringIO(table.decode(), newline=""), delimiter="\t")) == [
        ["id", "text", "title"],
        ["7__0", odd.text, odd.title],
    ]


@pytest.mark.parametrize("module", [cut, negatives], ids=lambda one: one.__name__)
def test_examples_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


def test_a_passage_has_a_word_at_least() -> None:
    with pytest.raises(SetupError, match="--max-words is 0; give at least 1"):
        CutOptions(0)
