"""Manifests of every kind, changed by chance and sealed again: every command does its work or says a line."""

from __future__ import annotations

import ast
import copy
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.pageviews import PAGEVIEWS_RELEASE
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.amber.kind import AMBER_SETS
from mapping.amber.records import AmberOptions
from mapping.annotation.tasks import CAMPAIGN, CAMPAIGN_TASKS, CROWD_TASKS
from mapping.contexts.kind import CONTEXTS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.inspector.opened import close_releases, open_releases
from mapping.kinds import KINDS
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.benchmark_kind import BENCHMARK
from mapping.retrieval.training import TrainingOptions
from mapping.retrieval.training_kind import TRAINING_DATA
from mapping.retrieval.vector_kind import PASSAGE_VECTORS
from mapping.write.kind import ALIGNMENT
from pipelines.cli import main
from pipelines.commands import COMMANDS
from tests.support.command_lines import required_line
from tests.support.every_kind import write_every_kind
from tests.support.examples import examples
from tests.support.inspected import client_of
from tests.support.strangers import LOOT, Way, changed, copied, hostile_name, sealed, ways

pytestmark = pytest.mark.slow  # every command over changed manifests of every kind

FORMATS = [kind.format for kind in KINDS]
LOOT_PLACE = Path(gettempdir()) / LOOT
LOOT_NAME = hostile_name(LOOT_PLACE)
GOLD = b"""{"id": "1", "input": "x", "output": [{"answer": "y", "provenance": [{"wikipedia_id": "1", "title": "T1"}]}]}
"""
ODD: list[Any] = [
    7, -1, 0, 2**53, 2**63, 2**80, 1.5, 1e300, True, None, "", "x", "\0", "a\nb", "-", "../x", "/etc", "ü" * 300,
    LOOT_NAME,    [], {}, [[]], {"a": 1}, [7], ["x"], [None], {"manifest_sha256": 7}, {"": {}}, "https://[",
    "javascript:x", "99999999", "enwiki", "20269999", [{"folder": "x", "manifest_sha256": "y"}],
]  # fmt: skip


def change(values: dict[str, Any], data: st.DataObject) -> None:
    """Changes one thing."""
    every = [way for way in ways(values) if way]
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


ANY = "any kind"
PAGES, PASSAGES, ALIGNED = PAGES_RELEASE.format, PASSAGES_CORPUS.format, ALIGNMENT.format
LOOKS: dict[str, dict[str, tuple[str, ...]]] = {
    "info": {ANY: ("{own}", "{own} --json")},
    "show": {ANY: ("{own} T1",)},
    "report": {ANY: ("{own} --output {out}/r.html", "{own} --format markdown")},
    "catalogue": {ANY: ("{own}",)},
    "serve": {
        PAGES: ("{own}",),
        PASSAGES: ("{pages} --passages {own}",),
        PASSAGE_VECTORS.format: ("{pages} --passages {passages} --vectors {own} --model {out} --system dense",),
        ENTITY_LINKING.format: ("{pages} --passages {passages} --linking {own} --system aliases",),
    },
    "templates": {PAGES: ("{own}",)},
    "sql": {ANY: ("{own} --json",)},
    "export": {PAGES: ("{own} --output {out}/pages.jsonl",)},
    "export-kilt": {PAGES: ("{own} --output {out}/kilt.jsonl",)},
    "locate": {PAGES: ("{own} --title T1 --evidence T1",)},
    "validate-kilt": {PAGES: ("{own} {gold}",)},
    "campaign": {
        PAGES: ("candidates {gold} {gold} --kb {own} --with-gold --output {out}/candidates.jsonl",),
        CAMPAIGN_TASKS.format: ("import {own} {gold} --output {out}/campaign",),
        CAMPAIGN.format: ("report {own}",),
    },
    "search": {PASSAGES: ("{own} T1",), PASSAGE_VECTORS.format: ("{passages} T1 --system dense --vectors {own}",)},
    "link": {ENTITY_LINKING.format: ("{own} T1",)},
    "benchmark": {
        PASSAGES: ("{own} {gold} --system bm25 --output {out}/benchmark",),
        **{
            kind.format: ("{passages} {own} --system bm25 --output {out}/benchmark",)
            for kind in (ALIGNMENT, QAMPARI_RELEASE, AMBER_SETS, ENTITY_LINKING)
        },
    },
    "qampari-contexts": {
        QAMPARI_RELEASE.format: ("{own} {passages} --output {out}/contexts",),
        PASSAGES: ("{qampari} {own} --output {out}/contexts",),
    },
    "qampari-tasks": {
        QAMPARI_RELEASE.format: ("export {own} --output {out}/tasks",),
        CROWD_TASKS.format: ("apply {qampari} {own} --output {out}/applied",),
    },
    "beir": {ALIGNED: ("{own} {passages} --output {out}/beir",), PASSAGES: ("{aligned} {own} --output {out}/beir",)},
    "training-data": {
        ALIGNED: ("{own} --passages {passages} --for seq2seq --output {out}/training",),
        QAMPARI_RELEASE.format: ("{own} --passages {passages} --for seq2seq --output {out}/training",),
        PASSAGES: ("{aligned} --passages {own} --for seq2seq --output {out}/training",),
    },
    "diff": {PAGES: ("{pages} {own} --output {out}/diff",)},
}
"""Arguments of commands that end at once, by command and by the kind of the release that they read. A command that no
table names gets a release of any kind for each release that it needs.
"""
JOBS: dict[str, dict[str, tuple[str, ...]]] = {
    "passages": {PAGES: ("{own} --output {out}/made",)},
    "vectors": {PASSAGES: ("{own} --model {out} --output {out}/made",)},
    "entity-linking": {PAGES: ("{own} --output {out}/made",)},
    "qampari": {
        PAGES: ("{own} {wikidata} --model none --output {out}/made",),
        WIKIDATA_RELEASE.format: ("{pages} {own} --model none --output {out}/made",),
    },
    "amber": {
        PAGES: ("{own} {wikidata} {pageviews} --output {out}/made",),
        WIKIDATA_RELEASE.format: ("{pages} {own} {pageviews} --output {out}/made",),
        PAGEVIEWS_RELEASE.format: ("{pages} {wikidata} {own} --output {out}/made",),
    },
    "facts": {
        PAGES: ("{pages} {own} --wikidata {wikidata} {wikidata} --output {out}/made",),
        WIKIDATA_RELEASE.format: ("{pages} {pages} --wikidata {wikidata} {own} --output {out}/made",),
    },
    "map": {PAGES: ("fever {own} --input {gold} --split dev --output {out}/made",)},
    "age": {PAGES: ("{pages} {own} --input {gold} --output {out}/made",)},
    "build": {WIKIDATA_RELEASE.format: ("{gold} --wikidata {own} --output {out}/made",)},
    "check-sources": {PAGES: ("{own} --output {out}/verdicts.jsonl",)},
    "rerank": {PASSAGES: ("{own} {gold} --queries {gold} --model {out} --output {out}/reranked",)},
}
"""The same of those that run a pipeline where the release is sound."""
WITHOUT = {
    *("check-dump", "check-text", "wikidata", "pageviews", "nli", "evaluate", "read", "trec"),  # which read files
    *("demo", "completion"),  # and these read nothing
}


@pytest.fixture(autouse=True)
def nothing_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that read the standard input find it empty."""
    monkeypatch.setattr("sys.stdin", io.StringIO())


@cache
def looks() -> dict[str, dict[str, tuple[str, ...]]]:
    """Returns ``LOOKS`` with the commands that are in none of the tables."""
    others = COMMANDS.keys() - {*LOOKS, *JOBS} - WITHOUT
    lines = {name: required_line(name, release="{own}", output=f"{{out}}/{name}") for name in sorted(others)}
    return {**LOOKS, **{name: {ANY: (line,)} for name, line in lines.items()}}


def test_every_command_that_reads_releases_is_tried() -> None:
    assert {*looks(), *JOBS} | WITHOUT == COMMANDS.keys()
    assert not {*looks(), *JOBS} & WITHOUT
    assert looks()["publish"] == {ANY: ("{own} --output {out}/publish",)}
    given = [lines for table in (looks(), JOBS) for by_kind in table.values() for lines in by_kind.values()]
    assert all("{own}" in line for lines in given for line in lines)


def test_a_release_of_every_kind_is_given_to_a_command() -> None:
    assert {form for table in (looks(), JOBS) for lines in table.values() for form in lines} <= {ANY, *FORMATS}


def arguments(table: dict[str, dict[str, tuple[str, ...]]], form: str, places: dict[str, str]) -> list[list[str]]:
    """The commands of a table that read a release of a kind."""
    return [
        [name, *(word.format(**places) for word in line.split())]
        for name, by_kind in table.items()
        for of in (ANY, form)
        for line in by_kind.get(of, ())
    ]


def commands(form: str, own: str, releases: dict[str, Path], output: str, data: st.DataObject) -> Iterator[list[str]]:
    """The commands that read a release of a kind; one of those that run a pipeline."""
    gold = Path(output) / "gold.jsonl"
    gold.write_bytes(GOLD)
    by_name = {
        "pages": PAGES_RELEASE,
        "passages": PASSAGES_CORPUS,
        "aligned": ALIGNMENT,
        "qampari": QAMPARI_RELEASE,
        "wikidata": WIKIDATA_RELEASE,
        "pageviews": PAGEVIEWS_RELEASE,
    }
    places = {name: str(releases[kind.format]) for name, kind in by_name.items()}
    places |= {"own": own, "out": output, "gold": str(gold)}
    yield from arguments(looks(), form, places)
    if jobs := arguments(JOBS, form, places):
        yield data.draw(st.sampled_from(jobs))
    kind = next(kind for kind in KINDS if kind.format == form)
    if kind.made_from:
        given = [places.get(name, places["pages"]) for name in kind.made_from]
        flags = [part for pair in zip(kind.made_from, given, strict=True) for part in (f"--{pair[0]}", pair[1])]
        yield ["verify", own, *flags]


@pytest.fixture(autouse=True)
def _nobody_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the servers where they would begin to answer."""
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)


@pytest.mark.parametrize("form", FORMATS)
def test_releases_of_every_kind_are_read_as_they_are(
    releases: dict[str, Path], tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(releases[form])]) == 0, capsys.readouterr()


@pytest.mark.parametrize("other", [False, 7, "P580", [7], {"P580": 1}])
def test_qualifiers_that_are_no_list_of_properties_are_named(
    releases: dict[str, Path], tmp_path: Path, other: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    form = WIKIDATA_RELEASE.format
    own = copied(releases[form], tmp_path / "own", lambda values: values["options"].update(qualifiers=other))
    made_from = (str(releases[PAGES]), str(own))
    assert main(["qampari", *made_from, "--model", "none", "--output", str(tmp_path / "out")]) == 1
    assert "own/manifest.json: options" in (said := capsys.readouterr().err)
    assert "qualifiers" in said


@pytest.mark.parametrize("command", ["publish", "verify"])
def test_a_table_without_files_is_refused(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    own = copied(
        releases[WIKIDATA_RELEASE.format], tmp_path / "own", lambda values: values["tables"].update(classes=[])
    )
    assert main([command, str(own), *(["--output", str(tmp_path / "out")] if command == "publish" else [])]) == 1
    said = capsys.readouterr()
    assert "own/manifest.json: the table 'classes' has no file" in (said.out if command == "verify" else said.err)


TYPED: dict[str, tuple[Way, ...]] = {
    AMBER_SETS.format: tuple(("options", "rules", field.name) for field in fields(AmberOptions)),
    BENCHMARK.format: (("datasets",), ("datasets", 0), ("datasets", 0, "form"), ("systems", 0), ("systems", 0, "name")),
    CONTEXTS.format: (("options", "most_ranked"), ("counts", "questions", "without_retrieved")),
    ENTITY_LINKING.format: (("options", "context_tokens"), ("options", "max_tokens")),
    TRAINING_DATA.format: (
        *(("options", field.name) for field in fields(TrainingOptions)),
        *(("datasets", 0), ("datasets", 0, "name"), ("datasets", 0, "examples")),
    ),
}
"""By kind, options that a manifest records and what it says of datasets, out of which values of ours are made."""


@pytest.mark.parametrize(("form", "way"), [(form, way) for form, own in TYPED.items() for way in own])
def test_recorded_options_of_another_type_are_one_line(
    releases: dict[str, Path], tmp_path: Path, form: str, way: Way, capsys: pytest.CaptureFixture[str]
) -> None:
    values = json.loads((releases[form] / "manifest.json").read_bytes())
    own = tmp_path / "own"
    shutil.copytree(releases[form], own, copy_function=os.link)
    for other in (-7.5, [[7]]):
        (own / "manifest.json").unlink()
        (own / "manifest.json").write_bytes(sealed(changed(values, way, other)))
        assert main(["info", str(own)]) == 1
        said = capsys.readouterr().err
        assert "own/manifest.json: Expected" in said, said
        assert "download or build the release again" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("other", ["x", True, -1, 1.5, [7], {"a": "b"}, None])
def test_the_sum_of_a_card_has_no_more_than_what_was_counted(
    releases: dict[str, Path], tmp_path: Path, other: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    own = copied(releases[ALIGNED], tmp_path / "own", lambda values: values["records"].update(totals=other))
    assert main(["publish", str(own), "--output", str(tmp_path / "out"), "--licence", "CC0-1.0"]) == 0, (
        capsys.readouterr()
    )
    assert "0 read = 0 examples + 0 excluded + 0 merged + 0 rejected |" in (tmp_path / "out" / "README.md").read_text()


def test_what_a_stranger_wrote_moves_no_cursor(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sequence = "\x1b]0;mine\x07\x9b2J\r\u202egnp.exe\u2066"
    own = copied(
        releases[ALIGNED],
        tmp_path / "own",
        lambda values: values.update(dataset=sequence, split=sequence, date=sequence),
    )
    for command in (["info", str(own)], ["catalogue", str(own)], ["show", str(own), "1"]):
        main(command)
        said = capsys.readouterr()
        assert all(char.isprintable() or char == "\n" for char in said.out + said.err), command


CODE = 'x"); import os; os.system("id") #'


def test_a_card_has_no_code_and_no_markup_of_a_stranger(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    markup = "a|b [c](https://example.org) <img src=x> `d`"

    def change(values: dict[str, Any]) -> None:
        values["dataset"] = CODE
        values[markup] = {"manifest_sha256": markup}
        values["records"][markup] = 7
        values["code"]["kbsource"] = markup

    own = copied(releases[ALIGNED], tmp_path / "own", change)
    assert main(["publish", str(own), "--output", str(tmp_path / "out"), "--licence", "CC0-1.0"]) == 0, (
        capsys.readouterr()
    )
    card = (tmp_path / "out" / "README.md").read_text()
    code = card.partition("```python\n")[2].partition("```")[0]
    assert [
        type(statement) for statement in ast.parse(code).body if not isinstance(statement, ast.Import | ast.ImportFrom)
    ] != []
    assert "os.system" not in {
        ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)
    }
    prose = re.sub(r"(?s)```.*?```|`[^`]*`", "", card)
    assert "<img" not in prose
    assert not re.search(r"(?<!\\)\[c\]\(", prose)


@pytest.mark.parametrize("fact", ["split", "dataset"])
@pytest.mark.parametrize("command", ["beir {own} {passages} --output {out}", "publish {own} --output {out} {licence}"])
def test_names_out_of_a_manifest_lead_to_no_file_outside_the_output(
    releases: dict[str, Path], tmp_path: Path, fact: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = copied(releases[ALIGNED], tmp_path / "own", lambda values: values.update({fact: "../../loot"}))
    before = sorted(tmp_path.iterdir())
    places = {
        "own": own,
        "passages": releases[PASSAGES],
        "out": tmp_path / "out" / "deep",
        "licence": "--licence CC0-1.0",
    }
    assert main(command.format(**places).split()) == 1
    assert "own/manifest.json: Expected `str` matching regex" in (said := capsys.readouterr().err)
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_report_that_leads_out_of_its_release_is_not_read(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"counts": {"secret": 7}}')

    def change(values: dict[str, Any]) -> None:
        values["files"] = [file for file in values["files"] if file["file"] != "report.json"]

    own = copied(releases[ALIGNED], tmp_path / "own", change)
    (own / "report.json").unlink()
    (own / "report.json").symlink_to(secret)
    assert main(["report", str(own), "--format", "markdown"]) == 1
    said = capsys.readouterr()
    assert "own/report.json is a link to a file outside the release" in said.err
    assert "secret" not in said.out


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
        for command in commands(form, str(own), releases, str(output), data):
            code = main(command)
            said = capsys.readouterr()
            assert code in (0, 1, 2), (command, said)
            assert "Traceback" not in said.err, said.err
            assert "--help" not in said.err, (command, said.err)  # the command line itself is right
            assert code != 2 or said.err.count("\n") < 12, said.err
        _look(str(own))
        assert not LOOT_PLACE.exists()
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
        for release in opened:
            for view in ("", "measures", "sql", *(f"tables/{table}" for table in release.tables)):
                assert client.get(release.url(view)).status_code in (200, 404, 500)
    finally:
        close_releases(opened)
