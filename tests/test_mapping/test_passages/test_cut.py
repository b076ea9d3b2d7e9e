"""Pages cut into passages of whole sentences."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from itertools import pairwise

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kbsource.errors import DataError, RecordError, SetupError
from kbsource.kilt import kilt_record, kilt_texts
from kbsource.records import Anchor, Element, Page
from kbsource.sentences import sentence_spans
from mapping.passages.cut import (
    CutOptions,
    PageText,
    Passage,
    PassageSpan,
    check_passages,
    count_words,
    cut_chunks,
    cut_page,
    cut_words,
    join_pieces,
)
from mapping.passages.forms import FORMS, KiltPages, kilt_chunk_line, line_forms
from tests.support.passages import page

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
    check_passages(page, passages, join_pieces)
    return [passage.text for passage in passages]


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        (["They are:", "Norda", "Fenneka"], "They are: Norda; Fenneka"),
        (["Norda (1,204 km²)", "Fenneka (small)"], "Norda (1,204 km²); Fenneka (small)"),
        (['He said "No."', "He left"], 'He said "No." He left'),
        (["Norda;", "Fenneka,", "Skerry!", "…"], "Norda; Fenneka, Skerry! …"),
        (["北京。", "东京", "京都」", "終わり。」", "x"], "北京。 东京; 京都」; 終わり。」 x"),
        (["نهر؟", "بحر", "x"], "نهر؟ بحر; x"),
        (["alone"], "alone"),
    ],
)
def test_items_stay_apart(pieces: list[str], wanted: str) -> None:
    assert join_pieces(pieces) == wanted


@pytest.mark.parametrize("unit", ["words-100", "tokens-100"])
def test_passages_of_dpr_and_kilt_have_blanks_between_elements(unit: str) -> None:
    options = CutOptions(unit=unit)
    page = PageText(1, "T", ((1, "Norda"), (2, "Fenneka")), ((), ()))
    (passage,) = options.cutter("en")(page)
    assert passage.text == "Norda Fenneka"
    check_passages(page, [passage], options.join)
    with pytest.raises(RecordError, match="span_mismatch"):
        check_passages(page, [passage], join_pieces)
    (apart,) = CutOptions().cutter("en")(page)
    assert apart.text == "Norda; Fenneka"
    assert apart.piece(2, 0, 7) == passage.piece(2, 0, 7) == "Fenneka"


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
        pytest.param(("One", "two", "three"), 2, ["One; two", "three"], id="over elements, which stay apart"),
        pytest.param(("One:", "two.", "three"), 3, ["One: two. three"], id="a blank behind a mark"),
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
        ({"passage_id": "12__5"}, "invalid_passage"),
        ({"page_id": 13}, "invalid_passage"),
        ({"title": "Tey"}, "invalid_passage"),
        ({"number": 5}, "invalid_passage"),
        ({"text": "It ends in a lake. Its fish are new."}, "span_mismatch"),
        ({"text": "", "spans": ()}, "span_mismatch"),
        (
            {"spans": (PassageSpan(1, 41, 58), PassageSpan(3, 0, 17)), "text": "t ends in a lake. Its fish are old."},
            "lost_text",
        ),
        ({"spans": (PassageSpan(1, 40, 58),), "text": "It ends in a lake."}, "lost_text"),
        ({"spans": (PassageSpan(1, 40, 59), PassageSpan(3, 0, 17))}, "span_mismatch"),
        ({"spans": (PassageSpan(1, 40, 40), PassageSpan(3, 0, 17)), "text": " Its fish are old."}, "span_mismatch"),
        ({"spans": (PassageSpan(2, 0, 18), PassageSpan(3, 0, 17))}, "span_mismatch"),
        (
            {"spans": (PassageSpan(3, 0, 17), PassageSpan(1, 40, 58)), "text": "Its fish are old. It ends in a lake."},
            "span_mismatch",
        ),
        (
            {
                "spans": (PassageSpan(1, 30, 58), PassageSpan(3, 0, 17)),
                "text": PAGE.elements[0][1][30:] + " Its fish are old.",
            },
            "span_mismatch",
        ),
    ],
)
def test_what_is_no_passage_of_the_page_is_refused(changed: dict[str, object], reason: str) -> None:
    passages = cut_page(PAGE, max_words=9)
    check_passages(PAGE, passages, join_pieces)
    passages[1] = msgspec.structs.replace(passages[1], **changed)
    with pytest.raises(RecordError) as raised:
        check_passages(PAGE, passages, join_pieces)
    assert raised.value.reason == reason


def test_a_page_without_its_last_passage_is_refused() -> None:
    with pytest.raises(RecordError) as raised:
        check_passages(PAGE, cut_page(PAGE, max_words=9)[:-1], join_pieces)
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
    check_passages(page, passages, join_pieces)

    sentences = [(number, *span) for number, text in page.elements for span in sentence_spans(text)]
    sizes = {sentence: count_words(texts[sentence[0]][sentence[1] : sentence[2]]) for sentence in sentences}
    held = [[sentence for sentence in sentences if passage.holds(*sentence)] for passage in passages]
    assert [sentence for group in held for sentence in group] == sentences
    for passage, group in zip(passages, held, strict=True):
        assert [passage.piece(*sentence) for sentence in group] == [
            texts[number][start:end] for number, start, end in group
        ]
    for passage, group in zip(passages, held, strict=True):
        assert passage.n_words == sum(sizes[sentence] for sentence in group)
        assert passage.n_words <= max_words or len(group) == 1
    for group, after in pairwise(held):
        assert sum(sizes[sentence] for sentence in group) + sizes[after[0]] > max_words


@given(_TEXTS, st.integers(1, 8))
def test_with_sentences_cut_no_passage_is_too_long(texts: list[str], max_words: int) -> None:
    page = PageText(1, "T", tuple(enumerate(texts)))
    passages = cut_page(page, max_words=max_words, split_long=True)
    check_passages(page, passages, join_pieces)
    assert all(0 < passage.n_words <= max_words for passage in passages)


def test_scripts_without_blanks_are_cut_between_letters_and_never_before_a_mark() -> None:
    texts = _cut("กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุด" * 9, max_words=5, split_long=True)
    assert len(texts) > 9
    assert not any(unicodedata.category(text[0]).startswith("M") for text in texts)


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


def test_a_passage_has_a_word_at_least() -> None:
    with pytest.raises(SetupError, match=r"--max-words is 0. Must be >= 1"):
        CutOptions(0)


_ANY_TEXTS = st.lists(st.text(st.sampled_from("ab .!A京\t"), max_size=40), max_size=5)


def _words(text: str) -> int:
    return len(text.split())


def _page(*parts: tuple[str, str]) -> PageText:
    """A page of (heading, text)."""
    numbered = tuple(enumerate((text for _, text in parts), start=1))
    return PageText(1, "T", numbered, tuple((heading,) if heading else () for heading, _ in parts))


def test_words_are_cut_wherever_a_passage_is_full() -> None:
    page = _page(("", "One two. Three"), ("A", "four five six  seven"), ("B", "eight"))
    passages = cut_words(page, n_words=3)
    assert [(passage.text, passage.n_words, passage.section) for passage in passages] == [
        ("One two. Three", 3, ()),
        ("four five six", 3, ("A",)),
        ("seven eight", 2, ("A",)),
    ]
    assert passages[2].spans == (PassageSpan(2, 15, 20), PassageSpan(3, 0, 5))
    check_passages(page, passages, " ".join)


@given(_ANY_TEXTS, st.integers(1, 6))
def test_all_words_are_there_in_passages_that_are_full(texts: list[str], n_words: int) -> None:
    page = PageText(1, "T", tuple(enumerate(texts)))
    passages = cut_words(page, n_words=n_words)
    check_passages(page, passages, " ".join)
    assert "".join("".join(texts).split()) == "".join("".join(passage.text for passage in passages).split())
    assert all(passage.n_words == n_words for passage in passages[:-1])


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
    assert [passage.text for passage in passages] == wanted
    check_passages(page, passages, " ".join)


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
    assert [chunk.text for chunk in cut_chunks(page, n_tokens=6, count=_words)] == _slow_chunks(slow, 6)


def test_tokens_are_those_of_the_language() -> None:
    page = _page(("", "It's red, isn't it? Yes."))
    assert [passage.n_words for passage in CutOptions(unit="tokens-9").cutter("en")(page)] == [8, 2]
    assert [passage.n_words for passage in CutOptions(unit="tokens-100").cutter("zh")(_page(("", "北京是首都。")))] == [
        6
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "words-0"}, "--unit is words-0. Write it like"),
        ({"unit": "words-100", "max_words": 50}, "leave --max-words"),
        ({"unit": "tokens-100", "split_long": True}, "leave --max-words"),
    ],
)
def test_a_unit_says_all_of_the_length(options: dict[str, object], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        CutOptions(**options)  # type: ignore[arg-type]


TEXTS = ("The Sorn is a river.", "It meets the Tey。Here.", "It is old (very).")


def _sorn() -> Page:
    blank = page(7, "Sorn", "x")
    elements = (
        Element("title", 1, None, "", (), "Sorn"),
        Element("paragraph", 0, None, "", (), TEXTS[0]),
        Element("heading", 2, None, "", ("Course",), "Course"),
        Element("list_item", 1, None, "*", ("Course",), TEXTS[1]),
        Element("paragraph", 0, None, "", ("Course",), TEXTS[2]),
    )
    anchors = (
        Anchor(3, 13, 16, "Tey", "Tey", None, 9, "Tey"),
        Anchor(1, 12, 19, "a river", "River", None, None, "river"),
        Anchor(4, 6, 9, "old", "Age", None, None, "Age"),
    )
    return structs.replace(blank, elements=elements, anchors=anchors)


def _chunks() -> list[Passage]:
    sections = ((), ("Course",), ("Course",))
    text = PageText(7, "Sorn", tuple(zip((1, 3, 4), TEXTS, strict=True)), sections)
    return CutOptions(unit="tokens-100").cutter("en")(text)


def test_a_chunk_of_kilt_says_where_text_and_anchors_stand() -> None:
    pages = KiltPages([page(3, "Other", "x"), _sorn()], "pages")
    lead, course = (orjson.loads(kilt_chunk_line(chunk, pages)) for chunk in _chunks())
    record = kilt_record(_sorn())

    assert list(lead) == [
        *("_id", "wikipedia_id", "wikipedia_title", "text", "anchors", "categories", "history", "sources", "section"),
        "chunk_id",
    ]
    assert (lead["section"], lead["text"], lead["chunk_id"]) == ("Section::::Abstract.", TEXTS[0], "7__0")
    assert (course["section"], course["text"]) == ("Section::::Course.", f"{TEXTS[1]} {TEXTS[2]}")
    for chunk in (lead, course):
        texts = [record["text"][span["paragraph_id"]][span["start"] : span["end"]] for span in chunk["sources"]]
        assert " ".join(texts) == chunk["text"]
        for anchor in chunk["anchors"]:
            source = anchor["source"]
            assert chunk["text"][anchor["start"] : anchor["end"]] == anchor["text"]
            assert record["text"][source["paragraph_id"]][source["start"] : source["end"]] == anchor["text"]
    assert [anchor["text"] for anchor in course["anchors"]] == ["Tey", "old"]
    assert course["anchors"][0]["wikipedia_id"] == "9"


def test_an_anchor_that_is_not_wholly_in_a_chunk_is_left_out() -> None:
    passage = Passage("7__0", 7, "Sorn", 0, 4, "The Sorn is a", (PassageSpan(1, 0, 13),))
    assert orjson.loads(kilt_chunk_line(passage, KiltPages([_sorn()], "")))["anchors"] == []


def test_slips_of_the_released_code() -> None:
    passage = Passage("7__0", 7, "Sorn", 0, 4, "It meets the Tey", (PassageSpan(3, 0, 16),))
    chunk = orjson.loads(kilt_chunk_line(passage, KiltPages([_sorn()], ""), is_released=True))
    assert chunk["text"] == "It meets the Tey。"
    assert chunk["section"] == "Section::::Abstract"
    assert "chunk_id" not in chunk


def test_a_page_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match=r"pages-00\.parquet has no page 7"):
        KiltPages([page(3, "Other", "x")], "pages-00.parquet").page(7)


def test_places_are_those_of_the_page_asked_for() -> None:
    assert KiltPages([_sorn()], "").page(7).places == kilt_texts(_sorn())[1]


def test_a_collection_for_colbert_has_no_further_tabs_or_lines() -> None:
    odd = Passage("7__0", 7, "A\tB", 0, 3, "one\rtwo\tthree", (PassageSpan(1, 0, 13),))
    collection, ids = line_forms(["colbert"])
    assert collection.numbered is not None
    assert ids.numbered is not None
    assert collection.numbered(4, collection.line(odd, NO_PAGES)) == b"4\tone two three\tA B\n"
    assert ids.numbered(4, ids.line(odd, NO_PAGES)) == b"4\t7__0\n"


def test_a_corpus_for_beir_has_page_and_section_beside_the_text() -> None:
    (corpus,) = line_forms(["beir"])
    passage = _chunks()[1]
    assert orjson.loads(corpus.line(passage, NO_PAGES)) == {
        "_id": "7__1",
        "title": "Sorn",
        "text": passage.text,
        "metadata": {"wikipedia_id": "7", "section": "Course"},
    }


def test_every_form_has_a_folder_of_its_own() -> None:
    assert all({form.folder for form in lines_form.files} == {name} for name, lines_form in FORMS.items())
