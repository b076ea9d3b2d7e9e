"""The whole way in a bucket: wikidata, build, map, passages, qampari, verify, show and export, command by command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kbsource.files import join
from kbsource.local_copies import release_copies
from pipelines.cli import main
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import evidence, record, write_records
from tests.support.stores import contents_of, put, s3_server

pytestmark = pytest.mark.slow

pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")

RECORDS = [
    record("sellick", [evidence("The river Ullane rises in Lake Miravel", title="River Ullane")]),
    record("nowhere", [evidence("There is no such page.", title="No such page")]),
]


def chain(root: str, flags: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Runs every command in a folder that holds the inputs; gives what was said by each that says something."""
    releases = {name: join(root, name) for name in ("wikidata", "kb", "aligned", "passages", "qampari")}
    kb, wikidata = releases["kb"], releases["wikidata"]
    commands = {
        "wikidata": ["--dump", join(root, mini_wikidata.DUMP.name), "--output", wikidata, "--max-rejects", "0.01"],
        "build": [
            *("--dump", join(root, mini_wiki.MULTISTREAM.name), "--output", kb, "--wikidata", wikidata),
            *("--page-props", join(root, mini_wiki.PAGE_PROPS.name), "--max-rejects", str(mini_wiki.MAX_REJECTS)),
        ],
        "map": ["jsonl", "--input", join(root, "own.jsonl"), "--kb", kb, "--output", releases["aligned"]],
        "passages": ["--kb", kb, "--output", releases["passages"]],
        "qampari": ["--kb", kb, "--wikidata", wikidata, "--model", "none", "--output", releases["qampari"]],
        "show": [kb, "Halvane Isles", "--json"],
        "export-kilt": [kb, "--output", join(root, "kilt.jsonl")],
    }
    said = {}
    for name, arguments in commands.items():
        code = main([name, *arguments, *flags])
        said[name], errors = capsys.readouterr()
        assert code == 0, f"{name}: {errors}"
    for release in releases.values():
        assert main(["verify", release, "--json", *flags]) == 0, release
        assert json.loads(capsys.readouterr().out)["ok"]
    return {"show": said["show"]}


def inputs(folder: Path) -> dict[str, bytes]:
    own = write_records(folder / "records.jsonl", RECORDS).read_bytes()
    files = (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS, mini_wikidata.DUMP)
    return {**{path.name: path.read_bytes() for path in files}, "own.jsonl": own}


def test_everything_in_a_bucket_has_the_bytes_that_it_has_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, local = tmp_path / "scratch", tmp_path / "local"
    scratch.mkdir()
    local.mkdir()
    given = inputs(tmp_path)
    for name, content in given.items():
        (local / name).write_bytes(content)
    expected = chain(str(local), [], capsys)

    with s3_server() as flags:
        for name, content in given.items():
            put(f"s3://wiki/{name}", content)
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        said = chain("s3://wiki", flags, capsys)
        assert main(["passages", "s3://wiki/kb", "--output", "s3://wiki/passages", *flags]) == 2
        assert "never overwritten" in capsys.readouterr().err

        assert said["show"].replace("s3://wiki", str(local)) == expected["show"]
        found = contents_of("s3://wiki")
        assert set(found) == {str(path.relative_to(local)) for path in local.rglob("*") if path.is_file()}
        for name, content in found.items():
            if not name.endswith("manifest.json"):  # which name releases by their folders
                assert content == (local / name).read_bytes(), name
    release_copies()
    assert os.listdir(scratch) == []
