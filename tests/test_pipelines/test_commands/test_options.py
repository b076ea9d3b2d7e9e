"""Options: what a field may be holds wherever its value comes from, and the command line is made of the fields."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from kbsource.errors import SetupError
from mapping.annotation.tasks import CandidateOptions
from mapping.sources import all_sources
from pipelines.cli import COMMANDS, main
from pipelines.commands.map import takers
from pipelines.options.amber import AmberJobOptions
from pipelines.options.build import BuildOptions
from pipelines.options.entity_linking import EntityLinkingOptions
from pipelines.options.facts import FactsOptions
from pipelines.options.map_dataset import MapOptions
from pipelines.options.pageviews import PageviewsOptions
from pipelines.options.passages import PassagesOptions
from pipelines.options.qampari import QampariOptions
from pipelines.options.shared import RunOptions
from pipelines.options.wikidata import WikidataOptions
from tests.support.real_data import ROOT


def build(**options: Any) -> BuildOptions:
    return BuildOptions(dump=("x.xml",), output="out", **options)


def wikidata(**options: Any) -> WikidataOptions:
    return WikidataOptions(dump=("x.json",), output="out", **options)


def candidates(**options: Any) -> CandidateOptions:
    return CandidateOptions(**options)


def run(**options: Any) -> RunOptions:
    return RunOptions(**options)


def align(**options: Any) -> MapOptions:
    return MapOptions("kb", dataset="jsonl", inputs=("x.jsonl",), output="out", split="dev", **options)


COMMANDS_OF: dict[Callable[..., Any], list[str]] = {
    build: ["build", "x", "--output", "out"],
    run: ["build", "x", "--output", "out"],
    wikidata: ["wikidata", "x", "--output", "out"],
    align: ["map", "jsonl", "kb", "--input", "x", "--output", "out"],
    candidates: ["campaign", "candidates", "gold", "run", "--output", "out"],
}


@pytest.mark.parametrize(
    ("make", "flag", "value", "said"),
    [
        (build, "--limit-pages", "0", "Must be >= 1."),
        (build, "--max-rejects", "1.1", "Must be <= 1."),
        (build, "--page-timeout", "0.0", "Must be > 0."),
        (build, "--range-bytes", "0", "Must be >= 1."),
        (build, "--limit-pages", "9" * 20, "Must be <= 9007199254740992."),
        (build, "--siteinfo", "", "Name a file or a folder."),
        (build, "--wikidata", "a/" * 3000, "A path may have at most 4,095 bytes, and each name in it 255."),
        (build, "--only-titles", "a" * 256, "A path may have at most 4,095 bytes, and each name in it 255."),
        (run, "--workers", "0", "Must be >= 1."),
        (build, "--as-of", "2019", "Write it like 2019-08-01T00:00:00Z."),
        (build, "--as-of", "2019-13-45T00:00:00Z", "Write it like 2019-08-01T00:00:00Z."),
        (build, "--templates", "some", "Choose"),
        (wikidata, "--languages", "EN", "Write it like en,de."),
        (wikidata, "--sites", "en", "Write it like enwiki,dewiki, or all."),
        (wikidata, "--qualifiers", "Q1", "Write it like P580,P582, or all, or none."),
        (align, "--threshold", "-0.1", "Must be >= 0."),
        (align, "--stem", "../mine", "Give the beginning of a file name: no slash, 155 bytes at most."),
        (align, "--stem", "..", "Give the beginning of a file name: no slash, 155 bytes at most."),
        (align, "--stem", "ü" * 78, "Give the beginning of a file name: no slash, 155 bytes at most."),
        (candidates, "--lang", "../../etc", "Write it like de."),
        (candidates, "--lang", "", "Write it like de."),
        (align, "--accept-fuzzy", "59.0", "Must be >= 60."),
    ],
)
def test_a_value_that_cannot_be_is_refused_on_the_command_line_and_in_python(
    make: Callable[..., Any], flag: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = value if value else "empty"
    assert main([*COMMANDS_OF[make], f"{flag}={value}"]) == 2
    typed = capsys.readouterr().err
    field = {"--page-timeout": "page_timeout_s", "--lang": "language"}.get(flag, flag[2:].replace("-", "_"))
    number = float(value) if "." in value.strip("./") else int(value) if said.startswith("Must") else value
    with pytest.raises(SetupError) as caught:
        make(**{field: (value,) if flag in ("--languages", "--qualifiers", "--sites") else number})

    assert flag in typed
    assert said in typed
    assert str(caught.value).startswith(f"{flag} is {given.removesuffix('.0')}. {said}")


@pytest.mark.parametrize(
    "make",
    [
        partial(AmberJobOptions, "kb", "wikidata", "views"),
        partial(EntityLinkingOptions, "kb"),
        partial(FactsOptions, "old", "new", wikidata=("old", "new")),
        partial(PageviewsOptions, ("views",)),
        partial(QampariOptions, "kb", "wikidata"),
    ],
    ids=lambda make: make.func.__name__,
)
def test_the_memory_of_joins_does_not_count_as_an_option_of_the_data(make: Callable[..., Any]) -> None:
    few, many = (make(output="out", memory=memory) for memory in (100, 9_000))
    assert few.data_options() == many.data_options()
    with pytest.raises(SetupError, match=r"--memory is 99\. Must be >= 100\."):
        make(output="out", memory=99)


def test_memory_is_typed_in_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "x", "--output", "out", "--worker-memory", "255"]) == 2
    assert "--worker-memory is 255. A worker needs at least 256 MB." in capsys.readouterr().err
    assert build().worker_memory_bytes == 4096 << 20
    with pytest.raises(SetupError, match=r"^--worker-memory is 1\. A worker needs at least 256 MB\.$"):
        build(worker_memory_bytes=1)


def test_no_number_is_no_number() -> None:
    with pytest.raises(SetupError, match=r"^--max-rejects is nan\. Give a number\.$"):
        build(max_rejects=float("nan"))


def test_one_of_several_values_is_checked() -> None:
    with pytest.raises(SetupError, match=r"^--format is tsv\. Choose one of "):
        PassagesOptions("kb", output="out", formats=("dpr", "tsv"))
    with pytest.raises(SetupError, match=r"^--languages is empty"):
        wikidata(languages=())


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["verify", "x", "--jsn"], "there is no option --jsn. Did you mean --json? See kbsource verify --help."),
        (["map", "hotpot", "x", "--output", "y"], "there is no hotpot. Did you mean hotpotqa?"),
        (["bild", "x"], "there is no command bild. Did you mean build?"),
        (["verify"], "RELEASE is needed. See kbsource verify --help."),
        (["map", "fever", "kb", "--input", "x"], "--output is needed. See kbsource map fever --help."),
        (["map", "fever", "kb", "--input", "x", "--output", "y", "--device", "cpu"], "--model is needed."),
        (
            ["map", "fever", "kb", "--input", "x", "--output", "y", "--window", "z"],
            "--window works only for aidayago2, ",
        ),
        (
            ["build", "x", "--output", "y", "--limit-page", "3"],
            "option --limit-page. See the command's --help, and the "
            "documentation of Beam's pipeline options for the runner. Did you mean "
            "--limit-pages?",
        ),
        (["map", "all", "kb", "--config", "c", "--output", "y", "--threshold", "0.5"], "--threshold belongs in c,"),
        (["map", "all", "kb", "--output", "y"], "--config is needed"),
        (["map", "fever", "kb", "--input", "x", "--output", "y", "--config", "c"], "has an option --config"),
        (["info", "x", "y"], "y: kbsource info accepts only RELEASE. "),
        (
            ["evaluate", "qampari", "GOLD", "a b", "c"],
            "'a b' c: kbsource evaluate qampari accepts only GOLD. Give other ",
        ),
        (["show", "r", "Alan", "Turing"], "Turing: kbsource show accepts only RELEASE and PAGE. "),
        (["demo", "x"], "x: kbsource demo accepts only options. "),
        (
            ["search", "p", "--top", "3", "--top", "4"],
            "--top is given twice; give it only once. See kbsource search --help.",
        ),
        (["search", "p", "--top", "two"], "--top is two. Give a whole number. See kbsource search --help."),
        (["build", "x", "--output", "y", "--limit-pages", "1.5"], "--limit-pages is 1.5. Give a whole number. See "),
        (["inspect", "r", "--port", "8.5"], "--port is 8.5. Give a whole number. See kbsource inspect --help."),
        (["verify", "r", "--json=7"], "--json is 7. Give it without a value. See kbsource --help."),
        (["evaluate", "kilt", "a", "b", "--k", "x"], "--k is x. Give whole numbers, such as 10,100. See kbsource "),
        (
            ["export", "r", "--output", "o", "--format", "markdow"],
            "--format is markdow. Choose one of text, markdown, html, jsonl. Did you mean markdown? See ",
        ),
    ],
)
def test_what_is_mistyped_or_missing_is_named_with_the_nearest(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert said in capsys.readouterr().err


def test_the_list_of_commands_is_what_their_functions_say(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in COMMANDS.items():
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"Usage: kbsource {name} ")
        assert f"\n{command.summary}" in shown
        assert "--json" in shown
        assert "Examples:" in shown or " COMMAND " in shown
    assert main([]) == 0
    overview = capsys.readouterr().out
    assert all(f"  {name} " in overview for name in COMMANDS)


def test_examples_are_printed_as_they_are_typed_however_narrow_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["build", "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:\n\n")[2]
    assert all(line.startswith("    ") and line == line.rstrip() for line in examples.splitlines())
    joined = examples.replace("\\\n", " ")
    assert all(line.startswith("    kbsource build ") for line in joined.splitlines())


def test_help_of_map_is_short_until_a_dataset_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*argv: str) -> str:
        assert main(["map", *argv, "--help"]) == 0
        return capsys.readouterr().out

    short = shown()
    assert len(short.splitlines()) < 60
    assert all(name in short for name in all_sources())
    assert "--nq-tokens" not in short
    for dataset in all_sources():
        long = shown(dataset)
        own = {flag for flag, owners in takers().items() if dataset in owners}
        assert all(f" {flag} " in long for flag in (*own, "--input", "--threshold", "--model", "--runner"))
        assert not [flag for flag in takers() if flag not in own and f" {flag} " in long]
        assert f"kbsource map {dataset} " in long


def test_manifests_have_the_choices_of_their_dataset_alone() -> None:
    trex = all_sources()["trex"].options_type(seed="other", sample=7)
    options = MapOptions(
        "kb", dataset="trex", inputs=("in",), output="out", split="dev", references=("wikidata",), source=trex
    )

    assert options.data_options()["source"] == asdict(trex)


@pytest.mark.parametrize(
    ("argv", "libraries"),
    [
        (["--help"], "cyclopts pyarrow apache_beam spacy lxml yaml numpy"),
        (["map", "fever", "--help"], "apache_beam spacy lxml inflect rapidfuzz duckdb"),
        (["build", "--help"], "apache_beam spacy lxml inflect rapidfuzz duckdb"),
        (["show", "--help"], "pyarrow apache_beam spacy lxml yaml numpy duckdb"),
    ],
)
def test_help_loads_no_heavy_library(argv: list[str], libraries: str) -> None:
    code = (
        "import sys\nfrom pipelines.cli import main\nmain(sys.argv[1:])\n"
        f"sys.exit(', '.join(set({libraries!r}.split()) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
