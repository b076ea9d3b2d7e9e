"""What ``kbsource qampari`` refuses before it begins, or gives up at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from mapping.entail.signal import DEFAULT_MODEL, ModelOptions
from mapping.qampari.selection import AnswerFilter
from pipelines.cli import main
from tests.support.builds import contents
from tests.support.entities import array, item, item_snak, make, statement, terms
from tests.support.qampari_worlds import Maker, World, options_for, run_job
from tests.support.releases import TitleRow, write_release

pytestmark = pytest.mark.usefixtures("module_in_this_process")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    maker = Maker()
    maker.add("Q1", "Ada")
    for number in range(10, 16):
        maker.add(f"Q{number}", f"Book {number}", "P50 Q1", page=[f"Book {number} was written by Ada."])
    return maker.write(tmp_path_factory.mktemp("world"))


def _refused(world: World, output: Path, match: str, **options: Any) -> None:
    with pytest.raises(SetupError, match=match):
        run_job(options_for(world, output, **options))


@pytest.mark.slow
def test_a_folder_that_is_finished_or_foreign_stays_as_it_is(world: World, tmp_path: Path) -> None:
    run_job(options_for(world, tmp_path / "done"))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    before = contents(tmp_path)

    _refused(world, tmp_path / "done", "never overwritten")
    _refused(world, tmp_path / "foreign", "notes.txt")

    assert contents(tmp_path) == before


@pytest.mark.slow
def test_a_run_that_fails_leaves_no_release_and_the_next_one_starts_clean(world: World, tmp_path: Path) -> None:
    run_job(options_for(world, tmp_path / "whole"))
    relations = Path(world.relations).read_text("utf-8").replace("{entity}", "{ENTITY}", 1)
    (tmp_path / "broken.toml").write_text(relations)
    _refused(world, tmp_path / "again", "simple.P50", relations=str(tmp_path / "broken.toml"))
    assert not (tmp_path / "again").exists()

    run_job(options_for(world, tmp_path / "again"))

    assert contents(tmp_path / "again") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--least-answers", "0"], "--least-answers"),
        (["--most-answers", "4"], "--most-answers"),
        (["--least-share", "1.5"], "--least-share"),
        (["--least-share", "nan"], "--least-share"),
        (["--pool-simple", "-1"], "--pool-"),
        (["--train-per-relation", "-1"], "--train-per-relation"),
        (["--most-subjects", "4"], "--most-subjects"),
        (["--key-columns", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--relations", "nowhere.toml"], "nowhere.toml"),
        (["--backend", "abacus", "--model", "here"], "abacus"),
        (["--least-entailment", "0.5"], "--least-entailment needs a model"),
        (["--device", "cpu"], "--device needs a model"),
        (["--key-columns", "x", "--no-tables"], "--key-columns is for questions about tables"),
        (["--redirect-aliases", "--no-tables"], "--redirect-aliases is for questions about tables"),
    ],
)
def test_the_command_says_on_the_standard_error_what_is_wrong(
    flags: Sequence[str], named: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["qampari", str(world.kb), str(world.wikidata), "--output", str(tmp_path / "out")]

    assert main([*given, *([] if "--model" in flags else ["--model", "none"]), *flags]) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "is_warned"),
    [
        (["--model", "./other"], True),
        (["--model", "./other", "--least-entailment", "0.5"], False),
        (["--model", f"./models/{DEFAULT_MODEL}/"], False),
    ],
)
def test_the_threshold_of_the_default_model_for_another_one_is_warned_of(
    flags: list[str], is_warned: bool, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--kb", str(world.kb), "--wikidata", str(world.wikidata), "--output", str(tmp_path / "out")]
    assert main(["qampari", *given, *flags]) == 2
    assert ("warning: --model ./other" in capsys.readouterr().err) == is_warned


def test_a_release_of_wikidata_that_is_none(world: World, tmp_path: Path) -> None:
    options = options_for(world._replace(wikidata=tmp_path), tmp_path / "out")
    with pytest.raises(SetupError, match=str(tmp_path)):
        run_job(options)
    with pytest.raises(SetupError, match=f"{world.kb}.*not a release of Wikidata.* name the folder"):
        run_job(options_for(world._replace(wikidata=world.kb), tmp_path / "out"))
    with pytest.raises(SetupError, match=f"{world.wikidata}.* release of pages.* name the folder"):
        run_job(options_for(world._replace(kb=world.wikidata), tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "match"),
    [({"languages": ("de",)}, "has names in de; .*--languages en"), ({"qualifiers": ("P580",)}, "P580,P582")],
)
def test_a_release_of_wikidata_that_lacks_what_is_needed(
    options: dict[str, Any], match: str, world: World, tmp_path: Path
) -> None:
    begun = statement(item_snak("P1", "Q2"), qualifiers={"P580": [item_snak("P580", "Q3")]})
    (tmp_path / "dump.json").write_bytes(array([item("Q1", claims={"P1": [begun]}, labels=terms(de="eins"))]))
    make(tmp_path / "dump.json", output=tmp_path / "wikidata", **options)

    _refused(world._replace(wikidata=tmp_path / "wikidata"), tmp_path / "out", match)


def test_a_knowledge_source_that_knows_no_items(world: World, tmp_path: Path) -> None:
    write_release(tmp_path, [], titles=[TitleRow(10, "Nothing")])

    _refused(world._replace(kb=tmp_path / "release"), tmp_path / "out", "--wikidata, or with --page-props")


def test_a_model_that_is_not_there_ends_the_job_before_any_work(world: World, tmp_path: Path) -> None:
    _refused(
        world, tmp_path / "out", "no-such-model", model=ModelOptions(str(tmp_path / "no-such-model"), backend="onnx")
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_given_files_are_inputs_of_the_manifest(world: World, tmp_path: Path) -> None:
    (tmp_path / "keys.jsonl").write_text('{"title": "List of x", "table": 0, "column": 1}\n')
    filter_ = AnswerFilter(least=6, most=6, share=1.0)
    given = {"key_columns": str(tmp_path / "keys.jsonl"), "answer_filter": filter_, "most_subjects": 6}

    run_job(options_for(world, tmp_path / "out", **given))

    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert sorted(manifest["inputs"]) == ["kb", "key_columns", "relations", "wikidata"]
    assert manifest["options"]["answer_filter"] == {"least": 6, "most": 6, "share": 1.0}
    assert manifest["counts"]["kept"]["wikidata_simple"] == 1


@pytest.mark.parametrize("name", ["pages", "items", "statements", "classes"])
def test_a_file_that_was_cut_off_is_named_before_anything_is_written(
    name: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = [str(shutil.copytree(release, tmp_path / release.name)) for release in (world.kb, world.wikidata)]
    path = max(tmp_path.glob(f"*/{name}/*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    given = ["--kb", copies[0], "--wikidata", copies[1], "--model", "none"]

    assert main(["qampari", *given, "--output", str(tmp_path / "out")]) == 2
    assert f"{path} has {path.stat().st_size} bytes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
