"""Zero-Shot RE: lines, what is brought together, questions, folds and relations drawn anew."""

from __future__ import annotations

import gzip
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.records import RecordFate
from mapping.sources.source import Split
from mapping.sources.zero_shot import ZeroShotOptions, drawn_relations
from tests.support.dataset_sources import Reading, read_source
from tests.support.examples import examples
from tests.support.real_data import ROOT

DEMO = ROOT / "kbsource/demo/datasets/structured_zeroshot/relation_splits"
LINE = ("author", "Who wrote XXX ?", "Lantern", "Lantern is a novel by Hester Amory .", "Hester Amory")


def _read(folder: Path, *lines: tuple[str, ...] | bytes, split: Split = "dev") -> Reading:
    path = folder / f"{split}.0"
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else "\t".join(line).encode()) + b"\n" for line in lines)
    )
    return read_source("structured_zeroshot", path, split=split, is_checked=False)


def _answers(reading: Reading) -> list[list[tuple[str | None, str | None]]]:
    return [[(output.answer, output.evidence[0].text) for output in example.outputs] for example in reading.examples]


def test_an_empty_answer_after_the_last_tab_is_an_answer(tmp_path: Path) -> None:
    reading = _read(tmp_path, (*LINE[:4], ""), b"\t".join(part.encode() for part in (*LINE[:4], "", "")) + b"\r")
    assert _answers(reading) == [[("", LINE[3])]]
    assert reading.tally.merged == 1


def test_one_output_for_each_distinct_answer_and_sentence_in_order(tmp_path: Path) -> None:
    second = ("author", "Who is behind XXX ?", "Lantern", "She wrote it at night .", "Hester Amory", "Amory")
    other = ("author", "Who wrote XXX ?", "Kestrane", "It is by Tomas .", "Tomas")
    reading = _read(tmp_path, LINE, other, second, (*LINE[:4], "Amory"), second)
    assert _answers(reading) == [
        [("Hester Amory", LINE[3]), ("Hester Amory", second[3]), ("Amory", second[3]), ("Amory", LINE[3])],
        [("Tomas", "It is by Tomas .")],
    ]
    assert reading.tally.merged == 3
    example_id = reading.examples[0].example_id
    assert reading.left_out == [RecordFate(None, example_id, "dev.0", line, "merged") for line in (3, 4, 5)]


def test_questions_are_all_those_about_the_relation_with_the_subject_in_them(tmp_path: Path) -> None:
    reading = _read(
        tmp_path,
        LINE,
        ("author", "XXX , who is the auther of XXX ?", "Kestrane", "It is by Tomas .", "Tomas"),
        ("author", "XXX , who is the author of XXX ?", "Kestrane", "It is by him .", "Tomas"),
        ("author", "Whose is XXX ?", "Lantern", "Nobody knows ."),
        ("capital", "What is the capital of XXX ?", "Halvane", "It is Port Sellick .", "Port Sellick"),
    )
    assert [example.meta for example in reading.examples] == [
        {"template_questions": ["Who wrote Lantern ?", "Lantern , who is the author of Lantern ?"]},
        {"template_questions": ["Who wrote Kestrane ?", "Kestrane , who is the author of Kestrane ?"]},
        {"template_questions": ["What is the capital of Halvane ?"]},
    ]


def test_a_line_that_cannot_be_used_is_rejected_with_its_place(tmp_path: Path) -> None:
    reading = _read(tmp_path, LINE, LINE[:3], b"\t", b"", b"a\tXXX\tb\t\xff\tc", LINE)
    assert reading.reasons == [
        ("source", "line 2", "missing_column"),
        ("source", "line 3", "missing_column"),
        ("source", "line 5", "bad_encoding"),
    ]
    assert reading.rejected[0].offset == len("\t".join(LINE)) + 1
    assert len(reading.examples) == 1


def test_a_folder_stands_for_the_file_of_its_split_and_fold(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.0").write_bytes((DEMO / f"{split}.0").read_bytes())
        (tmp_path / f"{split}.3.gz").write_bytes(gzip.compress((DEMO / "test.0").read_bytes()))
    for split in ("train", "dev", "test"):
        by_folder = read_source("structured_zeroshot", tmp_path, split=split)
        by_file = read_source("structured_zeroshot", tmp_path / f"{split}.0", split=split)
        assert by_folder.examples == by_file.examples
        other = read_source("structured_zeroshot", tmp_path, split=split, options=ZeroShotOptions(fold=3))
        assert {example.file for example in other.examples} == {f"{split}.3.gz"}


def test_relations_are_drawn_as_84_12_and_24_of_120_and_always_the_same_way() -> None:
    names = [f"relation {number}" for number in range(120)]
    parts = [drawn_relations(names, split, seed="kilt") for split in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [84, 12, 24]
    assert frozenset.union(*parts) == frozenset(names)
    assert [drawn_relations(names[::-1], split, seed="kilt") for split in ("train", "dev", "test")] == parts
    assert drawn_relations(names, "dev", seed="other") != parts[1]


def test_drawn_relations_part_all_lines_of_all_files() -> None:
    options = ZeroShotOptions(relation_split="random")
    readings = {
        split: read_source("structured_zeroshot", DEMO, split=split, options=options)
        for split in ("train", "dev", "test")
    }
    inputs = {split: {str(example.input) for example in reading.examples} for split, reading in readings.items()}
    relations = {split: {text.partition(" [SEP] ")[2] for text in all_} for split, all_ in inputs.items()}
    assert {split: len(names) for split, names in relations.items()} == {"train": 7, "dev": 1, "test": 2}
    assert len(frozenset.union(*map(frozenset, relations.values()))) == 10
    original = [
        str(example.input)
        for split in inputs
        for example in read_source("structured_zeroshot", DEMO, split=split).examples  # type: ignore[arg-type]
    ]
    assert sorted(original) == sorted(text for all_ in inputs.values() for text in all_)
    assert all(reading.tally.excluded["other_split"] for reading in readings.values())


_FIELDS = st.lists(st.sampled_from(["a", "b", "", "XXX"]), min_size=1, max_size=6).map(tuple)


@settings(max_examples=examples(60))
@given(st.lists(_FIELDS, min_size=1, max_size=12))
def test_no_line_is_lost_and_records_are_what_slow_obvious_code_makes(lines: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Balance, unique ids and counts are asserted where it is read.
        reading = _read(Path(folder), *lines)
    assert reading.tally.records == sum(any(line) or len(line) > 1 for line in lines)
    expected: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for relation, _, subject, sentence, *answers in (line for line in lines if len(line) > 4):
        expected[f"{subject} [SEP] {relation}"].update({(answer, sentence): None for answer in answers})
    assert {example.input: pairs for example, pairs in zip(reading.examples, _answers(reading), strict=True)} == {
        key: list(pairs) for key, pairs in expected.items()
    }
