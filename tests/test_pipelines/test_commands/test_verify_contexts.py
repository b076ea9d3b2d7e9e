"""``kbsource verify`` of questions with passages: every line is what is made again, every count that of the lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.release.manifest import canonical_json
from kbsource.release.verify import VerifyReport
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.records import ContextsOptions
from mapping.passages.cut import CutOptions
from pipelines.cli import main
from tests.support.contexts import MANIFEST, QIDS, flip_byte, question_of, write_contexts, write_ranked
from tests.support.passages import cut_release
from tests.support.qampari import drawn, write_qampari
from tests.support.verified import seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")


@pytest.fixture
def contexts(tmp_path: Path, qampari: Path, corpus: Path) -> Path:
    return write_contexts(tmp_path, qampari, corpus)


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
    assert seen[-1] == (report.n_bytes, report.n_bytes)
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


def test_questions_with_passages_are_compared_with_what_they_were_made_from(
    tmp_path: Path, contexts: Path, qampari: Path, corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut_release(tmp_path / "other", kb)
    another = write_qampari(tmp_path / "another", [])
    for release, passages, message in (
        (qampari, tmp_path / "other", "was not made from the release"),
        (another, corpus, "was not made from the release"),
        (qampari, None, "name the two sources of"),
        (None, corpus, "name the two sources of"),
    ):
        with pytest.raises(SetupError, match=message):
            _verify(contexts, release, passages)
    with pytest.raises(
        SetupError,
        match=r"and --passages can be used only for .*a folder of questions with passages.* but this is",
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
