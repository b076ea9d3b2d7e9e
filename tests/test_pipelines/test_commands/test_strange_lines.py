"""Files of JSON Lines in releases of every kind, with lines that nobody wrote: each command names the line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mapping.kinds import KINDS
from pipelines.cli import main
from tests.support.every_kind import write_every_kind
from tests.support.strangers import entry_of_file, sealed

pytestmark = pytest.mark.slow  # every command over changed lines

STRANGE = [
    b"{\n",
    b"[]\n",
    b"7\n",
    b"\xff\n",
    b"\n",
    b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}\n",
    b"[" * 99_999 + b"\n",
]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_every_kind(tmp_path_factory.mktemp("every"))


def _with_line(release: Path, folder: Path, line: bytes) -> list[str]:
    """Copies a release with another line in each file of lines; returns the names of the files."""
    shutil.copytree(release, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    changed = [entry for entry in manifest.get("files", []) if entry["file"].endswith(".jsonl")]
    for entry in changed:
        (folder / entry["file"]).write_bytes(line)
        entry.update(entry_of_file(folder, entry["file"]))
    (folder / "manifest.json").write_bytes(sealed(manifest))
    return [entry["file"] for entry in changed]


@pytest.mark.parametrize("line", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_line_is_named_by_publish_and_verify(
    releases: dict[str, Path], tmp_path: Path, line: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    n_named = {"publish": 0, "verify": 0}
    for kind in KINDS:
        own = tmp_path / kind.format
        if not _with_line(releases[kind.format], own, line):
            continue
        for command in (
            ["publish", str(own), "--output", str(tmp_path / "out"), "--licence", "CC0-1.0"],
            ["verify", str(own)],
        ):
            code = main(command)
            said = "".join(capsys.readouterr())
            assert code in (0, 1, 2)
            assert "Traceback" not in said
            n_named[command[0]] += ".jsonl, line 1: " in said
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert all(n_named.values()), n_named
