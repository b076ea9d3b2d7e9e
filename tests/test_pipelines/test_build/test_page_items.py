"""A build with Wikidata: which page has which item, and what it is called."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.records import PageItem
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.pages.reading import PageItemsReader
from kbsource.release.verify import verify
from kbsource.release.writer import write_small_table
from pipelines.cli import main
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import read_lines
from tests.support.builds import build_mini, open_release, rows
from tests.support.entities import array, item, make
from tests.support.verified import seal

pytestmark = pytest.mark.usefixtures("module_in_this_process")

Row = dict[str, Any]


@pytest.fixture(scope="module")
def wikidata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("wikidata") / "release"
    make(mini_wikidata.DUMP, output=output, max_rejects=mini_wikidata.MAX_REJECTS)
    return output


@pytest.fixture(scope="module")
def release(wikidata: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("build") / "release"
    build_mini(output, wikidata=str(wikidata))
    return output


@pytest.fixture(scope="module")
def by_sitelink(wikidata: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without page_props."""
    output = tmp_path_factory.mktemp("by_sitelink") / "release"
    build_mini(output, wikidata=str(wikidata), page_props=None)
    return output


@pytest.fixture(scope="module")
def items(release: Path) -> dict[int, Row]:
    return {row["page_id"]: row for row in rows(release, "page_items")}


def test_pages_and_their_items_agree_and_the_release_is_sound(release: Path, items: dict[int, Row]) -> None:
    found = {page.page_id: page.qid for page in open_release(release)}
    assert {page_id: row["qid"] for page_id, row in items.items()} == {
        page_id: qid for page_id, qid in found.items() if page_id in items
    }
    assert all(found[page_id] is None for page_id in set(found) - set(items))
    assert verify(str(release), [PAGES_RELEASE]).findings == ()


def test_a_page_has_label_description_and_aliases_of_its_item(items: dict[int, Row]) -> None:
    isles = items[12]
    assert (isles["qid"], isles["label"]) == (mini_wikidata.ISLES, "Halvane Isles")
    assert (isles["description"], isles["aliases"]) == (
        "archipelago in the Northern Sundering Sea",
        ["Halvane", "The Halvanes"],
    )
    assert items[75]["label"] == "Élodie Vauquelin-Marr"  # in mul alone


@pytest.mark.parametrize(
    ("page_id", "qid", "page_props_qid", "agreement"),
    [
        (15, "Q9000015", "Q9000015", "same"),
        (21, "Q9000021", None, "only_wikidata"),
        (66, "Q9600030", "Q9000066", "differ"),
        (120, "Q9000120", "Q9000120", "only_page_props"),
        (mini_wiki.QID_CLAIMANT_PAGE_ID, "Q9000240", "Q9000237", "differ"),
        (mini_wiki.QID_OWNER_PAGE_ID, "Q9000237", "Q9000237", "same"),
    ],
)
def test_where_the_sources_differ_the_sitelink_counts_and_both_are_told(
    items: dict[int, Row], page_id: int, qid: str, page_props_qid: str | None, agreement: str
) -> None:
    row = items[page_id]
    expected = (qid, None if agreement == "only_page_props" else qid, page_props_qid, agreement)
    assert (row["qid"], row["wikidata_qid"], row["page_props_qid"], row["agreement"]) == expected


def test_the_form_of_kilt_has_the_names_of_items(
    release: Path, items: dict[int, Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "kilt.jsonl"
    assert main(["export-kilt", str(release), "--output", str(output)]) == 0
    assert "--wikidata" not in capsys.readouterr().out

    infos = {line["wikipedia_title"]: line.get("wikidata_info") for line in read_lines(output)}
    assert infos["Halvane Isles"] == {
        "wikidata_id": mini_wikidata.ISLES,
        "wikidata_label": "Halvane Isles",
        "description": "archipelago in the Northern Sundering Sea",
        "aliases": ["Halvane", "The Halvanes"],
        "wikipedia_title": "Halvane Isles",
    }
    named = {item_info["wikidata_id"]: item_info for item_info in infos.values() if item_info is not None}
    assert len(named) == sum(row["qid"] is not None for row in items.values())
    for row in items.values():
        if row["qid"] is not None:
            info = named[row["qid"]]
            assert (info.get("wikidata_label"), info.get("description")) == (row["label"], row["description"])
            assert (info.get("aliases") or []) == row["aliases"]
            assert ("wikipedia_title" in info) == (row["wikidata_qid"] is not None)


def test_terms_are_found_in_any_order_over_files_and_row_groups(
    release: Path, items: dict[int, Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbsource.release.writer.SMALL_GROUP_ROWS", 4)
    rows_of_table = [PageItem(**{**row, "aliases": tuple(row["aliases"])}) for row in items.values()]
    entries = write_small_table(rows_of_table, PageItem, str(tmp_path), "page_items", rows_per_file=10)
    assert len(entries) > 1
    manifest = open_release(release).manifest
    reader = PageItemsReader(str(tmp_path), dataclasses.replace(manifest, tables={"page_items": entries}))

    for page_id in sorted({*items, 0, *(number + 1 for number in items)}, key=lambda number: (number % 7, number)):
        found, row = reader.terms(page_id), items.get(page_id)
        assert (found is None) == (row is None)
        if found is not None and row is not None:
            assert found[:3] == (row["label"], row["description"], tuple(row["aliases"]))
            assert found.has_sitelink == (row["wikidata_qid"] is not None)


def test_an_item_that_only_page_props_gives_has_its_label_from_wikidata(items: dict[int, Row]) -> None:
    assert items[120]["label"] == "list of lighthouses of the Halvane Isles"
    assert items[93]["label"] is None  # Wikidata has no such item


@pytest.mark.slow
def test_without_page_props_sitelinks_alone_decide(by_sitelink: Path) -> None:
    assert {row["agreement"] for row in rows(by_sitelink, "page_items")} == {"only_wikidata"}
    assert verify(str(by_sitelink), [PAGES_RELEASE]).findings == ()


def test_verify_finds_a_table_of_other_items(release: Path, by_sitelink: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(release, tmp_path / "release")
    name = "page_items/page_items-00000-of-00001.parquet"
    shutil.copy(by_sitelink / name, copy / name)
    seal(copy)
    assert {finding.rule for finding in verify(str(copy), [PAGES_RELEASE]).findings} == {"items_disagree"}


def test_a_release_of_wikidata_without_the_wikis_sitelinks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_bytes(array([item("Q1", sitelinks={"enwiki": {"title": "One"}})]))
    make(tmp_path / "dump.json", output=tmp_path / "wikidata", sites=("enwiki",))
    with pytest.raises(SetupError, match="--sites miniwiki"):
        build_mini(tmp_path / "release", wikidata=str(tmp_path / "wikidata"))
    assert not (tmp_path / "release").exists()


def test_another_folder_is_no_release_of_wikidata(release: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not a release of Wikidata"):
        build_mini(tmp_path / "again", wikidata=str(release))
    with pytest.raises(SetupError, match="nowhere"):
        build_mini(tmp_path / "again", wikidata=str(tmp_path / "nowhere"))
