"""The text made of wikitext, compared with the page that readers see."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.html.comparing import NOT_SEEN, TEXT, MissingWords, PageComparer, PageComparison, check_text, words_of
from kbsource.html.paired_pages import PairedPage, RecordCounts, process_pairs
from kbsource.html.text_runs import HtmlRunReader
from kbsource.site import Site
from tests.support.real_data import ROOT, real_path
from tests.support.snapshots import document, paired, record, write_lines, write_tar

EN = Site(lang="en", dbname="enwiki")
UNKNOWN = '<span about="#mwt1" typeof="mw:Transclusion" data-mw=\'{"parts":[{"template":{"target":{"wt":"NAME"}}}]}\'>'


def compared(html: str, wikitext: str) -> PageComparison:
    page = PairedPage("Ada", "2026-01-02T03:04:05Z", document(f"{html}<p>.</p>"), f"{wikitext}\n\n.")
    return PageComparer(EN).compare(page)


LINK = '<a rel="mw:WikiLink" href="./Port_Sellick">the port</a>'


@pytest.mark.parametrize(
    ("html", "wikitext", "words", "found", "own"),
    [
        ("<p>It fell on a Sunday</p>", "It fell on a Sunday", 5, 5, 5),
        ("<p>It fell on a Sunday</p>", "It fell on Sunday", 5, 4, 4),
        ("<p>It fell on a Sunday</p>", "It Sunday fell on a", 5, 4, 5),
        ("<p>It</p>", "It fell", 1, 1, 2),
        ("<p>10<sup>3</sup> m<sup>2</sup></p>", "10<sup>3</sup> m<sup>2</sup>", 2, 2, 2),
        ("<p>don’t</p>", "don't", 1, 1, 1),
        ("<p>so<i>ft</i></p>", "so''ft''", 1, 1, 1),
        ("<p>a</p><table><tr><td>b</td></tr></table><p>c</p>", "a\n{|\n|b\n|}\nc", 2, 2, 2),
        (
            '<p>as <span typeof="mw:Extension/math" data-mw=\'{"body":{"extsrc":"x + y"}}\'></span> is</p>',
            "as <math>x+y</math> is",
            3,
            3,
            3,
        ),
        ("<p>5 $ and 6 $</p>", "5 $ and 6 $", 3, 3, 3),
        ("<p></p>", "", 0, 0, 0),
    ],
)
def test_words_found_in_order(html: str, wikitext: str, words: int, found: int, own: int) -> None:
    page = compared(html, wikitext)
    assert (page.words, page.found, page.own_words) == (words, found, own)


@pytest.mark.parametrize(
    ("html", "wikitext", "links", "found", "own"),
    [
        (LINK, "[[Port Sellick|the port]]", 1, 1, 1),
        (LINK, "[[port_Sellick#Quay|the port]]", 1, 1, 1),  # a link to a section is one to its page
        (LINK, "[[Port Sellick]]", 1, 0, 1),
        (f"{LINK} {LINK}", "[[Port Sellick|the port]]", 2, 1, 1),
        ('<a rel="mw:WikiLink" href="./Ada#Life">below</a>', "[[#Life|below]]", 1, 1, 1),
        ('<a rel="mw:WikiLink" href="./Help:Ada">help</a>', "[[Help:Ada|help]]", 0, 0, 0),
    ],
)
def test_links_found_with_their_targets(html: str, wikitext: str, links: int, found: int, own: int) -> None:
    page = compared(f"<p>{html}</p>", wikitext)
    assert (page.links, page.links_found, page.own_links) == (links, found, own)


@pytest.mark.parametrize(
    ("name", "wikitext", "missing"),
    [
        ("unheard of", "on {{unheard of}} day", MissingWords("Unheard of", "unknown", ("a", "fine"))),
        ("cite web", "on {{cite web|title=fine}} day", MissingWords("Cite web", "dropped", ("a", "fine"))),
        ("nowrap", "on {{nowrap|fine}} day", MissingWords("Nowrap", "rendered", ("a",))),
        ("unheard of", "on day", MissingWords("Unheard of", NOT_SEEN, ("a", "fine"))),
        ("", "on day", MissingWords("", TEXT, ("a", "fine"))),
    ],
)
def test_a_missing_word_names_its_template(name: str, wikitext: str, missing: MissingWords) -> None:
    page = compared(f"<p>on {UNKNOWN.replace('NAME', name)}a fine</span> day</p>", wikitext)
    assert page.missing == (missing,)
    is_undefined = missing.kind in ("unknown", NOT_SEEN)
    assert (page.undefined_words, page.undefined_found) == ((2, 0) if is_undefined else (0, 0))


def test_a_function_of_the_parser_is_named() -> None:
    for call in (
        '{"parserfunction":{"target":{"wt":"#time:Y"}}}',
        '{"template":{"target":{"wt":"#time:Y","function":"t"}}}',
    ):
        html = UNKNOWN.replace('{"template":{"target":{"wt":"NAME"}}}', call)
        assert compared(f"<p>in {html}1902</span></p>", "in").missing[0].template == "#time:"


def test_a_group_of_elements_belongs_to_its_first_template() -> None:
    outer, inner = UNKNOWN.replace("NAME", "outer").replace("<span", "<div"), UNKNOWN.replace("NAME", "inner")
    html = (
        f'{outer}<p>one {inner.replace("mwt1", "mwt2")}two</span> three</p></div><p about="#mwt1">four</p><p>five</p>'
    )
    _, runs = HtmlRunReader(EN).parse(document(html), title="Ada")
    shown = [(run.text.strip(), run.template) for run in runs if run.text.strip()]
    assert shown == [("one", "Outer"), ("two", "Outer"), ("three", "Outer"), ("four", "Outer"), ("five", "")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("L'île, l’eau & 3.5 km²", ["L'île", "l'eau", "3", "5", "km2"]),
        ("10^(3) snake_case", ["103", "snake", "case"]),
        ("東京 と ไทย", ["東", "京", "と", "ไ", "ท", "ย"]),
        ("co\u00adop zero\u200bwidth", ["coop", "zerowidth"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_every_record_is_counted_once(tmp_path: Path) -> None:
    good = paired("<p>It fell on a Sunday</p>", "It fell on Sunday", title="Ada")
    same = paired("<p>It is so</p>", "It is so", page_id=2, title="Bo")
    deep = paired("<b>" * 5000 + "x", "x", page_id=3, title="Deep")
    records = [
        good,
        same,
        deep,
        record(4, "Only HTML", "<p>x</p>"),
        record(5, "Only wikitext", "", article_body={"html": "", "wikitext": "x"}),
        paired("<p>x</p>", "x", page_id=6, title="Talk:X", namespace={"identifier": 1}),
        paired('<link rel="mw:PageProp/redirect" href="./Ada"/>', "#REDIRECT [[Ada]]", page_id=7, title="R"),
        paired("<p>x</p>", "x", page_id=8, title="Gone", visibility={"text": False}),
        paired("<p>x</p>", "x", page_id=9, title="No time", date_modified="now"),
    ]
    path = write_lines(tmp_path / "a.ndjson", records)
    path.write_bytes(path.read_bytes() + b'{"name": \n[1]\n\n')
    check = check_text([str(path)], n_worst=1)
    counts = check.counts
    assert counts.pages == 2
    assert counts.skipped == {"no_wikitext": 1, "no_html": 1, "other_namespace": 1, "redirect": 1}
    assert counts.rejected == {"html_too_deep": 1, "text_deleted": 1, "invalid_field": 2, "malformed_json": 1}
    assert [(bad.key, bad.reason) for bad in counts.first_rejected] == [
        ("Deep", "html_too_deep"),
        ("Gone", "text_deleted"),
        ("No time", "invalid_field"),
    ]
    assert counts.records == 6
    assert (check.sums["words"], check.sums["found"]) == (8, 7)
    assert [page.title for page in check.worst()] == ["Ada"]
    assert [(name, kind, loss.words, loss.pages, loss.title, loss.example) for name, kind, loss in check.losses()] == [
        ("", TEXT, 1, 1, "Ada", "a")
    ]


def test_a_page_that_no_process_survives_is_a_row_with_a_reason(tmp_path: Path) -> None:
    titles = ["Good", "hang", "segfault", "memory", "raise", "type error", "After"]
    records = [paired("<p>x</p>", "x", page_id=number, title=title) for number, title in enumerate(titles, 1)]
    path = write_lines(tmp_path / "a.ndjson", records)
    counts = RecordCounts()
    done = process_pairs(
        [str(path)],
        "tests.support.guarded_work:work_on_title",
        str,
        counts=counts,
        page_timeout_s=0.5,
        memory_bytes=1 << 30,
    )
    assert [*done] == ["Good", "After"]
    assert (counts.records, counts.pages) == (2, 2)
    assert counts.rejected == {"page_timeout": 1, "page_crash": 2, "page_error": 2}
    assert [(bad.key, bad.reason, bad.detail) for bad in counts.first_rejected] == [
        ("hang", "page_timeout", "did not finish within 0.5 s"),
        ("segfault", "page_crash", "signal SIGSEGV"),
        ("memory", "page_crash", "more than 1073741824 bytes of memory"),
    ]


def test_forms_and_parts_of_a_snapshot_do_not_matter(tmp_path: Path) -> None:
    records = [paired(f"<p>word {n} is</p>", f"word {n}", page_id=n, title=f"P{n}") for n in range(1, 7)]
    whole = check_text([str(write_lines(tmp_path / "a.ndjson", records))], n_worst=3)
    archive = check_text([str(write_tar(tmp_path / "b.tar.gz", [records[:2], records[2:]]))], n_worst=3)
    parts = [str(write_lines(tmp_path / f"c{n}.ndjson", own)) for n, own in enumerate((records[:3], records[3:]))]
    assert whole == archive == check_text(parts, n_worst=3)
    assert [page.title for page in whole.worst()] == ["P1", "P2", "P3"]  # of pages that differ as much, the first


def test_a_dump_and_other_wikis_are_refused(tmp_path: Path) -> None:
    own = write_lines(tmp_path / "a.ndjson", [paired("<p>x</p>", "x")])
    other = write_lines(tmp_path / "b.ndjson", [paired("<p>x</p>", "x", is_part_of={"identifier": "dewiki"})])
    with pytest.raises(SetupError, match="different wikis: dewiki, enwiki"):
        check_text([str(own), str(other)], n_worst=1)
    dump = tmp_path / "c.xml"
    dump.write_text("<mediawiki><page></page></mediawiki>")
    with pytest.raises(SetupError, match="has no HTML to compare with"):
        check_text([str(dump)], n_worst=1)


_ROW = re.compile(
    r"\| (\w+) \| (\d+) \| ([\d,]+) of ([\d,]+) \([\d.]+%\) \| [\d.]+% "
    r"\| ([\d,]+) of ([\d,]+)[^|]*\| ([\d,]+) of ([\d,]+) \|"
)
"""A row of the table in docs/limitations.md: wiki, articles, words found, words not on the page, links found."""


@pytest.mark.slow  # a whole snapshot
def test_the_figures_in_the_documentation_are_those_of_the_command() -> None:
    rows = _ROW.findall((ROOT / "docs/limitations.md").read_text("utf-8"))
    assert len(rows) == 6
    for wiki, *figures in rows:
        check = check_text([str(real_path(f"html/enterprise-articles/{wiki}.ndjson.gz"))], n_worst=1)
        sums = check.sums
        n_found, n_own = sums["found"], sums["own_words"]
        expected = (
            check.counts.pages,
            n_found,
            sums["words"],
            n_own - n_found,
            n_own,
            sums["links_found"],
            sums["links"],
        )
        assert tuple(int(figure.replace(",", "")) for figure in figures) == expected, wiki


@pytest.mark.parametrize("wiki", ["simplewiki", "ruwiki", "enwikiversity"])
def test_real_pages(wiki: str) -> None:
    path = real_path(f"html/enterprise-articles/{wiki}.ndjson.gz")
    check = check_text([str(path)], n_worst=3)
    assert check.counts.pages == len(gzip.decompress(path.read_bytes()).splitlines())
    assert check.sums["found"] >= 0.96 * check.sums["words"]
    assert check.sums["own_words"] - check.sums["found"] <= 0.002 * check.sums["own_words"]
