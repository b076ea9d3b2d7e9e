"""Passages as lines of what retrievers read, each read back by the plainest reader of its form."""

from __future__ import annotations

import doctest
from dataclasses import replace

import orjson
import pytest

from kbsource.errors import DataError
from kbsource.kilt import kilt_record, kilt_texts
from kbsource.records import Anchor, Element, Page
from mapping.passages import forms
from mapping.passages.cut import CutOptions, PageText, Passage, PassageSpan
from mapping.passages.forms import FORMS, KiltPages, kilt_line, line_forms
from tests.support.passages import page

NO_PAGES = KiltPages((), "pages")
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
    )
    return replace(blank, elements=elements, anchors=anchors)


def _chunks() -> list[Passage]:
    sections = ((), ("Course",), ("Course",))
    text = PageText(7, "Sorn", tuple(zip((1, 3, 4), TEXTS, strict=True)), sections)
    return CutOptions(unit="tokens-100").cutter("en")(text)


def test_a_chunk_of_kilt_says_where_text_and_anchors_stand() -> None:
    pages = KiltPages([page(3, "Other", "x"), _sorn()], "pages")
    lead, course = (orjson.loads(kilt_line(one, pages)) for one in _chunks())
    record = kilt_record(_sorn())

    assert list(lead) == [
        *("_id", "wikipedia_id", "wikipedia_title", "text", "anchors", "categories", "history", "sources", "section"),
        "chunk_id",
    ]
    assert (lead["section"], lead["text"], lead["chunk_id"]) == ("Section::::Abstract.", TEXTS[0], "7__0")
    assert (course["section"], course["text"]) == ("Section::::Course.", f"{TEXTS[1]} {TEXTS[2]}")
    for chunk in (lead, course):
        texts = [record["text"][one["paragraph_id"]][one["start"] : one["end"]] for one in chunk["sources"]]
        assert " ".join(texts) == chunk["text"]
        for anchor in chunk["anchors"]:
            source = anchor["source"]
            assert chunk["text"][anchor["start"] : anchor["end"]] == anchor["text"]
            assert record["text"][source["paragraph_id"]][source["start"] : source["end"]] == anchor["text"]
    assert [one["text"] for one in course["anchors"]] == ["Tey"]
    assert course["anchors"][0]["wikipedia_id"] == "9"


def test_an_anchor_that_is_not_wholly_in_a_chunk_is_left_out() -> None:
    passage = Passage("7__0", 7, "Sorn", 0, 4, "The Sorn is a", (PassageSpan(1, 0, 13),))
    assert orjson.loads(kilt_line(passage, KiltPages([_sorn()], "")))["anchors"] == []


def test_slips_of_the_released_code() -> None:
    passage = Passage("7__0", 7, "Sorn", 0, 4, "It meets the Tey", (PassageSpan(3, 0, 16),))
    chunk = orjson.loads(kilt_line(passage, KiltPages([_sorn()], ""), is_released=True))
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
    assert all({form.folder for form in one.files} == {name} for name, one in FORMS.items())


def test_examples_are_true() -> None:
    assert not doctest.testmod(forms).failed
