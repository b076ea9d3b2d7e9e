"""``kbsource verify`` for releases of QAMPARI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kbsource.columns import schema_of
from kbsource.errors import SetupError
from kbsource.release.layout import shard_path
from kbsource.release.writer import write_rows
from mapping.qampari.questions import COMPOSITION
from mapping.qampari.records import Question
from mapping.qampari.release import data_path
from pipelines.cli import main
from tests.support.pages import title_of
from tests.support.qampari import PAGES, drawn, question, undrawn, write_qampari
from tests.support.releases import TitleRow, write_release
from tests.support.verified import broken, seal, verified

NAMES = ("Brack", "Sorn", "Tey", "Ullane", "Halvane")
TABLE = shard_path("questions", 0, 1)
DEV = data_path("dev")


def _questions() -> list[Question]:
    return [
        drawn(question("P50__Q1", NAMES), 0, "dev"),
        drawn(question("P50__Q2", NAMES, subset=COMPOSITION), 1, "dev"),
        undrawn(question("P50__Q3", NAMES)),
        drawn(question("P50__Q4", NAMES), 0, "test"),
        drawn(question("P50__Q5", NAMES), 0, "train"),
    ]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    write_release(folder, PAGES, titles=[TitleRow(page.page_id, page.title) for page in PAGES])
    return folder / "release"


@pytest.fixture
def qampari(tmp_path: Path) -> Path:
    return write_qampari(tmp_path / "qampari", _questions())


def _rewrite_table(folder: Path, questions: list[Question]) -> None:
    write_rows(questions, "questions", schema_of(Question), output=str(folder))
    values = json.loads((folder / "manifest.json").read_text())
    for entry in values["files"]:
        if entry["file"] == TABLE:
            entry["rows"] = len(questions)
    seal(folder, files=values["files"])


def _edit_lines(folder: Path, file: str, change: Callable[[list[Any]], None]) -> None:
    path = folder / file
    records = [json.loads(line) for line in path.read_text().splitlines()]
    change(records)
    path.write_text("".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records))
    seal(folder)


def test_a_whole_release_is_sound(qampari: Path, kb: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = verified(qampari, kb=kb, on_progress=lambda *progress: seen.append(progress))

    assert report.findings == ()
    assert report.is_sound
    assert report.n_files == 5
    assert report.n_bytes == sum(path.stat().st_size for path in qampari.rglob("*.*") if path.name != "manifest.json")
    assert (report.counts, report.has_texts) == ({"questions": 5, "answers": 25, "proofs": 30}, True)
    assert report.n_rows == 5 + 6 + 4
    assert seen[-1] == (2 * report.n_bytes, 2 * report.n_bytes)


def test_without_questions_a_release_is_sound(tmp_path: Path, kb: Path) -> None:
    report = verified(write_qampari(tmp_path / "empty", []), kb=kb)
    assert report.is_sound
    assert report.counts["questions"] == 0


def test_a_manifest_is_what_was_written(qampari: Path) -> None:
    manifest = qampari / "manifest.json"
    content = manifest.read_text()
    for changed in (content.replace('"with_meta": false', '"with_meta": true'), content[:-5]):
        assert changed != content
        manifest.write_text(changed)
        assert broken(qampari) == {("manifest.json", "manifest")}


def test_a_manifest_says_how_the_files_are_written(qampari: Path) -> None:
    seal(qampari, form={"host": "en.wikipedia.org"})
    assert broken(qampari) == {("manifest.json", "manifest")}


def test_a_release_has_all_of_its_files(qampari: Path) -> None:
    (qampari / DEV).unlink()
    files = json.loads((qampari / "manifest.json").read_text())["files"]
    seal(qampari, files=[file for file in files if file["file"] != DEV])
    assert broken(qampari) == {(DEV, "missing")}


def _set(path: tuple[Any, ...], value: Any) -> Callable[[list[Any]], None]:
    def change(records: list[Any]) -> None:
        inside: Any = records
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value

    return change


ANSWER = (0, "answer_list", 1)


@pytest.mark.parametrize(
    ("change", "example"),
    [
        (_set((0,), "{"), "line 1"),
        (_set((0, "qid"), "0__wikidata_simple__development"), "is not <number>__<subset>__<split>"),
        (_set((0, "qid"), "0__wikidata_simple__test"), "in the file of dev"),
        (_set((*ANSWER, "aid"), "0__wikidata_simple__dev__0"), "answer 1 of 0__wikidata_simple__dev has the aid"),
        (_set((*ANSWER, "proof", 0, "pid"), "0__wikidata_simple__dev__1__1"), "has the pid"),
        (_set((*ANSWER, "proof", 0, "proof_text"), ""), "has no text or no address"),
        (_set((*ANSWER, "proof"), []), "0__wikidata_simple__dev__1 has no proof"),
        (_set((0, "answer_list"), []), "has no answers"),
        (_set((*ANSWER, "aliases"), ["Sorn the Great", "Sorn"]), "the aliases of 'Sorn' do not begin with it"),
        (_set((0, "entities", 0, "aliases"), []), "the aliases of 'Lake Miravel' do not begin with it"),
    ],
)
def test_released_questions_are_built_as_such(qampari: Path, change: Callable[[list[Any]], None], example: str) -> None:
    _edit_lines(qampari, DEV, change)
    findings = {finding.rule: finding for finding in verified(qampari).findings}

    assert set(findings) == {"record_law", "not_released"}
    assert example in findings["record_law"].example
    assert findings["record_law"].n_cases == 1


def test_numbers_and_ids_of_questions_are_unique(qampari: Path) -> None:
    _edit_lines(qampari, DEV, lambda records: records.append(records[0]))
    assert broken(qampari) == {(DEV, "duplicate_question")}


def test_a_number_is_unique_within_a_split(tmp_path: Path) -> None:
    questions = _questions()
    questions[1] = drawn(questions[1], 0, "dev")
    folder = write_qampari(tmp_path / "qampari", questions)
    assert broken(folder) == {(DEV, "duplicate_question"), (DEV, "not_released")}


def test_a_drawn_question_stands_in_the_file_of_its_split(qampari: Path) -> None:
    _edit_lines(qampari, DEV, lambda records: records.pop())
    assert broken(qampari) == {(DEV, "not_released")}


def test_a_released_question_was_drawn(qampari: Path) -> None:
    questions = _questions()
    questions[0] = undrawn(questions[0])
    _rewrite_table(qampari, questions)
    assert broken(qampari) == {(DEV, "not_drawn")}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((0, "question_text"), "What else?"),
        ((*ANSWER, "answer_url"), "https://de.wikipedia.org/wiki/Sorn"),
        ((*ANSWER, "proof", 0, "proof_text"), "The Sorn is short."),
        ((0, "meta"), {}),
    ],
)
def test_a_released_question_is_what_the_table_says(qampari: Path, path: tuple[Any, ...], value: Any) -> None:
    _edit_lines(qampari, DEV, _set(path, value))
    assert broken(qampari) == {(DEV, "released_differs")}


def _first(**changed: Any) -> Question:
    return replace(_questions()[0], **changed)


def _with_proof(**changed: Any) -> Question:
    answers = _first().answers
    proof = replace(answers[0].proofs[0], **changed)
    return _first(answers=(replace(answers[0], proofs=(proof,)), *answers[1:]))


@pytest.mark.parametrize(
    ("odd", "example"),
    [
        (undrawn(_first(subset="wikidata")), "no such subset"),
        (replace(undrawn(_first()), split="dev"), "a split without a qid"),
        (replace(undrawn(_first()), split="dev", qid="0__wikidata_comp__dev"), "names another subset or split"),
        (replace(undrawn(_first()), split="dev", qid="first"), "is not <number>__<subset>__<split>"),
        (replace(drawn(_first(), 0, "dev"), side="train"), "side train in dev"),
        (drawn(_first(n_validated=4), 0, "dev"), "more answers than are validated"),
        (replace(drawn(_first(), 0, "dev"), n_dropped=1), "more answers than are validated"),
        (drawn(_first(n_answers=4), 0, "dev"), "more validated than there are"),
        (undrawn(_first(entities=(replace(_first().entities[0], aliases=()),))), "do not begin with it"),
        (undrawn(_first(subset=COMPOSITION)), "1 proofs of 'Brack'"),
        (undrawn(_with_proof(start_char=40)), "without a sentence"),
        (undrawn(_with_proof(text="The Ullane.")), "of another length than its span"),
    ],
)
def test_rows_of_questions_are_built_as_such(qampari: Path, odd: Question, example: str) -> None:
    _rewrite_table(qampari, [odd, *_questions()[1:]])
    findings = {(finding.file, finding.rule): finding for finding in verified(qampari).findings}

    assert example in findings[TABLE, "question_law"].example


def test_a_query_has_one_question(qampari: Path) -> None:
    questions = _questions()
    _rewrite_table(qampari, [*questions, questions[2]])
    assert broken(qampari) == {(TABLE, "duplicate_question")}


@pytest.mark.parametrize(
    ("changed", "example"),
    [
        ({"page_id": 1_000}, "no page 1000"),
        ({"title": "Other"}, f"page {PAGES[0].page_id} is {title_of(0)!r}, not 'Other'"),
        ({"element": 99}, "has no element 99"),
        ({"start_char": 1, "end_char": 41, "sentence_char": 1}, "has another text there"),
    ],
)
def test_proofs_stand_on_their_pages(tmp_path: Path, kb: Path, changed: dict[str, Any], example: str) -> None:
    folder = write_qampari(tmp_path / "odd", [drawn(_with_proof(**changed), 0, "dev")])

    assert broken(folder) == set()
    (finding,) = verified(folder, kb=kb).findings
    assert (finding.file, finding.rule, finding.n_cases) == (TABLE, "proof_differs", 1)
    assert example in finding.example


def test_proofs_are_compared_with_the_release_that_they_are_from(tmp_path: Path, kb: Path) -> None:
    manifest_sha256 = json.loads((kb / "manifest.json").read_text())["manifest_sha256"]
    right = write_qampari(tmp_path / "right", [], facts={"release": {"manifest_sha256": manifest_sha256}})
    other = write_qampari(tmp_path / "other", [], facts={"release": {"manifest_sha256": "0" * 64}})

    assert verified(right, kb=kb).is_sound
    with pytest.raises(SetupError, match="made from another release"):
        verified(other, kb=kb)


def test_the_command_says_what_was_checked(
    qampari: Path, kb: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(qampari), "--kb", str(kb)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Sound: 5 files, ")
    assert " 15 rows, 5 questions, 25 answers, 30 proofs with their texts checked.\n" in out
    _edit_lines(qampari, DEV, lambda records: records.pop())
    assert main(["verify", str(qampari)]) == 1
    out = capsys.readouterr().out
    assert (
        f"{DEV}: a drawn question is not in the file of its split (not_released, 1 case): 1__wikidata_comp__dev\n"
        in out
    )
    assert "NOT sound: 5 files, " in out
    assert "30 proofs checked" in out
    assert main(["verify", str(qampari), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], said["n_proofs"], said["has_texts"]) == (False, 30, False)
    assert main(["verify", str(release), "--kb", str(kb)]) == 2
    takers = "a corpus of passages, a QAMPARI release, a release of AmbER sets, a release of entity-linking data"
    assert f"--kb: for {takers}, not for this kind (release of pages)" in capsys.readouterr().err
    assert main(["verify", str(qampari.parent / "nowhere"), "--kb", str(kb)]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
