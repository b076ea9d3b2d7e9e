"""Outputs on a disk that is full before they are finished: one line, and nothing that looks finished."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.cli import main
from tests.support import mini_wiki
from tests.support.command_processes import run_command
from tests.support.installed import skip_without
from tests.support.real_data import ROOT
from tests.support.tiny_encoder import tiny_encoder

skip_without("onnxruntime", "onnx", "usearch", "tantivy", reason="needs kbsource[search]")

FEVER = ROOT / "kbsource" / "demo" / "datasets" / "fever"
COMMANDS = {
    "build": ["build", str(mini_wiki.MULTISTREAM), f"--max-rejects={mini_wiki.MAX_REJECTS}"],
    "passages": ["passages", "{release}"],
    "vectors": ["vectors", "{made}/passages", "--model", "{made}/encoder"],
    "map": [
        *(
            "map",
            "fever",
            "{release}",
            "--input",
            str(FEVER / "train.jsonl"),
            "--wiki-pages",
            str(FEVER / "wiki-pages"),
        ),
        *("--split", "train", "--max-rejects", "0.9"),
    ],
}
SIZES = {"build": "200k", "passages": "100k", "map": "120k", "vectors": "24k"}
SEARCH = ("search", "{disk}/passages", "Port Sellick")
INDEXES = {
    "full text": (SEARCH, "80k", "passages-bm25"),
    "full text, at its end": (SEARCH, "140k", "passages-bm25"),
    "tf-idf": ((*SEARCH, "--system", "tfidf", "--index", "{made}/bm25"), "200k", "passages-tfidf-passage"),
    "graph": (
        (*SEARCH, "--system", "dense", "--model", "{made}/encoder", "--vectors", "{disk}/vectors", "--approximate"),
        "92k",
        "vectors-usearch",
    ),
}
"""What makes an index beside passages that lie on a disk of this size, and the folder of the index."""


@pytest.fixture(scope="module")
def made(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with passages, an encoder, and the vectors of the passages."""
    folder = tmp_path_factory.mktemp("made")
    assert main(["passages", str(release), "--output", str(folder / "passages")]) == 0
    tiny_encoder(folder / "encoder", texts=["Where does Port Sellick lie?"])
    places = (str(folder / "passages"), "--model", str(folder / "encoder"))
    assert main(["vectors", *places, "--output", str(folder / "vectors")]) == 0
    return folder


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that takes little."""
    place = tmp_path / "disk"
    place.mkdir()
    name = request.node.callspec.params["name"]
    size = SIZES[name] if name in SIZES else INDEXES[name][1]
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow  # a process of each command
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_in_one_line_and_leaves_no_finished_output(
    release: Path, made: Path, small_disk: Path, name: str
) -> None:
    _refused([word.format(release=release, made=made) for word in COMMANDS[name]] + ["--output", f"{small_disk}/out"])
    assert not (small_disk / "out" / "manifest.json").exists()


@pytest.mark.slow  # a process of each
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_a_full_disk_ended_is_made_anew_when_there_is_room(
    made: Path, small_disk: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, _, index = INDEXES[name]
    for release in ("passages", "vectors"):
        shutil.copytree(made / release, small_disk / release)
    given = [word.format(disk=small_disk, made=made) for word in words]
    _refused(given)
    assert not (small_disk / index / "manifest.json").exists()

    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert main(given) == 0, capsys.readouterr()
    assert (small_disk / index / "manifest.json").exists()
    assert main(["verify", str(small_disk / index)]) == 0


def _refused(given: list[str]) -> None:
    """Runs a command in a process of its own, and looks at what it says of the disk."""
    ended = run_command(given)
    assert ended.code == 2, ended.errors
    said = [line for line in ended.errors.splitlines() if line.startswith("kbsource ")]
    assert len(said) == 1
    assert "The disk is full. Make room and run the same command again" in said[0]
    assert "Traceback" not in ended.errors
