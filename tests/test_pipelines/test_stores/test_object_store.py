"""A build whose dump and release lie in an object store: Amazon's protocol, served by moto on this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.local_copies import release_copies
from mapping.entail.signal import DEFAULT_MODEL, ModelOptions
from pipelines.cli import main
from pipelines.jobs.map_dataset import map_dataset
from pipelines.options.map_dataset import MapOptions, VerifyOptions
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import build_mini, contents, open_release, run_job
from tests.support.entities import make
from tests.support.passages import cut_release
from tests.support.stores import contents_of, failing_store, put, put_folder, s3_server

pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("s3")]


@pytest.fixture
def s3() -> Iterator[None]:
    """An object store with an empty bucket; options say where it is."""
    with s3_server():
        yield


def test_a_build_has_the_same_bytes_where_a_tenth_of_the_requests_fails(tmp_path: Path) -> None:
    put(dump := f"s3://wiki/dumps/{mini_wiki.MULTISTREAM.name}", mini_wiki.MULTISTREAM.read_bytes())
    build_mini(tmp_path / "release", page_props=None)
    begun = time.monotonic()
    with failing_store(share=0.1):
        build_mini("s3://wiki/release", dump=dump, page_props=None)

    assert time.monotonic() - begun < 120
    assert contents_of("s3://wiki/release") == contents(tmp_path / "release")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("n_answers", [0, 60, 150])
def test_a_store_that_goes_away_ends_a_build_in_one_line(
    n_answers: int, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    put(dump := f"s3://wiki/dumps/{mini_wiki.MULTISTREAM.name}", mini_wiki.MULTISTREAM.read_bytes())
    with failing_store(n_answers=n_answers):
        assert main(["build", dump, "--output", "s3://wiki/gone", "--max-rejects", "1", "--workers", str(workers)]) == 2

    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kbsource build: ")]
    assert len(said) == 1
    assert "s3://wiki" in said[0]


def test_vectors_in_the_store_are_those_made_here(release: Path, tmp_path: Path) -> None:
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[dense]")
    from tests.support.tiny_encoder import encode_corpus, tiny_encoder

    cut_release(tmp_path / "corpus", release)
    put_folder("s3://wiki/corpus", tmp_path / "corpus")
    put_folder("s3://wiki/models/tiny", tiny_encoder(tmp_path / "tiny"))
    encode_corpus(tmp_path / "corpus", tmp_path / "tiny", tmp_path / "vectors")
    encode_corpus("s3://wiki/corpus", "s3://wiki/models/tiny", "s3://wiki/vectors")
    assert contents_of("s3://wiki/vectors") == contents(tmp_path / "vectors")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, the copies of models among them, where there is what models need."""
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[nli]")
    (folder := tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_in_the_store_judges_as_it_does_here(
    workers: int, release: Path, tmp_path: Path, scratch: Path
) -> None:
    from mapping.entail.model import model_facts
    from tests.support.tiny_nli import overlap_model

    model = overlap_model(tmp_path / "nli")
    put_folder("s3://wiki/models/nli", model)
    own = record("a", [evidence("The Halvane Isles are an archipelago", title="Halvane Isles")])
    records = write_records(tmp_path / "records.jsonl", [own])
    for name, folder in (("here", str(model)), ("there", "s3://wiki/models/nli")):
        verify = VerifyOptions(model=ModelOptions(folder, backend="onnx"))
        options = MapOptions(
            str(release),
            dataset="jsonl",
            inputs=(str(records),),
            output=str(tmp_path / name),
            split="dev",
            verify=verify,
        )
        run_job(map_dataset, options, workers=workers)

    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert len(list(scratch.glob("kbsource-*copy-*"))) == 1  # for all processes
    release_copies()
    assert list(scratch.glob("kbsource-*copy-*")) == []
    with pytest.raises(SetupError, match="s3://wiki/models/none: no such folder"):
        model_facts(ModelOptions("s3://wiki/models/none", backend="onnx"))


def test_qampari_asks_a_model_in_the_store_as_one_here_and_refuses_one_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scratch: Path
) -> None:
    from tests.support.tiny_nli import overlap_model

    make(mini_wikidata.DUMP, output=tmp_path / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    build_mini(tmp_path / "kb", wikidata=str(tmp_path / "wikidata"))
    texts = [element.text for page in open_release(tmp_path / "kb") for element in page.elements]
    # By the name of the one that is asked without --model, whose threshold is taken.
    name = os.path.basename(DEFAULT_MODEL)
    put_folder(f"s3://wiki/models/{name}", overlap_model(tmp_path / name, texts=texts))

    def ask(model: str, output: str, *runner: str) -> int:
        given = [str(tmp_path / "kb"), str(tmp_path / "wikidata"), "--model", model, "--backend", "onnx"]
        return main(["qampari", *given, "--output", str(tmp_path / output), *runner])

    assert ask(str(tmp_path / name), "here") == 0
    assert ask(f"s3://wiki/models/{name}", "there", "--workers", "2") == 0
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert len(list(scratch.glob("kbsource-*copy-*"))) == 1  # for all processes
    capsys.readouterr()

    assert ask("s3://wiki/models/none", "none") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert said == ["kbsource qampari: s3://wiki/models/none: no such folder, or no model in it."]
    assert not (tmp_path / "none").exists()
