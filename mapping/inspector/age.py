"""Shows the age of a benchmark: how much of its evidence each release still contains, by topic, and when evidence was
lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mapping.age import FATES, STANDING, said_half_life
from mapping.document import Chart, Charts, Facts, Section, Table, share
from mapping.inspector.about import about_sections, other_values, report_of
from mapping.inspector.frame import KindViews
from mapping.inspector.listing import Listing, Row
from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened

_BY = {"dataset": "dataset", "infobox": "first infobox of the page", "size": "size of the page"}
"""Groups of evidence, by column of ``fates``."""
_SAID = f"Evidence stands where it is {', '.join(name.replace('_', ' ') for name in STANDING)}."


def about_age(opened: Opened) -> Iterator[Section]:
    """Yields the sections of the report and of the release."""
    report = report_of(opened)
    dates = [release["dump_date"] for release in report["releases"]]
    for every in report["groups"]["all"]:
        yield Section("How much stands", (_facts(every), _chart(every, dates), _table(opened, every, dates)))
    for name, said in _BY.items():
        groups = report["groups"][name]
        if groups:
            yield Section(f"By {said}", (_groups(opened, name, groups, dates),))
    meanings = tuple((name, meaning) for name, meaning in FATES.items())
    yield Section("What each fate means", (Table("Fates", ("fate", "meaning"), meanings),))
    yield from about_sections(opened, has_counts=True)
    yield other_values(opened, ("counts", "releases"))


def _facts(every: Mapping[str, Any]) -> Facts:
    return Facts(
        (
            ("pieces of evidence", every["evidence"]),
            ("half-life, with the bounds of 95 %", said_half_life(every["half_life_years"])),
            ("stand in the last release", share(every["standing"][-1], every["evidence"])),
        )
    )


def _chart(every: Mapping[str, Any], dates: list[str]) -> Charts:
    rows = tuple((day, share(n, every["evidence"])) for day, n in zip(dates, every["standing"], strict=True))
    table = Table("Evidence that stands, by release", ("release", "stands"), rows)
    return Charts((Chart(table=table, about=_SAID),))


def _table(opened: Opened, every: Mapping[str, Any], dates: list[str]) -> Table:
    fates = [fate for fate in FATES if any(own[fate] for own in every["fates"])]
    rows = tuple(
        (day, share(n, every["evidence"]), *(own[fate] for fate in fates))
        for day, n, own in zip(dates, every["standing"], every["fates"], strict=True)
    )
    columns = ("release", "stands", *(fate.replace("_", " ") for fate in fates))
    links = {
        fate.replace("_", " "): lambda row, fate=fate: opened.url("tables/fates", dump_date=row["release"], fate=fate)
        for fate in fates
    }
    return Table("What became of the evidence", columns, rows).linked(**links)


def _groups(opened: Opened, name: str, groups: list[dict[str, Any]], dates: list[str]) -> Table:
    rows = tuple(
        (
            group["name"],
            group["evidence"],
            *(share(n, group["evidence"]) for n in group["standing"]),
            said_half_life(group["half_life_years"]),
        )
        for group in groups
    )
    table = Table("Share that stands, and half-life", (name, "evidence", *dates, "half-life"), rows)
    return table.linked(**{name: lambda row: opened.url("tables/fates", **{name: _value(row[name])})})


def _value(name: str) -> str:
    """Returns the value in URLs for the name of a group."""
    return "-" if name in ("none", "never there") else name


def _to_page(opened: Opened, row: Row) -> str | None:
    """Returns the URL of the page in the release of a row, with the text marked, or None if that release is not
    open."""
    releases = opened.values["releases"]
    source = opened.sources.get(releases[row["release"]]["manifest_sha256"])
    if source is None or row["page_id"] is None:
        return None
    if row["start_element"] is None:
        return source.page_url(row["page_id"])
    place = (row["start_element"], row["start_char"], row["end_element"], row["end_char"])
    return source.page_url(row["page_id"], [Span(*place, row["fate"])])


AGE_VIEWS = KindViews(
    about=about_age,
    listings={
        "fates": Listing(
            label="Evidence",
            columns=(
                *("example_id", "question", "dump_date", "fate", "fell"),
                *("evidence_text", "title", "last_title", "section", "score"),
            ),
            facets=("dump_date", "fate", "fell", "dataset", "infobox", "size"),
            searched=("example_id", "question", "evidence_text", "title", "last_title", "page_value"),
            notes=lambda row: {"fate": FATES[row["fate"]]},
            links={"title": _to_page, "page_id": _to_page},
        ),
    },
)
