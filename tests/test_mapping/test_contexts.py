"""Passages for questions: which hold proofs, which are hard negatives, and the records made of them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.layout import shard_path
from kbsource.release.writer import write_rows
from mapping.contexts.gold import (
    RANKED_REASONS,
    GoldPassages,
    GoldText,
    ProofPlace,
    RankedPassage,
    ranked_for,
    read_ranked,
)
from mapping.contexts.gold import UNPLACED_REASONS as UNPLACED
from mapping.contexts.records import (
    ContextsOptions,
    NameFinder,
    Positive,
    contexts_record,
    edits_allowed,
    fid_record,
    hard_negatives,
)
from mapping.metrics.answers import answer_form
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import PageText, Passage, cut_page
from mapping.sources.scratch import QuestionFiles

TEXT = "The Sorn is a river. It rises in Brack. It ends in a lake of the Halvane Isles."


def _corpus(folder: Path, *, split_long: bool = False) -> list[str]:
    """Writes two files of passages with row groups of two, so that pages go on in the next one."""
    pages = [PageText(7, "Sorn", ((1, TEXT), (4, "Its fish are old."))), PageText(3, "Tey", ((1, "A town."),))]
    more = [PageText(9, "Brack", ((2, TEXT),))]
    paths = []
    for number, group in enumerate((pages, more)):
        rows: list[Passage] = [
            passage for page in group for passage in cut_page(page, max_words=5, split_long=split_long)
        ]
        file = shard_path("passages", number, 2)
        where: dict[str, Any] = {"output": str(folder), "file": file}
        write_rows(rows, "passages", PASSAGES, group_rows=2, **where)
        paths.append(str(folder / file))
    return paths


def _place(pid: str, page_id: int, element: int, start: int, end: int) -> ProofPlace:
    """A proof in the corpus of ``_corpus`` or beside it."""
    text = {(7, 4): "Its fish are old.", (3, 1): "A town."}.get((page_id, element), TEXT)
    return ProofPlace(pid, "q", page_id, "T", element, start, end, text[start:end])


@pytest.fixture
def gold() -> Iterator[GoldPassages]:
    with GoldPassages() as opened:
        yield opened


def test_a_proof_is_in_the_passage_that_holds_its_sentence(tmp_path: Path, gold: GoldPassages) -> None:
    for place in (
        _place("a", 7, 1, 0, 20),
        _place("b", 9, 1, 0, 20),  # no such element in the corpus
        _place("c", 9, 2, 21, 39),
        _place("d", 7, 4, 0, 17),
        _place("e", 7, 1, 40, len(TEXT)),  # longer than a passage may be, so a passage by itself
        _place("f", 7, 1, 0, 39),  # two sentences, two passages
        _place("g", 4, 1, 0, 9),
        _place("h", 7, 1, 4, 8),
    ):
        gold.add(place)
    gold.find(_corpus(tmp_path))

    first = GoldText("7__0", "Sorn", "The Sorn is a river.")
    assert [gold.of_proof(pid) for pid in "ach"] == [first, GoldText("9__1", "Brack", "It rises in Brack."), first]
    assert gold.of_proof("d") == GoldText("7__3", "Sorn", "Its fish are old.")
    assert gold.of_proof("e") == GoldText("7__2", "Sorn", TEXT[40:])
    assert gold.with_id("7__0") == first
    assert gold.with_id("3__0") is None
    left = {place.pid: reason for place, reason in gold.unplaced()}
    assert left == {"b": "no_running_text", "f": "sentence_cut", "g": "no_passages"}
    assert {*left.values(), "other_text", "no_page", "no_text"} == set(UNPLACED)


def test_a_sentence_that_was_cut_is_in_no_passage(tmp_path: Path, gold: GoldPassages) -> None:
    gold.add(_place("e", 7, 1, 40, len(TEXT)))
    gold.find(_corpus(tmp_path, split_long=True))
    assert gold.of_proof("e") is None
    assert [(place.pid, reason) for place, reason in gold.unplaced()] == [("e", "sentence_cut")]


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        ("Sorn", "the SORN rises", True),
        ("Sorn", "the sorns rise", True),
        ("Sorn", "the horns", False),
        ("Sorn", "resornate", False),
        ("U2", "the U3 album", False),
        ("U2", "U2, the band", True),
        ("U2", "U2's band", True),
        ("1901", "in 1902", False),
        ("1901", "in 1901", True),
        ("Halvane Isles", "of the Halvane-Isle", True),
        ("Halvane Isles", "of HalvaneIsles", True),
        ("Halvane Isles", "of Halva ne Isle", True),
        ("Halvane Isles", "of Hulvone Isols", False),
        ("The", "the the", False),
        ("", "anything", False),
        ("Brack", "", False),
    ],
)
def test_a_text_names_an_answer_but_for_a_few_edits(name: str, text: str, is_named: bool) -> None:
    finder = NameFinder([name])
    assert finder.is_in("", text) == finder.is_in(text, "") == is_named


def _edits(text: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(text, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


_WORDS = st.lists(st.text("abcs", min_size=1, max_size=6) | st.just("12"), max_size=6).map(" ".join)


@given(st.lists(_WORDS, max_size=3), _WORDS, st.integers(0, 3))
def test_names_are_found_where_any_run_of_words_is_near(names: list[str], text: str, most: int) -> None:
    words = answer_form(text).split()
    runs = [" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    forms = [form for form in map(answer_form, names) if form]
    wanted = any(_edits(form, run) <= edits_allowed(form, most) for form in forms for run in runs)
    assert NameFinder(names, most_edits=most).is_in("", text) == wanted


def _ranked(*texts: str) -> list[RankedPassage]:
    return [RankedPassage(f"1__{number}", f"Title {number}", text, 9.0 - number) for number, text in enumerate(texts)]


def test_hard_negatives_are_the_best_that_are_not_gold_and_name_no_answer() -> None:
    ranked = _ranked("the Sorn", "gold text", "a lake", "a lake again", "a pond")
    ranked.insert(3, ranked[2])
    named = RankedPassage("8__0", "Sorn", "It rises.", 1.0)
    found = hard_negatives([named, *ranked], NameFinder(["Sorn"]), gold_ids={"1__1"}, most=2)
    assert [hard_negative.passage_id for hard_negative in found] == ["1__2", "1__3"]
    assert [
        hard_negative.passage_id for hard_negative in hard_negatives(ranked, NameFinder([]), gold_ids=(), most=9)
    ] == [
        "1__0",
        "1__1",
        "1__2",
        "1__3",
        "1__4",
    ]
    assert hard_negatives(ranked, NameFinder([]), gold_ids=(), most=0) == []


RECORD = {
    "qid": "0__wikidata_simple__dev",
    "question_text": "What flows?",
    "entities": [],
    "answer_list": [
        {"answer_text": "Sorn", "aid": "0__wikidata_simple__dev__0", "aliases": ["Sorn", "River Sorn"], "proof": []},
        {"answer_text": "Tey", "aid": "0__wikidata_simple__dev__1", "aliases": ["Tey", "Sorn"], "proof": []},
        {"answer_text": "Sorn", "aid": "0__wikidata_simple__dev__2", "aliases": ["Sorn", "Sorn (lake)"], "proof": []},
    ],
}


def test_a_record_for_retrievers_has_gold_hard_and_ranked_passages() -> None:
    passage = GoldText("1__0", "Title 0", "It flows.")
    positives = [
        Positive("0__wikidata_simple__dev__0__0", passage),
        Positive("0__wikidata_simple__dev__1__0", passage),
        Positive("0__wikidata_simple__dev__2__0", GoldText("5__2", "Five", "So does it.")),
    ]
    ranked = _ranked("It flows.", "It stands.")
    record = contexts_record(RECORD, positives, ranked[1:], ranked)

    assert list(record) == [*RECORD, "question", "answers", "positive_ctxs", "hard_negative_ctxs", "ctxs"]
    assert {name: record[name] for name in RECORD} == RECORD
    assert (record["question"], record["answers"]) == ("What flows?", ["Sorn", "Tey", "Sorn"])
    gold = {"text": "It flows.", "title": "Title 0", "score": 9.0, "chunk_id": "1__0"}
    assert record["positive_ctxs"] == [
        {**gold, "pid": "0__wikidata_simple__dev__0__0"},
        {**gold, "pid": "0__wikidata_simple__dev__1__0"},
        {
            "text": "So does it.",
            "title": "Five",
            "score": 0.0,
            "chunk_id": "5__2",
            "pid": "0__wikidata_simple__dev__2__0",
        },
    ]
    assert record["hard_negative_ctxs"] == [
        {"text": "It stands.", "title": "Title 1", "score": 8.0, "chunk_id": "1__1", "pid": "0__wikidata_simple__dev"}
    ]
    assert record["ctxs"] == [
        {"id": "1__0", "title": "Title 0", "text": "It flows.", "score": 9.0},
        {"id": "1__1", "title": "Title 1", "text": "It stands.", "score": 8.0},
    ]


def test_a_record_for_readers_has_what_is_to_be_written() -> None:
    assert fid_record(RECORD, _ranked("It flows.")) == {
        "id": "0__wikidata_simple__dev",
        "question": "What flows?",
        "question_text": "What flows?",
        "answers": ["Sorn", "River Sorn", "Sorn (lake)", "Tey"],
        "ans_mappings": {"Sorn": ["Sorn", "River Sorn", "Sorn (lake)"], "Tey": ["Tey", "Sorn"]},
        "target": "Sorn#Tey#Sorn",
        "ctxs": [{"id": "1__0", "title": "Title 0", "text": "It flows.", "score": 9.0}],
    }


def _line(**values: Any) -> str:
    ctx = {"id": "7__0", "title": "Sorn", "text": "The Sorn is a river.", **values}
    return json.dumps({"qid": "q", "ctxs": [{key: value for key, value in ctx.items() if value is not ...}]})


def _read(path: Path, gold: GoldPassages, *, most: int = 200) -> tuple[list[RankedPassage] | None, list[BadRecord]]:
    rejected: list[BadRecord] = []
    with QuestionFiles() as joined:
        read_ranked([str(path)], joined, gold, most=most, reject=rejected.append)
        return ranked_for("q", joined), rejected


def test_scores_are_the_retrievers_or_one_over_the_rank(tmp_path: Path, gold: GoldPassages) -> None:
    given: tuple[dict[str, Any], ...] = ({"score": 3}, {"score": "2.5"}, {}, {"score": None})
    ctxs = [{"id": f"7__{rank}", "title": "T", "text": "x", **ctx} for rank, ctx in enumerate(given)]
    gold.find(_corpus(tmp_path))
    path = tmp_path / "ranked.jsonl.gz"
    ctxs.append({"id": "9__2", "title": "T", "text": "x", "score": 0})
    path.write_bytes(gzip.compress(json.dumps({"qid": "q", "ctxs": ctxs}).encode()))
    ranked, rejected = _read(path, gold, most=4)
    assert rejected == []
    assert ranked == [
        RankedPassage("7__0", "T", "x", 3.0),
        RankedPassage("7__1", "T", "x", 2.5),
        RankedPassage("7__2", "T", "x", 1 / 3),
        RankedPassage("7__3", "T", "x", 1 / 4),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (_line(id="Sorn"), "unknown_passage"),
        (_line(id="07__0"), "unknown_passage"),
        (_line(id=7), "unknown_passage"),
        (_line(text="The Sorn is a river. It rises in Brack."), "other_text"),
        (_line(text=...), "missing_field"),
        (_line(score=True), "wrong_type"),
        (_line(score="best"), "wrong_type"),
        (_line(score="nan"), "wrong_type"),
        (_line(score=10**400), "wrong_type"),
        (_line(score="1_0"), "wrong_type"),
        (_line(id="7__4"), "unknown_passage"),
        (_line(id="8__0"), "unknown_passage"),
        (_line(id=f"{'9' * 40}__0"), "unknown_passage"),
        (_line(id=f"7__{'9' * 40}"), "unknown_passage"),
        (json.dumps({"qid": "q", "ctxs": [{"id": "7__3", "title": "T", "text": "x"}] * 2}), "duplicate_passage"),
        ('{"qid": "q", "ctxs"', "malformed_json"),
        (_line() + "\n" + _line(), "duplicate_question"),
    ],
)
def test_a_line_that_cannot_be_used_is_rejected(tmp_path: Path, gold: GoldPassages, line: str, reason: str) -> None:
    gold.add(_place("a", 7, 1, 0, 20))
    gold.find(_corpus(tmp_path))
    path = tmp_path / "ranked.jsonl"
    path.write_text(f'{{"qid": "other", "ctxs": []}}\n{line}\n')
    _, rejected = _read(path, gold)
    assert [bad.reason for bad in rejected] == [reason]
    assert reason in RANKED_REASONS
    assert rejected[0].detail.startswith("line ")


def test_pages_of_the_corpus_are_counted_over_row_groups(tmp_path: Path, gold: GoldPassages) -> None:
    gold.find(_corpus(tmp_path))
    passage_ids = [f"{page_id}__{number}" for page_id in range(11) for number in range(6)]
    wanted = ["3__0", "7__0", "7__1", "7__2", "7__3", "9__0", "9__1", "9__2"]
    assert [passage_id for passage_id in passage_ids if gold.is_passage(passage_id)] == wanted


def test_a_proof_whose_passage_says_something_else_is_in_none(tmp_path: Path, gold: GoldPassages) -> None:
    gold.add(_place("a", 7, 1, 0, 20)._replace(sentence="The Sorn is a siver."))
    gold.add(_place("b", 7, 4, 4, 8)._replace(sentence="fish"))
    gold.find(_corpus(tmp_path))
    assert [(place.pid, reason) for place, reason in gold.unplaced()] == [("a", "other_text")]
    assert gold.of_proof("b") == GoldText("7__3", "Sorn", "Its fish are old.")


def test_names_are_looked_for_in_a_huge_passage_in_little_memory() -> None:
    text = " ".join(f"b{number:07}" for number in range(20_000))
    finder = NameFinder(["".join("qrstuvwxyz"[int(digit)] for digit in f"{number:08}") for number in range(2000)])
    tracemalloc.start()
    try:
        assert not finder.is_in("", text)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_file_of_something_else_is_refused(tmp_path: Path, gold: GoldPassages) -> None:
    path = tmp_path / "ranked.jsonl"
    path.write_text('{"qid": "q", "predictions": []}\n')
    with pytest.raises(SetupError, match="with qid and ctxs"):
        _read(path, gold)


def test_options_are_checked() -> None:
    with pytest.raises(SetupError, match=r"--top is 0. Must be >= 1"):
        ContextsOptions(most_ranked=0)
    with pytest.raises(SetupError, match="--alias-edits is -1"):
        ContextsOptions(most_edits=-1)
