"""Models by their names on a hub: downloaded where that is asked for, from the cache everywhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pipelines.cli import main
from tests.support.fake_hub import COMMIT, FakeHub, fake_hub
from tests.support.installed import skip_without
from tests.support.real_data import ROOT
from tests.support.tiny_encoder import tiny_encoder
from tests.support.tiny_nli import overlap_model

skip_without("onnxruntime", "onnx", "transformers", "huggingface_hub", reason="needs kbsource[nli]")

PAIR = "--premise 'Ada was born in Arlin.' --hypothesis 'Ada was born.' --json"
LINES = """
import shlex, sys
from pipelines.cli import main
for line in sys.argv[1:]:
    code = main(shlex.split(line))
    sys.stdout.write(f"{code}\\0")
    sys.stderr.write("\\0")
"""


class Answer(NamedTuple):
    code: int
    output: str
    errors: str


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeHub]:
    folder = tmp_path_factory.mktemp("models")
    models = {"tiny/nli": overlap_model(folder / "nli"), "tiny/encoder": tiny_encoder(folder / "encoder")}
    for model in models.values():
        (model / "model.safetensors").write_bytes(b"of the other backend")
        (model / "pytorch_model.bin").write_bytes(b"a pickle")
        (model / "README.md").write_text("A model.", "utf-8")
    with fake_hub(models) as served:
        yield served


def run(hub: FakeHub, cache: Path, *lines: str) -> list[Answer]:
    """Runs command lines in one process whose hub and cache these are."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    own |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(cache), "NO_PROXY": "*"}
    ended = subprocess.run([sys.executable, "-c", LINES, *lines], env=own, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    outputs = ended.stdout.split("\0")[:-1]
    return [
        Answer(int(output[-1]), output[:-1], errors)
        for output, errors in zip(outputs, ended.stderr.split("\0"), strict=False)
    ]


@pytest.mark.slow  # a process that imports the libraries of models
def test_a_model_is_downloaded_where_that_is_asked_for_and_then_found_in_the_cache(
    hub: FakeHub, tmp_path: Path
) -> None:
    hub.asked.clear()
    nli = f"nli --backend onnx {PAIR}"

    (refused,) = run(hub, tmp_path, f"{nli} --model tiny/nli")
    assert refused.code == 2
    assert f"tiny/nli: no such folder, and no such model in {tmp_path}/hub. Add --download to fetch" in refused.errors
    assert "'hf download tiny/nli'" in refused.errors
    assert hub.asked == []

    by_name, missing, other = run(
        hub,
        tmp_path,
        f"{nli} --model tiny/nli --download",
        f"{nli} --model tiny/none --download",
        f"{nli} --model tiny/nli@v9 --download",
    )
    assert (by_name.code, json.loads(by_name.output)["label"]) == (0, "entailment")
    assert "model.onnx" in hub.fetched
    assert not hub.fetched & {"pytorch_model.bin", "model.safetensors", "README.md"}
    for name, answer in (("tiny/none", missing), ("tiny/nli@v9", other)):
        assert answer.code == 2
        assert f"{name}: not downloaded from {hub.url} (" in answer.errors
        assert len(answer.errors.strip().splitlines()) == 1

    hub.asked.clear()
    answers = run(hub, tmp_path, *(f"{nli} --model tiny/nli{at}" for at in ("", "@main", f"@{COMMIT}", "@../..")))
    assert [answer.code for answer in answers] == [0, 0, 0, 2]
    assert {answer.output for answer in answers[:3]} == {by_name.output}
    assert hub.asked == []


@pytest.mark.slow
def test_every_model_may_be_named_and_manifests_tell_its_commit(hub: FakeHub, tmp_path: Path, release: Path) -> None:
    passages, vectors = tmp_path / "passages", tmp_path / "passages-vectors"
    found = tmp_path / "found.jsonl"
    assert main(["passages", str(release), "--output", str(passages)]) == 0
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"id": "1", "input": "Where is the harbour?"}) + "\n", "utf-8")

    answers = run(
        hub,
        tmp_path / "cache",
        f"vectors {passages} --model tiny/encoder --download --output {vectors} --workers 2",
        f"search {passages} harbour --system dense --model tiny/encoder@main --json",
        f"search {passages} harbour --system bm25:rerank --reranker tiny/nli --download --json",
        f"search {passages} --queries {questions} --output {found} --json",
        f"rerank {passages} {found} --queries {questions} --model tiny/nli --output {tmp_path}/ranked.jsonl --json",
    )

    assert [answer.code for answer in answers] == [0] * 5, answers
    encoder = json.loads((vectors / "manifest.json").read_text("utf-8"))["encoder"]
    assert encoder["name"] == f"tiny/encoder@{COMMIT}"


def test_what_uses_no_model_downloads_none(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(release), "--download"]) == 2
    assert "--download: kbsource info uses no model; leave it out." in capsys.readouterr().err
