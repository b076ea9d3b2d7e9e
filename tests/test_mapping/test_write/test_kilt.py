"""The published form: fields and their order, places renumbered, sections, files without answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.kilt import kilt_texts
from kbsource.records import Element, Page
from mapping.decide import decide
from mapping.records import Alignment, Evidence, EvidenceKey, Example, Output, PageKey, Place, Span, iter_evidence
from mapping.search.numbering import Numbering, numbered_elements, place_of
from mapping.sources import all_sources
from mapping.write.kilt import kilt_example, kilt_line, without_answers
from tests.support.aligned import aligned
from tests.support.pages import synthetic_pages

TITLE = PageKey("title", "T")
SPAN_KEYS = ["wikipedia_id", "title", "start_paragraph_id", "start_character", "end_paragraph_id", "end_character"]
FOUND = aligned("near", 30, "River Ullane", "Section::::Abstract.", Place(1, 4, 1, 9), score=0.75)


def _record(example: Example, placed: dict[EvidenceKey, Alignment], dataset: str, **options: Any) -> dict[str, Any]:
    policy = all_sources()[dataset].policies["dev"]
    decision = decide(example, placed, policy)
    return kilt_example(example, placed, decision, policy, **options)


def _example(*outputs: Output, meta: dict[str, Any] | None = None) -> Example:
    return Example("1", "q", outputs, meta, file="f", line=1)


def _one_span(placed: Alignment, dataset: str = "jsonl", evidence: Evidence | None = None, **options: Any) -> Any:
    example = _example(Output("x", (evidence or Evidence(TITLE, "t"),)))
    return _record(example, {(0, 0): placed}, dataset, **options)["output"][0]["provenance"][0]


def test_a_record_has_the_published_fields_in_their_order() -> None:
    evidence = Evidence(TITLE, "t", {"fever_page_id": "T", "fever_sentence_id": 0})
    example = _example(Output("SUPPORTS", (evidence,)), Output("SUPPORTS"), meta={"m": 1})
    record = _record(example, {(0, 0): FOUND}, "fever")
    assert list(record) == ["id", "input", "output", "meta"]
    assert [list(output) for output in record["output"]] == [["answer", "provenance"], ["answer"]]
    (span,) = record["output"][0]["provenance"]
    assert list(span) == [*SPAN_KEYS, "bleu_score", "meta", "section"]
    assert span == {
        "wikipedia_id": "30",
        "title": "River Ullane",
        "start_paragraph_id": 1,
        "start_character": 4,
        "end_paragraph_id": 1,
        "end_character": 9,
        "bleu_score": 0.75,
        "meta": {"fever_page_id": "T", "fever_sentence_id": 0},
        "section": "Section::::Abstract.",
    }


def test_what_the_record_does_not_have_is_no_key() -> None:
    assert _record(Example("1", None, (), None, file="f", line=1), {}, "jsonl") == {"id": "1"}


@pytest.mark.parametrize(
    ("section", "strips", "expected"),
    [
        ("Section::::Abstract.", False, "Section::::Abstract."),
        ("Section::::Course.:Upper.", False, "Section::::Course.:Upper.\n"),
        ("Section::::Course.", True, "Section::::Course."),
    ],
)
def test_sections_end_in_a_newline_but_for_the_lead(section: str, strips: bool, expected: str) -> None:
    assert _one_span(replace(FOUND, section=section), strips_section=strips)["section"] == expected


def test_lines_are_ascii_with_blanks_and_keep_every_digit() -> None:
    line = kilt_line({"id": "1", "output": [{"answer": "é ∴ 𝔘"}], "n": 2**70, "bleu_score": 0.6816476074249925})
    assert line == (
        b'{"id": "1", "output": [{"answer": "\\u00e9 \\u2234 \\ud835\\udd18"}], "n": 1180591620717411303424, '
        b'"bleu_score": 0.6816476074249925}\n'
    )


@pytest.mark.parametrize(
    ("dataset", "meta", "kept"),
    [
        ("aidayago2", {"left_context": "l", "mention": "m", "right_context": "r"}, True),
        ("structured_zeroshot", {"template_questions": ["x"]}, True),
        ("trex", {"subj_aliases": [], "sub_surface": []}, True),
        ("trex", {"obj_surface": []}, False),
        ("eli5", {"partial_evidence": []}, False),
        ("hotpotqa", {"level": "easy", "type": "bridge"}, False),
    ],
)
def test_files_without_answers_keep_only_meta_that_gives_none_away(
    dataset: str, meta: dict[str, Any], kept: bool
) -> None:
    record = {"id": "1", "input": "q", "output": [{"answer": "x"}], "meta": meta}
    expected = {"id": "1", "input": "q"} | ({"meta": meta} if kept else {})
    assert without_answers(record, all_sources()[dataset].policies["test"]) == expected


def _page() -> Page:
    elements = (
        Element("title", 1, None, "", (), "River Ullane"),
        Element("paragraph", 0, None, "", (), "It is long."),
        Element("heading", 2, None, "", ("Course",), "Course"),
        Element("heading", 3, None, "", ("Course", "Upper"), "Upper"),
        Element("list_item", 1, None, "*", ("Course", "Upper"), "from the lake"),
        Element("list_item", 1, 12, "#", ("Course", "Upper"), "to the sea"),
        Element("list_item", 1, None, ":", ("Course", "Upper"), "an indented line"),
        Element("paragraph", 0, None, "", ("Course", "Upper"), "It is brown."),
    )
    return replace(next(synthetic_pages(1)), elements=elements)


def _place(page: Page, first: int, start: int, last: int, end: int, numbering: Numbering = "kilt") -> Place | None:
    return place_of(Span(first, start, last, end, 1.0, "exact"), numbered_elements(page, numbering))


@pytest.mark.parametrize(
    ("element", "place", "text"),
    [
        (0, Place(0, 0, 0, 5), "River"),
        (1, Place(1, 0, 1, 5), "It is"),
        (2, Place(2, 11, 2, 16), "Cours"),
        (3, Place(3, 19, 3, 24), "Upper"),
        (4, Place(4, 12, 4, 17), "from "),
        (5, Place(5, 14, 5, 19), "to th"),
        (7, Place(6, 0, 6, 5), "It is"),
    ],
)
def test_places_are_counted_in_the_paragraphs_and_characters_of_kilt(element: int, place: Place, text: str) -> None:
    page = _page()
    assert _place(page, element, 0, element, 5) == place
    assert kilt_texts(page)[0][place.start_paragraph_id][place.start_character : place.end_character] == text


def test_a_span_across_elements_is_renumbered_at_both_ends() -> None:
    assert _place(_page(), 4, 2, 5, 3) == Place(4, 14, 5, 17)


def test_an_element_that_kilt_leaves_out_has_no_place_but_as_an_element() -> None:
    page = _page()
    assert _place(page, 6, 0, 6, 5) is None
    assert _place(page, 6, 0, 6, 5, "elements") == Place(6, 0, 6, 5)
    assert set(numbered_elements(page, "kilt")) == {0, 1, 2, 3, 4, 5, 7}
    assert set(numbered_elements(page, "elements")) == set(range(8))


@given(st.integers(0, 3), st.data())
def test_every_place_slices_to_the_text_of_its_span(number: int, data: st.DataObject) -> None:
    page = list(synthetic_pages(4))[number]
    texts, places = kilt_texts(page)
    element = data.draw(st.sampled_from(sorted(places)))
    text = page.elements[element].text
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    place = _place(page, element, start, element, end)
    assert place is not None
    assert texts[place.start_paragraph_id][place.start_character : place.end_character] == text[start:end]


def test_every_evidence_of_an_example_has_a_key() -> None:
    example = _example(
        Output("a", (Evidence(TITLE, "1"), Evidence(TITLE, "2"))), Output("b"), Output(None, (Evidence(TITLE, "3"),))
    )
    assert [(key, piece.text) for key, piece in iter_evidence(example)] == [((0, 0), "1"), ((0, 1), "2"), ((2, 0), "3")]
    assert json.loads(kilt_line({"a": 1})) == {"a": 1}
