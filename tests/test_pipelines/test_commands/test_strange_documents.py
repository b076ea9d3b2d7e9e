"""JSON files beside manifests, each value of another type in turn: what reads them does its work or prints a line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError
from kbsource.release.kind import Kind
from mapping.inspector.opened import close_releases, open_releases
from mapping.kinds import KINDS
from pipelines.cli import main
from tests.support.every_kind import report_of, write_every_kind
from tests.support.inspected import client_of, one_portal
from tests.support.strangers import Way, changed, entry_of_file, sealed, ways

pytestmark = pytest.mark.slow  # hundreds of changed manifests

Capsys = pytest.CaptureFixture[str]
DOCUMENTS = [(kind, name) for kind in KINDS for name in kind.documents]
OTHERS: list[Any] = [..., 7, -1, 2**80, 1.5, 1e300, True, None, "", "x", [], [None], {}, {"a": None}, {"a": [1]}]


@pytest.fixture(scope="module", autouse=True)
def _one_portal() -> Iterator[None]:
    with one_portal():
        yield


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_every_kind(tmp_path_factory.mktemp("every"))


def path_of(way: Way) -> str:
    """The first keys of a way, as messages have them: those of objects with any keys are left out there."""
    return "$" if not way else f"$.{way[0]}"


@pytest.mark.parametrize(("kind", "name"), DOCUMENTS, ids=lambda row: getattr(row, "format", row))
def test_every_value_of_another_type_is_refused_or_shown(
    releases: dict[str, Path], tmp_path: Path, kind: Kind[Any], name: str
) -> None:
    own = tmp_path / "own"
    shutil.copytree(releases[kind.format], own)
    opened = open_releases([str(own)])
    refused: set[Way] = set()
    try:
        client = client_of(*opened)
        values = json.loads((own / name).read_bytes())
        assert values == report_of(kind, name)
        for way in ways(values):
            for changed_values in (changed(values, way, other) for other in OTHERS if way or other is not ...):
                (own / name).write_bytes(json.dumps(changed_values).encode())
                fault = None
                try:
                    kind.read_document(str(own), name)
                except DataError as error:
                    fault = str(error)
                    assert fault.startswith(f"{own}/{name}: "), fault
                    assert fault.endswith("download or build the release again, and check it with kbsource verify"), (
                        fault
                    )
                    assert "\n" not in fault
                    assert path_of(way) in fault or "`$`" not in fault, (way, fault)
                for release in opened:
                    release._kept.clear()
                if fault is not None and way in refused:  # one page of each value that is refused is enough
                    continue
                refused.update([way] if fault is not None else [])
                for view in ("", "measures"):
                    answer = client.get(opened[0].url(view))
                    assert answer.status_code in (200, 500), (way, answer.text)
                    assert fault is not None or answer.status_code == 200 or "is missing" in answer.text, (way, fault)
    finally:
        close_releases(opened)
    assert refused


UNREADABLE = [b"", b"{", b"[]", b"7", b'{"a": NaN}', b"\xff", b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a": 1e999}']


@pytest.mark.parametrize(("kind", "name"), DOCUMENTS, ids=lambda row: getattr(row, "format", row))
def test_files_that_are_no_such_json_are_named(
    releases: dict[str, Path], tmp_path: Path, kind: Kind[Any], name: str, capsys: Capsys
) -> None:
    for number, content in enumerate(UNREADABLE):
        own = tmp_path / f"own{number}"
        shutil.copytree(releases[kind.format], own)
        (own / name).write_bytes(content)
        manifest = json.loads((own / "manifest.json").read_bytes())
        for entry in manifest["files"]:
            if entry["file"] == name:
                entry.update(entry_of_file(own, name))
        (own / "manifest.json").write_bytes(sealed(manifest))
        for command in (["verify", str(own)], ["report", str(own), "--output", str(tmp_path / "r.html"), "--force"]):
            code = main(command)
            out, err = capsys.readouterr()
            assert code in (0, 1, 2)
            assert "Traceback" not in out + err
            if content not in (b'{"a": 1e999}',) and command[0] == "verify":
                said = re.sub(r"\s+", " ", out + err)
                assert f"{name}: a file does not have the format that its name states (unreadable" in said, (
                    content,
                    said,
                )
