"""The alignment from end to end, on the mini-wiki."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from mapping.decide import REASONS
from mapping.write.validate import check_kilt
from pipelines.alignment import reading, search, writing
from pipelines.cli import main
from pipelines.jobs.shared_inputs import MadeRelease
from tests.support.alignments import evidence, map_mini, read_lines, record, table, write_records
from tests.support.builds import contents, open_release
from tests.support.demo_datasets import chunks_in_this_process
from tests.support.moody_search import HANGS, MoodySearch

RECORDS = [
    record("exact", [evidence("rises in Lake Miravel", title="River Ullane")]),
    record("redirect", [evidence("Lake Miravel", title="The monster of Miravel")]),
    record("url", [evidence(None, url="https://mini.example.org/wiki/Lake_Miravel")]),
    record("missing", [evidence("anything", title="Lake Miravl")]),
    record("ambiguous", [evidence("lantern", title="Lantern")]),
    record("empty", [evidence(" — ", title="Lake Miravel")]),
    record("weak", [evidence("zebra quagga okapi gnu", title="Lake Miravel")]),
    record("two", [evidence("x", title="Nowhere at all")], [evidence("Lake Miravel", title="Lake Miravel")]),
    {"id": "no output", "input": "?"},
    "{ not json",
    {"id": "exact", "input": "again"},
    {"id": "typo", "outputs": []},
]


N_BAD = 3


@pytest.fixture(scope="module")
def source_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("own") / "own.jsonl", RECORDS)


@pytest.fixture(scope="module")
def own(source_file: Path, mini_build: object, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease[Any]:
    """An alignment of ``RECORDS``, in chunks of two; not to be changed."""
    output = tmp_path_factory.mktemp("aligned") / "own"
    release = Path(mini_build.output)  # type: ignore[attr-defined]
    return map_mini(output, release, "jsonl", source_file, chunk_records=2)


def outcomes(output: Path) -> dict[str, str]:
    rows = table(output, "alignments") + table(output, "misses")
    return {f"{row['example_id']}/{row['output']}": row["outcome"] for row in rows}


def test_every_evidence_ends_in_one_outcome(own: MadeRelease[Any]) -> None:
    assert outcomes(Path(own.output)) == {
        "exact/0": "exact",
        "redirect/0": "exact",
        "url/0": "page_only",
        "missing/0": "page_missing",
        "ambiguous/0": "page_ambiguous",
        "empty/0": "empty_evidence",
        "weak/0": "weak",
        "two/0": "page_missing",
        "two/1": "exact",
    }


def test_every_record_is_accounted_for(own: MadeRelease[Any]) -> None:
    records, counts = own.report["records"], own.report["counts"]

    assert records["read"] == len(RECORDS)
    assert records["rejected"] == {"duplicate_id": 1, "malformed_json": 1, "unknown_field": 1}
    assert counts["dropped"] == {"empty_evidence": 1, "no_match": 1, "page_ambiguous": 1, "page_missing": 1}
    assert [line["id"] for line in read_lines(Path(own.output) / "jsonl-dev-kilt.jsonl")] == [
        "exact",
        "redirect",
        "url",
        "two",
        "no output",
    ]
    assert counts["written"] + sum(counts["dropped"].values()) + N_BAD == records["read"]
    assert [
        (row["file"], row["reason"], row["detail"].split(":")[0]) for row in table(Path(own.output), "rejected")
    ] == [
        ("own.jsonl", "malformed_json", "line 10"),
        ("own.jsonl", "duplicate_id", "line 11"),
        ("own.jsonl", "unknown_field", "line 12"),
    ]


def test_every_record_has_its_fate_in_a_table(own: MadeRelease[Any]) -> None:
    found = table(Path(own.output), "records")
    rows = [tuple(row.values())[:11] for row in found]
    outcomes = {
        row["example_id"]: (row["n_spans"], row["n_answers"], row["outputs"])
        for row in found
        if row["ordinal"] is not None
    }

    questions = {row["example_id"]: row["input"] for row in found if row["input"] is not None}
    assert questions == dict.fromkeys(("missing", "ambiguous", "empty", "weak"), "?")
    whole = {"form": "whole", "reason": None, "n_spans": 1}
    assert outcomes["exact"] == (1, 1, [whole])
    assert outcomes["two"] == (1, 1, [{"form": "dropped", "reason": "page_missing", "n_spans": 0}, whole])
    assert outcomes["no output"] == (0, 0, [])
    assert outcomes["weak"] == (None, None, None)
    assert rows == [
        (0, "exact", "own.jsonl", 1, "written", None, 1.0, 1, 1, 1, 1),
        (1, "redirect", "own.jsonl", 2, "written", None, 1.0, 1, 1, 1, 1),
        (2, "url", "own.jsonl", 3, "written", None, None, 1, 1, 1, 1),
        (3, "missing", "own.jsonl", 4, "dropped", "page_missing", None, 1, 0, 1, 0),
        (4, "ambiguous", "own.jsonl", 5, "dropped", "page_ambiguous", None, 1, 0, 1, 0),
        (5, "empty", "own.jsonl", 6, "dropped", "empty_evidence", None, 1, 0, 1, 0),
        (6, "weak", "own.jsonl", 7, "dropped", "no_match", None, 1, 0, 1, 0),
        (7, "two", "own.jsonl", 8, "written", None, 1.0, 2, 1, 2, 1),
        (8, "no output", "own.jsonl", 9, "written", None, None, 0, 0, 0, 0),
        (None, None, "own.jsonl", 10, "rejected", "malformed_json", None, None, None, None, None),
        (None, "exact", "own.jsonl", 11, "rejected", "duplicate_id", None, None, None, None, None),
        (None, "typo", "own.jsonl", 12, "rejected", "unknown_field", None, None, None, None, None),
    ]


def test_the_fate_of_a_record_is_shown(own: MadeRelease[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", own.output, "two"]) == 0
    shown = capsys.readouterr().out
    assert "outcome    written\n" in shown
    assert "output 0, 0  page_missing\n" in shown
    assert "new place    Lake Miravel, Section::::Abstract., 1, " in shown
    assert main(["show", own.output, "exact"]) == 0
    first, second = capsys.readouterr().out.split("\n\nrecord ")
    assert "read from  own.jsonl, 1\n" in first
    assert "rejected: duplicate_id" in second
    assert "line 11: exact" in second
    assert main(["show", own.output, "weak", "--json"]) == 0
    (weak,) = json.loads(capsys.readouterr().out)
    assert weak["meaning"] == REASONS["no_match"]
    assert [piece["evidence_text"] for piece in weak["evidences"]] == ["zebra quagga okapi gnu"]
    assert main(["show", own.output, "nobody"]) == 1
    assert "has no row for 'nobody'" in capsys.readouterr().err


def test_similar_titles_are_reported_and_not_used(own: MadeRelease[Any]) -> None:
    missing = next(row for row in table(Path(own.output), "misses") if row["example_id"] == "missing")

    assert missing["suggestions"][0]["title"] == "Lake Miravel"
    assert missing["page_id"] is None
    assert missing["evidence_text"] == "anything"


def test_what_was_written_is_valid(own: MadeRelease[Any], release: Path) -> None:
    result = check_kilt(str(Path(own.output) / "jsonl-dev-kilt.jsonl"), open_release(release), alignments=own.output)

    assert result.findings == []
    assert (result.records, result.spans, result.located, result.rescored) == (5, 4, 3, 3)


def test_the_manifest_names_release_inputs_and_code(own: MadeRelease[Any], release: Path) -> None:
    manifest = own.manifest.to_json()

    assert json.loads((Path(own.output) / "manifest.json").read_text("utf-8")).pop("manifest_sha256")
    wanted = json.loads((release / "manifest.json").read_text("utf-8"))["manifest_sha256"]
    assert manifest["release"]["manifest_sha256"] == wanted
    assert [record_file["name"] for record_file in manifest["inputs"]["records"]] == ["own.jsonl"]
    assert [manifest[name] for name in ("dataset", "policy", "split")] == ["jsonl", "jsonl", "dev"]
    assert manifest["code"]["tokeniser"].startswith("spacy ")
    assert {file["file"] for file in manifest["files"]} == set(contents(Path(own.output))) - {"manifest.json"}


@pytest.mark.usefixtures("in_this_process")
def test_small_chunks_give_the_same_bytes(
    own: MadeRelease[Any], source_file: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(search, "MOST_BYTES", 1)
    monkeypatch.setattr(reading, "SORTED_BYTES", 1)
    monkeypatch.setattr(search, "QUERIES_AT_ONCE", 1)
    map_mini(tmp_path / "out", release, "jsonl", source_file, chunk_records=2)

    assert contents(tmp_path / "out") == contents(Path(own.output))


HOSTILE = [
    record("fine", [evidence("rises in Lake Miravel", title="River Ullane")]),
    *(record(f"bad {number}", [evidence(f"Lake {number}", title="Lake Miravel")]) for number in range(5)),
    record("other page", [evidence("lantern", title="Lantern (tool)")]),
]


@pytest.mark.slow
def test_an_evidence_that_hangs_is_given_up_after_a_second_try_and_all_others_are_searched(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.transforms.align.Search", MoodySearch)
    records = [
        record("hangs", [evidence(HANGS, title="River Ullane")]),
        record("fine", [evidence("rises in Lake Miravel", title="River Ullane")]),
    ]
    source = write_records(tmp_path / "own.jsonl", records)
    summary = map_mini(tmp_path / "out", release, "jsonl", source, evidence_timeout_s=0.5)

    (missed,) = table(tmp_path / "out", "misses")
    assert (missed["example_id"], missed["outcome"], missed["title"]) == ("hangs", "search_timeout", "River Ullane")
    assert summary.report["counts"]["evidences"] == {"exact": 1, "search_timeout": 1}
    assert summary.report["counts"]["dropped"] == {"search_timeout": 1}
    assert [line["id"] for line in read_lines(tmp_path / "out" / "jsonl-dev-kilt.jsonl")] == ["fine"]


@pytest.mark.parametrize(
    ("verdicts", "given_up"),
    [
        ({}, {}),
        ({2: (1, "crash")}, {"bad 0": "search_crash"}),
        ({3: (1, "error"), 5: (1, "timeout")}, {"bad 1": "search_error", "bad 3": "search_timeout"}),
        (
            {2: (1, "crash"), 3: (1, "crash"), 4: (1, "timeout")},
            {
                "bad 0": "search_crash",
                "bad 1": "search_crash",
                **dict.fromkeys(("bad 2", "bad 3", "bad 4"), "search_timeout"),
            },
        ),
    ],
    ids=["none", "one", "two of a page", "so many that the page is given up"],
)
def test_what_ended_the_process_twice_is_not_searched_again(
    release: Path, tmp_path: Path, verdicts: dict[int, tuple[int, str]], given_up: dict[str, str]
) -> None:
    source = write_records(tmp_path / "own.jsonl", HOSTILE)
    with chunks_in_this_process(verdicts):
        map_mini(tmp_path / "out", release, "jsonl", source, split="train")

    found = outcomes(tmp_path / "out")
    assert len(found) == len(HOSTILE)
    assert {name: outcome for name, outcome in found.items() if outcome.startswith("search_")} == {
        f"{name}/0": outcome for name, outcome in given_up.items()
    }


@pytest.mark.usefixtures("in_this_process")
def test_a_similar_title_is_taken_where_that_is_asked_for(source_file: Path, release: Path, tmp_path: Path) -> None:
    moves = tmp_path / "moves.tsv"
    moves.write_text("Nowhere at all\tLake Miravel\n", "utf-8")
    map_mini(tmp_path / "out", release, "jsonl", source_file, accept_fuzzy=90.0, title_map=str(moves), split="train")

    rows = {f"{row['example_id']}/{row['output']}": row for row in table(tmp_path / "out", "alignments")}
    assert rows["missing/0"]["found_by"] == "fuzzy"
    assert rows["missing/0"]["title"] == "Lake Miravel"
    assert rows["two/0"]["found_by"] == "title_map"


@pytest.mark.usefixtures("in_this_process")
def test_a_rule_that_says_what_is_kept_has_nothing_to_say_of_a_page_without_a_text(
    source_file: Path, release: Path, tmp_path: Path
) -> None:
    summary = map_mini(tmp_path / "out", release, "jsonl", source_file, accept="bleu>=0.5")

    assert summary.report["dropped_by_threshold"] is None
    rows = {row["example_id"]: row["is_written"] for row in table(tmp_path / "out", "alignments")}
    assert (rows["url"], rows["exact"], rows["weak"]) == (True, True, False)


def test_too_many_bad_records_stop_the_job(source_file: Path, release: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"(?s)3 of 12 records rejected.*--max-rejects to at least 0\.3.*own\.jsonl: line 10: "
    ):
        map_mini(tmp_path / "out", release, "jsonl", source_file, max_rejects=0.1)

    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.usefixtures("in_this_process")
def test_counts_that_do_not_add_up_fail_the_job(
    release: Path, source_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = writing.read_rows

    def forget_one(*given: Any) -> Iterator[Any]:
        yield from islice(read(*given), 1, None)

    monkeypatch.setattr(writing, "read_rows", forget_one)

    with pytest.raises(DataError, match=r"records.read is 12, not records.examples \d+ \+ .* = 11"):
        map_mini(tmp_path / "out", release, "jsonl", source_file)

    assert not (tmp_path / "out" / "manifest.json").exists()


def test_an_unknown_dataset_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"squad.*fever"):
        map_mini(tmp_path / "out", tmp_path, "squad", tmp_path / "x")
