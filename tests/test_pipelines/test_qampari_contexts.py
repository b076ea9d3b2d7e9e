"""``kbsource qampari-contexts``: questions with passages, in the forms that retrievers and readers take."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.files import LocalStorage, sha256_of
from kbsource.release.manifest import canonical_json
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.gold import REASONS as UNPLACED
from mapping.contexts.ranked import REASONS
from mapping.contexts.writing import ContextsOptions
from mapping.output import manifest_bytes
from mapping.passages.corpus import CutOptions, read_passages
from mapping.passages.cut import Passage
from mapping.qampari.questions import COMPOSITION, SIMPLE
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from mapping.verify_output import OutputReport, verify_output
from pipelines.cli import main, make_parser
from tests.support.alignments import read_lines, table, write_records
from tests.support.builds import contents
from tests.support.passages import cut_release, page, write_kb
from tests.support.qampari import drawn, undrawn, write_qampari
from tests.support.real_data import ROOT

NAMES = ("Brack", "Sorn", "Tey", "Ullane", "Miravel")
PAGES = tuple(
    page(3 * number + 1, f"{name} page", f"Of all things {name} is by Aldo Vent. Nothing more is known of it.")
    for number, name in enumerate(NAMES)
) + tuple(page(100 + number, f"Other {number}", f"A text number {number}.") for number in range(8))
MANIFEST = "manifest.json"


def _proof(number: int, *, before: bool = False) -> ProofText:
    one = PAGES[number]
    text = one.elements[1].text
    at = text.index(". ") + 2 if before else 0
    end = len(text) if before else text.index(".") + 1
    return ProofText(text[:end], one.page_id, one.title, 1, 0, end, at, 0.5, "It is so.")


def _question(key: str, *, subset: str = SIMPLE, proofs: int = 1) -> Question:
    answers = tuple(
        QuestionAnswer(name, (name, f"{name} #1"), f"{name} page", f"Q{number}", (_proof(number),) * proofs)
        for number, name in enumerate(NAMES)
    )
    about = QuestionEntity("Aldo Vent", ("Aldo Vent",), None, "Q900")
    return Question(subset, key, f"What is by Aldo Vent ({key})?", ("P50",), None, (about,), 5, 5, answers)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kb(tmp_path_factory.mktemp("kb"), PAGES, rows_per_shard=4, n_shards=3)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, kb: Path) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "passages"
    cut_release(folder, kb, cut=CutOptions(max_words=10))
    return folder


@pytest.fixture
def qampari(tmp_path: Path, kb: Path) -> Path:
    sha256 = json.loads((kb / MANIFEST).read_text())["manifest_sha256"]
    questions = [
        drawn(_question("P50__Q1"), 0, "dev"),
        drawn(_question("P50__Q2", subset=COMPOSITION, proofs=2), 1, "dev"),
        undrawn(_question("P50__Q3")),
        drawn(_question("P50__Q4"), 0, "train"),
    ]
    return write_qampari(tmp_path / "qampari", questions, facts={"release": {"manifest_sha256": sha256}})


def _passages(corpus: Path) -> list[Passage]:
    paths = sorted((corpus / "passages").iterdir())
    return [one for path in paths for one in read_passages(str(path), LocalStorage())]


def _ctxs(passages: list[Passage]) -> list[dict[str, Any]]:
    return [
        {"id": one.passage_id, "title": one.title, "text": one.text, "score": 50.0 - rank}
        for rank, one in enumerate(passages)
    ]


QIDS = ("0__wikidata_simple__dev", "1__wikidata_comp__dev", "0__wikidata_simple__train")


def _ranked(path: Path, corpus: Path, qids: tuple[str, ...] = QIDS) -> Path:
    """Writes what a retriever found: the pages of the first two answers, those of no answer, those of the others."""
    passages = sorted(_passages(corpus), key=lambda one: (one.page_id > 4, "page" in one.title, one.number))
    return write_records(path, [{"qid": qid, "ctxs": _ctxs(passages)} for qid in qids])


def test_records_have_the_passages_that_hold_the_proofs(tmp_path: Path, qampari: Path, corpus: Path) -> None:
    output = tmp_path / "contexts"
    files = ContextsFiles(str(qampari), str(corpus), (str(_ranked(tmp_path / "ranked.jsonl", corpus)),))
    said: list[str] = []
    report = export_contexts(files, str(output), LocalStorage(), ContextsOptions(most_ranked=9), note=said.append)

    dev = read_lines(output / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    released = read_lines(qampari / "qampari_data" / "dev_data.jsonl")
    assert [{name: one[name] for name in released[0]} for one in dev] == released
    texts = {one.passage_id: one for one in _passages(corpus)}
    for record in dev:
        wanted = [(proof["pid"], proof["proof_text"]) for one in record["answer_list"] for proof in one["proof"]]
        assert [one["pid"] for one in record["positive_ctxs"]] == [pid for pid, _ in wanted]
        for one, (_, text) in zip(record["positive_ctxs"], wanted, strict=True):
            assert text in one["text"]
            assert (one["title"], one["text"]) == (texts[one["chunk_id"]].title, texts[one["chunk_id"]].text)
        assert [one["score"] for one in record["positive_ctxs"]][:1] == [50.0]
        assert record["positive_ctxs"][-1]["score"] == 0.0
        assert len(record["ctxs"]) == 9
        for one in record["hard_negative_ctxs"]:
            assert one["pid"] == record["qid"]
            assert not any(name in one["text"] + one["title"] for name in NAMES)
    # The first four of nine are of pages that have an answer's name for a title.
    assert [len(one["hard_negative_ctxs"]) for one in dev] == [5, 5]
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
    assert [one["id"] for one in reader] == list(QIDS[:2])
    assert reader[0]["ctxs"] == dev[0]["ctxs"]
    assert reader[0]["target"] == "#".join(NAMES)
    assert (output / "qampari_contexts" / "test_data_with_contexts.jsonl").read_bytes() == b""
    assert len(said) == 4
    assert verify_output(str(output)).is_sound


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, qampari: Path, corpus: Path) -> None:
    files = ContextsFiles(str(qampari), str(corpus), (str(_ranked(tmp_path / "ranked.jsonl", corpus)),))
    for name in ("one", "other"):
        export_contexts(files, str(tmp_path / name), LocalStorage(), ContextsOptions())
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_what_a_killed_run_left_behind_is_removed(tmp_path: Path, qampari: Path, corpus: Path) -> None:
    files, output = ContextsFiles(str(qampari), str(corpus)), tmp_path / "contexts"
    export_contexts(files, str(output), LocalStorage(), ContextsOptions())
    whole = contents(output)
    (output / MANIFEST).rename(output / "BUILDING")
    export_contexts(files, str(output), LocalStorage(), ContextsOptions())
    assert contents(output) == whole


def test_evidence_is_recalled_by_the_ids_of_passages(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranked, output = _ranked(tmp_path / "ranked.jsonl", corpus, QIDS[:2]), tmp_path / "contexts"
    told = ["--passages", str(corpus), "--retrieved", str(ranked), "--output", str(output)]
    assert main(["qampari-contexts", str(qampari), *told]) == 0
    out = capsys.readouterr().out
    assert "questions without ranked passages    1\n" in out
    gold = output / "qampari_contexts" / "dev_data_with_contexts.jsonl"
    flags = ["--gold", str(gold), "--retrieved", str(ranked), "--evidence-match", "id", "--k", "1,2,3,100", "--json"]
    assert main(["evaluate", "qampari", *flags]) == 0
    said = json.loads(capsys.readouterr().out)
    # The first and the second prove one answer of five each, the third none.
    assert said["erecall"] == {"1": 0.2, "2": 0.4, "3": 0.4, "100": 1.0}
    assert said["without_evidence"] == 0


def test_proofs_that_no_passage_holds_are_listed(
    tmp_path: Path, kb: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = _question("P50__Q1")
    whole = _proof(0)._replace(text=PAGES[0].elements[1].text, end_char=len(PAGES[0].elements[1].text))
    odd = (whole, _proof(1)._replace(element=7), _proof(2)._replace(page_id=5))
    answers = [one._replace(proofs=(proof,)) for one, proof in zip(question.answers, odd, strict=False)]
    question = question._replace(answers=(*answers, *question.answers[3:]))
    qampari = write_qampari(tmp_path / "qampari", [drawn(question, 0, "dev")])
    output = tmp_path / "contexts"

    assert main(["qampari-contexts", str(qampari), "--passages", str(corpus), "--output", str(output)]) == 0
    assert "  not: sentence_cut" in capsys.readouterr().out
    unplaced = read_lines(output / "unplaced.jsonl")
    assert [(one["pid"][-3:], one["page_id"], one["element"], one["reason"]) for one in unplaced] == [
        ("0__0"[1:], 1, 1, "sentence_cut"),
        ("1__0"[1:], 4, 7, "no_running_text"),
        ("2__0"[1:], 5, 1, "no_passages"),
    ]
    (record,) = read_lines(output / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    assert [one["pid"][-4:] for one in record["positive_ctxs"]] == ["3__0", "4__0"]
    assert (record["hard_negative_ctxs"], record["ctxs"]) == ([], [])
    proofs = json.loads((output / "report.json").read_text())["proofs"]
    assert proofs == {
        "all": 5,
        "placed": 2,
        "unplaced": {"no_passages": 1, "no_running_text": 1, "sentence_cut": 1},
    }


def test_lines_that_cannot_be_used_are_named(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranked = _ranked(tmp_path / "ranked.jsonl", corpus, (QIDS[0], "7__wikidata_simple__dev"))
    with ranked.open("a") as file:
        file.write("{\n")
    output = tmp_path / "contexts"
    told = ["--passages", str(corpus), "--retrieved", str(ranked), "--output", str(output), "--json"]
    assert main(["qampari-contexts", str(qampari), *told]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rejected"] == {"malformed_json": 1, "unknown_question": 1}
    assert "ranked.jsonl, line 2: '7__wikidata_simple__dev' is not in the release (unknown_question)" in captured.err
    assert (
        {row["reason"] for row in table(output, "rejected")} == {"malformed_json", "unknown_question"} <= set(REASONS)
    )
    assert verify_output(str(output)).is_sound


def test_release_and_passages_are_of_one_knowledge_source(tmp_path: Path, qampari: Path) -> None:
    other = replace(PAGES[0], title="Renamed")
    cut_release(tmp_path / "passages", write_kb(tmp_path, [other]))
    files = ContextsFiles(str(qampari), str(tmp_path / "passages"))
    with pytest.raises(SetupError, match="places in pages are not the same"):
        export_contexts(files, str(tmp_path / "contexts"), LocalStorage(), ContextsOptions())
    assert not (tmp_path / "contexts").exists()


@pytest.mark.parametrize("which", ["qampari", "passages"])
def test_folders_of_something_else_are_refused(
    tmp_path: Path, qampari: Path, corpus: Path, kb: Path, which: str
) -> None:
    given = ContextsFiles(str(qampari), str(corpus))
    for folder, message in ((tmp_path / "nowhere", r"no manifest\.json"), (kb, "not the manifest of a")):
        files = replace(given, qampari=str(folder)) if which == "qampari" else replace(given, passages=str(folder))
        with pytest.raises(SetupError, match=message):
            export_contexts(files, str(tmp_path / "contexts"), LocalStorage(), ContextsOptions())


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _edited(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": []}))


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("passages/passages-00002-of-00003.parquet", _flipped),
        ("passages/passages-00002-of-00003.parquet", _cut_off),
        ("passages/passages-00002-of-00003.parquet", Path.unlink),
        (MANIFEST, _edited),
    ],
)
def test_a_damaged_corpus_is_refused_before_anything_is_written(
    tmp_path: Path,
    qampari: Path,
    corpus: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    damage: Callable[[Path], None],
) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(corpus, odd)
    damage(odd / file)
    output = tmp_path / "contexts"
    assert main(["qampari-contexts", str(qampari), "--passages", str(odd), "--output", str(output)]) == 2
    assert f"{odd / file} is not as it was written" in capsys.readouterr().err
    assert not output.exists()


def test_ranked_files_are_looked_at_first(
    tmp_path: Path, qampari: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, message in ((tmp_path / "nowhere.jsonl", "no such file"), (tmp_path, "is a folder; name a file")):
        told = ["--passages", str(corpus), "--retrieved", str(path), "--output", str(tmp_path / "contexts")]
        assert main(["qampari-contexts", str(qampari), *told]) == 2
        err = capsys.readouterr().err
        assert str(path) in err
        assert message in err
        assert "looking for" not in err


def test_nothing_is_written_over(qampari: Path, corpus: Path) -> None:
    files = ContextsFiles(str(qampari), str(corpus))
    with pytest.raises(SetupError, match="never overwritten"):
        export_contexts(files, str(corpus), LocalStorage(), ContextsOptions())


def test_the_usual_options_of_the_command_are_the_usual_ones() -> None:
    args = make_parser().parse_args(["qampari-contexts", "x", "--passages", "y", "--output", "z"])
    assert ContextsOptions(args.top, args.alias_edits) == ContextsOptions()


@pytest.mark.parametrize("reasons", [REASONS, UNPLACED], ids=["lines", "proofs"])
def test_every_reason_is_documented(reasons: dict[str, str]) -> None:
    text = (ROOT / "docs" / "passages.md").read_text("utf-8")
    for reason, meaning in reasons.items():
        assert f"| `{reason}` | {meaning}" in text


DEV, TEST = (f"qampari_contexts/{split}_data_with_contexts.jsonl" for split in ("dev", "test"))
READERS = "qampari_fid/dev_data.jsonl"
UNPLACED_FILE = "unplaced.jsonl"


@pytest.fixture
def contexts(tmp_path: Path, qampari: Path, corpus: Path) -> Path:
    """Questions with passages: the line of one is empty, another has none, and one line is damaged."""
    ranked = _ranked(tmp_path / "ranked.jsonl", corpus, QIDS[:1])
    with ranked.open("a") as file:
        file.write(json.dumps({"qid": QIDS[1], "ctxs": []}) + "\n{\n")
    files = ContextsFiles(str(qampari), str(corpus), (str(ranked),))
    export_contexts(files, str(tmp_path / "contexts"), LocalStorage(), ContextsOptions(most_ranked=9))
    return tmp_path / "contexts"


def _seal(folder: Path, **changed: Any) -> None:
    """Makes a manifest fit the files as they are now, so that only the laws are broken."""
    values = json.loads((folder / MANIFEST).read_text()) | changed
    del values["manifest_sha256"]
    for entry in values["files"]:
        path = folder / entry["file"]
        entry["bytes"], entry["sha256"] = path.stat().st_size, sha256_of(LocalStorage(), str(path))
        if path.suffix == ".jsonl":
            entry["rows"] = path.read_bytes().count(b"\n")
    (folder / MANIFEST).write_bytes(manifest_bytes(values, form=values["format"]))


def _change(folder: Path, file: str, change: Callable[[list[Any]], None]) -> None:
    lines = read_lines(folder / file)
    change(lines)
    write_records(folder / file, lines)
    _seal(folder)


def _verify(folder: Path, qampari: Path | None = None, passages: Path | None = None) -> OutputReport:
    release, corpus = (None if one is None else str(one) for one in (qampari, passages))
    return verify_output(str(folder), qampari=release, passages=corpus)


def _broken(folder: Path, qampari: Path | None = None, passages: Path | None = None) -> set[tuple[str, str]]:
    return {(one.file, one.rule) for one in _verify(folder, qampari, passages).findings}


@pytest.mark.parametrize("split_long", [False, True])
def test_questions_with_passages_are_sound(
    tmp_path: Path, kb: Path, qampari: Path, capsys: pytest.CaptureFixture[str], split_long: bool
) -> None:
    cut_release(tmp_path / "corpus", kb, cut=CutOptions(4, split_long))
    ranked = _ranked(tmp_path / "ranked.jsonl", tmp_path / "corpus", (*QIDS[:2], "x"))
    output, corpus = tmp_path / "contexts", tmp_path / "corpus"
    files = ContextsFiles(str(qampari), str(corpus), (str(ranked),))
    export_contexts(files, str(output), LocalStorage(), ContextsOptions())
    assert (json.loads((output / "report.json").read_text())["proofs"]["placed"] == 0) == split_long
    seen: list[tuple[int, int]] = []
    report = verify_output(str(output), on_progress=lambda *one: seen.append(one))
    assert report.findings == ()
    assert (report.n_questions, report.n_answers, report.n_proofs, report.has_texts) == (3, 15, 20, False)
    assert seen[-1] == (2 * report.n_bytes, 2 * report.n_bytes)
    report = _verify(output, qampari, corpus)
    assert report.findings == ()
    assert (report.n_questions, report.n_answers, report.n_proofs, report.has_texts) == (3, 15, 20, True)
    assert main(["verify", str(output), "--qampari", str(qampari), "--passages", str(corpus)]) == 0
    assert capsys.readouterr().out.endswith("3 questions, 15 answers, 20 proofs with their texts checked.\n")


def test_empty_lines_and_none_are_told_apart_by_the_counts_alone(contexts: Path) -> None:
    counts = json.loads((contexts / "report.json").read_text())
    assert counts["questions"]["without_retrieved"] == 1
    assert counts["questions"]["fewer_negatives_than_positives"] == 1
    assert _broken(contexts) == set()
    for without, fewer in ((2, 0), (2, 1), (3, 0), (1, 3), (-1, 0)):
        questions = {
            **counts["questions"],
            "without_retrieved": without,
            "fewer_negatives_than_positives": fewer,
        }
        changed = {**counts, "questions": questions}
        (contexts / "report.json").write_bytes(canonical_json(changed))
        _seal(contexts, counts=changed)
        assert _broken(contexts) == (set() if (without, fewer) == (2, 0) else {(MANIFEST, "counts")})


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
        _seal(contexts, counts=changed)
        assert _broken(contexts) == {(MANIFEST, "counts"), ("report.json", "counts")}
    _seal(contexts, counts={})
    assert _broken(contexts) == {(MANIFEST, "manifest")}


def test_questions_with_passages_have_all_of_their_files_and_no_further_ones(contexts: Path) -> None:
    files = json.loads((contexts / MANIFEST).read_text())["files"]
    (contexts / "further.jsonl").write_text("{}\n")
    _seal(contexts, files=[*files, {"file": "further.jsonl", "rows": 1, "bytes": 3, "sha256": ""}])
    assert _broken(contexts) == {(MANIFEST, "manifest")}
    (contexts / "further.jsonl").unlink()
    (contexts / READERS).unlink()
    _seal(contexts, files=[one for one in files if one["file"] != READERS])
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
        (qampari, tmp_path / "other", "was made from another folder than"),
        (another, corpus, "was made from another folder than"),
        (qampari, None, "give both of what these were made from"),
        (None, corpus, "give both of what these were made from"),
    ):
        with pytest.raises(SetupError, match=message):
            _verify(contexts, release, passages)
    with pytest.raises(SetupError, match="--qampari and --passages are for questions with passages"):
        _verify(qampari, qampari, corpus)
    assert main(["verify", str(kb), "--qampari", str(qampari), "--passages", str(corpus)]) == 2
    assert "--qampari and --passages are for questions with passages" in capsys.readouterr().err
    _flipped(corpus / "passages" / "passages-00000-of-00003.parquet")
    try:
        with pytest.raises(SetupError, match="is not as it was written"):
            _verify(contexts, qampari, corpus)
    finally:
        _flipped(corpus / "passages" / "passages-00000-of-00003.parquet")


def test_two_questions_with_one_id_are_told(tmp_path: Path, corpus: Path) -> None:
    twice = [drawn(_question(f"P50__Q{number}"), 0, "dev") for number in range(2)]
    files = ContextsFiles(str(write_qampari(tmp_path / "qampari", twice)), str(corpus))
    with pytest.raises(DataError, match="Two proofs have the id"):
        export_contexts(files, str(tmp_path / "contexts"), LocalStorage(), ContextsOptions())
    assert not (tmp_path / "contexts").exists()
