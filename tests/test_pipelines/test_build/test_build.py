"""The build from end to end, on the mini-wiki with its broken page in the middle."""

from __future__ import annotations

import bz2
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kbsource.dump.compressed.streams import CODECS, Compression
from kbsource.dump.ranges import range_size
from kbsource.errors import DataError, SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.verify import verify
from pipelines.cli import main
from pipelines.commands.dumps import build_summary
from pipelines.jobs.build import BadDumpError
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents, open_release, rows
from tests.support.dumps import PACKS, dump_xml, page_xml, revision_xml
from tests.support.moody_parser import LOST, MOODS, TOO_DEEP
from tests.support.real_data import ROOT


def test_every_page_is_accounted_for(release: Path) -> None:
    manifest = open_release(release).manifest

    assert manifest.totals.pages_read == mini_wiki.N_PAGES
    assert manifest.totals.articles == len(rows(release, "pages")) == mini_wiki.N_ARTICLES
    assert manifest.totals.redirects == len(rows(release, "redirects")) == mini_wiki.N_REDIRECTS
    assert manifest.totals.other_namespaces == mini_wiki.N_OTHER_NAMESPACES
    assert manifest.totals.rejected == {"malformed_xml": 1, "text_deleted": 1}
    assert {int(row["key"]) for row in rows(release, "rejected")} == set(mini_wiki.REJECTED_PAGE_IDS)
    assert manifest.counts == {mini_wiki.MULTISTREAM.name: manifest.totals}
    assert manifest.parse_statuses == {"ok": mini_wiki.N_ARTICLES}


def test_redirects_lead_where_they_should(release: Path) -> None:
    found = rows(release, "redirects")

    assert Counter(row["status"] for row in found) == mini_wiki.N_REDIRECTS_BY_STATUS
    for row in found:
        fact = mini_wiki.REDIRECTS[row["title"]]
        assert (row["status"], row["final_title"]) == (fact.status, fact.final_title), row["title"]


@pytest.mark.slow  # a job several times
def test_plain_xml_and_multistream_give_the_same_rows(release: Path, tmp_path: Path) -> None:
    build_mini(tmp_path / "xml", dump=mini_wiki.XML, range_bytes=50_000)

    for table in ("pages", "redirects", "templates"):
        assert rows(tmp_path / "xml", table) == rows(release, table)


@pytest.mark.slow
def test_pages_that_hang_or_crash_the_parser_are_extracted_in_the_simplest_way(tmp_path: Path) -> None:
    release = tmp_path / "release"
    build_mini(release, parser="tests.support.moody_parser:MoodyParser", page_timeout_s=0.5)

    statuses = {page.title: page.parse_status for page in open_release(release)}
    expected = {
        "Port Sellick": "fallback_timeout",
        "Lake Miravel": "fallback_crash",
        "Heron": "fallback_error",
        TOO_DEEP: "fallback_error",
    }
    assert {title: status for title, status in statuses.items() if status != "ok"} == expected
    assert set(MOODS) - set(statuses) == {LOST}
    assert [row["reason"] for row in rows(release, "rejected") if row["stage"] == "parse"] == ["page_crash"]
    assert verify(str(release), [PAGES_RELEASE]).findings == ()
    texts = {page.title: [element.text for element in page.elements] for page in open_release(release)}
    assert sum(map(len, texts["Port Sellick"])) > 1000


def stop_in_the_middle(output: Path, pipe: Path, how: signal.Signals) -> int:
    """Sends a signal to a build that is in the middle of the pages; gives its exit code once its worker has ended."""
    os.mkfifo(pipe)
    code = (
        "import sys; from pathlib import Path; from tests.support.builds import build_mini; "
        "build_mini(Path(sys.argv[1]), parser='tests.support.moody_parser:WaitingParser', page_timeout_s=600.0)"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", code, str(output)],
            cwd=ROOT,
            env={**os.environ, "KBSOURCE_TEST_PIPE": str(pipe), "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs may not have it
        ) as driver,
        pipe.open("rb") as worker,  # opens when the worker has come to the waiting page
    ):
        driver.send_signal(how)
        assert worker.read() == b""  # ends when the worker has ended
        return driver.wait()


@pytest.mark.slow
def test_an_interrupted_build_ends_at_once_with_its_worker(tmp_path: Path) -> None:
    output = tmp_path / "release"

    assert stop_in_the_middle(output, tmp_path / "pipe", signal.SIGINT) == -signal.SIGINT

    assert not (output / "manifest.json").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(SetupError, match=r"thesis\.tex"):  # before the dump is looked at, which may take long
        build_mini(tmp_path, dump=tmp_path / "no such dump.xml")

    assert contents(tmp_path) == {"thesis.tex": b"years of work"}


def test_rejects_above_the_ceiling_fail_and_name_reasons_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"2 of 103 pages rejected.*malformed_xml.*--max-rejects to at least 0\.02"):
        build_mini(tmp_path / "release", max_rejects=0.001)

    assert not (tmp_path / "release" / "manifest.json").exists()


@pytest.fixture
def truncated(tmp_path: Path) -> Path:
    path = tmp_path / "wiki-20260101-pages-articles.xml.bz2"
    path.write_bytes(mini_wiki.MULTISTREAM.read_bytes()[:30_000])
    return path


def test_a_truncated_dump_fails_before_anything_is_written(truncated: Path, tmp_path: Path) -> None:
    with pytest.raises(BadDumpError) as caught:
        build_mini(tmp_path / "release", dump=truncated)

    assert [finding.code for finding in caught.value.findings] == ["truncated_dump"]
    assert not (tmp_path / "release").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_truncated_dump_is_built_when_that_is_allowed(release: Path, truncated: Path, tmp_path: Path) -> None:
    build_mini(tmp_path / "release", dump=truncated, allow_truncated=True, max_rejects=0.1)

    found = [page.page_id for page in open_release(tmp_path / "release")]
    whole = [page.page_id for page in open_release(release)]
    assert found == whole[: len(found)]
    assert len(found) > 20
    assert "truncated_dump" in {row["reason"] for row in rows(tmp_path / "release", "rejected")}
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()


@pytest.mark.slow
def test_what_a_break_cuts_needs_no_higher_ceiling(tmp_path: Path) -> None:
    (tmp_path / "wiki.xml").write_bytes(mini_wiki.XML.read_bytes()[:60_000])
    build_mini(tmp_path / "release", dump=tmp_path / "wiki.xml", allow_truncated=True, max_rejects=0.0)
    reasons = sorted(row["reason"] for row in rows(tmp_path / "release", "rejected"))
    assert reasons == ["page_cut", "truncated_dump"]


@pytest.mark.usefixtures("in_this_process")
def test_a_dump_of_one_page_makes_a_sound_release(tmp_path: Path) -> None:
    dump = tmp_path / "wiki.xml"
    dump.write_text(
        "<mediawiki><page><title>A</title><ns>0</ns><id>1</id><revision><id>2</id>"
        "<timestamp>2026-01-01T00:00:00Z</timestamp><text>B [[A]]</text></revision></page></mediawiki>",
        "utf-8",
    )

    build_mini(tmp_path / "release", dump=dump, page_props=None)

    assert [page.title for page in open_release(tmp_path / "release")] == ["A"]
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()


@pytest.mark.slow
def test_titles_out_of_normal_form_are_released_in_it_and_what_is_none_is_rejected(tmp_path: Path) -> None:
    dump = tmp_path / "wiki.xml"
    titles = [
        "Alpha",
        " beta ",
        "Gamma_delta",
        "Cafe\u0301",
        "\u200eEps  ilon",
        "alpha",
        "_",
        "A\tB",
        ":zeta",
        "A#b",
        "x" * 300,
    ]
    pages = [page_xml(n, title, "See [[beta]], [[alpha]].") for n, title in enumerate(titles, 1)]
    pages += [page_xml(20, "eta ", redirect="beta"), page_xml(21, " ", redirect="beta")]
    dump.write_bytes(dump_xml(pages))

    build_mini(tmp_path / "release", dump=dump, page_props=None, max_rejects=0.5)

    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()
    source = open_release(tmp_path / "release")
    released = ["Alpha", "Beta", "Gamma delta", "Caf\xe9", "Eps ilon", "Alpha", "Zeta", "A#b", "X" + "x" * 299]
    assert [(page.title, page.elements[0].text) for page in source] == [(title, title) for title in released]
    assert [(row["title"], row["target_title"]) for row in rows(tmp_path / "release", "redirects")] == [("Eta", "Beta")]
    assert source.manifest.totals.rejected == {"invalid_title": 3}
    assert {row["detail"] for row in rows(tmp_path / "release", "rejected")} == {"'_'", "'A\\tB'", "' '"}


@pytest.mark.slow
def test_only_titles_takes_those_articles_and_their_redirects(tmp_path: Path) -> None:
    titles = tmp_path / "titles.txt"
    titles.write_text("halvane_Isles\nLake Miravel\n\nNo such page\n", "utf-8")

    summary = build_mini(tmp_path / "release", only_titles=str(titles))

    assert [page.title for page in open_release(tmp_path / "release")] == ["Halvane Isles", "Lake Miravel"]
    assert {row["title"] for row in rows(tmp_path / "release", "redirects")} >= {"Halvane", "Miravel"}
    assert summary.titles_not_found == ("No such page",)
    assert summary.manifest.findings["not_selected"] > 50
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()


@pytest.mark.slow
def test_a_page_given_twice_is_released_once(tmp_path: Path) -> None:
    first, second = tmp_path / "wiki-1.xml.bz2", tmp_path / "wiki-2.xml.bz2"
    first.write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    second.write_bytes(bz2.compress(mini_wiki.XML.read_bytes()))

    build_mini(tmp_path / "release", dump=str(tmp_path / "wiki-*.xml.bz2"), max_rejects=1.0)

    manifest = open_release(tmp_path / "release").manifest
    assert manifest.totals.articles == mini_wiki.N_ARTICLES
    assert manifest.totals.rejected["duplicate_page_id"] == mini_wiki.N_ARTICLES + mini_wiki.N_REDIRECTS
    assert manifest.counts[second.name].articles == 0
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()


@pytest.mark.parametrize(("n_bytes", "expected"), [(50_000, 1 << 20), (64 << 20, 2 << 20), (22 << 30, 32 << 20)])
def test_ranges_suit_the_size_of_the_dump(n_bytes: int, expected: int) -> None:
    assert range_size(n_bytes) == expected


def test_ranges_are_not_so_small_that_there_is_no_end_of_them() -> None:
    assert range_size(50_000, 5) == 5
    with pytest.raises(SetupError, match=r"into 50,000 ranges\. Give at least 5, "):
        range_size(50_000, 1)


FALLING = "tests.support.moody_parser:FallingParser"


@pytest.mark.slow  # processes that end
def test_pages_that_fall_back_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBSOURCE_TEST_DIGITS", "3")
    made = build_mini(tmp_path / "release", parser=FALLING)
    n_fallbacks = made.manifest.parse_statuses["fallback_error"]
    assert 3 < n_fallbacks <= 10
    pages = [row for row in rows(tmp_path / "release", "pages") if row["parse_status"] != "ok"]
    assert [(page.page_id, page.title, page.status) for page in made.manifest.fallbacks] == [
        (row["page_id"], row["title"], "fallback_error") for row in pages[:3]
    ]
    said = f"{n_fallbacks} articles of {mini_wiki.N_ARTICLES} were extracted by a simpler method"
    assert said in (build_summary(made).text or "")
    report = verify(str(tmp_path / "release"), [PAGES_RELEASE])
    assert report.is_sound
    assert len(report.remarks) == 1
    assert said in report.remarks[0]
    assert f"{pages[0]['title']} (page {pages[0]['page_id']}, fallback_error)" in report.remarks[0]


@pytest.mark.slow
def test_a_build_whose_pages_fall_back_ends_at_the_ceiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBSOURCE_TEST_DIGITS", "0123456789")
    with pytest.raises(
        DataError, match=r"66 of 66 articles were extracted .* The first are .*, fallback_error\)"
    ) as caught:
        build_mini(tmp_path / "release", parser=FALLING, max_fallbacks=0.9)
    assert "raise --max-fallbacks to at least 1" in str(caught.value)
    build_mini(tmp_path / "allowed", parser=FALLING, max_fallbacks=1.0)


@pytest.mark.slow
def test_a_page_that_ends_the_process_is_parsed_without_references_first(tmp_path: Path) -> None:
    parser = "tests.support.moody_parser:MoodyReferencesParser"
    made = build_mini(tmp_path / "release", parser=parser, references=True, page_timeout_s=0.5)
    assert made.manifest.parse_statuses == {"ok": mini_wiki.N_ARTICLES}
    assert made.manifest.findings["ref_failed"] == len(MOODS)


def test_parts_of_two_dumps_without_a_date_are_refused_and_leave_no_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = []
    for number, year in enumerate((2019, 2024)):
        revision = revision_xml("Text.", timestamp=f"{year}-07-01T00:00:00Z")
        pages = [page_xml(1 + 60 * number + place, f"P{number} {place}", revisions=revision) for place in range(60)]
        parts.append(str(tmp_path / f"part{number}.xml"))
        Path(parts[-1]).write_bytes(dump_xml(pages))
    assert main(["build", *parts, "--output", str(tmp_path / "release")]) == 2
    assert (
        "part1.xml has revisions up to 2024-07-01, but part0.xml has none after 2019-07-01" in capsys.readouterr().err
    )
    assert not (tmp_path / "release" / "manifest.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["zstd", "xz"])
def test_whatever_the_compression_of_a_dump_its_pages_are_the_same(tmp_path: Path, compression: Compression) -> None:
    name = mini_wiki.XML.name + CODECS[compression].suffix
    (tmp_path / name).write_bytes(PACKS[compression](mini_wiki.XML.read_bytes()))

    build_mini(tmp_path / "plain", dump=mini_wiki.XML)
    build_mini(tmp_path / "packed", dump=tmp_path / name)

    assert contents(tmp_path / "packed" / "pages") == contents(tmp_path / "plain" / "pages")
    assert contents(tmp_path / "packed" / "redirects") == contents(tmp_path / "plain" / "redirects")
