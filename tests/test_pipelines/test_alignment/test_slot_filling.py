"""T-REx and Zero-Shot RE as they are typed, on the datasets of the demo: the draw, and options out of range."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.sources.entity_linking import WnedOptions
from mapping.sources.reading.base import SourceOptions
from mapping.sources.trex import TrexOptions
from mapping.sources.zero_shot import ZeroShotOptions
from mapping.write.kilt import file_name
from pipelines.cli import main
from tests.support.alignments import BROKEN, read_lines, table
from tests.support.demo_datasets import GOLDEN
from tests.support.mini_wiki import FOLDER

TREX = FOLDER / "datasets" / "trex"
RELATION_SPLITS = FOLDER / "datasets" / "structured_zeroshot" / "relation_splits"
SPLITS = ("train", "dev", "test")
# One of these stands no filter, two have no page.
N_RECORDS = 20


pytestmark = pytest.mark.usefixtures("in_this_process")


def _map_trex(release: Path, output: Path, split: str, *options: str) -> int:
    command = [
        "map",
        "trex",
        "--kb",
        str(release),
        "--split",
        split,
        "--output",
        str(output),
        "--min-facts",
        "2",
        *BROKEN,
    ]
    return main([*command, "--input", str(TREX), "--wikidata", str(TREX / "wikidata.json"), *options])


def test_every_record_of_trex_is_in_one_split_and_dev_and_test_have_their_size() -> None:
    ids = {split: {one["id"] for one in read_lines(GOLDEN / "trex" / file_name("trex", split))} for split in SPLITS}

    assert {split: len(one) for split, one in ids.items()} == {"train": N_RECORDS - 4, "dev": 2, "test": 2}
    assert len(frozenset.union(*map(frozenset, ids.values()))) == N_RECORDS


def test_the_draw_depends_neither_on_chunks_nor_on_how_many_records_it_is_made_from(
    release: Path, tmp_path: Path
) -> None:
    options = ("--sample", "2", "--sample-pool", "6", "--chunk-records", "1")

    assert _map_trex(release, tmp_path / "out", "test", *options) == 0

    written = tmp_path / "out" / file_name("trex", "test")
    assert written.read_bytes() == (GOLDEN / "trex" / file_name("trex", "test")).read_bytes()


def test_all_is_train_where_nothing_is_drawn(release: Path, tmp_path: Path) -> None:
    assert _map_trex(release, tmp_path / "out", "train", "--sample", "0") == 0

    assert len(read_lines(tmp_path / "out" / file_name("trex", "train"))) == N_RECORDS


@pytest.mark.parametrize("split", ["train", "dev"])
def test_too_few_records_stop_every_split_alike(
    release: Path, tmp_path: Path, split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _map_trex(release, tmp_path / "out", split, "--sample", "9") == 2

    assert "16 records stand the filter of dev and test, 18 are to be drawn" in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_pages_are_found_by_item_else_by_title_and_over_redirects(release: Path, tmp_path: Path) -> None:
    assert _map_trex(release, tmp_path / "out", "train", "--sample", "2") == 0

    rows = table(tmp_path / "out", "alignments")
    found = {(row["page_value"], row["found_by"], row["title"]) for row in rows}
    assert ("Q9000102", "qid", "Tin/Salt") in found
    assert ("Q9000021", "title", "Brindle Quay, North Halvane") in found
    assert ("Q9999002", "redirect", "Port Sellick") in found
    (missing,) = (row for row in table(tmp_path / "out", "misses") if row["outcome"] == "page_missing")
    assert missing["page_value"] == "Q9000100"


def test_relations_drawn_anew_give_the_same_records_under_other_splits(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["map", "structured_zeroshot", "--kb", str(release), "--split", "test", "--json", *BROKEN]
    command += ["--input", str(RELATION_SPLITS), "--relation-split", "random", "--seed", "kilt"]

    assert main([*command, "--output", str(tmp_path / "out")]) == 0

    records = json.loads(capsys.readouterr().out)["records"]
    assert records["excluded"]["other_split"] > 0
    inputs = {one["input"] for one in read_lines(tmp_path / "out" / file_name("structured_zeroshot", "test"))}
    assert len({one.partition(" [SEP] ")[2] for one in inputs}) == 2


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (TrexOptions, {"min_facts": 0}, "--min-facts is 0; give at least 1"),
        (TrexOptions, {"sample": -1}, "--sample is -1; give 0 or more"),
        (TrexOptions, {"sample": 10, "sample_pool": 19}, "--sample-pool is 19.*at least 20"),
        (ZeroShotOptions, {"fold": 10}, "--fold is 10; give 0 to 9"),
        (WnedOptions, {"max_tokens": 1}, "--max-tokens is 1; the two tags alone are 2 tokens"),
    ],
)
def test_options_out_of_range_name_themselves(kind: type[SourceOptions], options: dict[str, int], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        kind(**options)
