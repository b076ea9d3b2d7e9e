"""Views of AmbER sets: the counts that only the report contains, and single sets with head and tails side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from kbsource.errors import DataError, counted
from mapping.amber.measures import RANKS_TEXT
from mapping.amber.records import OUTCOMES, TASKS
from mapping.document import Block, Chart, Charts, Section, TableSection, bars, flat_values
from mapping.inspector.about import stored_report
from mapping.inspector.listing import Card, KindViews, Listing, Row, Rows, render_card, row_values
from mapping.inspector.marking import MarkedRange
from mapping.inspector.opened import InPage, OpenRelease, in_page

_LARGEST_POPULARITY = 18
"""Maximum popularity of a page that can be shown: the decimal logarithm of its views."""
_PAGE_ID = re.compile("[0-9]{1,18}")
_SPAN = ("start_element", "start_char", "end_element", "end_char")


class EntityShown(NamedTuple):
    """An entity of a set."""

    row: Mapping[str, Any]
    views: int  #: page views, derived from the popularity
    share: float  #: share of the views of the most popular entity of the set
    #: distinguishing facts: rows of ``tuples``, each with the text around its span
    tuples: list[tuple[Mapping[str, Any], InPage]]
    queries: Mapping[str, list[Mapping[str, Any]]]  #: queries about the entity, by task


def about_sets(opened: OpenRelease) -> Iterator[Section]:
    """Shows counts that are only in the report: of all tuples, including those of names without a set, and of all
    entities.
    """
    report: dict[str, Any] = stored_report(opened)
    for name, of in report.get("collections", {}).items():
        if blocks := tuple(_of_tuples(opened, of)):
            yield Section(f"Tuples of the collection {name}", blocks, is_folded=True)
    if "entities" in report:
        counts = TableSection("Counts", ("name", "value"), tuple(flat_values(report["entities"])))
        popularity = report.get("popularity")
        charts = (_popularity_chart(by_rank(popularity)),) if popularity else ()
        yield Section("Entities and page views", (counts, *charts), is_folded=True)


def _of_tuples(opened: OpenRelease, report: Mapping[str, Any]) -> Iterator[Block]:
    if shares := report["statistics"]["shares"]:
        order = sorted(shares, key=lambda key: (-shares[key]["made"], key))
        both = ((key, shares[key]["made"], shares[key]["published"]) for key in order)
        columns: tuple[str, ...] = ("type and property", "here", "AmbER paper")
        said = "Per cent of the tuples, with the paper's figure if it reports one."
        yield bars("Tuples by type and property", columns, both, said)
    bands = list(_bands(report["signals"]))
    verdicts = sorted({verdict for *_, cells in bands for verdict in cells})
    if bands:
        columns = (
            "property",
            "value in the passage",
            "BLEU from",
            *(verdict.replace("_", " ") for verdict in verdicts),
        )
        rows = tuple((*band[:3], *(band[3].get(verdict, 0) for verdict in verdicts)) for band in bands)
        yield TableSection("Tuples by property: value found, BLEU and verdict", columns, rows).linked(
            property=lambda row: opened.entity_url(row["property"])
        )


def _popularity_chart(views: Mapping[int, int]) -> Charts:
    rows = tuple((f"{rank:,}", math.log10(n)) for rank, n in views.items())
    table = TableSection("Page views of all entities, by rank", ("rank", "decimal logarithm of the views"), rows)
    return Charts((Chart(table=table, about=RANKS_TEXT),))


def ranks(n: int) -> Iterator[int]:
    """Lists the ranks that are shown if there are ``n`` entities: 1, 2 and 5 times powers of ten, and the last.

    >>> list(ranks(30))
    [1, 2, 5, 10, 20, 30]
    """
    steps = (step * 10**power for power in range(20) for step in (1, 2, 5))
    yield from takewhile(lambda rank: rank < n, steps)
    if n:
        yield n


def by_rank(n_with: Mapping[str, int]) -> dict[int, int]:
    """Returns the views of the entities at some ranks, rounded down to a power of two.

    Args:
        n_with: number of entities with at least this many views, by powers of two.

    >>> by_rank({"1": 4, "8": 2, "64": 1})
    {1: 64, 2: 8, 4: 1}
    """
    falling = sorted(((int(views), n) for views, n in n_with.items()), reverse=True)
    return {rank: next(views for views, n in falling if n >= rank) for rank in ranks(max(n_with.values(), default=0))}


def _bands(signals: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, int]]]:
    for property_id, of_property in signals.items():
        for is_found, bands in of_property.items():
            for band, verdicts in bands.items():
                yield property_id, is_found.replace("_", " "), band.removeprefix("bleu_").replace("_", " "), verdicts


def show_set(request: Request, opened: OpenRelease, card: Card) -> Response:
    """Shows one set: its entities side by side, the most popular first."""
    return render_card(
        request,
        opened,
        card,
        "set.html",
        title=card.row["name"],
        data={table: list(map(row_values, rows)) for table, rows in _of_set(opened, card.row).items()},
        entities=_entities(opened, card.row),
        tasks={"qa": "Questions", "sf": "Slots", "fc": "Claims"},
        made_from=opened.values.get("release") or {},
    )


def _by_popularity(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sorted(row["entities"], key=lambda entity: (-entity["popularity"], entity["qid"]))


def _views(entity: Mapping[str, Any]) -> int:
    """Returns the page views of an entity; its popularity is their logarithm.

    Raises:
        DataError: no page has so many, or the popularity is not a number.
    """
    popularity: float = entity["popularity"]
    if not abs(popularity) < _LARGEST_POPULARITY:
        raise DataError(
            f"{entity['qid']} has the popularity {popularity}, which is impossible; download the release again."
        )
    return round(10**popularity)


def _of_set(opened: OpenRelease, row: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Returns the rows of a set in the other tables."""
    return {
        table: Rows.of(opened, table, {}).with_value(name=row["name"], collection=row["collection"])
        if table in opened.tables
        else []
        for table in ("tuples", "set_queries")
    }


def _entities(opened: OpenRelease, row: Mapping[str, Any]) -> list[EntityShown]:
    tuples, queries = _of_set(opened, row).values()
    entities = _by_popularity(row)
    return [
        EntityShown(
            entity,
            _views(entity),
            10 ** (entity["popularity"] - entities[0]["popularity"]),
            [(own, _place(opened, entity, own)) for own in tuples if own["qid"] == entity["qid"]],
            {task: [own for own in queries if (own["task"], own["qid"]) == (task, entity["qid"])] for task in TASKS},
        )
        for entity in entities
    ]


def _place(opened: OpenRelease, entity: Mapping[str, Any], row: Mapping[str, Any]) -> InPage:
    """Returns the text around the span of a tuple in the page of its entity."""
    page_id = entity["wikipedia"][0]["wikipedia_id"] if entity["wikipedia"] else ""
    if row["start_element"] is None or not _PAGE_ID.fullmatch(page_id):
        return InPage()
    start, start_char, end, end_char = (row[name] for name in _SPAN)
    span = MarkedRange(start, start_char, end, end_char, row["property"])
    return in_page(opened, int(page_id), span, row["text"])


def _add_roles(_: OpenRelease, rows: list[Row]) -> None:
    """Adds head and tails of sets, each with its page views."""
    for row in rows:
        for name, is_head in (("head", True), ("tails", False)):
            own = [entity for entity in _by_popularity(row) if entity["is_head"] == is_head]
            said = [
                f"{entity['wikipedia'][0]['title'] if entity['wikipedia'] else entity['qid']} "
                f"({counted(_views(entity), 'views')})"
                for entity in own[:3]
            ]
            row[name] = "; ".join([*said, *([f"and {len(own) - 3} more"] if len(own) > 3 else [])])


def _set_of(opened: OpenRelease, row: Row) -> str | None:
    is_set = row.get("outcome", "set") == "set"
    return opened.url("tables/sets", collection=row["collection"], name=row["name"]) if is_set else None


AMBER_VIEWS = KindViews(
    about=about_sets,
    listings={
        "sets": Listing(
            label="Sets",
            columns=("name", "collection", "n_entities", "head", "tails"),
            facets=("collection",),
            searched=("name",),
            computed={"n_entities": "len(entities)"},
            prepare=_add_roles,
            prepared=("head", "tails"),
            needs=("entities",),
            led_by="name",
            card=show_set,
        ),
        "names": Listing(
            label="Names",
            facets=("collection", "outcome"),
            searched=("name",),
            links={"name": _set_of},
            notes=lambda row: {"outcome": OUTCOMES.get(row["outcome"], "")},
        ),
        "tuples": Listing(label="Tuples", facets=("collection", "property"), links={"name": _set_of}),
        "set_queries": Listing(label="Queries", facets=("collection", "task"), links={"name": _set_of}),
    },
)
