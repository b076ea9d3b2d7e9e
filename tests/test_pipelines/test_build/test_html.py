"""Releases made of rendered HTML: the same tables, invariants and commands as those made of a dump."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.lookup import KnowledgeSource
from pipelines.jobs.build import BuildSummary, build
from pipelines.options.build import BuildOptions
from tests.support.builds import contents, rows, run_job
from tests.support.killing import run_and_kill
from tests.support.snapshots import LANTERN, PORT, RECORDS, record, write_lines, write_tar
from tests.support.verified import broken

# What two workers make, each in processes of its own, has the same bytes: see below.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("module_in_this_process")]


def make(output: Path, *paths: Path, workers: int | None = None, **options: object) -> BuildSummary:
    given = BuildOptions(dump=tuple(map(str, paths)), output=str(output), **options)  # type: ignore[arg-type]
    return run_job(build, given, workers=workers)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html")
    make(folder / "r", write_tar(folder / "enwiki_namespace_0.tar.gz", [RECORDS[:1], RECORDS[1:]]))
    return folder / "r"


def test_pages_links_and_redirects_are_as_of_a_dump(release: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["dump"]["content"]) == ("kbsource-release-5", "html")
    assert manifest["totals"] == {
        "articles": 2,
        "other_namespaces": 0,
        "pages_read": 5,
        "redirects": 3,
        "rejected": {},
    }
    kb = KnowledgeSource.open(str(release))
    page = kb.by_title("The Lantern")
    assert page is not None
    assert (page.page_id, page.redirects, page.categories) == (57, ("Lantern ferry", "The Lantern"), ("Ferries",))
    assert [element.text for element in page.elements] == [
        "Lantern (ferry)",
        "The Lantern was a ferry between Port Sellick and Fennick Island from 1902. It carried 10³ people.",
        "Ships",
        "One",
        "Two",
        "Inner",
    ]
    (anchor,) = page.anchors
    assert (anchor.text, anchor.target_title, anchor.target_page_id, anchor.written_target) == (
        "Port Sellick",
        "Port Sellick",
        12,
        "Sellick",
    )
    assert [(field.name, field.text) for field in page.infoboxes[0].fields] == [
        ("Length", "31 m"),
        ("Route", "Port Sellick to Fennick"),
    ]
    assert page.tables[0].header == ("Year", "Ships")
    redirects = [(row["title"], row["page_id"], row["final_page_id"]) for row in rows(release, "redirects")]
    assert redirects == [("Lantern ferry", None, 57), ("Sellick", None, 12), ("The Lantern", None, 57)]


def test_the_release_keeps_every_invariant(release: Path) -> None:
    assert broken(release) == set()


def test_cells_are_repeated_where_the_option_says_so(release: Path, tmp_path: Path) -> None:
    def cells(folder: Path) -> list[tuple[str, int]]:
        (page,) = [row for row in rows(folder, "pages") if row["page_id"] == 57]
        return [(cell["text"], cell["rowspan"]) for row in page["tables"][0]["rows"] for cell in row]

    table = '<tr><td>3</td></tr><tr><td colspan="60000">x</td></tr></tbody></table></section>'
    html = LANTERN["article_body"]["html"].replace("</tbody></table></section>", table)
    huge = html.replace(
        "</section><link", f"<table>{'<tr><td rowspan=999 colspan=999>y</td></tr>' * 12}</table></section><link"
    )
    spread = {**LANTERN, "article_body": {"html": html.replace("60000", "2")}}
    path = write_lines(tmp_path / "a.ndjson", [spread, PORT])
    make(tmp_path / "r", path, spread_tables=True)
    assert cells(tmp_path / "r") == [("1902", 1), ("2", 1), ("1902", 1), ("3", 1), ("x", 1), ("x", 1)]
    assert broken(tmp_path / "r") == set()
    assert cells(release) == [("1902", 2), ("2", 1)]

    path = write_lines(tmp_path / "b.ndjson", [{**LANTERN, "article_body": {"html": huge}}, PORT])
    made = make(tmp_path / "s", path, spread_tables=True)
    assert made.manifest.findings["loss_table_not_spread"] == 1
    assert cells(tmp_path / "s")[0] == ("1902", 1)


def test_templates_are_listed_with_what_they_show_and_lose(release: Path) -> None:
    (row,) = rows(release, "templates")
    assert (row["name"], row["outcome"], row["uses"]) == ("Infobox ship", "expanded", 1)
    assert (row["shown_chars"], row["lost_chars"]) == (len("31m") + len("PortSellicktoFennick"), len("Lantern"))
    assert (row["example_title"], row["example"]) == ("Lantern (ferry)", "{{Infobox ship|length=31 m}}")


@pytest.mark.slow  # worker processes
def test_the_bytes_do_not_depend_on_workers_and_forms(release: Path, tmp_path: Path) -> None:
    path = write_tar(tmp_path / "enwiki_namespace_0.tar.gz", [RECORDS[:1], RECORDS[1:]])
    make(tmp_path / "r", path, workers=2)
    assert contents(tmp_path / "r") == contents(release)
    make(tmp_path / "lines", write_lines(tmp_path / "a.ndjson", RECORDS), range_bytes=700)
    assert rows(tmp_path / "lines", "pages") == rows(release, "pages")


@pytest.mark.slow
def test_a_build_that_was_killed_is_resumed_with_the_same_bytes(tmp_path: Path) -> None:
    others = [record(number, f"Page {number}", f"<p>Words {number}.</p>" * 40) for number in range(1000, 1060)]
    lines = write_lines(tmp_path / "enwiki_namespace_0.ndjson", [*RECORDS, *others])
    make(tmp_path / "whole", lines, range_bytes=20_000)
    whole = contents(tmp_path / "whole")
    for number, n_files in enumerate((4, 12)):
        output = tmp_path / f"killed-{number}"
        arguments = ["build", str(lines), "--output", str(output), "--range-bytes", "20000"]
        arguments += ["--workers", "2"]
        code, _ = run_and_kill(arguments, temporary=tmp_path / "tmp", who="driver", output=output, n_files=n_files)
        assert code == -signal.SIGKILL
        assert not (output / "manifest.json").exists()
        make(output, lines, range_bytes=20_000)
        assert contents(output) == whole


def test_of_a_page_that_comes_twice_the_highest_version_is_kept(tmp_path: Path) -> None:
    older = record(
        57, "Lantern (ferry)", "<p>Old</p>", revision=1, redirects=[{"name": "Lantern ferry"}, {"name": "L"}]
    )
    make(tmp_path / "r", write_lines(tmp_path / "a.ndjson", [older, LANTERN, PORT]), max_rejects=1.0)
    (page,) = [row for row in rows(tmp_path / "r", "pages") if row["page_id"] == 57]
    assert page["revision_id"] == 157
    # what only the older version lists still leads to the page
    assert page["redirects"] == ["L", "Lantern ferry", "The Lantern"]
    rejected = [(row["reason"], row["key"]) for row in rows(tmp_path / "r", "rejected")]
    assert rejected == [("duplicate_page_id", "57")]
    totals = json.loads((tmp_path / "r" / "manifest.json").read_bytes())["totals"]
    assert (totals["pages_read"], totals["redirects"]) == (7, 4)  # "Lantern ferry" is listed twice, and counts once
    assert broken(tmp_path / "r") == set()


def test_redirect_pages_and_records_that_cannot_be_used_are_accounted_for(tmp_path: Path) -> None:
    others = [
        record(9, "Old port", '<link rel="mw:PageProp/redirect" href="./Port_Sellick"/>'),
        record(10, "Sellick", '<p><span typeof="mw:Nowiki">#REDIRECT [[Port Sellick]]</span></p>'),
        record(11, "Gone", "<p>a</p>", event={"type": "delete"}),
        record(14, "Talk:Gone", "<p>a</p>", namespace={"identifier": 1}),
    ]
    path = write_lines(tmp_path / "a.ndjson", [*RECORDS, *others])
    with pytest.raises(DataError, match="1 text_deleted"):
        make(tmp_path / "r", path)
    made = make(tmp_path / "s", path, max_rejects=0.2)
    totals = made.manifest.totals
    assert (totals.articles, totals.redirects, totals.other_namespaces, totals.rejected) == (
        2,
        4,
        1,
        {"text_deleted": 1},
    )
    found = [(row["title"], row["page_id"]) for row in rows(tmp_path / "s", "redirects")]
    # "Sellick" is listed too, and has one row
    assert found == [("Lantern ferry", None), ("Old port", 9), ("Sellick", 10), ("The Lantern", None)]
    assert broken(tmp_path / "s") == set()


def test_a_redirect_with_a_record_of_its_own_is_one_redirect_wherever_it_is_listed(tmp_path: Path) -> None:
    own = record(10, "Sellick", '<link rel="mw:PageProp/redirect" href="./Port_Sellick#Quay"/>')
    listing = record(11, "Quay", "<p>a</p>", revision=900, redirects=[{"name": "Sellick"}, {"name": "Lantern (ferry)"}])
    for number, records in enumerate(([own, *RECORDS, listing], [listing, *RECORDS, own])):
        made = make(tmp_path / str(number), write_lines(tmp_path / f"{number}.ndjson", records), range_bytes=700)
        found = [
            (row["title"], row["page_id"], row["final_title"]) for row in rows(tmp_path / str(number), "redirects")
        ]
        assert found == [
            ("Lantern ferry", None, "Lantern (ferry)"),
            ("Sellick", 10, "Port Sellick"),
            ("The Lantern", None, "Lantern (ferry)"),
        ]
        totals = made.manifest.totals
        assert (totals.pages_read, totals.articles, totals.redirects, totals.rejected) == (6, 3, 3, {})
        assert made.manifest.findings["duplicate_titles"] == 0  # nor is an article that is listed as a redirect two
        assert broken(tmp_path / str(number)) == set()


def test_a_page_whose_html_is_too_deep_is_extracted_in_the_simplest_way(tmp_path: Path) -> None:
    deep = record(99, "Deep", "<h2>Head</h2>" + "<div>" * 3000 + "words")
    made = make(tmp_path / "r", write_lines(tmp_path / "a.ndjson", [*RECORDS, deep]))
    assert made.manifest.parse_statuses == {"fallback_error": 1, "ok": 2}
    (page,) = [row for row in rows(tmp_path / "r", "pages") if row["page_id"] == 99]
    assert [element["text"] for element in page["elements"]] == ["Deep", "Head", "words"]


def test_references_are_tables_of_the_release(tmp_path: Path) -> None:
    note = (
        '<ol class="mw-references"><li id="cite_note-1"><span class="mw-reference-text">'
        '<a rel="mw:ExtLink" href="https://a.example/b">A page</a></span></li></ol>'
    )
    noted = {**LANTERN}
    noted["article_body"] = {"html": LANTERN["article_body"]["html"].replace("</section>", f"{note}</section>", 1)}
    make(tmp_path / "r", write_lines(tmp_path / "a.ndjson", [noted, PORT]), references=True, record_dependencies=True)
    (ref,), (use,) = rows(tmp_path / "r", "refs"), rows(tmp_path / "r", "ref_uses")
    assert (ref["page_id"], ref["text"], ref["url"]) == (57, "A page", "https://a.example/b")
    assert (use["element"], use["offset"], use["section"]) == (1, 74, [])
    assert broken(tmp_path / "r") == set()


def test_options_that_html_has_no_use_for_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", RECORDS)
    with pytest.raises(SetupError, match="leave out --templates"):
        make(tmp_path / "r", path, templates="definitions")


def test_pages_have_the_items_that_their_records_name(tmp_path: Path) -> None:
    items = [{"identifier": qid} for qid in ("Q7", "Q7", "q9", "P5", "Q3")]
    records = [
        record(number, f"Page {number}", "<p>One.</p>", main_entity=item) for number, item in enumerate(items, 1)
    ]
    made = make(tmp_path / "r", write_lines(tmp_path / "enwiki.ndjson", records))
    assert [row["qid"] for row in rows(tmp_path / "r", "pages")] == ["Q7", None, "Q9", None, "Q3"]
    assert [(found.qid, found.page_id, found.other_page_id) for found in made.manifest.qid_conflicts] == [("Q7", 1, 2)]
    assert made.manifest.findings["invalid_qids"] == 1
    assert KnowledgeSource.open(str(tmp_path / "r")).by_qid("Q3").title == "Page 5"  # type: ignore[union-attr]
    assert not broken(tmp_path / "r")
