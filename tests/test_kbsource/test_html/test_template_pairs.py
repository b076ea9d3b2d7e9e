"""Uses of templates, each with what readers see and what the rules make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.html.paired_pages import PairedPage
from kbsource.html.template_pairs import CallPair, PairReader, pair_templates
from kbsource.site import Site
from tests.support.real_data import real_path
from tests.support.snapshots import document, paired, record, write_lines

READER = PairReader(Site(lang="en", dbname="enwiki"))


def call(number: int, *parts: object) -> str:
    data = json.dumps({"parts": parts}).replace("'", "&#39;")
    return f"about='#mwt{number}' typeof='mw:Transclusion' data-mw='{data}'"


def template(name: str, **values: str) -> dict[str, object]:
    return {"template": {"target": {"wt": name}, "params": {key: {"wt": value} for key, value in values.items()}}}


def pairs(body: str) -> list[CallPair]:
    return list(READER.pairs(PairedPage("Ada", "2026-01-02T03:04:05Z", document(body), "")).pairs)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # rendered as on the page: words are compared, not signs
        (
            f"<p>It is <i {call(1, template('convert', **{'1': '5', '2': 'km'}))}>5 kilometres [3.1&nbsp;mi]</i></p>",
            [
                CallPair(
                    "Convert", "rendered", "{{convert|5|km}}", "5 kilometres [3.1 mi]", "5 kilometres (3.1 mi)", True
                )
            ],
        ),
        (
            f"<p>It <span {call(1, template('nowrap', **{'1': 'is so'}))}>is&nbsp;so</span></p>",
            [CallPair("Nowrap", "rendered", "{{nowrap|is so}}", "is so", "is so", True)],
        ),
        # unknown
        (
            f"<p>It fell on <span {call(1, template('unheard of', day='1', x='2'))}>a Sunday</span>.</p>",
            [CallPair("Unheard of", "unknown", "{{unheard of|day=1|x=2}}", "a Sunday", "", False)],
        ),
        # nothing of it is text, neither here nor there
        (
            f"<link {call(1, template('navbox', list='a'))}/><div class='navbox' about='#mwt1'>abc</div>",
            [CallPair("Navbox", "dropped", "{{navbox|list=a}}", "", "", True)],
        ),
        # lines and elements of one use are one text
        (
            f"<ul {call(1, template('unheard of'))}><li>one</li><li>two</li></ul><p about='#mwt1'>three</p><p>four</p>",
            [CallPair("Unheard of", "unknown", "{{unheard of}}", "one two three", "", False)],
        ),
        # several templates that make one piece, functions, cells, and uses within others are left out
        (f"<div {call(1, template('a'), ' text ', template('b'))}>x</div>", []),
        (f"<p><i {call(1, {'template': {'target': {'wt': '#if:x', 'function': 'if'}}})}>x</i></p>", []),
        (f"<table><tr><td><i {call(1, template('a'))}>x</i></td></tr></table>", []),
        (
            f"<p><b {call(1, template('outer'))}>a <i {call(2, template('inner'))}>b</i></b></p>",
            [CallPair("Outer", "unknown", "{{outer}}", "a b", "", False)],
        ),
    ],
)
def test_uses_in_running_text(body: str, expected: list[CallPair]) -> None:
    assert pairs(body) == expected


def test_templates_and_uses_that_differ_come_first(tmp_path: Path) -> None:
    number = iter(range(1, 100))

    def used(name: str, value: str, shown: str, times: int = 1) -> str:
        own = template(name, **{"1": value})
        return "".join(f"<p>x <i {call(next(number), own)}>{shown}</i> y</p>" for _ in range(times))

    first = used("seen", "1 2", "a") + used("nowrap", "so", "so", 5)
    second = (
        used("seen", "3 4", "b", 2) + used("heard", "5 6", "c", 4) + used("nowrap", "no", "yes") + used("seen", "", "")
    )
    records = [
        record(1, "Ada", first),
        paired(second, "x", page_id=2, title="Bo"),
        record(3, "Gone", "<p>x</p>", visibility={"text": False}),
    ]
    found = pair_templates([str(write_lines(tmp_path / "a.ndjson", records))], n_templates=9, n_calls=9)
    assert (found.uses, found.differing, found.n_templates, found.n_differing_templates) == (14, 8, 3, 3)
    assert (found.counts.pages, found.counts.rejected) == (2, {"text_deleted": 1})
    rows = [(row["template"], row["uses"], row["differing"], row["pages"]) for row in found.templates]
    assert rows == [("Heard", 4, 4, 1), ("Seen", 4, 3, 2), ("Nowrap", 6, 1, 2)]
    calls = [(own["call"], own["shown"], own["own"], own["uses"], own["page"]) for own in found.templates[1]["calls"]]
    assert calls == [
        ("{{seen|3 4}}", "b", "", 2, "Bo"),
        ("{{seen|1 2}}", "a", "", 1, "Ada"),
        ("{{seen|}}", "", "", 1, "Bo"),
    ]
    assert [own["is_same"] for own in found.templates[2]["calls"]] == [False, True]

    short = pair_templates([str(tmp_path / "a.ndjson")], n_templates=2, n_calls=1)
    assert short.templates == [{**row, "calls": row["calls"][:1]} for row in found.templates[:2]]
    assert (short.uses, short.n_templates) == (14, 3)


def test_real_pages() -> None:
    found = pair_templates([str(real_path("html/enterprise-articles/dewiki.ndjson.gz"))], n_templates=3, n_calls=2)
    assert found.templates[0]["template"] == "Literatur"
    assert 10 <= found.differing <= found.uses // 2
