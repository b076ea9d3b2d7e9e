"""The command line: help, exit codes, JSON, and that reading a release needs no Beam."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pipelines import app
from pipelines.cli import main
from pipelines.commands import COMMANDS
from pipelines.commands.dumps import build_summary
from pipelines.jobs.build import BuildSummary
from pipelines.options.shared import RunOptions
from pipelines.runners.presets import beam_flags
from tests.support import mini_wiki
from tests.support.builds import build_mini
from tests.support.dumps import dump_xml, page_xml
from tests.support.real_data import ROOT
from tests.support.snapshots import paired, record, write_lines

DUMP = str(mini_wiki.MULTISTREAM)


@pytest.fixture
def damaged(release: Path, tmp_path: Path) -> str:
    """A copy of the release with one byte changed in its pages."""
    folder = tmp_path / "damaged"
    subprocess.run(["cp", "-r", str(release), str(folder)], check=True)
    (file,) = (folder / "pages").iterdir()
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    return str(folder)


def test_the_packages_are_ours_alone() -> None:
    owners = packages_distributions()

    for name in ("kbsource", "mapping", "pipelines"):
        assert set(owners[name]) == {"kbsource"}, name


_COLLECTING = """
import atexit, gc, sys
from pipelines.cli import run_and_leave

def hear(event, values):
    if event == "import" and values[0] == "cyclopts":
        print(gc.isenabled())

sys.addaudithook(hear)
sys.argv[1:] = ["completion", "bash"]
run_and_leave()
atexit.register(lambda: print(gc.isenabled()))
"""


def test_the_garbage_collector_runs_during_a_command_but_not_while_modules_are_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _COLLECTING], check=True, stdout=subprocess.PIPE, text=True)

    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("False", "True")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["check-dump", "nowhere/*.bz2"], "nowhere/*.bz2"),
        (["verify", "nowhere"], "nowhere: no such folder"),
        (["show", "nowhere", "A"], "nowhere: no such folder"),
        (["export-kilt", "nowhere", "--output", "x.jsonl"], "nowhere: no such folder"),
        (["build", "nowhere.xml", "--output", "{tmp}/x"], "nowhere.xml"),
        (["build", DUMP, "--output", "{tmp}/x", "--page-props", "no.sql"], "no.sql does not exist"),
        (["build", DUMP, "--output", "{tmp}/x", "--siteinfo", "no.json"], "no.json does not exist"),
        (["build", DUMP, "--output", "{tmp}/x", "--only-titles", "no.txt"], "no.txt does not exist"),
        (["build", DUMP, "--output", "{tmp}/x", "--runner", "abacus"], "--runner abacus"),
        (["check-dump", "{tmp}"], "is a folder; name a file"),
        (["build", "{tmp}", "--output", "{tmp}/x"], "is a folder; name a file"),
    ],
)
def test_wrong_set_up_exits_with_2_and_one_message(
    argv: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([word.replace("{tmp}", str(tmp_path)) for word in argv])

    said = capsys.readouterr().err
    assert code == 2
    assert message in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_build_ends_with_the_counts_and_what_to_do_next(mini_build: BuildSummary) -> None:
    summary = build_summary(mini_build)

    said = (
        f"pages read                      {mini_wiki.N_PAGES}\n  articles                      {mini_wiki.N_ARTICLES}\n"
    )
    assert summary.to_text().startswith(said)
    assert summary.next == f"kbsource verify {mini_build.output}"
    assert "peak size of the output folder" in summary.to_text()


@pytest.mark.usefixtures("in_this_process")
def test_build_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "release")
    argv = ["build", DUMP, "--output", output, "--limit-pages", "20", "--json", "--direct_num_workers=1"]
    assert main(argv) == 0

    said = capsys.readouterr()
    summary = json.loads(said.out)
    assert summary["counts"]["pages_read"] == 20
    assert summary["output"] == output
    assert "build: " in said.err
    assert summary["peak_bytes"] >= sum(file.stat().st_size for file in Path(output).rglob("*") if file.is_file())


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("flags", "n_workers", "worth", "has_several"),
    [
        ((), 2, 1_000, True),
        ((), 1, 1_000, False),
        ((), 2, 1 << 40, False),
        (("--workers=1",), 2, 1_000, False),
        (("--runner=FnApiRunner",), 2, 1_000, False),
    ],
)
def test_large_inputs_are_read_by_several_workers(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flags: Sequence[str],
    n_workers: int,
    worth: int,
    has_several: bool,
) -> None:
    monkeypatch.setattr(app, "n_usual_workers", lambda: n_workers)
    monkeypatch.setattr(app, "WORTH_WORKERS_BYTES", worth)
    monkeypatch.setattr(app, "worker_server", lambda: None)
    given: list[int | None] = []
    monkeypatch.setattr(
        RunOptions, "flags", lambda run: given.append(run.workers) or beam_flags("local", workers=1, beam_args=())
    )
    assert main(["build", DUMP, "--output", str(tmp_path / "r"), "--limit-pages", "2", *flags]) == 0
    assert ("Using 2 worker processes; use --workers to set another number." in capsys.readouterr().err) == has_several
    assert (given == [2]) == has_several


def test_arguments_of_a_command_without_a_class_of_options_are_measured_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, release: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(app, "n_usual_workers", lambda: 2)
    monkeypatch.setattr(app, "WORTH_WORKERS_BYTES", 1_000)
    monkeypatch.setattr(app, "worker_server", lambda: None)
    config = tmp_path / "missing.yaml"

    assert main(["map", "all", str(release), "--config", str(config), "--output", str(tmp_path / "aligned")]) == 2

    assert "Using 2 worker processes; use --workers to set another number." in capsys.readouterr().err


def test_every_command_that_runs_a_job_names_its_module() -> None:
    """The fork server imports it; otherwise each of its forks would."""
    parsed = app.make_app()
    alone = {name: parsed[name] for name in COMMANDS if parsed[name].default_command is not None}
    with_job = {name for name, command in alone.items() if "--workers" in app.option_names(command)}

    assert with_job | {"map"} == {name for name, command in COMMANDS.items() if command.job is not None}
    for name in with_job:
        assert importlib.util.find_spec(f"pipelines.jobs.{COMMANDS[name].job}") is not None, name


@pytest.mark.usefixtures("in_this_process")
def test_a_model_is_loaded_once_unless_more_workers_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, release: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(app, "n_usual_workers", lambda: 4)
    monkeypatch.setattr(app, "WORTH_WORKERS_BYTES", 1_000)
    command = ["check-sources", str(release), "--model", str(tmp_path), "--output", str(tmp_path / "verdicts.jsonl")]
    assert main(command) == 2
    assert "Using one worker process; with --workers 4, each process would load the model." in capsys.readouterr().err


def test_a_build_of_faulty_data_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truncated = tmp_path / "wiki.xml.bz2"
    truncated.write_bytes(mini_wiki.MULTISTREAM.read_bytes()[:30_000])

    assert main(["build", str(truncated), "--output", str(tmp_path / "release")]) == 1

    assert "error: wiki.xml.bz2: It is truncated" in capsys.readouterr().err


def test_check_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-dump", DUMP]) == 0
    assert "The dump has no errors: 1 file, 0 errors" in capsys.readouterr().out

    truncated = tmp_path / "wiki.xml.bz2"
    truncated.write_bytes(mini_wiki.MULTISTREAM.read_bytes()[:30_000])
    assert main(["check-dump", str(truncated), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert not result["ok"]
    assert "truncated_dump" in {finding["code"] for finding in result["findings"]}


def test_check_dump_names_options_and_reads_to_the_end_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "wiki.xml.gz"
    dump.write_bytes(gzip.compress(bz2.decompress(mini_wiki.MULTISTREAM.read_bytes())[:50_000]))

    assert main(["check-dump", str(dump)]) == 0
    said = capsys.readouterr().out
    assert "Check the whole content with --deep." in said
    assert "The checked part of the dump has no errors" in said

    assert main(["check-dump", str(dump), "--deep"]) == 1
    said = capsys.readouterr().out
    assert "--allow-truncated" in said
    assert "must be read completely" not in said


def test_check_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = '<span about="#mwt1" typeof="mw:Transclusion" data-mw=\'{"parts":[{"template":{"target":{"wt":"day"}}}]}\'>'
    ada = paired(f"<p>It fell on {call}a Sunday</span> in 1901.</p>", "It fell on {{day}} in May 1901.")
    bo = paired('<p>He saw <a rel="mw:WikiLink" href="./Ada">Ada</a>.</p>', "He saw [[Ada]].", page_id=2, title="Bo")
    gone = paired("<p>x</p>", "x", page_id=8, title="Gone", visibility={"text": False})
    snapshot = str(write_lines(tmp_path / "a.ndjson", [ada, bo, record(3, "Cy", "<p>x</p>"), gone]))

    assert main(["check-text", snapshot]) == 0
    said = re.sub(" +", " ", capsys.readouterr().out)
    assert "1 record rejected. The first of them:\n text_deleted: a.ndjson, Gone: the page, or the text" in said
    assert "found in order 8 (80.00%)" in said
    assert "without undefined templates 8 of 8 (100.00%)" in said
    assert " missing: unknown 2\n" in said
    assert "not on the pages 1 (11.11%)" in said
    assert "found with their targets 1 (100.00%)" in said
    assert " 2 1 7 0 Ada a Sunday\n" in said
    assert " 2 1 unknown Day Ada: a Sunday\n" in said
    assert "80.00% of the words on 2 pages are found in order; 11.11% of the words extracted" in said

    assert main(["check-text", snapshot, "--limit", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["compared"] == 2
    assert result["skipped"] == {"no_wikitext": 1}
    assert [(bad["key"], bad["reason"]) for bad in result["first_rejected"]] == [("Gone", "text_deleted")]
    numbers = {"words": 7, "found": 5, "own_words": 6, "undefined_words": 2, "undefined_found": 0}
    assert result["pages"] == [{"title": "Ada", **numbers, "links": 0, "links_found": 0, "own_links": 0}]
    loss = {"words": 2, "pages": 1, "title": "Ada", "example": "a Sunday"}
    assert result["templates"] == [{"template": "Day", "kind": "unknown", **loss}]


def test_check_text_writes_a_page_with_both_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = "".join(f"<p>Same {number}.</p>" for number in range(5))
    ada = paired(
        f"{same}<p>It fell on <b>a Sunday</b> &lt;so&gt;.</p>",
        "Same 0.\n\nSame 1.\n\nSame 2.\n\nSame 3.\n\nSame 4.\n\nIt fell <nowiki><so></nowiki>.\n\nAlone.",
    )
    bo = paired("<p>x</p>", "x", page_id=2, title="Bo")
    snapshot = str(write_lines(tmp_path / "a.ndjson", [ada, bo]))
    page = tmp_path / "a.html"
    assert main(["check-text", snapshot, "--html", str(page)]) == 0
    assert f"page {page}" in re.sub(" +", " ", capsys.readouterr().out)
    said = page.read_text()
    assert "<h2>Ada</h2>" in said
    assert "<h2>Bo</h2>" not in said
    assert "It fell <mark>on a Sunday</mark> &lt;so&gt;." in said
    assert "4 lines with the same words" in said
    assert ">Same 4.<" in said
    assert ">Same 3.<" not in said
    assert "<mark>Alone.</mark>" in said
    assert main(["check-text", snapshot, "--html", str(tmp_path / "b.html")]) == 0
    assert (tmp_path / "b.html").read_bytes() == page.read_bytes()
    assert main(["check-text", snapshot, "--html", str(tmp_path / "a.json")]) == 2


def test_check_text_fails_where_nothing_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = write_lines(tmp_path / "a.ndjson", [record(3, "Cy", "<p>x</p>")])
    assert main(["check-text", str(snapshot)]) == 1
    assert "No record has both the HTML and the wikitext of an article." in capsys.readouterr().out
    assert main(["check-text", DUMP]) == 2
    assert "is a dump of wikitext, which has no HTML to compare with" in capsys.readouterr().err


def test_verify(release: Path, damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(release)]) == 0
    assert capsys.readouterr().out.startswith("Sound: ")

    assert main(["verify", str(release), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_pages"] == mini_wiki.N_ARTICLES

    assert main(["verify", damaged]) == 1
    assert "a file's content changed (sha256, 1 case)" in capsys.readouterr().out

    assert main(["verify", damaged, "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["ok"]


@pytest.mark.parametrize(
    "wanted", ["Halvane Isles", "the_Halvanes", "12", "https://mini.example.org/wiki/Halvane_Isles", "Q9000012"]
)
def test_show_finds_a_page_by_title_redirect_id_url_and_item(
    release: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(release), wanted]) == 0

    said = capsys.readouterr().out
    assert said.startswith("Halvane Isles\n=============\n")
    assert "Q9000012" in said
    assert "Sections\n  Geography\n    Climate\n" in said


def test_show_full_has_all_of_the_text(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(release), "Halvane Isles", "--full"]) == 0

    assert "\n\n## Geography\n\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("No such page", "the release has no such page"),
        ("Q9999999", "the release has no such page"),
        ("999999", "the release has no such page"),
        ("Old Mole", "circle"),
        ("Lost Lagoon", "redirects to a page that is not in the dump"),
    ],
)
def test_show_says_why_there_is_no_page(
    release: Path, wanted: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(release), wanted]) == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert reason in said.err


@pytest.mark.parametrize("wanted", ["Halvane Isle", "https://mini.example.org/wiki/Halvane_Isle"])
def test_show_names_titles_like_one_that_is_not_there(
    release: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(release), wanted]) == 1

    assert "Similar titles:\n  Halvane Isles\n" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [10, 60, 200])
def test_show_keeps_to_the_width_of_the_terminal(
    release: Path, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["show", str(release), "Halvane Isles", "--full"]) == 0

    text = capsys.readouterr().out.split("\n\n", 2)[2]
    widest = max(len(line) for line in text.splitlines() if not line.startswith("Next: "))
    width = max(40, min(columns, 100))
    assert width - 20 < widest <= width


@pytest.mark.usefixtures("in_this_process")
def test_templates_lists_what_loses_most_text_with_the_first_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [
        "{{Sung}} {{sung|[[B|one]] two}}",
        "{{sung|three|x=4}} {{Gone|five}} {{nowrap|six}}",
        "{{Void|seven and seventy}}",
    ]
    (dump := tmp_path / "wiki.xml").write_bytes(
        dump_xml([page_xml(n, f"P{n}", text) for n, text in enumerate(texts, 1)])
    )
    build_mini(tmp_path / "release", dump=dump, page_props=None)
    assert main(["templates", str(tmp_path / "release")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "outcome   uses  shown   share  lost",
        "rendered     1      3  100.0%     0",
        "dropped      1      0    0.0%    15",
        "unknown      4      0    0.0%    16",
        "",
        "lost  uses  pages  outcome  template  example",
        "  12     3      2  unknown  Sung      P1: {{sung|[[B|one]] two}}",
        "   4     1      1  unknown  Gone      P2: {{Gone|five}}",
        f"Next: kbsource show {tmp_path}/release P1",
    ]
    assert main(["templates", str(tmp_path / "release"), "--all"]) == 0
    assert capsys.readouterr().out.splitlines()[6] == (
        "  15     1      1  dropped  Void      P3: {{Void|seven and seventy}}"
    )
    assert main(["templates", str(tmp_path / "release"), "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("lost")
    assert main(["templates", str(tmp_path / "release"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by_outcome"][2] == {"outcome": "unknown", "uses": 4, "shown_chars": 0, "lost_chars": 16}
    first = found["templates"][0]
    assert (first["name"], first["lost_chars"], first["example"]) == ("Sung", 12, "{{sung|[[B|one]] two}}")
    assert main(["templates", str(tmp_path / "release"), "--limit", "0"]) == 2


def test_templates_with_pairs(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def use(number: int, name: str, shown: str) -> str:
        data = json.dumps({"parts": [{"template": {"target": {"wt": name}, "params": {"1": {"wt": "so"}}}}]})
        return f"<p>x <i about='#mwt{number}' typeof='mw:Transclusion' data-mw='{data}'>{shown}</i> y</p>"

    body = use(1, "seen", "a " * 30) + use(2, "nowrap", "so")
    snapshot = str(write_lines(tmp_path / "a.ndjson", [record(1, "Ada", body), record(2, "Bo", "")]))

    assert main(["templates", snapshot, "--pairs"]) == 0
    said = capsys.readouterr().out
    assert "     1     1      1  Seen\n     0     1      1  Nowrap\n" in said
    assert f"   1  unknown  {'a ' * 24}a…  so          {{{{seen|so}}}}\n" in said
    assert "1 record rejected. The first of them:\n  html_empty: a.ndjson, Bo" in said
    assert "1 of 2 uses differ from the page. They belong to 1 of 2 templates." in said

    assert main(["templates", snapshot, "--pairs", "--limit", "1", "--calls", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["pages"], result["uses"], result["differing"]) == (1, 2, 1)
    (row,) = result["templates"]
    assert (row["template"], row["calls"][0]["shown"]) == ("Seen", " ".join("a" * 30))

    assert main(["templates", snapshot, "--pairs", "--all"]) == 2
    assert "--all works only for a release; leave it out with --pairs." in capsys.readouterr().err
    assert main(["templates", str(release), "--calls", "2"]) == 2
    assert "--calls works only with --pairs" in capsys.readouterr().err
    empty = str(write_lines(tmp_path / "b.ndjson", [record(1, "Ada", "<p>x</p>")]))
    assert main(["templates", empty, "--pairs"]) == 1


def test_export_kilt_into_a_folder_is_refused_at_once(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export-kilt", str(release), "--output", str(tmp_path)]) == 2

    assert f"--output {tmp_path} is a folder; name a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_export_kilt_into_a_pipe(release: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output = tmp_path / "kilt.jsonl"
    assert main(["export-kilt", str(release), "--output", str(output)]) == 0
    capfdbinary.readouterr()

    assert main(["export-kilt", str(release), "--output", "-"]) == 0

    said = capfdbinary.readouterr()
    assert said.out == output.read_bytes()
    assert f"{mini_wiki.N_ARTICLES} pages written to the standard output".encode() in said.err


def test_export_kilt(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "kilt.jsonl"
    assert main(["export-kilt", str(release), "--output", str(output)]) == 0

    records = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert len(records) == mini_wiki.N_ARTICLES
    assert records[0]["wikipedia_title"] == records[0]["text"][0].strip()
    assert {tuple(record.get("wikidata_info", {})) for record in records} == {(), ("wikidata_id",)}
    assert "--wikidata" in capsys.readouterr().out


def test_export_takes_the_format_from_the_name(
    release: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    output = tmp_path / "pages.md.gz"
    assert main(["export", str(release), "Halvane Isles", "the Halvanes", "--output", str(output), "--json"]) == 0
    values = json.loads(capfdbinary.readouterr().out)
    markdown = gzip.decompress(output.read_bytes())
    counts = {"pages": 2, "records": 2, "bytes": len(markdown)}
    assert values == {"output": [str(output)], **counts, "sections_left_out": {}}
    assert markdown.count(b"# Halvane Isles\n\n| Infobox country |") == 2

    assert main(["export", str(release), "Halvane Isles", "--output", "-", "--format", "markdown"]) == 0
    said = capfdbinary.readouterr()
    assert said.out * 2 == markdown
    assert b"1 page written to the standard output" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "{tmp}"], "is a folder; name a file"),
        (["Nowhere", "--output", "{tmp}/x"], "Nowhere: the release has no such page"),
        (["--output", "{tmp}/x.md", "--by", "section"], "give --format jsonl"),
        (["--output", "{tmp}/x.jsonl", "--max-tokens", "7"], "--max-tokens"),
    ],
)
def test_what_export_cannot_do_is_said(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["export", str(release), *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_exits_with_130_and_no_traceback(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kbsource.release.verify.verify", interrupt)

    assert main(["verify", str(release)]) == 130
    assert capsys.readouterr().err.endswith("kbsource verify: interrupted\n")


@pytest.mark.parametrize("argv", [["show", "{release}", "12"], ["verify", "{release}"]])
def test_reading_a_release_imports_no_beam(release: Path, argv: list[str]) -> None:
    code = (
        "import sys; from pipelines.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(9 if 'apache_beam' in sys.modules else code)"
    )
    command = [sys.executable, "-c", code, *(word.replace("{release}", str(release)) for word in argv)]

    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)

    assert done.returncode == 0, done.stderr.decode()
