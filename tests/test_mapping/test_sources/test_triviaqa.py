"""TriviaQA: names of answers, pages, the forms that its files come in, the file without questions."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.decide import decide
from mapping.records import Evidence, Example, Output, PageKey, Place, ReleasedExample, iter_evidence
from mapping.sources import all_sources
from mapping.sources.raw_records import iter_array
from mapping.sources.source import Split
from mapping.write.kilt import kilt_line, without_input
from tests.support.aligned import aligned
from tests.support.dataset_sources import read_parsed, read_source
from tests.support.mini_wiki import FOLDER
from tests.support.real_data import real_path

DEMO = FOLDER / "datasets" / "triviaqa"
QA = DEMO / "qa"
DEV = QA / "wikipedia-dev.json"


@pytest.fixture(scope="module")
def dev() -> dict[str, Example]:
    return {example.example_id: example for example in read_source("triviaqa", DEV).examples}


def _pairs(example: Example) -> list[tuple[str | None, str]]:
    """The name and the page of each output."""
    return [(output.answer, piece.page.value) for output in example.outputs for piece in output.evidence]


def _question(**fields: Any) -> dict[str, Any]:
    good = {
        "Answer": {"Aliases": ["a"], "Value": "a"},
        "EntityPages": [{"Title": "T"}],
        "Question": "Q?",
        "QuestionId": "one",
    }
    return good | fields


def _write(path: Path, *questions: Any, head: str = "", tail: str = ', "Domain": "Wikipedia"') -> Path:
    texts = [question if isinstance(question, str) else json.dumps(question) for question in questions]
    path.write_text(f'{{{head}"Data": [{", ".join(texts)}]{tail}}}', "utf-8")
    return path


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_folder_has_the_file_of_each_split(split: Split) -> None:
    name = f"wikipedia-{split}{'-without-answers' if split == 'test' else ''}.json"
    from_folder = read_source("triviaqa", QA, split=split)
    assert {example.file for example in from_folder.examples} == {name}
    assert from_folder.examples == read_source("triviaqa", QA / name, split=split).examples


def test_the_archive_is_read_as_it_is(tmp_path: Path, dev: dict[str, Example]) -> None:
    path = tmp_path / "triviaqa-rc.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        evidence = tarfile.TarInfo("evidence/wikipedia/Heron.txt")
        evidence.size = 5
        archive.addfile(evidence, io.BytesIO(b"Heron"))
        archive.add(QA, "./qa")
    reading = read_source("triviaqa", path)
    assert [example.outputs for example in reading.examples] == [example.outputs for example in dev.values()]
    (path.parent / "cut.tar.gz").write_bytes(path.read_bytes()[:-1500])
    with pytest.raises(SetupError, match="cannot be read to its end"):
        read_source("triviaqa", path.parent / "cut.tar.gz")


def test_the_array_may_stand_behind_other_fields_and_ends_where_it_ends(tmp_path: Path) -> None:
    head = '"Domain": "Wiki\\"pedia", "VerifiedEval" : false, "Version": -1.0e0, '
    path = _write(tmp_path / "x.json", _question(Question='"]} {'), _question(QuestionId="two"), head=head)
    found = read_source("triviaqa", path).examples
    assert [(example.example_id, example.input) for example in found] == [("one", '"]} {'), ("two", "Q?")]
    text = path.read_bytes()
    for raw in iter_array(str(path), key="Data"):
        assert text[raw.offset : raw.offset + len(raw.data)] == raw.data


def test_an_archive_without_questions_and_a_file_that_breaks_off_stop_at_once(tmp_path: Path) -> None:
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
        QuestionId=key, EntityPages=[{"Title": title} for title in titles], Answer={"Aliases": aliases, "Value": "v"}
    ),
    st.sampled_from(["1", "2", "3", "4", 5]),
    _TITLES,
    _ALIASES,
)


@given(st.lists(_RECORDS, max_size=8))
def test_no_record_is_lost_without_a_reason_and_pairs_are_complete(records: list[dict[str, Any]]) -> None:
    reading = read_parsed("triviaqa", records)
    assert reading.tally.records == len(records)
    for example in reading.examples:
        record = records[example.line - 1]
        names = {name for name in record["Answer"]["Aliases"] or ["v"] if name.strip()}
        titles = {page["Title"] for page in record["EntityPages"]}
        assert len(_pairs(example)) == len(names) * len(titles)
        assert set(_pairs(example)) == {(name, title) for name in names for title in titles}


def test_a_name_on_one_page_of_two_titles_counts_once(dev: dict[str, Example]) -> None:
    example = dev["tqm_1"]
    places = {
        "River Ullane": aligned("exact", 30, "River Ullane", "S", Place(1, 72, 1, 84), score=1.0),
        "Lake Miravel": aligned("exact", 33, "Lake Miravel", "S", Place(1, 0, 1, 12), score=1.0),
        "Miravel": aligned("exact", 33, "Lake Miravel", "S", Place(1, 0, 1, 12), score=1.0),
    }
    placed = {key: places[evidence.page.value] for key, evidence in iter_evidence(example)}
    forms = [output.form for output in decide(example, placed, all_sources()["triviaqa"].policies["dev"]).outputs]
    assert forms == ["whole", "whole", "dropped"] * 5


def test_published_records_keep_names_that_are_not_exact_and_repeats() -> None:
    outputs = tuple(Output(name, (Evidence(PageKey("title", "T"), name),)) for name in ("a", "a", "b"))
    example = ReleasedExample("1", None, outputs, None, file="f", line=1, released={})
    exact = aligned("exact", 1, "T", "S", Place(1, 0, 1, 4), score=1.0)
    placed = {(0, 0): exact, (1, 0): exact, (2, 0): aligned("near", 1, "T", "S", Place(1, 0, 1, 4), score=0.7)}
    assert [output.form for output in decide(example, placed, all_sources()["triviaqa"].policies["dev"]).outputs] == [
        "whole"
    ] * 3


def test_the_file_without_questions_differs_in_nothing_else() -> None:
    record = {"id": "tc_1", "input": "Ä?", "output": [{"answer": "ä", "provenance": [{"bleu_score": 0.1 + 0.2}]}]}
    line = kilt_line(record)
    del record["input"]
    assert without_input(line) == kilt_line(record)


@pytest.mark.parametrize(("split", "ids"), [("train", ["tc_3"]), ("dev", ["tc_33"]), ("test", ["tc_7"])])
def test_real_sample(split: Split, ids: list[str], tmp_path: Path) -> None:
    qa = real_path("datasets/triviaqa/rc_sample/triviaqa-rc.tar.gz/qa")
    examples = read_source("triviaqa", qa, split=split).examples
    assert [example.example_id for example in examples] == ids
    with tarfile.open(tmp_path / "triviaqa-rc.tar.gz", "w:gz") as archive:
        archive.add(qa, "qa")
    from_archive = read_source("triviaqa", tmp_path / "triviaqa-rc.tar.gz", split=split).examples
    assert [(example.input, example.outputs) for example in from_archive] == [
        (example.input, example.outputs) for example in examples
    ]


@pytest.mark.parametrize("part", ["web-train.json", "web-dev.json"])
def test_real_files_of_the_web_part_are_refused(part: str) -> None:
    with pytest.raises(SetupError, match="web part"):
        read_source("triviaqa", real_path(f"datasets/triviaqa/rc_sample/triviaqa-rc.tar.gz/qa/{part}"))


def test_a_file_that_says_it_is_of_another_split_is_refused(tmp_path: Path) -> None:
    copied = tmp_path / "questions.json"
    shutil.copy(DEMO / "qa" / "wikipedia-dev.json", copied)
    assert read_source("triviaqa", copied).examples
    with pytest.raises(SetupError, match="belongs to the split dev, not to train"):
        read_source("triviaqa", copied, split="train")
    packed = tmp_path / "wikipedia-dev.json.gz"
    packed.write_bytes(gzip.compress(copied.read_bytes()))
    with pytest.raises(SetupError, match="belongs to the split dev, not to train"):
        read_source("triviaqa", packed, split="train")
