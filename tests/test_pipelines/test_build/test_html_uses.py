"""What is made of releases works for one made of rendered HTML: one run of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.diff.making import make_diff
from kbsource.lookup import KnowledgeSource
from mapping.serving.operations import Links, ServedRelease
from pipelines.cli import main
from tests.support.alignments import evidence, map_mini, read_lines, write_records
from tests.support.alignments import record as dataset_record
from tests.support.amber_releases import make_release, random_world, write_world
from tests.support.builds import contents, rows
from tests.support.passages import cut_release
from tests.support.qampari_worlds import options_for, random_maker, run_job
from tests.support.snapshots import LANTERN, PORT, record, records_of, write_lines, write_tar
from tests.support.verified import broken

pytestmark = pytest.mark.usefixtures("module_in_this_process")

CHANGED = record(
    57,
    "Lantern (ferry)",
    '<p>The Lantern was a ferry between <a rel="mw:WikiLink" href="./Port_Sellick">Port Sellick</a> and Fennick Island '
    "from 1902 to 1958.</p>",
    revision=200,
    redirects=[{"name": "The Lantern"}],
)


def make(folder: Path, day: str, *records: dict[str, object]) -> Path:
    dump = write_tar(folder / f"enwiki-NS0-{day}-ENTERPRISE-HTML.json.tar.gz", [records])
    assert main(["build", str(dump), "--output", str(folder / day)]) == 0
    return folder / day


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("old"), "20260101", LANTERN, PORT)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("new"), "20260201", CHANGED, PORT)


def test_the_date_is_in_the_name_of_the_snapshot(old: Path) -> None:
    assert json.loads((old / "manifest.json").read_bytes())["dump"]["date"] == "20260101"


def test_evidence_is_found_in_it(old: Path, tmp_path: Path) -> None:
    data = write_records(
        tmp_path / "data.jsonl",
        [
            dataset_record(
                "1", [evidence("The Lantern was a ferry between Port Sellick and Fennick", title="Lantern ferry")]
            )
        ],
    )
    map_mini(tmp_path / "aligned", old, "jsonl", data)
    (path,) = (tmp_path / "aligned").rglob("*-kilt.jsonl")
    (found,) = read_lines(path)[0]["output"][0]["provenance"]
    assert (found["wikipedia_id"], found["start_paragraph_id"], found["bleu_score"]) == ("57", 1, 1.0)


def test_the_kilt_knowledge_source_is_exported_from_it(old: Path, tmp_path: Path) -> None:
    assert main(["export-kilt", str(old), "--output", str(tmp_path / "kilt.jsonl")]) == 0
    first = read_lines(tmp_path / "kilt.jsonl")[0]
    assert (first["wikipedia_id"], first["text"][0]) == ("57", "Lantern (ferry)\n")
    anchor = first["anchors"][0]
    assert first["text"][anchor["paragraph_id"]][anchor["start"] : anchor["end"]] == anchor["text"] == "Port Sellick"


def test_passages_are_cut_from_it(old: Path, tmp_path: Path) -> None:
    cut_release(tmp_path / "corpus", old)
    texts = [row["text"] for row in rows(tmp_path / "corpus", "passages")]
    assert any("It carried 10³ people." in text for text in texts)
    assert broken(tmp_path / "corpus", kb=old) == set()


def test_releases_of_it_are_compared(old: Path, new: Path, tmp_path: Path) -> None:
    make_diff(str(old), str(new), str(tmp_path / "diff"))
    outcomes = {row["old_title"]: row["outcome"] for row in rows(tmp_path / "diff", "page_changes")}
    assert outcomes == {"Lantern (ferry)": "changed", "Port Sellick": "unchanged"}
    (redirect,) = rows(tmp_path / "diff", "redirect_changes")
    assert (redirect["title"], redirect["outcome"], redirect["old_redirect_id"]) == ("Lantern ferry", "gone", None)


def test_a_release_of_wikitext_is_compared_with_it(old: Path, tmp_path: Path) -> None:
    text = "Port Sellick is the capital, with [[The Lantern|a ferry]]."
    page = (
        "<page><title>Port Sellick</title><ns>0</ns><id>12</id><revision><id>112</id><timestamp>2026-01-02T03:04:05Z"
        f"</timestamp><model>wikitext</model><format>text/x-wiki</format><text>{text}</text></revision></page>"
        "<page><title>The Lantern</title><ns>0</ns><id>70</id><redirect title='Lantern (ferry)'/><revision><id>71</id>"
        "<timestamp>2026-01-02T03:04:05Z</timestamp><text>#REDIRECT [[Lantern (ferry)]]</text></revision></page>"
    )
    dump = tmp_path / "enwiki-20260101-pages-articles.xml"
    siteinfo = "<siteinfo><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/A</base></siteinfo>"
    dump.write_text(f'<mediawiki version="0.11" xml:lang="en">{siteinfo}{page}</mediawiki>')
    assert main(["build", str(dump), "--output", str(tmp_path / "wikitext")]) == 0
    make_diff(str(tmp_path / "wikitext"), str(old), str(tmp_path / "diff"))
    outcomes = {row["new_title"]: row["outcome"] for row in rows(tmp_path / "diff", "page_changes")}
    assert outcomes == {"Lantern (ferry)": "added", "Port Sellick": "unchanged"}


@pytest.mark.slow
def test_a_benchmark_ages_over_it(old: Path, new: Path, tmp_path: Path) -> None:
    with KnowledgeSource.open(str(old)) as kb:
        page = kb.by_id(57)
        assert page is not None
        text = page.elements[1].text
    span = {"start_paragraph_id": 1, "start_character": 0, "end_paragraph_id": 1, "end_character": len(text)}
    provenance = {"wikipedia_id": "57", "title": "Lantern (ferry)", **span, "section": "Section::::Abstract."}
    data = tmp_path / "own-dev-kilt.jsonl"
    data.write_text(
        json.dumps({"id": "1", "input": "?", "output": [{"answer": "a", "provenance": [provenance]}]}) + "\n"
    )
    given = ["--input", str(data), "--from-kb", str(old), "--output", str(tmp_path / "age"), "--max-rejects", "0.1"]
    assert main(["age", str(new), str(old), *given]) == 0
    fates = [(row["release"], row["fate"]) for row in rows(tmp_path / "age", "fates")]
    assert fates[0] == (0, "exact")
    assert fates[1][1] in ("near", "weak", "near_changed")


def rebuilt(release: Path, folder: Path) -> Path:
    """Builds a release of a snapshot whose pages show what the pages of another release contain."""
    dump = write_lines(folder / "enwiki-NS0-20260101-ENTERPRISE-HTML.json.gz", records_of(rows(release, "pages")))
    assert main(["build", str(dump), "--output", str(folder / "rebuilt")]) == 0
    return folder / "rebuilt"


def same_files(first: Path, second: Path) -> dict[str, int]:
    """Compares two releases except for their manifests and reports, which name the inputs; returns the files' sizes."""
    own, others = (
        {name: data for name, data in contents(folder).items() if name not in ("manifest.json", "report.json")}
        for folder in (first, second)
    )
    assert own.keys() == others.keys()
    assert [name for name in own if own[name] != others[name]] == []
    return {name: len(data) for name, data in own.items()}


@pytest.mark.slow
def test_qampari_asks_the_same_questions_of_it(tmp_path: Path) -> None:
    world = random_maker(3, n_works=60).write(tmp_path / "world")
    html = world._replace(kb=rebuilt(world.kb, tmp_path))
    for name, own in (("wikitext", world), ("html", html)):
        run_job(options_for(own, tmp_path / name))
    sizes = same_files(tmp_path / "wikitext", tmp_path / "html")
    assert sizes["qampari_data/train_data.jsonl"] > 1000
    assert broken(tmp_path / "html", kb=html.kb) == set()


@pytest.mark.slow
def test_amber_makes_the_same_sets_of_it(tmp_path: Path) -> None:
    world = write_world(*random_world(3, n_people=60), tmp_path / "world")
    html = world._replace(kb=rebuilt(world.kb, tmp_path))
    for name, own in (("wikitext", world), ("html", html)):
        make_release(own, tmp_path / name)
    sizes = same_files(tmp_path / "wikitext", tmp_path / "html")
    assert sizes["human/amber_set_tuples.jsonl"] > 1000


def test_programs_are_answered_from_it(old: Path) -> None:
    with ServedRelease.open(str(old)) as served:
        answer = Links("The Lantern").answer(served)
    assert [(link["text"], link["page_id"]) for link in answer["links"]] == [("Port Sellick", 12)]
