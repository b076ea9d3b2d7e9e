from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from kbsource import __version__
from kbsource.errors import DataError, SetupError
from kbsource.release.layout import BUILDING, MANIFEST
from kbsource.release.manifest import code_facts
from kbsource.release.output import commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest, _count_faults
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, write_release


def release(folder: Path) -> PagesManifest:
    titles = [TitleRow(1 + 3 * number, title_of(number)) for number in range(4)]
    return write_release(folder, synthetic_pages(4, n_paragraphs=1), titles=titles, rows_per_shard=2)


def test_a_manifest_is_readable_json_with_sorted_keys(tmp_path: Path) -> None:
    release(tmp_path)
    content = (tmp_path / "release" / MANIFEST).read_text("utf-8")
    value = json.loads(content)
    assert content == json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    assert str(tmp_path) not in content


@pytest.mark.parametrize(
    ("spoil", "fault", "message"),
    [
        (lambda value: value | {"format": "other"}, SetupError, "its format is 'other'"),
        (lambda value: value | {"schema_version": 99}, SetupError, "schema version 99"),
        (lambda value: value | {"extra": 1}, DataError, "extra"),
        (lambda value: {name: field for name, field in value.items() if name != "inputs"}, DataError, "inputs"),
        (lambda value: value | {"inputs": {}}, DataError, "inputs"),
        (lambda value: value | {"totals": value["totals"] | {"articles": "4"}}, DataError, r"totals\.articles"),
        (lambda value: value | {"page_order": "other"}, DataError, "changed since"),
        (lambda value: value | {"tables": {}}, DataError, "table pages is missing"),
        (lambda value: [value], SetupError, "not a manifest"),
        (lambda value: {"name": "package.json"}, SetupError, "not a manifest"),
    ],
)
# type: ignore[no-untyped-def]
def test_a_foreign_or_changed_manifest_is_refused(tmp_path: Path, spoil, fault: type, message: str) -> None:
    release(tmp_path)
    path = tmp_path / "release" / MANIFEST
    path.write_text(json.dumps(spoil(json.loads(path.read_bytes()))))
    with pytest.raises(SetupError, match=message) as told:
        PAGES_RELEASE.read(str(tmp_path / "release"))
    assert told.type is fault


def test_why_there_is_no_release_is_said(tmp_path: Path) -> None:
    for content, said in (
        ("", "an empty one"),
        ("notes.txt", "no manifest.json"),
        (BUILDING, "was interrupted"),
    ):
        if content:
            (tmp_path / content).touch()
        with pytest.raises(SetupError, match=f"{said}.*no finished release|no finished release.*{said}"):
            PAGES_RELEASE.read(str(tmp_path))


def test_a_release_of_another_kind_is_told_from_one_of_another_version(tmp_path: Path) -> None:
    for name, said in (
        ("kbsource-wikidata-1", "not a release of pages"),
        ("kbsource-release-99", "but this kbsource reads"),
        (PAGES_RELEASE.format, "but this kbsource reads.*make it again"),
    ):
        (tmp_path / MANIFEST).write_text(json.dumps({"format": name, "schema_version": 1}))
        with pytest.raises(SetupError, match=said):
            PAGES_RELEASE.read(str(tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"pages_read": 999},
        {"articles": 3},
        {"redirects": 9},
        {"rejected": {"lost": 1}},
        {"pages_read": 8, "articles": 5},
    ],
)
def test_counts_that_do_not_add_up_stop_the_job(tmp_path: Path, changes: dict[str, object]) -> None:
    manifest = release(tmp_path)
    assert _count_faults(manifest) == []
    wrong = replace(manifest.totals, **changes)  # type: ignore[arg-type]
    assert _count_faults(replace(manifest, totals=wrong, counts={"dump.xml": wrong}))


def test_code_facts_name_versions() -> None:
    facts = code_facts()
    assert facts["kbsource"].removesuffix("+changed") == __version__
    assert facts["python"].count(".") == 1
    assert facts["pyarrow"] == pa.__version__


def unfinished(folder: Path) -> tuple[str, PagesManifest]:
    manifest = release(folder)
    output = folder / "release"
    (output / MANIFEST).unlink()
    (output / BUILDING).write_bytes(b"")
    (output / "_staging").mkdir()
    (output / "_staging" / "left.arrow").write_bytes(b"")
    return str(output), manifest


def test_a_commit_leaves_the_release_alone(tmp_path: Path) -> None:
    output, manifest = unfinished(tmp_path)
    commit(PAGES_RELEASE, manifest, output)
    names = {path.name for path in Path(output).iterdir()}
    assert names == {"pages", "redirects", "rejected", "templates", "index", MANIFEST}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "pages/pages-00001-of-00002.parquet").unlink(), "was not written"),
        (lambda folder: (folder / "pages/stray.parquet").write_bytes(b""), "is not part of the release"),
        (lambda folder: (folder / "index/titles.arrow").write_bytes(b"short"), "has 5 bytes"),
    ],
)
# type: ignore[no-untyped-def]
def test_a_commit_that_finds_something_wrong_makes_no_release(tmp_path: Path, spoil, message: str) -> None:
    output, manifest = unfinished(tmp_path)
    spoil(Path(output))
    with pytest.raises(SetupError, match=message):
        commit(PAGES_RELEASE, manifest, output)
    assert not (Path(output) / MANIFEST).exists()


def test_a_commit_checks_the_counts(tmp_path: Path) -> None:
    output, manifest = unfinished(tmp_path)
    with pytest.raises(SetupError, match="do not add up"):
        commit(PAGES_RELEASE, replace(manifest, parse_statuses={}), output)
