"""``kbsource verify`` of questions with passages: every line is what is made again, every count that of the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.release.manifest import canonical_json
from kbsource.release.verify import VerifyReport
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.records import ContextsOptions
from mapping.passages.cut import CutOptions
from pipelines.cli import main
from tests.support.alignments import read_lines, write_records
from tests.support.contexts import MANIFEST, QIDS, flip_byte, question_of, write_ranked
from tests.support.passages import cut_release
from tests.support.qampari import drawn, write_qampari
from tests.support.verified import seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

DEV, TEST = (f"qampari_contexts/{split}_data_with_contexts.jsonl" for split in ("dev", "test"))
READERS = "qampari_fid/dev_data.jsonl"
UNPLACED_FILE = "unplaced.jsonl"


@pytest.fixture
def contexts(tmp_path: Path, qampari: Path, corpus: Path) -> Path:
    """Questions with passages: the line of one is empty, another has none, and one line is damaged."""
    ranked = write_ranked(tmp_path / "ranked.jsonl", corpus, QIDS[:1])
    with ranked.open("a") as file:
        file.write(json.dumps({"qid": QIDS[1], "ctxs": []}) + "\n{\n")
    files = ContextsFiles(str(qampari), str(corpus), (str(ranked),))
    export_contexts(files, str(tmp_path / "contexts"), ContextsOptions(most_ranked=9))
    return tmp_path / "contexts"


def _change(folder: Path, file: str, change: Callable[[list[Any]], None]) -> None:
    lines = read_lines(folder / file)
    change(lines)
    write_records(folder / file, lines)
    seal(folder)


def _verify(folder: Path, qampari: Path | None = None, passages: Path | None = None) -> VerifyReport:
    release, corpus = (None if folder_given is None else str(folder_given) for folder_given in (qampari, passages))
    return verified(folder, qampari=release, passages=corpus)


def _broken(folder: Path, qampari: Path | None = None, passages: Path | None = None) -> set[tuple[str, str]]:
    return {(finding.file, finding.rule) for finding in _verify(folder, qampari, passages).findings}


@pytest.mark.parametrize("split_long", [False, True])
def test_questions_with_passages_are_sound(
    tmp_path: Path, kb: Path, qampari: Path, capsys: pytest.CaptureFixture[str], split_long: bool
) -> None:
    cut_release(tmp_path / "corpus", kb, cut=CutOptions(4, split_long))
    ranked = write_ranked(tmp_path / "ranked.jsonl", tmp_path / "corpus", (*QIDS[:2], "x"))
    output, corpus = tmp_path / "contexts", tmp_path / "corpus"
    files = ContextsFiles(str(qampari), str(corpus), (str(ranked),))
    export_contexts(files, str(output), ContextsOptions())
    assert (json.loads((output / "report.json").read_text())["proofs"]["placed"] == 0) == split_long
    seen: list[tuple[int, int]] = []
    report = verified(output, on_progress=lambda *progress: seen.append(progress))
    assert report.findings == ()
    assert (report.counts, report.has_texts) == ({"questions": 3, "answers": 15, "proofs": 20}, False)
    assert seen[-1] == (2 * report.n_bytes, 2 * report.n_bytes)
    report = _verify(output, qampari, corpus)
    assert report.findings == ()
    assert (report.counts, report.has_texts) == ({"questions": 3, "answers": 15, "proofs": 20}, True)
    assert main(["verify", str(output), "--qampari", str(qampari), "--passages", str(corpus)]) == 0
    assert "3 questions, 15 answers, 20 proofs with their texts checked.\n" in capsys.readouterr().out


def test_empty_lines_and_none_are_told_apart_by_the_counts_alone(contexts: Path) -> None:
    counts = json.loads((contexts / "report.json").read_text())
    assert counts["questions"]["without_retrieved"] == 1
    assert counts["questions"]["fewer_negatives_than_positives"] == 1
    assert _broken(contexts) == set()
    for without, fewer in ((2, 0), (2, 1), (3, 0), (1, 3), (-1, 0)):
        questions = {**counts["questions"], "without_retrieved": without, "fewer_negatives_than_positives": fewer}
        changed = {**counts, "questions": questions}
        (contexts / "report.json").write_bytes(canonical_json(changed))
        seal(contexts, counts=changed)
        rule = "manifest" if without < 0 else "counts"
        assert _broken(contexts) == (set() if (without, fewer) == (2, 0) else {(MANIFEST, rule)})


def _first(**values: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines[0].update(values)


def _in_first(name: str, **values: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines[0][name][0].update(values)


@pytest.mark.parametrize(
    ("file", "change", "broken"),
    [
        (DEV, _first(question_text="What?"), {(DEV, "context_differs"), (READERS, "context_differs")}),
        (DEV, _first(question="What?"), {(DEV, "context_differs")}),
        (DEV, _first(answers=[]), {(DEV, "context_differs")}),
        (DEV, _first(further=1), {(DEV, "context_differs")}),
        (DEV, _first(qid="7__wikidata_simple__test"), {(DEV, "context_law")}),
        (DEV, _in_first("positive_ctxs", score=3.0), {(DEV, "context_differs")}),
        (DEV, _in_first("positive_ctxs", pid=f"{QIDS[0]}__4__0"), {(DEV, "context_law")}),
        (DEV, _in_first("positive_ctxs", pid=f"{QIDS[1]}__0__0"), {(DEV, "context_law")}),
        (DEV, lambda lines: lines[0]["positive_ctxs"].reverse(), {(DEV, "context_law")}),
        (DEV, lambda lines: lines[0]["positive_ctxs"].pop(), {(DEV, "context_differs"), (DEV, "proof_lost")}),
        (DEV, lambda lines: lines[0]["hard_negative_ctxs"].pop(), {(DEV, "context_differs")}),
        (DEV, _in_first("hard_negative_ctxs", chunk_id="1__0"), {(DEV, "context_differs")}),
        (DEV, _in_first("hard_negative_ctxs", pid="x"), {(DEV, "context_differs")}),
        (DEV, _in_first("ctxs", score=49.5), {(DEV, "context_differs"), (READERS, "context_differs")}),
        (DEV, _in_first("ctxs", score=50), {(DEV, "context_law")}),
        (DEV, _in_first("ctxs", id="4__0"), {(DEV, "context_law")}),
        (DEV, lambda lines: lines[0]["ctxs"].append({**lines[0]["ctxs"][0], "id": "0__0"}), {(DEV, "context_law")}),
        (DEV, lambda lines: lines.append(lines[0]), {(DEV, "context_law")}),
        (DEV, lambda lines: lines[0]["answer_list"][0]["aliases"].append(7), {(DEV, "context_law")}),
        (DEV, lambda lines: lines.append("x"), {(DEV, "context_law")}),
        (READERS, _first(target="x"), {(READERS, "context_differs")}),
        (READERS, _in_first("ctxs", text="x"), {(READERS, "context_differs")}),
        (READERS, lambda lines: lines.pop(), {(READERS, "context_differs")}),
        (READERS, lambda lines: lines.append("x"), {(READERS, "context_differs")}),
        (
            UNPLACED_FILE,
            lambda lines: lines.append({"pid": "x", "reason": "no_passages"}),
            {(UNPLACED_FILE, "proof_lost")},
        ),
        (UNPLACED_FILE, lambda lines: lines.append({"pid": "x", "reason": "x"}), {(UNPLACED_FILE, "context_law")}),
        (
            UNPLACED_FILE,
            lambda lines: lines.append({"pid": f"{QIDS[0]}__0__0", "reason": "no_passages"}),
            {(DEV, "proof_lost")},
        ),
    ],
)
def test_lines_are_what_they_give_when_they_are_made_again(
    contexts: Path, file: str, change: Callable[[list[Any]], None], broken: set[tuple[str, str]]
) -> None:
    _change(contexts, file, change)
    assert _broken(contexts) - {(MANIFEST, "counts")} == broken


def test_counts_are_those_of_the_lines(contexts: Path) -> None:
    counts = json.loads((contexts / "report.json").read_text())
    for name, value in (
        ("hard_negatives", 4),
        ("rejected", {}),
        ("proofs", {**counts["proofs"], "placed": 19}),
        ("questions", {**counts["questions"], "dev": 3}),
    ):
        changed = {**counts, name: value}
        seal(contexts, counts=changed)
        assert _broken(contexts) == {(MANIFEST, "counts"), ("report.json", "counts")}
    seal(contexts, counts={})
    assert _broken(contexts) == {(MANIFEST, "manifest")}


def test_questions_with_passages_have_all_of_their_files_and_no_further_ones(contexts: Path) -> None:
    files = json.loads((contexts / MANIFEST).read_text())["files"]
    (contexts / "further.jsonl").write_text("{}\n")
    seal(contexts, files=[*files, {"file": "further.jsonl", "rows": 1, "bytes": 3, "sha256": ""}])
    assert _broken(contexts) == {(MANIFEST, "manifest")}
    (contexts / "further.jsonl").unlink()
    (contexts / READERS).unlink()
    seal(contexts, files=[file for file in files if file["file"] != READERS])
    assert _broken(contexts) == {(READERS, "missing")}


def _drop_first_question(lines: list[Any]) -> None:
    del lines[0]


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({DEV: _in_first("positive_ctxs", text="x")}, {(DEV, "context_differs")}),
        ({DEV: _in_first("positive_ctxs", title="x")}, {(DEV, "context_differs")}),
        (
            {
                DEV: lambda lines: lines[1]["positive_ctxs"].pop(),
                UNPLACED_FILE: lambda lines: lines.append({"pid": f"{QIDS[1]}__4__1", "reason": "sentence_cut"}),
            },
            {(DEV, "context_differs"), (DEV, "proof_lost"), (UNPLACED_FILE, "context_differs")},
        ),
        (
            {DEV: _drop_first_question, READERS: _drop_first_question},
            {(DEV, "context_differs"), (READERS, "context_differs")},
        ),
        (
            {
                DEV: lambda lines: lines[0]["ctxs"][2].update(id="1__7"),
                READERS: lambda lines: lines[0]["ctxs"][2].update(id="1__7"),
            },
            {(DEV, "unknown_passage")},
        ),
    ],
)
def test_questions_with_passages_are_what_release_and_corpus_give(
    contexts: Path,
    qampari: Path,
    corpus: Path,
    changes: dict[str, Callable[[list[Any]], None]],
    broken: set[tuple[str, str]],
) -> None:
    for file, change in changes.items():
        _change(contexts, file, change)
    assert _broken(contexts) - {(MANIFEST, "counts")} <= {(DEV, "context_differs"), (READERS, "context_differs")}
    found = _broken(contexts, qampari, corpus)
    assert found - {(MANIFEST, "counts")} == broken


def test_questions_with_passages_are_compared_with_what_they_were_made_from(
    tmp_path: Path, contexts: Path, qampari: Path, corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut_release(tmp_path / "other", kb)
    another = write_qampari(tmp_path / "another", [])
    for release, passages, message in (
        (qampari, tmp_path / "other", "was made from another release than"),
        (another, corpus, "was made from another release than"),
        (qampari, None, "give both of what these were made from"),
        (None, corpus, "give both of what these were made from"),
    ):
        with pytest.raises(SetupError, match=message):
            _verify(contexts, release, passages)
    with pytest.raises(
        SetupError, match=r"--qampari and --passages: for .*a folder of questions with passages.* not for this kind"
    ):
        _verify(qampari, qampari, corpus)
    assert main(["verify", str(kb), "--qampari", str(qampari), "--passages", str(corpus)]) == 2
    assert "a folder of questions with passages" in capsys.readouterr().err
    flip_byte(corpus / "passages" / "passages-00000-of-00003.parquet")
    try:
        with pytest.raises(SetupError, match="is damaged or changed"):
            _verify(contexts, qampari, corpus)
    finally:
        flip_byte(corpus / "passages" / "passages-00000-of-00003.parquet")


def test_two_questions_with_one_id_are_told(tmp_path: Path, corpus: Path) -> None:
    twice = [drawn(question_of(f"P50__Q{number}"), 0, "dev") for number in range(2)]
    files = ContextsFiles(str(write_qampari(tmp_path / "qampari", twice)), str(corpus))
    with pytest.raises(DataError, match="Two proofs have the id"):
        export_contexts(files, str(tmp_path / "contexts"), ContextsOptions())
    assert not (tmp_path / "contexts").exists()
