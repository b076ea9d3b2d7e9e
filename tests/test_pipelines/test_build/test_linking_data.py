"""``kbsource entity-linking`` and ``kbsource link``, and all that ``kbsource verify`` finds wrong with such data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbsource.release.writer import write_rows
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.linker import AliasTable, link_text
from mapping.entity_linking.records import ALIASES, LINKS, LinkerOptions
from pipelines.cli import main
from pipelines.jobs import entity_linking
from tests.support.builds import contents, open_release, rows
from tests.support.linking import make_linking, plain_aliases, plain_link_probabilities, plain_sample
from tests.support.passages import write_kb
from tests.support.verified import seal, verified

SIZES = {"train": 100, "dev": 10}
TRAIN, DEV = "blink-train-kilt.jsonl", "blink-dev-kilt.jsonl"
LINKS_TABLE = "links/links-00000-of-00001.parquet"
ALIASES_TABLE = "aliases/aliases-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Path:
    """Data of the demo; not to be changed."""
    output = tmp_path_factory.mktemp("linking") / "data"
    make_linking(release, output, **SIZES)
    return output


@pytest.fixture
def data(tmp_path: Path, made: Path) -> Path:
    return shutil.copytree(made, tmp_path / "copy")


def _records(folder: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"blink-{split}-kilt.jsonl").read_text().splitlines()]


def test_the_demo_gives_what_the_plainest_way_gives(made: Path, release: Path) -> None:
    pages = list(open_release(release))
    for split, wanted in plain_sample(pages, **SIZES).items():
        records = _records(made, split)
        assert [record["id"] for record in records] == [f"blink-{split}-{number}" for number in range(SIZES[split])]
        assert [
            (
                *record["meta"].values(),
                record["output"][0]["answer"],
                record["output"][0]["provenance"][0]["wikipedia_id"],
            )
            for record in records
        ] == wanted
    table = rows(made, "aliases")
    assert [(row["mention"], row["page_id"], row["title"], row["count"]) for row in table] == plain_aliases(pages)
    probabilities = plain_link_probabilities(pages)
    assert {row["mention"]: row["link_probability"] for row in table} == pytest.approx(probabilities)
    links = rows(made, "links")
    by_id = {page.page_id: page for page in pages}
    mentions = {record["id"]: record["meta"]["mention"] for split in SIZES for record in _records(made, split)}
    assert {
        row["record_id"]: by_id[row["page_id"]].elements[row["element"]].text[row["start_char"] : row["end_char"]]
        for row in links
    } == mentions


def test_the_data_are_sound_and_shown(made: Path, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kb in (release, None):
        report = verified(made, kb=kb)
        assert report.findings == ()
        assert report.counts == {"records": 110}
    assert main(["info", str(made)]) == 0
    assert "aliases" in capsys.readouterr().out


@pytest.mark.slow
def test_the_bytes_are_the_same_whatever_the_ranges(
    tmp_path: Path, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = write_kb(tmp_path, open_release(release), rows_per_shard=20, n_shards=3)
    make_linking(kb, tmp_path / "files", train=50, dev=5)
    monkeypatch.setattr(entity_linking, "RANGE_BYTES", 1)
    make_linking(kb, tmp_path / "row groups", train=50, dev=5)

    assert contents(tmp_path / "row groups") == contents(tmp_path / "files")
    assert verified(tmp_path / "files", kb=kb).findings == ()


def test_a_large_alias_table_has_several_files(tmp_path: Path, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entity_linking, "ALIAS_GROUP_ROWS", 20)
    monkeypatch.setattr(entity_linking, "ROWS_PER_FILE", 40)
    make_linking(release, tmp_path / "data", **SIZES)
    files = ENTITY_LINKING.read(str(tmp_path / "data")).tables["aliases"]
    assert {entry.rows for entry in files[:-1]} == {40}
    assert len(files) > 2
    aliases = [
        (row["mention"], row["page_id"], row["title"], row["count"]) for row in rows(tmp_path / "data", "aliases")
    ]
    assert aliases == plain_aliases(list(open_release(release)))
    assert verified(tmp_path / "data", kb=release).findings == ()


def test_more_than_there_is_gives_all_that_there_is(
    tmp_path: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "data"
    assert main(["entity-linking", str(release), "--output", str(output), "--dev", "9000000"]) == 0
    counts = ENTITY_LINKING.read(str(output)).facts["counts"]
    assert counts["train"] + counts["dev"] == counts["taken"] - counts["duplicates"]
    assert f"{counts['train']} of 9,000,000 requested" in capsys.readouterr().out


def test_excluded_pages_give_nothing_and_lines_that_name_none_are_counted(
    tmp_path: Path, release: Path, made: Path
) -> None:
    source = open_release(release)
    links = [row["page_id"] for row in rows(made, "links")]
    first, other = sorted(set(links), key=links.count)[-2:]
    redirect = next(title for page in source for title in page.redirects)
    page = source.by_title(redirect)
    assert page is not None
    (tmp_path / "list.txt").write_text(f"{source.by_id(first).title}\n{other}\n\n{redirect}\nNo such page\n")  # type: ignore[union-attr]  # it is there
    output = tmp_path / "data"
    make_linking(release, output, exclude=str(tmp_path / "list.txt"), train=10_000, dev=100)
    facts = ENTITY_LINKING.read(str(output)).facts
    out = {first, other, page.page_id}
    assert facts["counts"]["exclusion"] == {"lines": 4, "unmatched": 1}
    assert facts["counts"]["excluded_pages"] == len(out)
    assert facts["inputs"]["exclude"][0]["name"] == "list.txt"
    assert [(row["stage"], row["key"], row["reason"]) for row in rows(output, "rejected")] == [
        ("exclude", "No such page", "unknown_page")
    ]
    assert out.isdisjoint(row["page_id"] for row in rows(output, "links"))
    assert verified(output, kb=release).findings == ()


def _write(folder: Path, table: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    given = rows(folder, table)
    change(given)
    schema = {"aliases": ALIASES, "links": LINKS}[table]
    write_rows([tuple(row.values()) for row in given], table, schema, output=str(folder))


def _edit(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


def _of_dev_too(given: list[dict[str, Any]]) -> None:
    dev = next(row for row in given if row["record_id"] == "blink-dev-0")
    dev["page_id"] = given[0]["page_id"]


def _twice(folder: Path) -> None:
    lines = (folder / TRAIN).read_bytes().splitlines(keepends=True)
    lines[1] = lines[0].replace(b"blink-train-0", b"blink-train-1")
    (folder / TRAIN).write_bytes(b"".join(lines))
    own = rows(folder, "links")
    first, second = (next(record for record in own if record["record_id"] == f"blink-train-{n}") for n in (0, 1))
    _write(folder, "links", lambda given: given[own.index(second)].update(target_page_id=first["target_page_id"]))


@pytest.mark.parametrize(
    ("rule", "file", "change"),
    [
        ("invalid_alias", ALIASES_TABLE, lambda f: _write(f, "aliases", lambda given: given[0].update(prior=0.5))),
        ("invalid_alias", ALIASES_TABLE, lambda f: _write(f, "aliases", lambda given: given.append(given.pop(0)))),
        (
            "invalid_alias",
            ALIASES_TABLE,
            lambda f: _write(f, "aliases", lambda given: given[0].update(link_probability=0.0)),
        ),
        ("counts", "manifest.json", lambda f: _write(f, "aliases", lambda given: given[0].update(count=70))),
        ("invalid_record", TRAIN, lambda f: _edit(f, TRAIN, '"input": "', '"input": "x')),
        ("invalid_record", TRAIN, lambda f: _edit(f, TRAIN, '{"id"', '["id"')),
        ("record_differs", LINKS_TABLE, lambda f: _write(f, "links", lambda given: given[0].update(start_char=1))),
        ("record_differs", LINKS_TABLE, lambda f: _write(f, "links", lambda given: given[0].update(page_id=1))),
        ("split_overlap", LINKS_TABLE, lambda f: _write(f, "links", _of_dev_too)),
        ("duplicate_record", LINKS_TABLE, _twice),
    ],
)
def test_every_law_is_checked(data: Path, release: Path, rule: str, file: str, change: Callable[[Path], None]) -> None:
    change(data)
    seal(data)
    assert (file, rule) in {(finding.file, finding.rule) for finding in verified(data, kb=release).findings}


@pytest.mark.parametrize("name", ["links", "taken", "train", "aliases", "mentions"])
def test_counts_that_contradict_each_other_are_found(data: Path, name: str) -> None:
    counts = json.loads((data / "manifest.json").read_text())["counts"]
    seal(data, counts={**counts, name: counts[name] + 1})
    assert {finding.rule for finding in verified(data).findings} == {"counts"}
    seal(data, counts={})
    assert {finding.rule for finding in verified(data).findings} == {"manifest"}


def test_a_text_is_linked_by_its_longest_mentions(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "The Halvane Isles, and Brindle Quay, North Halvane: unHalvane Isles."
    assert main(["link", str(made), text, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [
        (mention["mention"], text[mention["start_char"] : mention["end_char"]], mention["title"]) for mention in found
    ] == [
        ("Halvane Isles", "Halvane Isles", "Halvane Isles"),
        ("Brindle Quay, North Halvane", "Brindle Quay, North Halvane", "Brindle Quay, North Halvane"),
    ]
    assert main(["link", str(made), text]) == 0
    assert "Halvane Isles" in capsys.readouterr().out
    assert main(["link", str(made), "Nothing."]) == 1
    assert main(["link", str(made), text, "--min-count", "100000"]) == 1


def test_mentions_are_found_wherever_they_stand_in_the_table(tmp_path: Path, made: Path) -> None:
    table = rows(made, "aliases")
    small = shutil.copytree(made, tmp_path / "small")
    table.append(dict(zip(ALIASES.names, ("𝔘" * 5_000, 1, "Too long for statistics", 1, 1.0, 1.0), strict=True)))
    given = [tuple(row.values()) for row in table]
    write_rows(given, "aliases", ALIASES, output=str(small), group_rows=2)
    seal(small)
    assert pq.read_metadata(small / ALIASES_TABLE).num_row_groups > 40
    best = {row["mention"]: row["page_id"] for row in reversed(table)}
    options = LinkerOptions(min_link_probability=0)
    for folder, known in ((small, best), (made, dict(list(best.items())[1:]))):
        found = AliasTable(str(folder))
        for mention, page_id in known.items():
            alias, _ = found.find(mention)
            assert alias is not None
            assert (alias.mention, alias.page_id) == (mention, page_id)
            (linked,) = link_text(mention, found, options)
            assert linked.alias == alias
        assert found.find("Halvan")[0] is None
        assert found.find("\U0010ffff") == (None, False)
        found.close()
