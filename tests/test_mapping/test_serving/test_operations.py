"""Operations: what they answer, that every place in an answer holds its text, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbsource.errors import RecordError, SetupError
from mapping.serving import operations
from mapping.serving.operations import (
    MOST_FOUND,
    OPERATIONS,
    SHAPES,
    STATUS,
    Check,
    Cite,
    ColbertSearch,
    Links,
    Passage,
    ReadPage,
    ReadSection,
    Request,
    Resolve,
    Retrieve,
    Search,
    ServedRelease,
)
from tests.support.passages import page, write_kb
from tests.support.served import PAGES, SORN, TEY, YEAR, opened_served

LEAD = "The Sorn is a river near Tey. It rises in Brack."
ASKED: tuple[Request, ...] = (
    Search("goats of the Sorn"),
    Passage("5__0"),
    ReadPage("Tey"),
    ReadSection("Sorn", "Course"),
    Resolve("The Sorn"),
    Links("Sorn"),
    Links("Sorn", direction="in"),
    Cite("Sorn", element=3, start_char=4, end_char=8),
    Check("rises in Brack", "Sorn", element=1),
    ColbertSearch("goats"),
    Retrieve(["goats", "Sorn"]),
)


def _answer(request: Request, served: ServedRelease) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(request.answer(served)))
    return found


@pytest.mark.parametrize("request_", ASKED, ids=lambda operation: type(operation).__name__)
def test_every_answer_names_the_release_and_the_revision_of_each_page(request_: Request, served: ServedRelease) -> None:
    answer = _answer(request_, served)
    assert answer["release"] == served.source.manifest.sha256

    def look(value: Any) -> int:
        if isinstance(value, list):
            return sum(map(look, value))
        if not isinstance(value, dict):
            return 0
        if value.get("page_id") is not None:
            assert value["revision_id"] == PAGES[value["page_id"]].revision_id
        return ("page_id" in value) + sum(map(look, value.values()))

    assert look(answer) > 0


def _text_at(page_id: int, place: dict[str, int]) -> str:
    texts = [
        element.text
        for element in PAGES[page_id].elements[place["element"] : place.get("end_element", place["element"]) + 1]
    ]
    texts[-1] = texts[-1][: place["end_char"]]
    return "\n".join([texts[0][place["start_char"] :], *texts[1:]])


def test_every_place_holds_the_text_that_is_said_to_stand_there(served: ServedRelease) -> None:
    for hit in _answer(Search("goats of the Sorn rises fish"), served)["passages"]:
        assert " ".join(_text_at(hit["page_id"], span) for span in hit["spans"]) == hit["text"]
    for request in (ReadPage("Sorn"), ReadSection("Sorn", "Course")):
        for element in _answer(request, served)["elements"]:
            assert _text_at(SORN, element) == element["text"]
    for link in _answer(Links("Tey"), served)["links"]:
        assert _text_at(TEY, link) == link["text"]
    for link in _answer(Links("Sorn", direction="in"), served)["links"]:
        assert _text_at(link["page_id"], link) == link["text"]
    cited = _answer(Cite("Sorn", element=3, start_char=4, end_char=8), served)
    assert _text_at(SORN, cited) == cited["text"] == "fish"


@pytest.mark.parametrize(
    ("name", "page_id", "by", "status"),
    [
        ("sorn", SORN, "title", "article"),
        ("The Sorn", SORN, "title", "ok"),
        (SORN, SORN, "id", "article"),
        (str(SORN), SORN, "id", "article"),
        ("1984", YEAR, "title", "article"),
        (1984, None, "id", "unknown"),
        ("9" * 40, None, "id", "unknown"),
        ("Q7", SORN, "item", "article"),
        ("wikidata:q7", SORN, "item", "article"),
        ("Q8", None, "title", "unknown"),
        ("https://en.wikipedia.org/wiki/The_Sorn#Course", SORN, "url", "ok"),
    ],
)
def test_a_page_is_named_in_every_way(
    name: str | int, page_id: int | None, by: str, status: str, served: ServedRelease
) -> None:
    found = _answer(Resolve(name), served)
    assert (found["page_id"], found["by"], found["status"]) == (page_id, by, status)
    assert found["revision_id"] == (None if page_id is None else PAGES[page_id].revision_id)


CHECKED: tuple[tuple[Check, str, tuple[int, ...] | None], ...] = (
    (Check("rises in Brack", "Sorn"), "there", (1, 33, 1, 47)),
    (Check("rises in Brack", "Sorn", element=1), "there", (1, 33, 1, 47)),
    (Check("rises in Brack", "Sorn", element=1, start_char=33, end_char=47), "there", (1, 33, 1, 47)),
    (Check("nlike it", "Sorn", element=3, start_char=19, end_char=27), "there", (3, 19, 3, 27)),
    (Check("rises in Brack", "Sorn", element=1, start_char=32, end_char=46), "elsewhere", (1, 33, 1, 47)),
    (Check("rises in Brack", "Sorn", element=3), "elsewhere", (1, 33, 1, 47)),
    (Check("rises in Brack", "Sorn", element=99), "elsewhere", (1, 33, 1, 47)),
    (Check("Brack.\nCourse\nIts", "Sorn"), "there", (1, 42, 3, 3)),
    (Check("it RISES in 'Brack'", "Sorn", element=1), "same_words", (1, 30, 1, 47)),
    (Check("It rises in the Brack.", "Sorn"), "absent", None),
    (Check("The Sorn is a river near the Tey. It rises in Brack.", "Sorn"), "similar", (1, 0, 1, 47)),
    (Check("Nothing of that is here", "Sorn"), "absent", None),
    (Check("rises in Brack", "Tey"), "absent", None),
    (Check("?!", "Tey"), "absent", None),
    (Check(" \n", "Tey"), "absent", None),
    (Check("\nIt was a year.\n", "1984"), "there", (1, 0, 1, 14)),
)


@pytest.mark.parametrize(("check", "match", "place"), CHECKED, ids=lambda operation: getattr(operation, "quote", None))
def test_a_quote_stands_where_it_is_said_to_or_is_told_where(
    check: Check, match: str, place: tuple[int, ...] | None, served: ServedRelease
) -> None:
    found = _answer(check, served)
    assert (found["match"], found["verified"]) == (match, match == "there")
    names = ("element", "start_char", "end_element", "end_char")
    assert (tuple(found[name] for name in names) if "element" in found else None) == place
    if place is not None:
        assert _text_at(found["page_id"], found) == found["text"]
    if match in ("there", "elsewhere"):
        assert found["text"] == check.quote.strip()


def test_a_quote_of_another_revision_does_not_stand_in_this_one(served: ServedRelease) -> None:
    for revision, verified in ((70, True), (71, False)):
        found = _answer(Check("rises in Brack", "Sorn", revision_id=revision), served)
        assert (found["verified"], found["is_same_revision"], found["match"]) == (verified, verified, "there")


def test_a_long_page_comes_in_parts_of_which_none_is_lost(
    served: ServedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "PAGE_CHARS", 20)
    seen, at = [], 0
    while at is not None:
        part = _answer(ReadPage("Sorn", element=at), served)
        seen += [element["text"] for element in part["elements"]]
        at = part["next"]
    assert seen == [element.text for element in PAGES[SORN].elements]


@pytest.mark.parametrize(
    ("section", "numbers"), [("Course", [2, 3]), ("Fish", [3]), ("Course / Fish", [3]), ("", [0, 1])]
)
def test_a_section_is_its_elements(section: str, numbers: list[int], served: ServedRelease) -> None:
    assert [element["element"] for element in _answer(ReadSection("Sorn", section), served)["elements"]] == numbers


def test_links_are_listed_in_order_and_in_parts(served: ServedRelease) -> None:
    out = _answer(Links("Sorn", k=1), served)
    assert (out["n_links"], out["next"], out["links"][0]["page_id"], out["links"][0]["revision_id"]) == (2, 1, TEY, 72)
    dead = _answer(Links("Sorn", start=1), served)
    assert (dead["next"], dead["links"][0]["title"], dead["links"][0]["page_id"]) == (None, "Fish", None)
    linking = _answer(Links("Sorn", direction="in"), served)
    assert [(link["page_id"], link["element"], link["start_char"]) for link in linking["links"]] == [(TEY, 1, 29)]


def test_links_that_are_not_counted_yet_are_not_none(folders: tuple[str, str], served: ServedRelease) -> None:
    with ServedRelease.open(folders[0]) as fresh, pytest.MonkeyPatch.context() as patch:
        patch.setattr(fresh.finder, "n_linking", lambda page_id: None)
        with pytest.raises(RecordError, match="not_ready: links are being counted"):
            Links("Sorn", direction="in").answer(fresh)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ReadPage("Nowhere"), "unknown_page"),
        (ReadSection("Sorn", "Nowhere"), "unknown_section"),
        (Cite("Sorn", element=4), "unknown_element"),
        (Cite("Sorn", element=3, start_char=9, end_char=8), "bad_span"),
        (Cite("Sorn", element=3, end_char=30), "bad_span"),
        (Check("a", "Sorn", start_char=3, end_char=4), "bad_span"),
        (Check("a", "Sorn", element=1, start_char=3), "bad_span"),
        (Passage("3__9"), "unknown_passage"),
        (Passage("three"), "unknown_passage"),
        (Retrieve(["a"] * (MOST_FOUND // 100 + 1), topk=100), "too_much"),
    ],
)
def test_what_cannot_be_answered_has_a_reason(request_: Request, reason: str, served: ServedRelease) -> None:
    with pytest.raises(RecordError) as raised:
        request_.answer(served)
    assert raised.value.reason == reason
    assert reason in STATUS


def test_without_passages_there_is_no_search(folders: tuple[str, str]) -> None:
    with ServedRelease.open(folders[0]) as bare:
        for request in (Search("a"), Passage("3__0"), ColbertSearch("a"), Retrieve(["a"])):
            with pytest.raises(RecordError, match="no_passages"):
                request.answer(bare)
        assert _answer(ReadPage("Sorn"), bare)["title"] == "Sorn"


def test_passages_of_another_release_are_refused(tmp_path: Path, folders: tuple[str, str]) -> None:
    other = write_kb(tmp_path, [page(1, "Other", "Text.")])
    with (
        pytest.raises(SetupError, match="was not made from the release that is served"),
        opened_served(str(other), folders[1]),
    ):
        pass


def test_every_parameter_is_bounded_and_said() -> None:
    for operation in (*OPERATIONS.values(), *SHAPES.values()):
        assert operation.description().endswith(".")
        schema = operation.schema()
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
    for operation in OPERATIONS.values():
        for name, own in operation.schema()["properties"].items():
            assert "description" in own or name == "direction" or "anyOf" in own, name
