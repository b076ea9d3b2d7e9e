"""``kbsource training-data`` over datasets and passages of made-up pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

pytest.importorskip("tantivy")

from mapping.passages.cut import CutOptions
from pipelines.cli import main
from tests.support.alignments import evidence, map_mini, read_lines, record, write_records
from tests.support.passages import cut_release, page, write_kb
from tests.support.qampari import PAGES, drawn, question, write_qampari
from tests.support.verified import broken, seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

SORN = page(3, "Sorn", "The Sorn is a river. It rises in Brack.", "Its fish are old.")
TEY = page(5, "Tey", "A town of no more than forty goats.", "It stands on the river Sorn.", kinds=["paragraph"])
RISES = evidence("It rises in Brack.", title="Sorn")
SOURCES = {
    "nq": [
        record("a", [RISES], answer="Brack"),
        record("b", [evidence("It stands on the river Sorn.", title="Tey")], answer="on the river Sorn"),
        record("c", [evidence("Nowhere to be seen or heard.", title="Sorn")], answer="x"),
    ],
    "fever": [record("a", [RISES], answer="SUPPORTS"), record("b", [RISES], answer="REFUTES")],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Passages, two datasets, a QAMPARI release, and a run for each."""
    folder = tmp_path_factory.mktemp("made")
    pages = [replace(wiki_page, is_disambiguation=False) for wiki_page in (SORN, TEY, *PAGES)]
    kb = write_kb(folder / "kb", pages, rows_per_shard=100, n_shards=1)
    cut_release(folder / "passages", kb, cut=CutOptions(max_words=8))
    for name, records in SOURCES.items():
        own = write_records(
            folder / f"{name}.jsonl", [{**wiki_record, "input": f"{name} river Sorn?"} for wiki_record in records]
        )
        map_mini(folder / name, kb, "jsonl", own, split="train", stem=name)
        (queries,) = (folder / name).glob("*-kilt.jsonl")
        _search(folder, queries, f"{name}-run.jsonl")
    write_qampari(folder / "qampari", [drawn(question("P50__Q5", ["Brack", "Sorn"]), 0, "train")])
    _search(folder, folder / "qampari" / "qampari_data" / "train_data.jsonl", "qampari-run.jsonl")
    return folder


def _search(folder: Path, queries: Path, name: str) -> None:
    flags = ["--index", str(folder / "index"), "--queries", str(queries), "--output", str(folder / name)]
    assert main(["search", str(folder / "passages"), *flags]) == 0


def _flags(made: Path, form: str, *datasets: str, run: bool = True) -> list[str]:
    runs = ["--retrieved", *(str(made / f"{dataset}-run.jsonl") for dataset in datasets)] if run else []
    folders = [str(made / dataset) for dataset in datasets]
    return ["training-data", *folders, "--for", form, "--passages", str(made / "passages"), *runs]


def _rejected(output: Path) -> list[tuple[str, str, str]]:
    rows = pq.read_table(output / "rejected").to_pylist()
    return [(row["stage"], row["key"], row["reason"]) for row in rows]


def test_a_retriever_gets_questions_with_evidence_and_batches(made: Path, tmp_path: Path) -> None:
    flags = [*_flags(made, "dpr", "nq", "fever"), "--examples-per-task", "3", "--batch-size", "2"]
    for name in ("one", "two"):
        assert main([*flags, "--output", str(tmp_path / name)]) == 0
    files = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert all((tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files)
    lines = read_lines(tmp_path / "one" / "lines" / "nq-train.jsonl")
    assert [(line["id"], [two["text"] for two in line["positive_ctxs"]]) for line in lines] == [
        ("a", ["It rises in Brack. Its fish are old."]),
        ("b", ["It stands on the river Sorn."]),
    ]
    assert all(two["title"] == "Tey" for two in lines[0]["hard_negative_ctxs"])
    assert _rejected(tmp_path / "one") == [("nq-train", "c", "no_evidence")]
    batches = pq.read_table(tmp_path / "one" / "batches").to_pylist()
    assert [(batch["dataset"], len(batch["examples"])) for batch in batches] == [
        ("nq-train", 2),
        ("fever-train", 2),
        ("nq-train", 1),
        ("fever-train", 1),
    ]
    for sources in ({}, {"passages": made / "passages"}):
        assert verified(tmp_path / "one", **sources).findings == ()


def test_readers_get_mixed_lines_with_the_same_passages(made: Path, tmp_path: Path) -> None:
    for form, datasets in (("fid", ("qampari", "nq")), ("pig", ("qampari", "nq")), ("seq2seq", ("fever", "nq"))):
        output = tmp_path / form
        assert main([*_flags(made, form, *datasets), "--output", str(output)]) == 0
        own = [line for name in datasets for line in read_lines(output / "lines" / f"{name}-train.jsonl")]
        mixed = read_lines(output / "lines" / "mixed.jsonl")
        assert sorted(map(str, own)) == sorted(map(str, mixed))
        assert verified(output, passages=made / "passages").findings == ()
    targets = [line["target"] for line in read_lines(tmp_path / "pig" / "lines" / "qampari-train.jsonl")]
    assert {*targets} <= {"Brack", "Sorn", "Brack#Sorn", "Not Relevant"}
    assert {"Brack", "Sorn"} & {*"#".join(targets).split("#")}


def test_without_a_run_examples_are_closed_book(made: Path, tmp_path: Path) -> None:
    assert main([*_flags(made, "seq2seq", "nq", run=False), "--output", str(tmp_path / "out")]) == 0
    lines = read_lines(tmp_path / "out" / "lines" / "nq-train.jsonl")
    assert [line["target"] for line in lines] == ["Brack", "on the river Sorn", "x"]
    assert {line["source"] for line in lines} == {"Question: nq river Sorn?\nAnswer:"}


def test_claims_and_amber_have_negatives(made: Path, tmp_path: Path) -> None:
    assert main([*_flags(made, "fact-checking", "fever"), "--output", str(tmp_path / "fc")]) == 0
    lines = read_lines(tmp_path / "fc" / "lines" / "fever-train.jsonl")
    assert [(line["label"], line["title"]) for line in lines if line["id"].startswith("a@")] == [
        ("SUPPORTS", "Sorn"),
        ("NEUTRAL", "Tey"),
        ("NEUTRAL", "Sorn"),
    ]
    assert main([*_flags(made, "amber", "nq", "fever"), "--output", str(tmp_path / "amber")]) == 0
    lines = read_lines(tmp_path / "amber" / "lines" / "nq-train.jsonl")
    assert [line["answers"]["text"] for line in lines] == [["Brack"], [], ["on the river Sorn"], []]
    assert not (tmp_path / "amber" / "lines" / "mixed.jsonl").exists()


def test_lines_of_a_run_that_cannot_be_used_are_rejected(made: Path, tmp_path: Path) -> None:
    run = write_records(
        tmp_path / "run.jsonl",
        [
            {"id": "a", "output": [{"provenance": [{"wikipedia_id": "5"}, {"wikipedia_id": "5"}]}]},
            {"id": "a", "output": [{"provenance": [{"wikipedia_id": "3"}]}]},
            {"id": "z", "output": [{"provenance": [{"wikipedia_id": "3"}]}]},
            {"id": "b", "output": [{"provenance": [{"wikipedia_id": "x"}]}]},
        ],
    )
    flags = [*_flags(made, "dpr", "nq", run=False), "--examples-per-task", "2", "--output", str(tmp_path / "out")]
    assert main([*flags, "--retrieved", str(run)]) == 0
    assert [reason for _, _, reason in _rejected(tmp_path / "out")] == [
        "duplicate_question",
        "unknown_question",
        "wrong_type",
        "no_evidence",
    ]
    first = read_lines(tmp_path / "out" / "lines" / "nq-train.jsonl")[0]
    assert [negative_ctx["passage_id"] for negative_ctx in first["hard_negative_ctxs"]] == [
        "5__0"
    ]  # a page is its first passage


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((("nq",), "dpr", ["--retrieved", "{0}/nq-run.jsonl", "{0}/nq-run.jsonl"]), "2 files for 1 datasets"),
        ((("nq",), "fid", []), "--for fid needs --retrieved"),
        ((("nq",), "seq2seq", ["--top", "3"]), "--top limits the passages of --retrieved"),
        ((("nq",), "dpr", ["--top", "3", "--retrieved", "{0}/nq-run.jsonl"]), "--for dpr does not use --top"),
        ((("nq", "nq"), "seq2seq", []), "the dataset nq-train is given twice"),
        ((("qampari",), "amber", ["--retrieved", "{0}/qampari-run.jsonl"]), "--for amber does not accept"),
        ((("passages",), "seq2seq", []), "name another folder"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: Any, message: str
) -> None:
    datasets, form, more = given
    flags = [flag.format(made) for flag in more]
    assert main([*_flags(made, form, *datasets, run=False), *flags, "--output", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_a_run_over_other_passages_is_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [{"wikipedia_id": "5", "passage_id": "5__77"}]
    run = write_records(tmp_path / "run.jsonl", [{"id": "a", "output": [{"provenance": places}]}])
    flags = [*_flags(made, "dpr", "nq", run=False), "--retrieved", str(run), "--output", str(tmp_path / "out")]
    assert main(flags) == 2
    assert "passage 5__77 is not in the corpus" in capsys.readouterr().err


def test_changed_data_are_found(made: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    flags = [*_flags(made, "dpr", "nq"), "--examples-per-task", "3", "--output", str(output)]
    assert main(flags) == 0
    path = output / "lines" / "nq-train.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Brack", b"Brock", 1))
    seal(output)
    assert broken(output) == {("lines/nq-train.jsonl", "line_differs")}
    values = json.loads((output / "manifest.json").read_text())
    seal(output, options={**values["options"], "batch_size": 1})
    assert ("batches/batches-00000-of-00001.parquet", "batch_differs") in broken(output)


def test_mixed_lines_of_changed_examples_are_found(made: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert main([*_flags(made, "fid", "nq", "qampari"), "--output", str(output)]) == 0
    path = output / "lines" / "mixed.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    seal(output)
    assert broken(output) == {("lines/mixed.jsonl", "line_differs")}
    (examples,) = (output / "examples").iterdir()
    table = pq.read_table(examples)
    column = pa.array(["other", *table["dataset"].to_pylist()[1:]], pa.string())
    place = table.schema.get_field_index("dataset")
    pq.write_table(table.set_column(place, table.schema.field("dataset"), column), examples)
    seal(output)
    assert ("lines/mixed.jsonl", "line_differs") in broken(output)
