"""The age of a benchmark: half-lives by topic of the evidence, and when evidence was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mapping.age import FATES, half_life_text
from mapping.document import Cell, Facts, Section, TableSection, share
from mapping.inspector.about import stored_report
from mapping.inspector.listing import KindViews, Listing, Row
from mapping.inspector.marking import MarkedRange
from mapping.inspector.opened import OpenRelease

_BY = {"dataset": "dataset", "infobox": "first infobox of the page", "size": "size of the page"}
"""Groups of evidence, by column of ``fates``."""


def about_age(opened: OpenRelease) -> Iterator[Section]:
    """Shows half-lives, of all evidence and by group."""
    report = stored_report(opened)
    dates = [release["dump_date"] for release in report["releases"]]
    for every in report["groups"]["all"]:
        facts: tuple[tuple[str, Cell], ...] = (
            ("pieces of evidence", every["evidence"]),
            ("half-life, with the bounds of 95 %", half_life_text(every["half_life_years"])),
            ("present in the last release", share(every["present"][-1], every["evidence"])),
        )
        yield Section("Evidence still present", (Facts(facts),))
    for name, said in _BY.items():
        groups = report["groups"][name]
        if groups:
            yield Section(f"By {said}", (_groups(opened, name, groups, dates),))


def _groups(opened: OpenRelease, name: str, groups: list[dict[str, Any]], dates: list[str]) -> TableSection:
    rows = tuple(
        (
            group["name"],
            group["evidence"],
            *(share(n, group["evidence"]) for n in group["present"]),
            half_life_text(group["half_life_years"]),
        )
        for group in groups
    )
    table = TableSection("Share still present, and half-life", (name, "evidence", *dates, "half-life"), rows)
    return table.linked(**{name: lambda row: opened.url("tables/fates", **{name: _value(row[name])})})


def _value(name: str) -> str:
    """Returns the value in URLs for the name of a group."""
    return "-" if name in ("none", "never there") else name


def _to_page(opened: OpenRelease, row: Row) -> str | None:
    """Returns the URL of the page in the release of a row, with the text marked, or None if that release is not
    open."""
    releases = opened.values["releases"]
    source = opened.sources.get(releases[row["release"]]["manifest_sha256"])
    if source is None or row["page_id"] is None:
        return None
    if row["start_element"] is None:
        return source.page_url(row["page_id"])
    place = (row["start_element"], row["start_char"], row["end_element"], row["end_char"])
    return source.page_url(row["page_id"], [MarkedRange(*place, row["fate"])])


AGE_VIEWS = KindViews(
    about=about_age,
    apart=("counts", "releases"),
    listings={
        "fates": Listing(
            label="Evidence",
            columns=(
                *("example_id", "question", "dump_date", "fate", "newly_lost"),
                *("evidence_text", "title", "last_title", "section", "score"),
            ),
            facets=("dump_date", "fate", "newly_lost", "dataset", "infobox", "size"),
            searched=("example_id", "question", "evidence_text", "title", "last_title", "page_value"),
            notes=lambda row: {"fate": FATES[row["fate"]]},
            links={"title": _to_page, "page_id": _to_page},
        ),
    },
)
