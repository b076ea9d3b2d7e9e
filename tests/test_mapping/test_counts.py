"""Counts of every kind of release: asked of empty tables, and compared with a manifest that contains other numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kbsource.errors import DataError
from kbsource.release.counts import Sum, TableCount
from kbsource.release.kind import Kind, ListingKind
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.verify import verify
from kbsource.release.writer import write_rows
from mapping.kinds import KINDS
from tests.support.every_kind import write_every_kind
from tests.support.strangers import sealed

ANIMALS = pa.schema({"name": pa.string(), "legs": pa.int64()})
ZOO = ListingKind(
    name="zoo",
    format="zoo-1",
    made_by="a keeper",
    tables={"animals": ANIMALS},
    counts=(
        TableCount("counts.animals", "select count(*) from animals", summary="animals"),
        TableCount(
            "counts.tall", "select count(*) from animals where legs > (select n from settings where name = 'limit')"
        ),
        TableCount("counts.by_legs", "select legs, count(*) from animals group by all", names=("0", "2", "4")),
        TableCount("counts.names", "select name, count(*) from animals group by all", names=()),
        TableCount(None, "select sum(legs) from animals", summary="legs"),
    ),
    settings=lambda manifest: {"limit": manifest.facts["limit"]},
)
COUNTED = [kind for kind in KINDS if kind.counts]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_every_kind(tmp_path_factory.mktemp("kinds"))


def count_paths(kind: Kind[Any]) -> Iterator[tuple[str, ...]]:
    for count in kind.counts:
        yield from count.paths()


@pytest.mark.parametrize("kind", COUNTED, ids=[kind.format for kind in COUNTED])
def test_every_count_is_asked_of_tables_without_rows(every: dict[str, Path], kind: Kind[Any]) -> None:
    report = verify(str(every[kind.format]), KINDS)
    assert not [finding for finding in report.findings if finding.rule == "counts"]
    if report.counts:  # a check of the kind's own may find that files are missing
        assert {count.summary for count in kind.counts if count.summary} <= report.counts.keys()


@pytest.mark.parametrize(
    "kind", [kind for kind in COUNTED if isinstance(kind, ListingKind)], ids=lambda kind: kind.format
)
def test_another_number_in_the_manifest_is_found(every: dict[str, Path], kind: Kind[Any]) -> None:
    folder, paths = every[kind.format], [*count_paths(kind)]
    file = folder / "manifest.json"
    content = file.read_bytes()
    values = json.loads(content)
    for path in paths:
        inner = values
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] += 1
    file.write_bytes(sealed(values))
    try:
        found = [finding for finding in verify(str(folder), KINDS).findings if finding.rule == "counts"]
        broken_sums = kind.count_faults(kind.listing([], values))
    finally:
        file.write_bytes(content)
    # Each number is one case; sums of them may be broken, too.
    assert sum(finding.n_cases for finding in found) == len(paths) + len(broken_sums)


def test_numbers_are_counted_put_into_the_facts_and_compared(tmp_path: Path) -> None:
    folder = str(tmp_path / "zoo")
    with ReleaseFolder(folder, kind=ZOO):
        entries = [write_rows([("ox", 4), ("ape", 2), ("emu", 2)], "animals", ANIMALS, output=folder)]
        facts = with_counts(ZOO, entries, {"limit": 3, "counts": {"visitors": 7}}, folder)
        assert facts == {
            "limit": 3,
            "counts": {"visitors": 7, "animals": 3, "tall": 1, "by_legs": {"0": 0, "2": 2, "4": 1},
                       "names": {"ape": 1, "emu": 1, "ox": 1}},
        }  # fmt: skip
        commit(ZOO, ZOO.listing(entries, facts), folder)
    report = verify(folder, [ZOO])
    assert report.is_sound
    assert report.counts == {"animals": 3, "legs": 8}
    facts["counts"] |= {"tall": 2, "names": {"ape": 1, "gnu": 1}, "by_legs": {"0": 0, "2": 2, "4": 1}}
    (tmp_path / "zoo" / "manifest.json").write_bytes(ZOO.listing(entries, facts).to_bytes())
    (finding,) = verify(folder, [ZOO]).findings
    assert (finding.rule, finding.n_cases) == ("counts", 4)
    assert finding.example == "counts.tall: 1 counted, 2 written"


def test_each_release_of_a_folder_is_counted_with_its_own_settings(tmp_path: Path) -> None:
    zoos = ListingKind(name="zoos", format="zoos-1", made_by="a keeper", tables={}, parts=ZOO)
    inner = []
    for limit in (1, 3):
        folder = str(tmp_path / f"zoo{limit}")
        with ReleaseFolder(folder, kind=ZOO):
            entries = [write_rows([("ox", 4), ("ape", 2)], "animals", ANIMALS, output=folder)]
            commit(ZOO, ZOO.listing(entries, with_counts(ZOO, entries, {"limit": limit}, folder)), folder)
        manifest = ZOO.read(folder)
        assert manifest.facts["counts"]["tall"] == (2 if limit == 1 else 1)
        inner.append({"folder": f"zoo{limit}", "manifest_sha256": manifest.sha256})
    with ReleaseFolder(str(tmp_path), kind=zoos, kept=["zoo1", "zoo3"]):
        commit(zoos, zoos.listing([], {"alignments": inner}), str(tmp_path), kept=["zoo1", "zoo3"])
    report = verify(str(tmp_path), [zoos, ZOO])
    assert report.findings == ()
    assert report.counts == {"animals": 4, "legs": 12}


def test_sums_of_numbers_and_of_numbers_by_name_are_checked() -> None:
    def faults(**counts: Any) -> list[str]:
        kind = ListingKind(name="sum", format="sum-1", made_by="x", tables={}, sums=[Sum("all", ["left", "right"])])
        return kind.count_faults(kind.listing([], counts))

    assert faults(all=6, left={"a": 1, "b": {"c": 2}}, right=3) == []
    assert faults(all={"x": 6, "y": 1}, left={}, right=3) == ["all is 7, not left 0 + right 3 = 3"]
    (missing,) = faults(all=1, left=1)
    assert "the entry 'right' is missing" in missing
    (odd,) = faults(all=1, left="one", right=0)
    assert odd.startswith("left: Expected `int`")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"visitors": 7}, "the entry 'animals' is missing"),
        ({"animals": -1}, "counts.animals: Expected `int` >= 0"),
        ({"animals": 3, "tall": 1, "by_legs": 5}, "counts.by_legs.0: Expected `object` in place of '5'"),
        (
            {"animals": 3, "tall": 1, "by_legs": {"0": 0, "2": 2, "4": 1}, "names": []},
            "counts.names: Expected `object`",
        ),
    ],
)
def test_a_manifest_without_its_counts_is_damaged(tmp_path: Path, counts: Mapping[str, Any], said: str) -> None:
    (tmp_path / "manifest.json").write_bytes(ZOO.listing([], {"limit": 3, "counts": counts}).to_bytes())
    with pytest.raises(DataError, match=re.escape(said)):
        ZOO.read(str(tmp_path))


def test_the_name_of_a_kind_has_its_article() -> None:
    articles = {kind.with_article for kind in KINDS}
    assert {"an alignment", "an index of passages", "a QAMPARI release", "a diff of releases"} <= articles
