"""TriviaQA: names of answers, pages, the forms that its files come in, the file without questions."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from mapping.decide.policy import POLICIES, decide
from mapping.records import Evidence, Example, Output, PageKey, ReleasedExample, iter_evidence
from mapping.search.numbering import Place, Placed
from mapping.sources.reading.base import Split, Tally
from mapping.sources.reading.examples import read_examples
from mapping.sources.reading.files_in import RawRecord, iter_array
from mapping.sources.reading.reasons import EXCLUDED, REJECTED
from mapping.sources.reading.scratch import Scratch
from mapping.sources.triviaqa import TriviaQuestions
from mapping.write.kilt import id_file_name, kilt_line, without_input
from tests.support.dataset_sources import is_balanced, read_source
from tests.support.mini_wiki import FOLDER
from tests.support.real_data import real_path

DEMO = FOLDER / "datasets" / "triviaqa"
QA = DEMO / "qa"
DEV = QA / "wikipedia-dev.json"


@pytest.fixture(scope="module")
def dev() -> dict[str, Example]:
    return {one.example_id: one for one in read_source("triviaqa", DEV).examples}


def _pairs(example: Example) -> list[tuple[str | None, str]]:
    """Gives the name and the page of each output."""
    return [(output.answer, one.page.value) for output in example.outputs for one in output.evidence]


def _question(**fields: Any) -> dict[str, Any]:
    good = {
        "Answer": {"Aliases": ["a"], "Value": "a"},
        "EntityPages": [{"Title": "T"}],
        "Question": "Q?",
        "QuestionId": "one",
    }
    return good | fields


def _write(path: Path, *questions: Any, head: str = "", tail: str = ', "Domain": "Wikipedia"') -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in questions]
    path.write_text(f'{{{head}"Data": [{", ".join(texts)}]{tail}}}', "utf-8")
    return path


def test_the_question_is_the_input_and_its_id_the_id(dev: dict[str, Example]) -> None:
    example = dev["tqm_1"]
    assert (example.input, example.meta) == ("Which lake is the source of the River Ullane?", None)
    assert (example.file, example.line) == ("wikipedia-dev.json", 1)


def test_every_distinct_name_is_looked_for_on_every_distinct_page_in_their_order(dev: dict[str, Example]) -> None:
    names = ["Miravel", "Lake Miravel", "Miravel Lake", "LAKE MIRAVEL", "The Great Miravel Tarn"]
    titles = ["River Ullane", "Lake Miravel", "Miravel"]
    assert _pairs(dev["tqm_1"]) == [(name, title) for name in names for title in titles]


def test_the_name_is_the_evidence_without_meta(dev: dict[str, Example]) -> None:
    for example in dev.values():
        for (index, _), evidence in iter_evidence(example):
            assert (evidence.text, evidence.meta) == (example.outputs[index].answer, None)
            assert evidence.page.kind == "title"


def test_answers_of_people_are_no_names(dev: dict[str, Example]) -> None:
    assert [output.answer for output in dev["tqm_2"].outputs] == [
        "Brindle Quay",
        "Brindle Quay, North Halvane",
        "Brindle",
    ]


def test_an_answer_without_aliases_has_its_value_for_a_name(dev: dict[str, Example]) -> None:
    assert _pairs(dev["tqm_9"]) == [("1688", "Nowhere in particular"), ("1688", "Pell & Daughters")]


def test_what_is_left_out_is_counted_by_reason() -> None:
    reading = read_source("triviaqa", DEV)
    assert reading.tally.excluded == {"no_page": 1}
    assert reading.reasons == [
        ("source", "line 9", "malformed_json"),
        ("source", "tqm_1", "duplicate_id"),
        ("source", "tqm_10", "wrong_type"),
    ]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_folder_has_the_file_of_each_split(split: Split) -> None:
    name = f"wikipedia-{split}{'-without-answers' if split == 'test' else ''}.json"
    from_folder = read_source("triviaqa", QA, split=split)
    assert {one.file for one in from_folder.examples} == {name}
    assert from_folder.examples == read_source("triviaqa", QA / name, split=split).examples


def test_test_questions_need_no_answer_and_labels_bring_it() -> None:
    assert [one.outputs for one in read_source("triviaqa", QA, split="test").examples] == [()] * 3
    reading = read_source("triviaqa", QA, split="test", labels=[DEMO / "test_labels.json"])
    assert [_pairs(one)[0] for one in reading.examples] == [
        ("MV Patient Heron", "MV Patient Heron"),
        ("Corvin Hale", "Great Skerry Light"),
    ]
    assert reading.reasons == [("source", "tqm_203", "missing_label")]


@pytest.mark.parametrize("write", [json.dumps, lambda rows: "".join(json.dumps(row) + "\n" for row in rows)])
def test_labels_may_be_an_array_or_lines(write: Callable[[list[Any]], str], tmp_path: Path) -> None:
    labels = json.loads((DEMO / "test_labels.json").read_text("utf-8"))["Data"]
    (tmp_path / "labels").write_text(write(labels), "utf-8")
    reading = read_source("triviaqa", QA, split="test", labels=[tmp_path / "labels"])
    assert [one.example_id for one in reading.examples] == ["tqm_201", "tqm_202"]


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_packed_files_are_read_as_they_are(
    pack: Callable[[bytes], bytes], ending: str, tmp_path: Path, dev: dict[str, Example]
) -> None:
    path = tmp_path / f"wikipedia-dev.json{ending}"
    path.write_bytes(pack(DEV.read_bytes()))
    for records in (path, tmp_path):
        found = read_source("triviaqa", records).examples
        assert [one.outputs for one in found] == [one.outputs for one in dev.values()]


def test_the_archive_is_read_as_it_is(tmp_path: Path, dev: dict[str, Example]) -> None:
    path = tmp_path / "triviaqa-rc.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        evidence = tarfile.TarInfo("evidence/wikipedia/Heron.txt")
        evidence.size = 5
        archive.addfile(evidence, io.BytesIO(b"Heron"))
        archive.add(QA, "./qa")
    reading = read_source("triviaqa", path)
    assert [one.outputs for one in reading.examples] == [one.outputs for one in dev.values()]
    (path.parent / "cut.tar.gz").write_bytes(path.read_bytes()[:-1500])
    with pytest.raises(SetupError, match="cannot be read to its end"):
        read_source("triviaqa", path.parent / "cut.tar.gz")


def test_the_array_may_stand_behind_other_fields_and_ends_where_it_ends(tmp_path: Path) -> None:
    head = '"Domain": "Wiki\\"pedia", "VerifiedEval" : false, "Version": -1.0e0, '
    path = _write(tmp_path / "x.json", _question(Question='"]} {'), _question(QuestionId="two"), head=head)
    found = read_source("triviaqa", path).examples
    assert [(one.example_id, one.input) for one in found] == [("one", '"]} {'), ("two", "Q?")]
    text = path.read_bytes()
    for raw in iter_array(LocalStorage(), str(path), key="Data"):
        assert text[raw.offset : raw.offset + len(raw.data)] == raw.data


@pytest.mark.parametrize(
    ("bad", "key", "reason"),
    [
        pytest.param('{"QuestionId": }', "line 2", "malformed_json", id="no value"),
        pytest.param("7", "line 2", "wrong_type", id="a number"),
        pytest.param(_question(QuestionId=2), "line 2", "wrong_type", id="id is a number"),
        pytest.param(_question(QuestionId="b", Question=None), "b", "wrong_type", id="no question"),
        pytest.param(_question(QuestionId="b", EntityPages=[{}]), "b", "missing_field", id="page without title"),
        pytest.param(_question(QuestionId="b", Answer="a"), "b", "wrong_type", id="answer is text"),
        pytest.param(_question(QuestionId="b", Answer={}), "b", "missing_field", id="no aliases"),
        pytest.param(_question(QuestionId="b", Answer={"Aliases": [" "]}), "b", "missing_field", id="blank alias"),
        pytest.param(_question(QuestionId="b", Answer={"Aliases": [1]}), "b", "wrong_type", id="alias is a number"),
        pytest.param(_question(), "one", "duplicate_id", id="id again"),
    ],
)
def test_a_bad_element_is_rejected_and_the_rest_goes_on(tmp_path: Path, bad: Any, key: str, reason: str) -> None:
    path = _write(tmp_path / "dev.json", _question(), bad, _question(QuestionId="three"))
    reading = read_source("triviaqa", path)
    assert [one.example_id for one in reading.examples] == ["one", "three"]
    assert reading.reasons == [("source", key, reason)]


def test_the_wrong_input_altogether_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no JSON object with an array 'Data'"):
        read_source("triviaqa", FOLDER / "datasets" / "hotpotqa" / "hotpot_dev_fullwiki_v1.json")
    with pytest.raises(SetupError, match="web part"):
        read_source("triviaqa", _write(tmp_path / "web-dev.json", _question(SearchResults=[{"Rank": 1}])))
    with pytest.raises(SetupError, match="give the folder qa of"):
        read_source("triviaqa", DEMO)
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(DEMO / "test_labels.json", "wikipedia-dev.json")
    with pytest.raises(SetupError, match="tar archive without qa/wikipedia-dev"):
        read_source("triviaqa", tmp_path / "other.tar")
    (tmp_path / "cut.json").write_bytes(DEV.read_bytes()[:-200])
    with pytest.raises(SetupError, match="has no closing"):
        read_source("triviaqa", tmp_path / "cut.json")


_TITLES = st.lists(st.sampled_from("TUV"), max_size=4)
_ALIASES = st.lists(st.sampled_from(["a", "b", "A", " ", ""]) | st.none(), max_size=5)
_RECORDS = st.builds(
    lambda key, titles, aliases: _question(
        QuestionId=key,
        EntityPages=[{"Title": title} for title in titles],
        Answer={"Aliases": aliases, "Value": "v"},
    ),
    st.sampled_from(["1", "2", "3", "4", 5]),
    _TITLES,
    _ALIASES,
)


@given(st.lists(_RECORDS, max_size=8))
def test_no_record_is_lost_without_a_reason_and_pairs_are_complete(records: list[dict[str, Any]]) -> None:
    raws = [RawRecord("f", line, 0, json.dumps(one).encode()) for line, one in enumerate(records, 1)]
    tally = Tally()
    with Scratch(None) as scratch:
        rows = list(
            read_examples(
                [raws],
                id_of=lambda record: str(record["QuestionId"]),
                convert=TriviaQuestions("dev").example,
                scratch=scratch,
                tally=tally,
            )
        )
    assert is_balanced(tally)
    assert tally.records == len(records)
    assert set(tally.excluded) <= EXCLUDED.keys()
    assert set(tally.rejected) <= REJECTED.keys()
    assert len(rows) + tally.excluded.total() == len(records)
    for row in rows:
        if isinstance(row, Example):
            record = records[row.line - 1]
            names = {name for name in record["Answer"]["Aliases"] or ["v"] if name.strip()}
            titles = {page["Title"] for page in record["EntityPages"]}
            assert len(_pairs(row)) == len(names) * len(titles)
            assert set(_pairs(row)) == {(name, title) for name in names for title in titles}


def test_a_name_on_one_page_of_two_titles_counts_once(dev: dict[str, Example]) -> None:
    example = dev["tqm_1"]
    places = {
        "River Ullane": Placed("exact", 30, "River Ullane", "S", Place(1, 72, 1, 84), score=1.0),
        "Lake Miravel": Placed("exact", 33, "Lake Miravel", "S", Place(1, 0, 1, 12), score=1.0),
        "Miravel": Placed("exact", 33, "Lake Miravel", "S", Place(1, 0, 1, 12), score=1.0),
    }
    placed = {key: places[evidence.page.value] for key, evidence in iter_evidence(example)}
    forms = [one.form for one in decide(example, placed, POLICIES["triviaqa"]["dev"]).outputs]
    assert forms == ["whole", "whole", "dropped"] * 5


def test_published_records_keep_names_that_are_not_exact_and_repeats() -> None:
    outputs = tuple(Output(name, (Evidence(PageKey("title", "T"), name),)) for name in ("a", "a", "b"))
    example = ReleasedExample("1", None, outputs, None, file="f", line=1, released={})
    exact = Placed("exact", 1, "T", "S", Place(1, 0, 1, 4), score=1.0)
    placed = {(0, 0): exact, (1, 0): exact, (2, 0): exact._replace(outcome="near", score=0.7)}
    assert [one.form for one in decide(example, placed, POLICIES["triviaqa"]["dev"]).outputs] == ["whole"] * 3


def test_the_file_without_questions_differs_in_nothing_else() -> None:
    record = {"id": "tc_1", "input": "Ä?", "output": [{"answer": "ä", "provenance": [{"bleu_score": 0.1 + 0.2}]}]}
    line = kilt_line(record)
    del record["input"]
    assert without_input(line) == kilt_line(record)
    assert [id_file_name("triviaqa", split) for split in ("train", "dev", "test")] == [
        "triviaqa-train_id-kilt.jsonl",
        "triviaqa-dev_id-kilt.jsonl",
        "triviaqa-test_id_without_answers-kilt.jsonl",
    ]
    assert id_file_name("triviaqa", "test", with_answers=True) == "triviaqa-test_id-kilt.jsonl"


@pytest.mark.parametrize(("split", "ids"), [("train", ["tc_3"]), ("dev", ["tc_33"]), ("test", ["tc_7"])])
def test_real_sample(split: Split, ids: list[str], tmp_path: Path) -> None:
    qa = real_path("datasets/triviaqa/rc_sample/triviaqa-rc.tar.gz/qa")
    examples = read_source("triviaqa", qa, split=split).examples
    assert [one.example_id for one in examples] == ids
    with tarfile.open(tmp_path / "triviaqa-rc.tar.gz", "w:gz") as archive:
        archive.add(qa, "qa")
    from_archive = read_source("triviaqa", tmp_path / "triviaqa-rc.tar.gz", split=split).examples
    assert [(one.input, one.outputs) for one in from_archive] == [(one.input, one.outputs) for one in examples]


@pytest.mark.parametrize("part", ["web-train.json", "web-dev.json"])
def test_real_files_of_the_web_part_are_refused(part: str) -> None:
    with pytest.raises(SetupError, match="web part"):
        read_source("triviaqa", real_path(f"datasets/triviaqa/rc_sample/triviaqa-rc.tar.gz/qa/{part}"))


def test_a_file_that_says_it_is_of_another_split_is_refused(tmp_path: Path) -> None:
    copied = tmp_path / "questions.json"
    shutil.copy(DEMO / "qa" / "wikipedia-dev.json", copied)
    assert read_source("triviaqa", copied).examples
    with pytest.raises(SetupError, match="is of the split dev, not of train"):
        read_source("triviaqa", copied, split="train")
