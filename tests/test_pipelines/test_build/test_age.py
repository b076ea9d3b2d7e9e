"""``kbsource age``: the evidence of a KILT file in three worlds, beside a search of each of them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.lookup import KnowledgeSource
from mapping.age import PRESENT
from mapping.decide import with_outcome
from mapping.inspector.opened import close_releases, open_releases
from mapping.records import PageKey
from mapping.search.numbering import paragraphs_of
from mapping.search.page_search import Locator
from pipelines.cli import main
from tests.support.diff_worlds import Changes, World, WorldPage, write_world
from tests.support.inspected import client_of
from tests.support.tables import read_table
from tests.support.verified import verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

DATES = ("20190801", "20200801", "20230801")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("worlds")
    changes = Changes(11)
    found = []
    for date in DATES:
        found.append(str(write_world(folder / date, changes.world, date=date)))
        changes.change(25)
    return found


@pytest.fixture(scope="module")
def dataset(worlds: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records with a paragraph of a page of the first world each, or the page alone; one of them is broken."""
    path = tmp_path_factory.mktemp("dataset") / "worlds-dev-kilt.jsonl"
    lines = [json.dumps(record) for record in _records(worlds[0])]
    lines.insert(len(lines) // 2, '{"id": "broken"')
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def _records(release: str) -> Iterator[dict[str, Any]]:
    rng = random.Random(3)
    with KnowledgeSource.open(release) as source:
        for page in source:
            texts, sections = paragraphs_of(page, "kilt")
            known = {"wikipedia_id": str(page.page_id), "title": page.title}
            number = rng.randrange(1, len(texts)) if len(texts) > 1 else 0
            span = {"start_paragraph_id": number, "start_character": 0, "end_paragraph_id": number}
            span |= {"end_character": len(texts[number]), "section": sections[number], "bleu_score": 1.0, "meta": {}}
            provenance = [{**known, **span}] if number else [known]
            output = [{"answer": "yes", "provenance": provenance}]
            yield {"id": f"r{page.page_id}", "input": "Is it so?", "output": output}


def _age(worlds: list[str], dataset: Path, output: Path, *flags: str) -> Path:
    given = ["--input", str(dataset), "--from-kb", worlds[0], "--output", str(output), "--max-rejects", "0.1", *flags]
    assert main(["age", *reversed(worlds), *given]) == 0
    return output


@pytest.fixture(scope="module")
def made(worlds: list[str], dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _age(worlds, dataset, tmp_path_factory.mktemp("age") / "age")


@pytest.fixture(scope="module")
def rows(made: Path) -> Rows:
    return list(read_table(str(made), "fates"))


def test_every_fate_is_what_a_search_of_each_release_finds(worlds: list[str], rows: Rows) -> None:
    n_compared = 0
    for number, release in enumerate(worlds):
        with Locator.open(release, numbering="kilt") as locator:
            for row in (row for row in rows if row["release"] == number):
                found = locator.locate(PageKey(row["page_kind"], row["page_value"]), row["evidence_text"])
                if found.outcome == "page_missing" and row["page_id"] is not None:
                    continue  # found by its title, which the locator was not told
                fate = {"page_missing": "page_gone", "page_ambiguous": "page_gone"}
                outcome = with_outcome(found, 0.5).outcome
                wanted = fate.get(outcome, outcome)
                if wanted in ("weak", "page_gone") and row["page_id"] != found.page_id:
                    assert row["fate"] in ("moved", "near_changed")
                    continue  # in the page that its text was moved to
                assert row["fate"] == wanted or (row["fate"] == "moved" and wanted in ("exact", "near")), row
                assert (row["page_id"], row["text"]) == (found.page_id, found.text)
                n_compared += 1
    assert n_compared > 60
    assert {row["fate"] for row in rows} >= {"exact", "moved", "near", "weak", "page_gone"}


def test_pages_that_did_not_change_are_searched_once(rows: Rows) -> None:
    searched = [row for row in rows if row["release"] > 0 and row["page_id"] is not None and row["is_searched"]]
    shared = [row for row in rows if row["release"] > 0 and row["page_id"] is not None and not row["is_searched"]]
    assert len(shared) > len(searched) > 0


def test_the_report_counts_present_evidence_and_the_release_is_sound(made: Path, rows: Rows) -> None:
    report = json.loads((made / "report.json").read_bytes())
    (every,) = report["groups"]["all"]
    assert [release["dump_date"] for release in report["releases"]] == list(DATES)
    assert every["present"] == [
        sum(row["fate"] in PRESENT for row in rows if row["release"] == number) for number in range(len(DATES))
    ]
    assert every["half_life_years"]["low"] < every["half_life_years"]["years"] < every["half_life_years"]["high"]
    assert sum(group["evidence"] for group in report["groups"]["size"]) == every["evidence"]
    (bad,) = read_table(str(made), "rejected")
    assert (bad["reason"], bad["file"]) == ("malformed_json", "worlds-dev-kilt.jsonl")
    assert not verified(made).findings


def test_the_inspector_leads_from_evidence_to_its_place(made: Path, worlds: list[str], rows: Rows) -> None:
    releases = open_releases([str(made), *worlds])
    client = client_of(*releases)
    overview = client.get("/r/age/").text
    assert all(f"{date[:4]}{date[4:]}" in overview for date in DATES)
    assert "half-life, with the bounds of 95 %" in overview
    found = next(row for row in rows if row["release"] == 1 and row["fate"] == "near")
    listed = client.get("/r/age/tables/fates", params={"fate": "near", "dump_date": DATES[1]}).text
    place = f"{found['start_element']}%3A{found['start_char']}-{found['end_element']}%3A{found['end_char']}"
    assert f'href="/r/release-2/page/{found["page_id"]}?hl={place}' in listed
    close_releases(releases)


def test_two_datasets_of_one_name_are_refused(
    worlds: list[str], dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other := tmp_path / "other" / dataset.name).parent.mkdir()
    shutil.copy(dataset, other)
    given = ["--input", str(dataset), str(other), "--from-kb", worlds[0], "--output", str(tmp_path / "age")]
    assert main(["age", *worlds, *given]) == 2
    assert f"{dataset} and {other} are both called 'worlds-dev'; rename one of them" in capsys.readouterr().err
    assert not (tmp_path / "age").exists()


def test_releases_of_one_day_or_of_other_wikis_are_refused(
    worlds: list[str], dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--input", str(dataset), "--from-kb", worlds[0], "--output", str(tmp_path / "age")]
    assert main(["age", worlds[0], worlds[0], *given]) == 2
    assert "have the same date, 20190801" in capsys.readouterr().err
    other = str(write_world(tmp_path / "other", Changes(1).world, wiki="dewiki", date="20250101"))
    assert main(["age", worlds[0], other, *given]) == 2
    assert "name releases of the same wiki" in capsys.readouterr().err
    assert not (tmp_path / "age").exists()


_TEXT = "The old mill by the river was built in {} by Ann Lee and her brother for the goats of the harbour town."
_OTHER = "Nothing much is known of the place, but that ships from the north came there in winter for salt and wool."


def _written(folder: Path, date: str, pages: dict[int, tuple[str, tuple[str, ...]]]) -> str:
    world = World({page_id: WorldPage(page_id, title, texts) for page_id, (title, texts) in pages.items()})
    return str(write_world(folder / date, world, date=date))


@pytest.mark.slow  # several releases
def test_text_is_followed_into_other_pages_and_changed_details_fall(tmp_path: Path) -> None:
    mill, lee = (_TEXT.format(year) for year in (1901, 1902))
    second = (
        "In the song of the century a lake is crossed by two boats, and neither of them is ever seen again, some say."
    )
    inn = "An inn stood here, of which the books of the town say that its songs were heard from across the wide river."
    long = f"{_OTHER} {mill}"
    before = {
        1: ("Moved", (_OTHER, mill)),
        2: ("Changed", (mill,)),
        3: ("Gone", (second,)),
        4: ("Copied", (_OTHER, inn)),
        5: ("Copy", (inn,)),
        6: ("Home", (_OTHER,)),
        7: ("Part", (long,)),
        8: ("Other home", (_OTHER,)),
    }
    after = {
        1: ("Moved", (_OTHER,)),
        2: ("Changed", (lee,)),
        4: ("Copied", (_OTHER,)),
        5: ("Copy", (inn,)),
        6: ("Home", (_OTHER, mill, second)),
        7: ("Part", (_OTHER,)),
        8: ("Other home", (_OTHER,)),
    }
    last = {**after, 6: ("New home", (_OTHER, lee, second.replace("ever seen", "seen here")))}
    worlds = [
        _written(tmp_path, date, texts_of_date)
        for date, texts_of_date in zip(DATES, (before, after, last), strict=True)
    ]
    records = [(1, 2), (2, 1), (3, 1), (4, 2), (7, 1)]
    lines = []
    for page_id, number in records:
        title, texts = before[page_id]
        start = len(_OTHER) + 1 if page_id == 7 else 0
        span = {"start_paragraph_id": number, "end_paragraph_id": number, "start_character": start}
        span |= {"end_character": len(texts[number - 1]), "section": "Section::::Abstract.", "bleu_score": 1.0}
        place = {"wikipedia_id": str(page_id), "title": title, **span, "meta": {}}
        output = [{"answer": "yes", "provenance": [place]}]
        lines.append(json.dumps({"id": title, "input": f"Is {title} so?", "output": output}))
    (tmp_path / "moves-dev-kilt.jsonl").write_text("\n".join(lines))
    made = _age(worlds, tmp_path / "moves-dev-kilt.jsonl", tmp_path / "age")
    rows = list(read_table(str(made), "fates"))
    fates = {
        title: [row["fate"] for row in rows if row["example_id"] == title]
        for title in dict.fromkeys(row["example_id"] for row in rows)
    }
    assert fates == {
        "Moved": ["exact", "moved", "near_changed"],
        "Changed": ["exact", "near_changed", "near_changed"],
        "Gone": ["exact", "moved", "moved"],
        "Copied": ["exact", "weak", "weak"],
        "Part": ["exact", "moved", "near_changed"],
    }
    gone = [row for row in rows if row["example_id"] == "Gone"]
    assert [(row["page_id"], row["title"]) for row in gone] == [(3, "Gone"), (6, "Home"), (6, "New home")]
    assert {row["question"] for row in gone} == {"Is Gone so?"}
    assert not verified(made).findings


def test_a_short_text_is_followed_where_one_page_alone_has_it(tmp_path: Path) -> None:
    one, common, tiny = "The mill was built in 1901.", "It is a listed building.", "Built in 1901."
    before = {
        1: ("One", (_OTHER, one)),
        2: ("Common", (_OTHER, common)),
        3: ("Tiny", (_OTHER, tiny)),
        4: ("Home", (_OTHER,)),
    }
    after = {
        1: ("One", (_OTHER,)),
        2: ("Common", (_OTHER,)),
        3: ("Tiny", (_OTHER,)),
        4: ("Home", (_OTHER, one, common, tiny)),
        5: ("Another", (_OTHER, common)),
    }
    worlds = [_written(tmp_path, date, pages) for date, pages in zip(DATES[:2], (before, after), strict=True)]
    lines = []
    for page_id in (1, 2, 3):
        title, texts = before[page_id]
        span = {"start_paragraph_id": 2, "end_paragraph_id": 2, "start_character": 0, "end_character": len(texts[1])}
        place = {"wikipedia_id": str(page_id), "title": title, **span, "section": "Section::::Abstract.", "meta": {}}
        output = [{"answer": "yes", "provenance": [{**place, "bleu_score": 1.0}]}]
        lines.append(json.dumps({"id": title, "input": f"Is {title} so?", "output": output}))
    (tmp_path / "short-dev-kilt.jsonl").write_text("\n".join(lines))
    made = _age(worlds, tmp_path / "short-dev-kilt.jsonl", tmp_path / "age")
    fates = {(row["example_id"], row["release"]): row["fate"] for row in read_table(str(made), "fates")}
    assert [fates[title, 1] for title in ("One", "Common", "Tiny")] == ["moved", "weak", "weak"]
