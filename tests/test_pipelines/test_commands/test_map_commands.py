"""``kbsource locate``, ``map`` and ``validate-kilt`` as they are typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.commands.map import split_of
from tests.support.alignments import evidence, record, write_records
from tests.support.dataset_sources import DATA
from tests.support.strangers import sealed


def test_locate_shows_the_place_for_reading(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["locate", str(release), "--title", "The monster of Miravel", "--evidence", "Lake Miravel"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "exact: the page contains the text" in shown
    assert "Lake Miravel (page id 33), found by redirect, over 2 redirects" in shown
    assert "BLEU" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "outcome"),
    [
        (["--id", "33", "--evidence", "Lake Miravel"], 0, "exact"),
        (["--qid", "Q9000033"], 0, "page_only"),
        (["--url", "https://mini.example.org/wiki/Lake_Miravel#Notes"], 0, "page_only"),
        (["--title", "Lake Miravel", "--evidence", "zebra quagga okapi gnu"], 1, "weak"),
        (["--title", "Orla Benwick", "--evidence", "Born at Lowstair to a lock keeper"], 0, "sentence"),
        (["--title", "Orla Benwick", "--evidence", "Born at Halvane to a lock keeper"], 1, "weak"),
        (["--title", "Lantern", "--evidence", "light"], 1, "page_ambiguous"),
        (["--title", "Lake Miravel", "--evidence", " "], 1, "empty_evidence"),
        (["--title", "Lake Miravl", "--evidence", "x"], 1, "page_missing"),
    ],
)
def test_locate_gives_every_outcome_as_json(
    release: Path, arguments: list[str], code: int, outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["locate", str(release), "--json", *arguments]) == code

    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == outcome
    if outcome == "page_missing":
        assert found["suggestions"][0]["title"] == "Lake Miravel"


def test_locate_names_the_sentence_that_puts_it_otherwise(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--title", "Orla Benwick", "--evidence", "Born at Lowstair to a lock keeper"]
    assert main(["locate", str(release), *arguments]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "sentence: the wording differs" in shown
    assert "Benwick was born in Lowstair, Port Sellick, as one of" in shown


def test_locate_crosses_paragraphs_where_that_is_allowed(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kbsource.lookup import KnowledgeSource

    with KnowledgeSource.open(str(release)) as source:
        page = source.by_title("Halvane Isles")
        assert page is not None
        pairs = zip(page.elements[1:], page.elements[2:], strict=False)
        first, second = next((a, b) for a, b in pairs if a.kind == b.kind == "paragraph")
    text = " ".join([*first.text.split()[-6:], *second.text.split()[:6]])
    arguments = ["locate", str(release), "--json", "--title", "Halvane Isles", "--evidence", text]

    main([*arguments, "--max-elements", "2"])
    across = json.loads(capsys.readouterr().out)
    main(arguments)
    within = json.loads(capsys.readouterr().out)

    assert across["span"]["end_element"] == across["span"]["start_element"] + 1
    assert across["span"]["score"] > within["span"]["score"]
    assert within["span"]["end_element"] == within["span"]["start_element"]


def test_locate_takes_many_and_passes_over_bad_lines(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_records(
        tmp_path / "many.jsonl",
        [
            {"id": "a", "title": "Lake Miravel", "evidence": "Lake Miravel"},
            {"title": "Lake Miravel", "qid": "Q1"},
            {"page_id": 33},
            "[",
        ],
    )

    assert main(["locate", str(release), "--input", str(path)]) == 1

    shown = capsys.readouterr()
    found = [json.loads(line) for line in shown.out.splitlines()]
    assert [(line["line"], line.get("id"), line["outcome"]) for line in found] == [
        (1, "a", "exact"),
        (3, None, "page_only"),
    ]
    assert "line 2" in shown.err
    assert "line 4" in shown.err


def test_locate_without_a_page_says_how_to_name_one(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locate", str(release), "--evidence", "x"]) == 2
    assert "--title" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--id", "Lake Miravel"], "--id is 'Lake Miravel'; give a page id"),
        (["--qid", "9000033"], "--qid is '9000033'; give a Wikidata item, like Q"),
        (["--url", "Lake Miravel"], "--url is 'Lake Miravel'; give an address"),
        (["--title", "x", "--threshold", "2"], "--threshold is 2. Must be <= 1."),
        (["--title", "x", "--max-elements", "0"], "--max-elements is 0. Must be >= 1."),
    ],
)
def test_locate_says_what_a_value_should_look_like(
    release: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["locate", str(release), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_locate_says_what_its_numbers_count(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["locate", str(release), "--title", "Lake Miravel", "--evidence", "Lake Miravel"]

    assert main(command) == 0
    assert "place    element " in capsys.readouterr().out
    assert main([*command, "--numbering", "kilt"]) == 0
    assert "place    paragraph " in capsys.readouterr().out


def test_locate_reads_a_standard_input_that_begins_with_a_byte_order_mark(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('\ufeff{"title": "Lake Miravel"}\r\n'))

    assert main(["locate", str(release), "--input", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "page_only"


def test_map_then_validate(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_records(
        tmp_path / "mine.jsonl",
        [record("a", [evidence("Lake Miravel", title="Miravel")]), record("b", [evidence("x", title="Nowhere")])],
    )
    output = tmp_path / "out"

    assert main(["map", "jsonl", str(release), "--input", str(source), "--output", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "page_missing" in shown
    file = output / "jsonl-dev-kilt.jsonl"
    assert str(file) in shown

    assert main(["validate-kilt", str(release), str(file), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["records"], result["rescored"]) == (True, 1, 1)

    file.write_text(file.read_text("utf-8").replace('"bleu_score": 1.0', '"bleu_score": 0.75'), "utf-8")
    assert main(["validate-kilt", str(release), str(file)]) == 1
    shown = capsys.readouterr().out
    assert "score_differs" in shown
    assert "NOT valid: 1 record," in shown
    assert main(["validate-kilt", str(release), str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"]
    assert sum(told["broken"].values()) >= len(told["findings"]) > 0


@pytest.mark.usefixtures("in_this_process")
def test_validate_says_where_nothing_could_be_compared(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = write_records(tmp_path / "mine.jsonl", [record("a", [evidence("Lake Miravel", title="Miravel")])])
    other = write_records(tmp_path / "other.jsonl", [record("b", [evidence("Lake Miravel", title="Miravel")])])
    for source, name in ((own, "out"), (other, "apart")):
        output = str(tmp_path / name)
        assert main(["map", "jsonl", str(release), "--input", str(source), "--output", output]) == 0
    file = tmp_path / "out" / "jsonl-dev-kilt.jsonl"
    capsys.readouterr()

    assert main(["validate-kilt", str(release), str(own)]) == 0
    assert "No output has provenance" in capsys.readouterr().out

    check = ["validate-kilt", str(release), str(file)]
    assert main([*check, "--alignments", str(tmp_path)]) == 2
    assert f"{tmp_path}: this folder has no table alignments/" in capsys.readouterr().err

    assert main([*check, "--alignments", str(tmp_path / "apart")]) == 0
    assert "It may belong to another file." in capsys.readouterr().out

    file.write_text(file.read_text("utf-8").replace('"wikipedia_id": "33"', '"wikipedia_id": "999933"'), "utf-8")
    assert main(check) == 1
    assert "align it to this release with kbsource map kilt" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_nothing_was_left_for_is_valid_where_its_manifest_says_so(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_records(tmp_path / "mine.jsonl", [record("b", [evidence("x", title="Nowhere")])])
    output = tmp_path / "out"
    assert main(["map", "jsonl", str(release), "--input", str(source), "--output", str(output)]) == 0
    file = output / "jsonl-dev-kilt.jsonl"
    check = ["validate-kilt", str(release), str(file)]
    capsys.readouterr()

    assert main(check) == 0
    assert "is empty, and its manifest confirms this" in capsys.readouterr().out
    assert main([*check, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["is_empty"], result["records"]) == (True, True, 0)

    manifest = output / "manifest.json"
    values = json.loads(manifest.read_text("utf-8"))
    for entry in values["files"]:
        entry["rows"] += 1
    for damage in (lambda: manifest.write_bytes(sealed(values)), manifest.unlink):
        damage()
        assert main(check) == 1
        assert "is empty. Warning: " in capsys.readouterr().out
        assert main([*check, "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["ok"] is False


@pytest.mark.slow
def test_the_split_of_a_kilt_file_is_in_its_name(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = DATA / "kilt"
    train = tmp_path / "nq-train-kilt.jsonl"
    train.write_bytes((folder / "nq-dev-kilt.jsonl").read_bytes())
    command = ["map", "kilt", str(release), "--from-kb", str(folder / "knowledgesource.jsonl"), "--json"]

    assert main([*command, "--input", str(train), "--output", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out)["split"] == "train"
    assert (tmp_path / "out" / "nq-train-kilt.jsonl").exists()


def test_files_of_several_splits_want_the_split_named(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = [str(write_records(tmp_path / name, [])) for name in ("my_train.jsonl", "my_validation.jsonl")]
    command = ["map", "jsonl", str(release), "--input", *inputs, "--output", str(tmp_path / "out")]

    assert main(command) == 2
    assert "give the split with --split NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "split"),
    [("train.jsonl", "train"), ("valid.jsonl", "dev"), ("contest.jsonl", "dev"), ("x.test.txt", "test")],
)
def test_the_split_of_any_file_is_in_its_name(name: str, split: str) -> None:
    assert split_of([f"train/{name}"]) == split


@pytest.mark.slow
def test_an_alignment_without_records_says_so(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_records(tmp_path / "mine.jsonl", [record("a", [evidence("x", title="No such page")])])
    command = ["map", "jsonl", str(release), "--input", str(source), "--output", str(tmp_path / "out")]

    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "No record was written" in shown
    assert "validate-kilt" not in shown
