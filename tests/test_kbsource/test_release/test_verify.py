from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kbsource.columns import batch_of, schema_of
from kbsource.errors import SetupError
from kbsource.index.mapped_files import CHECKSUMS_FILE, checksums_file, summed_blocks
from kbsource.index.title_index import ARTICLES_SCHEMA, TITLES_SCHEMA
from kbsource.index.title_index_build import build_title_index
from kbsource.records import BadRecord, CellLink, Page
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.reading import pages_of
from kbsource.release.sql import connected
from kbsource.release.verify import verify
from tests.support.examples import examples
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, redirect_to, title_batches, write_release

SHARD_0 = "pages/pages-00000-of-00002.parquet"
TEMPLATES = "templates/templates-00000-of-00001.parquet"
SHARD_1 = "pages/pages-00001-of-00002.parquet"
REDIRECTS = "redirects/redirects-00000-of-00001.parquet"
REJECTS = "rejected/rejected-00000-of-00001.parquet"
TITLES = [
    *(TitleRow(1 + 3 * number, title_of(number)) for number in range(20)),
    redirect_to(501, "First", title_of(0), fragment="Life"),
    redirect_to(502, "Début", "First"),
    redirect_to(503, "Gone", "Not there"),
    TitleRow(600, "Rejected"),
]
REJECTED_ROWS = [
    BadRecord("parse", "600", "span_mismatch", "", "dump.xml", 5),
    BadRecord("read", "", "bad_xml", "", "dump.xml", 9),
]


_SPANS = pa.schema(
    [
        ("page_id", pa.int64()),
        ("elements", pa.list_(pa.struct([("text", pa.string())]))),
        (
            "anchors",
            pa.list_(pa.struct([(name, pa.int32()) for name in ("element", "start", "end")] + [("text", pa.string())])),
        ),
    ]
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    pages = synthetic_pages(20, n_paragraphs=5)
    write_release(folder, pages, titles=TITLES, rejected=REJECTED_ROWS, rows_per_shard=12)
    return folder / "release"


@dataclass
class Release:
    """A copy of a release that a test may spoil; the manifest is made to agree with what is spoilt."""

    path: Path

    @property
    def manifest(self) -> PagesManifest:
        return PAGES_RELEASE.read(str(self.path))

    def write_manifest(self, **changes: Any) -> None:
        (self.path / "manifest.json").write_bytes(replace(self.manifest, **changes).to_bytes())

    def accept(self, file: str, **changes: int) -> None:
        """Puts size and hash of a changed file into the manifest, and checksums of an index beside it."""
        if file.startswith("index/") and not file.endswith(CHECKSUMS_FILE):
            checksums: dict[str, list[int]] = {}
            for path in sorted({*(self.path / "index").iterdir()} - {self.path / "index" / CHECKSUMS_FILE}):
                with path.open("rb") as source:
                    list(summed_blocks(source, checksums.setdefault(path.name, [])))
            (self.path / "index" / CHECKSUMS_FILE).write_bytes(checksums_file(checksums))
            self.accept(f"index/{CHECKSUMS_FILE}")
        content = (self.path / file).read_bytes()
        facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **changes}
        manifest = self.manifest
        tables = {
            name: tuple(replace(entry, **facts) if entry.file == file else entry for entry in entries)
            for name, entries in manifest.tables.items()
        }
        files = tuple(replace(entry, **facts) if entry.file == file else entry for entry in manifest.files)
        self.write_manifest(tables=tables, files=files)

    def spoil_pages(self, change: Callable[[list[Page]], list[Page]], file: str = SHARD_0) -> None:
        path = self.path / file
        (batch,) = pq.read_table(path).combine_chunks().to_batches()
        pq.write_table(pa.Table.from_batches([batch_of(change(pages_of(batch)), Page)]), path)
        self.accept(file)

    def spoil_table(self, file: str, change: Callable[[pa.Table], pa.Table]) -> None:
        table = change(pq.read_table(self.path / file))
        pq.write_table(table, self.path / file)
        self.accept(file)

    def rules(self) -> set[tuple[str, str]]:
        report = verify(str(self.path), [PAGES_RELEASE])
        assert report.is_sound == (not report.findings)
        return {(finding.file, finding.rule) for finding in report.findings}


@pytest.fixture
def release(original: Path, tmp_path: Path) -> Release:
    shutil.copytree(original, tmp_path / "release")
    return Release(tmp_path / "release")


def test_a_sound_release_has_no_findings(release: Release) -> None:
    seen: list[tuple[int, int]] = []
    report = verify(str(release.path), [PAGES_RELEASE], on_progress=lambda done, total: seen.append((done, total)))
    assert report.findings == ()
    assert (report.n_files, report.counts) == (10, {"pages": 20, "anchors": 400, "redirects": 3})
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_a_changed_byte_in_any_file_is_found_and_the_file_named(original: Path, tmp_path: Path) -> None:
    files = {str(path.relative_to(original)) for path in original.rglob("*") if path.is_file()}
    assert len(files) == 11
    for spoilt in (files - {"manifest.json"}, {"manifest.json"}):
        for share in (0, 1 / 3, 1 / 2, 1):
            shutil.copytree(original, tmp_path / "release")
            for file in spoilt:
                content = bytearray((original / file).read_bytes())
                content[int(share * (len(content) - 1))] ^= 1
                (tmp_path / "release" / file).write_bytes(content)
            rule = "manifest" if spoilt == {"manifest.json"} else "sha256"
            assert {(file, rule) for file in spoilt} <= Release(tmp_path / "release").rules()
            shutil.rmtree(tmp_path / "release")


def test_missing_added_and_shortened_files_are_named(release: Release) -> None:
    (release.path / SHARD_0).unlink()
    (release.path / "pages" / "more.parquet").write_bytes(b"")
    with (release.path / "index" / "qids.arrow").open("ab") as file:
        file.write(b"more")
    assert release.rules() == {(SHARD_0, "missing"), ("pages/more.parquet", "unlisted"), ("index/qids.arrow", "size")}


def test_checksums_that_are_not_those_of_their_files_are_found(release: Release) -> None:
    name = f"index/{CHECKSUMS_FILE}"
    (release.path / name).write_bytes(checksums_file({"titles.arrow": [1], "articles.arrow": []}))
    release.accept(name)
    wanted = {"index/titles.arrow", "index/pages.arrow"}
    assert release.rules() == {(file, "unreadable") for file in wanted}


def test_no_manifest_is_nothing_to_verify(release: Release) -> None:
    (release.path / "manifest.json").unlink()
    with pytest.raises(SetupError, match="no finished release"):
        verify(str(release.path), [PAGES_RELEASE])


def change_page(number: int, **changes: Any) -> Callable[[list[Page]], list[Page]]:
    return lambda pages: [
        structs.replace(page, **{name: change(page) for name, change in changes.items()}) if n == number else page
        for n, page in enumerate(pages)
    ]


def change_anchor(**changes: Any) -> Callable[[list[Page]], list[Page]]:
    return change_page(3, anchors=lambda page: (*page.anchors[:-1], structs.replace(page.anchors[-1], **changes)))


def cell_link(link: CellLink) -> Callable[[list[Page]], list[Page]]:
    def tables(page: Page) -> tuple[object, ...]:
        table = page.tables[0]
        cell = structs.replace(table.rows[0][0], links=(link,))
        return (structs.replace(table, rows=((cell, *table.rows[0][1:]), *table.rows[1:])),)

    return change_page(2, tables=tables)


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("span_mismatch", change_anchor(text="other")),
        ("span_mismatch", change_anchor(start=0)),
        ("span_mismatch", change_anchor(end=100_000)),
        ("span_mismatch", change_anchor(start=-1, end=-1, text="")),
        ("span_mismatch", change_anchor(element=999)),
        ("span_mismatch", change_anchor(element=-1)),
        ("span_mismatch", cell_link(CellLink(0, 99, "T", None, None))),
        ("span_mismatch", cell_link(CellLink(3, 2, "T", None, None))),
        ("invalid_page", change_page(2, anchors=lambda page: page.anchors[::-1])),
        ("invalid_page", change_page(2, elements=lambda page: (page.elements[0], *page.elements))),
        ("invalid_page", change_page(2, elements=lambda page: (), anchors=lambda page: ())),
        ("invalid_page", change_page(2, tables=lambda page: (structs.replace(page.tables[0], element=99),))),
        (
            "invalid_page",
            change_page(
                2,
                anchors=lambda page: (),
                elements=lambda page: (page.elements[0], structs.replace(page.elements[1], text="a\nb")),
            ),
        ),
        ("invalid_page", change_anchor(written_target="a\x06")),
        ("invalid_page", cell_link(CellLink(0, 1, "T", "a\x06", None))),
        ("invalid_page", change_page(2, categories=lambda page: ("a\x06",), category_sort_keys=lambda page: ("",))),
        ("invalid_page", change_page(2, category_sort_keys=lambda page: (*page.category_sort_keys, ""))),
        ("invalid_page", change_page(2, parse_status=lambda page: "ok\r")),
        ("duplicate_qid", change_page(2, qid=lambda page: "Q1001")),
        ("dangling_target", change_anchor(target_page_id=77)),
        ("dangling_target", cell_link(CellLink(0, 1, "T", None, 77))),
        ("wrong_target_title", change_anchor(target_title="Another")),
        ("wrong_target_title", cell_link(CellLink(0, 1, "Another", None, 1))),
        ("redirects_disagree", change_page(0, redirects=lambda page: ("First",))),
        ("redirects_disagree", change_page(1, redirects=lambda page: ("Begun",))),
        ("index_disagrees", change_page(2, title=lambda page: "Another")),
        ("pages_out_of_order", lambda pages: [pages[1], pages[0], *pages[2:]]),
    ],
)
def test_a_broken_law_is_found_behind_sound_hashes(
    release: Release, rule: str, spoil: Callable[[list[Page]], list[Page]]
) -> None:
    release.spoil_pages(spoil)
    assert (SHARD_0, rule) in release.rules()


@pytest.mark.parametrize("column", ["elements", "anchors"])
def test_numbers_that_are_not_the_places_are_found(release: Release, column: str) -> None:
    def renumbered(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        rows[2][column][1]["index"] = 7
        return pa.Table.from_pylist(rows, table.schema)

    release.spoil_table(SHARD_0, renumbered)
    assert release.rules() == {(SHARD_0, "invalid_page")}


def test_a_page_in_two_shards_is_found_in_the_later_one(release: Release) -> None:
    release.spoil_pages(change_page(0, page_id=lambda page: 4), SHARD_1)
    assert (SHARD_1, "duplicate_page_id") in release.rules()


def test_a_lost_page_is_found_though_the_counts_agree(release: Release) -> None:
    release.spoil_pages(lambda pages: pages[:-1])
    manifest = release.manifest
    counts = replace(manifest.totals, articles=19, pages_read=manifest.totals.pages_read - 1)
    entries = (replace(manifest.tables["pages"][0], rows=11), manifest.tables["pages"][1])
    release.write_manifest(
        tables=manifest.tables | {"pages": entries},
        counts={"dump.xml": counts},
        totals=counts,
        parse_statuses={"ok": 19},
    )
    assert release.rules() == {
        ("index/pages.arrow", "index_disagrees"),
        ("index/articles.arrow", "index_disagrees"),
        ("index/qids.arrow", "index_disagrees"),
        (TEMPLATES, "templates_disagree"),
    }


@pytest.mark.parametrize(
    ("changes", "example"),
    [
        ({"outcome": "expanded"}, " uses: "),
        ({"uses": 21}, " uses: "),
        ({"outcome": "unknown", "shown_chars": 1}, "Infobox person: shown_chars is not 0"),
    ],
)
def test_a_table_of_templates_that_is_not_the_pages_is_found(
    release: Release, changes: dict[str, Any], example: str
) -> None:
    release.spoil_table(TEMPLATES, lambda table: table.from_pylist([{**table.to_pylist()[0], **changes}], table.schema))

    findings = verify(str(release.path), [PAGES_RELEASE]).findings
    assert [finding.rule for finding in findings] == ["templates_disagree"]
    assert example in findings[0].example


def test_rows_that_the_manifest_does_not_know_are_found(release: Release) -> None:
    release.spoil_pages(lambda pages: pages[:-1])
    assert {(SHARD_0, "rows"), ("manifest.json", "counts")} <= release.rules()


@pytest.mark.parametrize("file", [SHARD_0, REDIRECTS, REJECTS, "templates/templates-00000-of-00001.parquet"])
def test_other_columns_are_found(release: Release, file: str) -> None:
    release.spoil_table(file, lambda table: table.append_column("more", pa.nulls(table.num_rows, pa.int8())))
    assert (file, "schema") in release.rules()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.slice(1),
        lambda table: table.take([1, 0, 2]),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        lambda table: table.set_column(6, table.field(6), pa.array([1, 1, 9], pa.int32())),
    ],
)
def test_a_redirects_table_that_is_not_the_indexs_is_found(
    release: Release, spoil: Callable[[pa.Table], pa.Table]
) -> None:
    release.spoil_table(REDIRECTS, spoil)
    assert (REDIRECTS, "redirects_disagree") in release.rules()


def test_other_reasons_of_rejection_are_found(release: Release) -> None:
    reasons = pa.array(["span_mismatch", "span_mismatch"])
    release.spoil_table(REJECTS, lambda table: table.set_column(2, schema_of(BadRecord).field(2), reasons))
    assert ("manifest.json", "counts") in release.rules()


def test_counts_that_do_not_add_up_are_found(release: Release) -> None:
    release.write_manifest(totals=replace(release.manifest.totals, other_namespaces=4))
    assert release.rules() == {("manifest.json", "counts")}


def test_an_index_of_other_titles_is_found(release: Release, tmp_path: Path) -> None:
    titles = [*TITLES[:-1], TitleRow(700, "Never there")]
    build_title_index(title_batches(titles), str(release.path / "index"), scratch=str(tmp_path / "scratch"))
    release.accept("index/titles.arrow")
    release.accept("index/articles.arrow")
    assert release.rules() == {("index/articles.arrow", "index_disagrees")}


@pytest.mark.parametrize(
    ("file", "schema", "column", "value"),
    [
        ("index/titles.arrow", TITLES_SCHEMA, "key", np.uint64(5)),
        ("index/titles.arrow", TITLES_SCHEMA, "final_row", np.int32(10_000)),
        ("index/titles.arrow", TITLES_SCHEMA, "target_row", np.int32(-7)),
        ("index/titles.arrow", TITLES_SCHEMA, "status", np.int8(9)),
        ("index/articles.arrow", ARTICLES_SCHEMA, "row", np.int32(10_000)),
        ("index/articles.arrow", ARTICLES_SCHEMA, "page_id", np.int64(10_000)),
    ],
)
def test_an_index_that_contradicts_itself_is_found(
    release: Release, file: str, schema: pa.Schema, column: str, value: np.generic
) -> None:
    table = pa.ipc.open_file((release.path / file).read_bytes()).read_all()
    values = table[column].to_numpy().copy()
    values[4] = value
    number = schema.get_field_index(column)
    with pa.ipc.new_file(str(release.path / file), schema) as writer:
        writer.write_table(table.set_column(number, schema.field(number), pa.array(values)))
    release.accept(file)
    assert (file, "index_disagrees") in release.rules()


def test_a_file_that_is_no_parquet_is_named(release: Release) -> None:
    (release.path / SHARD_1).write_bytes(b"no parquet")
    release.accept(SHARD_1)
    assert (SHARD_1, "unreadable") in release.rules()


def test_one_finding_for_many_cases_of_a_rule(release: Release) -> None:
    release.spoil_pages(
        lambda pages: [
            structs.replace(page, anchors=tuple(structs.replace(a, text="x") for a in page.anchors)) for page in pages
        ]
    )
    (finding,) = verify(str(release.path), [PAGES_RELEASE]).findings
    assert (finding.rule, finding.n_cases) == ("span_mismatch", 240)
    assert "page 1" in finding.example
    assert finding.meaning in {invariant.meaning for invariant in PAGES_RELEASE.invariants}


_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(_text, min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(-1, 5), st.integers(-2, 8), st.integers(-2, 8), _text, st.booleans()), max_size=9),
)
def test_spans_are_judged_as_python_slices_them(texts: list[str], spans: list[tuple[int, int, int, str, bool]]) -> None:
    claimed = [
        {
            "element": at,
            "start": start,
            "end": end,
            "text": texts[at][max(start, 0) : max(end, 0)] if is_true and 0 <= at < len(texts) else claim,
        }
        for at, start, end, claim, is_true in spans
    ]
    page = pa.table({"page_id": [1], "elements": [[{"text": text} for text in texts]], "anchors": [claimed]}, _SPANS)
    invariant = next(invariant for invariant in PAGES_RELEASE.invariants if invariant.slug == "span_mismatch")
    with connected() as db:
        db.register("pages", page)
        ((broken,),) = db.execute(f"select len({invariant.violations}) from pages").fetchall()
    holds = [
        0 <= span["element"] < len(texts)
        and 0 <= span["start"] <= span["end"] <= len(texts[span["element"]])
        and texts[span["element"]][span["start"] : span["end"]] == span["text"]
        for span in claimed
    ]
    assert broken == holds.count(False)
