"""Manifests of every kind, changed by chance and sealed again: every command does its work or says a line."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.inspector.opened import close_releases, open_releases
from mapping.kinds import KINDS
from mapping.passages.kind import PASSAGES_CORPUS
from pipelines.cli import main
from tests.support.every_kind import write_every_kind
from tests.support.examples import examples
from tests.support.inspected import client_of
from tests.support.strangers import LOOT, hostile_name, sealed

Way = tuple[str | int, ...]
FORMATS = [kind.format for kind in KINDS]
LOOT_NAME = hostile_name(Path("/tmp") / LOOT)
ODD: list[Any] = [
    7, -1, 0, 2**53, 2**63, 2**80, 1.5, 1e300, True, None, "", "x", "\0", "a\nb", "-", "../x", "/etc", "ü" * 300,
    LOOT_NAME,    [], {}, [[]], {"a": 1}, [7], ["x"], [None], {"manifest_sha256": 7}, {"": {}}, "https://[",
    "javascript:x", "99999999", "enwiki", "20269999", [{"folder": "x", "manifest_sha256": "y"}],
]  # fmt: skip


def ways(value: Any, way: Way = ()) -> Iterator[Way]:
    """The ways to everything in JSON values."""
    if way:
        yield way
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from ways(inner, (*way, key))


def change(values: dict[str, Any], data: st.DataObject) -> None:
    """Changes one thing."""
    every = list(ways(values))
    way = data.draw(st.sampled_from(every))
    inside: Any = values
    for key in way[:-1]:
        inside = inside[key]
    what = data.draw(st.sampled_from(["odd", "odd", "odd", "remove", "twice", "rename", "other", "add"]))
    if what == "odd":
        inside[way[-1]] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    elif what == "remove":
        del inside[way[-1]]
    elif what == "twice" and isinstance(inside, list):
        inside.append(copy.deepcopy(inside[way[-1]]))
    elif what == "rename" and isinstance(inside, dict):
        inside[data.draw(st.sampled_from(["x", LOOT_NAME, "\0", "manifest_sha256", ""]))] = inside.pop(way[-1])
    elif what == "add" and isinstance(inside, dict):
        known = ["alignments", "release", "inputs", "options", "dump", "date", "x", "releases", "old", "totals", "lang"]
        inside[data.draw(st.sampled_from(known))] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    else:
        other: Any = values
        for key in data.draw(st.sampled_from(every)):
            if not isinstance(other, (dict, list)) or (isinstance(other, list) and not isinstance(key, int)):
                return
            if isinstance(other, dict) and key not in other:
                return
            other = other[key]
        inside[way[-1]] = copy.deepcopy(other)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_every_kind(tmp_path_factory.mktemp("every"))


def commands(form: str, own: str, releases: dict[str, Path], output: str) -> Iterator[list[str]]:
    """The commands that read a release of a kind, in so far as they end soon."""
    yield from (["verify", own], ["info", own], ["info", own, "--json"], ["show", own, "T1"])
    yield from (["report", own, "--output", f"{output}/r.html"], ["report", own, "--format", "markdown"])
    yield ["publish", own, "--output", f"{output}/published"]
    yield ["catalogue", own]
    pages, passages = str(releases[PAGES_RELEASE.format]), str(releases[PASSAGES_CORPUS.format])
    if form == PAGES_RELEASE.format:
        yield ["diff", pages, own, "--output", f"{output}/diff"]
        yield ["templates", own]
    kind = next(kind for kind in KINDS if kind.format == form)
    if kind.made_from:
        given = {"PAGES": pages, "passages": passages}
        flags = [given.get(name, pages) for name in kind.made_from]
        yield [
            "verify",
            own,
            *(part for pair in zip(kind.made_from, flags, strict=True) for part in (f"--{pair[0]}", pair[1])),
        ]
    if form == PASSAGES_CORPUS.format:
        yield ["beir", str(releases["kbsource-alignment-1"]), own, "--output", f"{output}/beir"]


@pytest.mark.parametrize("form", FORMATS)
def test_releases_of_every_kind_are_read_as_they_are(
    releases: dict[str, Path], tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(releases[form])]) == 0, capsys.readouterr()


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=examples(5), deadline=None)
@given(data=st.data())
def test_every_command_does_its_work_or_says_a_line(
    releases: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    form: str,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("strange")
    own, output = folder / "own", folder / "out"
    shutil.copytree(releases[form], own, copy_function=os.link)
    manifest = own / "manifest.json"
    values = json.loads(manifest.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        change(values, data)
    manifest.unlink()
    manifest.write_bytes(sealed(values))
    output.mkdir()
    try:
        for command in commands(form, str(own), releases, str(output)):
            code = main(command)
            said = capsys.readouterr()
            assert code in (0, 1, 2), (command, said)
            assert "Traceback" not in said.err, said.err
            assert code != 2 or said.err.count("\n") < 12, said.err
        _look(str(own))
        assert not (Path("/tmp") / LOOT).exists()
    finally:
        shutil.rmtree(folder)


def _look(path: str) -> None:
    """Looks at every view of a release that has no more to ask for."""
    try:
        opened = open_releases([path])
    except SetupError:
        return
    try:
        client = client_of(*opened)
        for one in opened:
            for view in ("", "measures", "sql", *(f"tables/{table}" for table in one.tables)):
                assert client.get(one.url(view)).status_code in (200, 404, 500)
    finally:
        close_releases(opened)
