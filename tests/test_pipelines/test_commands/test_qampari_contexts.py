"""``kbsource qampari-contexts``: questions with passages, in the forms that retrievers and readers take."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from kbsource.errors import SetupError
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.gold import RANKED_REASONS
from mapping.contexts.records import ContextsOptions
from pipelines.cli import main
from tests.support.alignments import read_lines, table
from tests.support.contexts import (
    MANIFEST,
    NAMES,
    PAGES,
    QIDS,
    flip_byte,
    passages_of,
    proof_of,
    question_of,
    write_ranked,
)
from tests.support.passages import cut_release, write_kb
from tests.support.qampari import drawn, write_qampari
from tests.support.verified import verified


def test_records_have_the_passages_that_hold_the_proofs(tmp_path: Path, qampari: Path, corpus: Path) -> None:
    output = tmp_path / "contexts"
    files = ContextsFiles(str(qampari), str(corpus), (str(write_ranked(tmp_path / "ranked.jsonl", corpus)),))
    said: list[str] = []
    report = export_contexts(files, str(output), ContextsOptions(most_ranked=9), note=said.append)

    dev = read_lines(output / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    released = read_lines(qampari / "qampari_data" / "dev_data.jsonl")
    assert [{name: line[name] for name in released[0]} for line in dev] == released
    texts = {passage.passage_id: passage for passage in passages_of(corpus)}
    for record in dev:
        wanted = [(proof["pid"], proof["proof_text"]) for answer in record["answer_list"] for proof in answer["proof"]]
        assert [positive_ctx["pid"] for positive_ctx in record["positive_ctxs"]] == [pid for pid, _ in wanted]
        for positive_ctx, (_, text) in zip(record["positive_ctxs"], wanted, strict=True):
            assert text in positive_ctx["text"]
            assert (positive_ctx["title"], positive_ctx["text"]) == (
                texts[positive_ctx["chunk_id"]].title,
                texts[positive_ctx["chunk_id"]].text,
            )
        assert [positive_ctx["score"] for positive_ctx in record["positive_ctxs"]][:1] == [50.0]
        assert record["positive_ctxs"][-1]["score"] == 0.0
        assert len(record["ctxs"]) == 9
        for negative_ctx in record["hard_negative_ctxs"]:
            assert negative_ctx["pid"] == record["qid"]
            assert not any(name in negative_ctx["text"] + negative_ctx["title"] for name in NAMES)
    # The first four of nine are of pages that have an answer's name for a title.
    assert [len(line["hard_negative_ctxs"]) for line in dev] == [5, 5]
    assert report == {
        "questions": {
            "train": 1,
            "dev": 2,
            "test": 0,
            "without_positives": 0,
            "without_retrieved": 0,
            "fewer_negatives_than_positives": 1,
            "separator_in_an_answer": 0,
        },
        "proofs": {"all": 20, "placed": 20, "unplaced": {}},
        "hard_negatives": 15,
        "rejected": {},
    }
    assert json.loads((output / "report.json").read_text()) == report
    reader = read_lines(output / "qampari_fid" / "dev_data.jsonl")
    assert [line["id"] for line in reader] == list(QIDS[:2])
    assert reader[0]["ctxs"] == dev[0]["ctxs"]
    assert reader[0]["target"] == "#".join(NAMES)
    assert (output / "qampari_contexts" / "test_data_with_contexts.jsonl").read_bytes() == b""
    assert len(said) == 4
    assert verified(output).is_sound


def test_evidence_is_recalled_by_the_ids_of_passages(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranked, output = write_ranked(tmp_path / "ranked.jsonl", corpus, QIDS[:2]), tmp_path / "contexts"
    told = [str(corpus), "--retrieved", str(ranked), "--output", str(output)]
    assert main(["qampari-contexts", str(qampari), *told]) == 0
    out = capsys.readouterr().out
    assert re.search("^questions without ranked passages +1$", out, re.MULTILINE)
    gold = output / "qampari_contexts" / "dev_data_with_contexts.jsonl"
    flags = [str(gold), "--retrieved", str(ranked), "--evidence-match", "id", "--k", "1,2,3,100", "--json"]
    assert main(["evaluate", "qampari", *flags]) == 0
    said = json.loads(capsys.readouterr().out)
    # The first and the second prove one answer of five each, the third none.
    assert said["erecall"] == {"1": 0.2, "2": 0.4, "3": 0.4, "100": 1.0}
    assert said["without_evidence"] == 0


def test_proofs_that_no_passage_holds_are_listed(
    tmp_path: Path, kb: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = question_of("P50__Q1")
    whole = structs.replace(proof_of(0), text=PAGES[0].elements[1].text, end_char=len(PAGES[0].elements[1].text))
    odd = (whole, structs.replace(proof_of(1), element=7), structs.replace(proof_of(2), page_id=5))
    answers = [structs.replace(answer, proofs=(proof,)) for answer, proof in zip(question.answers, odd, strict=False)]
    question = structs.replace(question, answers=(*answers, *question.answers[3:]))
    qampari = write_qampari(tmp_path / "qampari", [drawn(question, 0, "dev")])
    output = tmp_path / "contexts"

    assert main(["qampari-contexts", str(qampari), str(corpus), "--output", str(output)]) == 0
    assert "  not: sentence_cut" in capsys.readouterr().out
    unplaced = read_lines(output / "unplaced.jsonl")
    assert [(line["pid"][-3:], line["page_id"], line["element"], line["reason"]) for line in unplaced] == [
        ("0__0"[1:], 1, 1, "sentence_cut"),
        ("1__0"[1:], 4, 7, "no_running_text"),
        ("2__0"[1:], 5, 1, "no_passages"),
    ]
    (record,) = read_lines(output / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    assert [positive_ctx["pid"][-4:] for positive_ctx in record["positive_ctxs"]] == ["3__0", "4__0"]
    assert (record["hard_negative_ctxs"], record["ctxs"]) == ([], [])
    proofs = json.loads((output / "report.json").read_text())["proofs"]
    assert proofs == {"all": 5, "placed": 2, "unplaced": {"no_passages": 1, "no_running_text": 1, "sentence_cut": 1}}


def test_lines_that_cannot_be_used_are_named(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranked = write_ranked(tmp_path / "ranked.jsonl", corpus, (QIDS[0], "7__wikidata_simple__dev"))
    with ranked.open("a") as file:
        file.write("{\n")
    output = tmp_path / "contexts"
    told = [str(corpus), "--retrieved", str(ranked), "--output", str(output), "--json"]
    assert main(["qampari-contexts", str(qampari), *told]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rejected"] == {"malformed_json": 1, "unknown_question": 1}
    assert "ranked.jsonl, line 2: '7__wikidata_simple__dev' is not in the release (unknown_question)" in captured.err
    assert (
        {row["reason"] for row in table(output, "rejected")}
        == {"malformed_json", "unknown_question"}
        <= set(RANKED_REASONS)
    )
    assert verified(output).is_sound


def test_release_and_passages_are_of_one_knowledge_source(tmp_path: Path, qampari: Path) -> None:
    other = structs.replace(PAGES[0], title="Renamed")
    cut_release(tmp_path / "passages", write_kb(tmp_path, [other]))
    files = ContextsFiles(str(qampari), str(tmp_path / "passages"))
    with pytest.raises(SetupError, match="Make passages from the first release"):
        export_contexts(files, str(tmp_path / "contexts"), ContextsOptions())
    assert not (tmp_path / "contexts").exists()


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _edited(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": []}))


@pytest.mark.parametrize(
    ("file", "damage", "code", "said"),
    [
        ("passages/passages-00002-of-00003.parquet", flip_byte, 2, " is damaged or changed (sha256)"),
        ("passages/passages-00002-of-00003.parquet", _cut_off, 2, " is damaged or changed (size)"),
        ("passages/passages-00002-of-00003.parquet", Path.unlink, 2, " is damaged or changed (missing)"),
        (MANIFEST, _edited, 1, ": table passages is missing"),
    ],
)
def test_a_damaged_corpus_is_refused_before_anything_is_written(
    tmp_path: Path,
    qampari: Path,
    corpus: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    damage: Callable[[Path], None],
    code: int,
    said: str,
) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(corpus, odd)
    damage(odd / file)
    output = tmp_path / "contexts"
    assert main(["qampari-contexts", str(qampari), str(odd), "--output", str(output)]) == code
    assert f"{odd / file}{said}" in capsys.readouterr().err
    assert not output.exists()


def test_ranked_files_are_looked_at_first(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, message in ((tmp_path / "nowhere.jsonl", "no such file"), (tmp_path, "is a folder; name a file")):
        told = [str(corpus), "--retrieved", str(path), "--output", str(tmp_path / "contexts")]
        assert main(["qampari-contexts", str(qampari), *told]) == 2
        err = capsys.readouterr().err
        assert str(path) in err
        assert message in err
        assert "looking for" not in err
