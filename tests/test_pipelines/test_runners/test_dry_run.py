"""Every job looked at instead of run: its graph and what it reads, with nothing left behind; and told what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.runners.portability.stager import Stager

from kbsource.release.layout import INDEX, MANIFEST
from pipelines.cli import main
from pipelines.jobs import read as read_job
from tests.support import mini_wiki, mini_wikidata
from tests.support.builds import build_mini, contents
from tests.support.demo_datasets import chunks_in_this_process
from tests.support.edited_wiki import write_edited
from tests.support.entities import make
from tests.support.fake_google import FakeGoogle
from tests.support.fake_reader import FUSING, FakeGenerator
from tests.support.installed import skip_without
from tests.support.stores import options_of_stores, put, put_folder
from tests.support.tiny_encoder import tiny_encoder
from tests.support.tiny_nli import overlap_model

pytestmark = pytest.mark.slow  # every job

skip_without("onnxruntime", "onnx", "transformers", "tantivy", reason="needs kbsource[nli] and kbsource[search]")

MOST_TRANSFORMS = {
    "build": 57,
    "wikidata": 31,
    "pageviews": 26,
    "passages": 38,
    "map jsonl": 69,
    "qampari": 179,
    "amber": 80,
    "entity-linking": 98,
    "vectors": 44,
    "age": 97,
    "facts": 97,
    "rerank": 11,
    "read": 11,
    "check-sources": 11,
}
"""Of each job's graph: what it takes to start grows with it, on every runner."""
CLOUD = (
    "--project=project",
    "--region=us-central1",
    "--temp_location=gs://wiki/tmp",
    "--sdk_container_image=registry/k:1",
)


@pytest.fixture(scope="module")
def google() -> Iterator[FakeGoogle]:
    """A bucket ``wiki`` of Google's."""
    options = {"google_bearer_token": "any"}
    with FakeGoogle() as google, options_of_stores({**options, "google_base_url": google.url}):
        yield google


@pytest.fixture(scope="module")
def inputs(google: FakeGoogle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each job is given, in the bucket."""
    made = tmp_path_factory.mktemp("made")
    with chunks_in_this_process():
        make(mini_wikidata.DUMP, output=made / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
        build_mini(made / "kb", wikidata=str(made / "wikidata"), references=True)
        args = ["--site", mini_wikidata.SITE, "--output", str(made / "views")]
        assert main(["pageviews", str(mini_wiki.VIEWS), *args]) == 0
        dump, props = write_edited(made)
        build_mini(made / "later", dump=dump, page_props=str(props))
        assert main(["passages", str(made / "kb"), "--output", str(made / "passages")]) == 0
    texts = ["Where does the river rise?"]
    tiny_encoder(made / "encoder", texts=texts)
    overlap_model(made / "ranker", texts=texts, is_ranker=True)
    overlap_model(made / "nli")
    found = {
        "id": "1",
        "input": "?",
        "output": [{"answer": "yes", "provenance": [{"wikipedia_id": "5", "title": "T"}]}],
    }
    put("gs://wiki/found.jsonl", json.dumps(found).encode())
    names = ("kb", "later", "wikidata", "views", "passages", "encoder", "ranker", "nli")
    kb, later, wikidata, views, passages, encoder, ranker, nli = (
        put_folder(f"gs://wiki/{name}", made / name) for name in names
    )
    records, found_file = "gs://wiki/records.jsonl", "gs://wiki/found.jsonl"
    for path in (mini_wiki.MULTISTREAM, mini_wikidata.DUMP, mini_wiki.VIEWS, mini_wikidata.AMBER_TYPES):
        put(f"gs://wiki/{path.name}", path.read_bytes())
    put("gs://wiki/records.jsonl", b'{"id": "1", "input": "?", "output": []}\n')
    return {
        "build": [f"gs://wiki/{mini_wiki.MULTISTREAM.name}", "--wikidata", wikidata],
        "wikidata": [f"gs://wiki/{mini_wikidata.DUMP.name}"],
        "pageviews": [f"gs://wiki/{mini_wiki.VIEWS.name}", "--site", mini_wikidata.SITE],
        "passages": [kb],
        "map jsonl": [kb, "--input", "gs://wiki/records.jsonl", "--split", "dev"],
        "qampari": [kb, wikidata, "--model", "none"],
        "amber": [kb, wikidata, views, "--types", f"gs://wiki/{mini_wikidata.AMBER_TYPES.name}"],
        "entity-linking": [kb],
        "vectors": [passages, "--model", encoder],
        "facts": [kb, later, "--wikidata", wikidata, wikidata],
        "age": [kb, later, "--input", found_file, "--from-kb", kb],
        "rerank": [passages, found_file, "--model", ranker, "--queries", records, "--index", str(made / "index")],
        "check-sources": [kb, "--model", nli, "--backend", "onnx"],
        "read": [records, "--retrieved", found_file, "--model", FUSING, "--form", "fid"],
    }


@pytest.mark.parametrize("job", MOST_TRANSFORMS)
def test_every_job_becomes_one_of_dataflow_and_leaves_nothing(
    google: FakeGoogle,
    inputs: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    job: str,
) -> None:
    monkeypatch.setattr(read_job, "resolve_name", lambda _: FakeGenerator)
    # It has pip list what is installed, a second for each job.
    monkeypatch.setattr(Stager, "_create_stage_submission_env_dependencies", staticmethod(lambda folder: []))
    before = google.objects.copy()
    given = [*job.split(), *inputs[job], "--output", "gs://wiki/made", "--runner", "dataflow", "--dry-run", "--json"]

    assert main([*given, *CLOUD, "--max_num_workers=8"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["graph"]["transforms"] <= MOST_TRANSFORMS[job]
    assert found["graph"]["transforms"] > found["graph"]["stages"] >= 2
    assert found["graph"]["bytes"] < 4_000 * found["graph"]["transforms"]
    assert found["graph"]["runner"] == "DataflowRunner"
    assert found["graph"]["settings"] == {
        "sdk_container_image": "registry/k:1",
        "temp_location": "gs://wiki/tmp",
        "staging_location": "gs://wiki/tmp",
        "max_num_workers": 8,
        "number_of_worker_harness_threads": 1,
    }
    assert google.objects == before
    kb = {name.removeprefix("kb/"): len(content) for name, content in before.items() if name.startswith("kb/")}
    index = sum(size for name, size in kb.items() if name.startswith(f"{INDEX}/"))
    if job in ("passages", "entity-linking"):
        assert found["reads"] == {"gs://wiki/kb": sum(kb.values())}
        assert found["bytes_copied_to_each_machine"] == index > 0


def test_a_folder_of_another_job_stays_and_nothing_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "BUILDING").write_text('{"job": "another"}')
    before = contents(tmp_path)

    assert main(["build", str(mini_wiki.MULTISTREAM), "--output", str(tmp_path / "out"), "--dry-run"]) == 0

    said = capsys.readouterr().out
    assert "nothing was run" in said
    assert "stages" in said
    assert contents(tmp_path) == before


def test_what_is_wrong_is_told_as_when_it_runs(
    release: Path, inputs: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    no_image = ["--output", "gs://wiki/made", "--runner", "dataflow", "--dry-run", *CLOUD[:3]]
    beyond = [*no_image, CLOUD[3]]
    for given, message in (
        (["build", "gs://wiki/none.xml.bz2", *beyond], "No dump file matches 'gs://wiki/none.xml.bz2'"),
        (["passages", str(release), *beyond], "a path on this machine"),
        (["passages", "gs://wiki/kb", *no_image], "--sdk_container_image"),
        (["passages", str(release), "--output", str(release), "--dry-run"], "never overwritten"),
        (["passages", str(release), "--output", "/proc/none/made", "--dry-run"], "/proc"),
    ):
        assert main(given) == 2, given
        assert message in capsys.readouterr().err
    assert (release / MANIFEST).exists()
    assert inputs
