"""Views of AmbER sets: what became of names, the list of sets, and each set with its head beside the tails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kbsource.release.manifest import ListingManifest
from mapping.amber.kind import AMBER_SETS
from mapping.amber.records import TASKS
from mapping.amber.schema import OUTCOMES
from mapping.inspector.derived.asked import asked_text, given, neighbours
from mapping.inspector.derived.count_steps import Step
from mapping.inspector.derived.in_page import InPage, in_page
from mapping.inspector.derived.listed_table import ListedTable, listed_table
from mapping.inspector.derived.row_index import Numbers, TableRows
from mapping.inspector.frame import Crumb, Tab, View, Views, paging, render
from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened

_SPAN = ("start_element", "start_char", "end_element", "end_char")


class TupleShown(NamedTuple):
    """A property that tells an entity apart.

    Attributes:
        row: of the table ``tuples``.
        place: what is around the span that says it, in its page.
    """

    row: Mapping[str, Any]
    place: InPage


class EntityShown(NamedTuple):
    """An entity of a set.

    Attributes:
        row: as the set has it.
        views: of its page, out of the popularity.
        share: of the views of the most popular one.
        pages: its pages, each with its address; None where their release is not open.
        tuples: what tells it apart.
        queries: about it, by task.
    """

    row: Mapping[str, Any]
    views: int
    share: float
    pages: list[tuple[Mapping[str, Any], str | None]]
    tuples: list[TupleShown]
    queries: Mapping[str, list[Mapping[str, Any]]]


def _sets(opened: Opened) -> ListedTable:
    return listed_table(opened, "sets", ("collection",))


def _names(opened: Opened) -> ListedTable:
    return listed_table(opened, "names", ("collection", "outcome"))


def show_funnel(request: Request, opened: Opened) -> Response:
    """Shows what became of the names of each collection."""
    names = _names(opened)
    collections = names.index.values["collection"]
    return render(
        request,
        opened,
        "amber/funnel.html",
        title="Outcomes",
        n_names=len(names.rows),
        n_sets=len(_sets(opened).rows),
        funnels=[(collection, list(_funnel(names, collection))) for collection in collections],
    )


def _funnel(names: ListedTable, collection: str) -> Iterator[Step]:
    mask = names.mask({"collection": collection})
    n_all, counts = int(mask.sum()), names.index.counts("outcome", mask)
    yield Step("names", n_all, n_all, query={"collection": collection})
    for outcome, meaning in OUTCOMES.items():
        if n := counts.get(outcome, 0):
            yield Step(outcome, n, n_all, 1, meaning, {"collection": collection, "outcome": outcome})


def show_names(request: Request, opened: Opened) -> Response:
    """Shows names that several entities share, a page of them."""
    names = _names(opened)
    wanted = {name: asked_text(request, name) for name in ("collection", "outcome")}
    name = asked_text(request, "name")
    numbers = names.chosen(wanted, containing={"name": name})
    pages = paging(request, len(numbers))
    return render(
        request,
        opened,
        "amber/names.html",
        title="Names",
        facets={column: names.choices(column) for column in wanted},
        query=given(wanted | {"name": name}),
        paging=pages,
        rows=names.rows.rows(numbers[pages.start : pages.end].tolist()),
        meanings=OUTCOMES,
    )


def show_sets(request: Request, opened: Opened) -> Response:
    """Shows sets, a page of them."""
    sets, query = _sets(opened), _set_query(request)
    numbers = _chosen_sets(sets, query)
    pages = paging(request, len(numbers))
    listed = numbers[pages.start : pages.end].tolist()
    return render(
        request,
        opened,
        "amber/sets.html",
        title="Sets",
        facets={"collection": sets.choices("collection")},
        query=query,
        paging=pages,
        rows=[(number, row, _by_popularity(row)) for number, row in zip(listed, sets.rows.rows(listed), strict=True)],
    )


def _set_query(request: Request) -> dict[str, str]:
    return given({name: asked_text(request, name) for name in ("collection", "name")})


def _chosen_sets(sets: ListedTable, query: Mapping[str, str]) -> Numbers:
    return sets.chosen({"collection": query.get("collection", "")}, containing={"name": query.get("name", "")})


def _by_popularity(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sorted(row["entities"], key=lambda entity: (-entity["popularity"], entity["qid"]))


def show_set(request: Request, opened: Opened) -> Response:
    """Shows one set: its entities side by side, the most popular first."""
    sets, query = _sets(opened), _set_query(request)
    number = int(request.path_params["number"])
    if number >= len(sets.rows):
        raise HTTPException(404, f"There is no set {number:,}: the table has {len(sets.rows):,}.")
    row = sets.row(number)
    assert isinstance(opened.manifest, ListingManifest)
    return render(
        request,
        opened,
        "amber/set.html",
        title=row["name"],
        crumbs=[Crumb("Sets", opened.url("sets", **query))],
        number=number,
        row=row,
        query=query,
        near=neighbours(_chosen_sets(sets, query), number),
        entities=_entities(opened, row),
        tasks={"qa": "Questions", "sf": "Slots", "fc": "Claims"},
        made_from=opened.manifest.facts.get("release") or {},
    )


def _entities(opened: Opened, row: Mapping[str, Any]) -> list[EntityShown]:
    beside = {
        table: [
            one
            for one in TableRows.of(opened.path, opened.manifest, table, opened.storage).with_value("name", row["name"])
            if one["collection"] == row["collection"]
        ]
        for table in ("tuples", "set_queries")
    }
    entities = _by_popularity(row)
    return [
        EntityShown(
            entity,
            round(10 ** entity["popularity"]),
            10 ** (entity["popularity"] - entities[0]["popularity"]),
            [
                (page, opened.page_url(int(page["wikipedia_id"])) if opened.pages is not None else None)
                for page in entity["wikipedia"]
            ],
            [TupleShown(one, _place(opened, entity, one)) for one in beside["tuples"] if one["qid"] == entity["qid"]],
            {
                task: [one for one in beside["set_queries"] if (one["task"], one["qid"]) == (task, entity["qid"])]
                for task in TASKS
            },
        )
        for entity in entities
    ]


def _place(opened: Opened, entity: Mapping[str, Any], row: Mapping[str, Any]) -> InPage:
    """Gives what is around the span of a tuple, which stands in the page of the entity."""
    if row["start_element"] is None or not entity["wikipedia"]:
        return InPage("", "", None)
    start, start_char, end, end_char = (row[name] for name in _SPAN)
    span = Span(start, start_char, end, end_char, row["property"])
    return in_page(opened, int(entity["wikipedia"][0]["wikipedia_id"]), span, row["text"])


AMBER_VIEWS = Views(
    kinds=(AMBER_SETS,),
    views=(
        View("/outcomes", show_funnel),
        View("/names", show_names),
        View("/sets", show_sets),
        View("/sets/{number:int}", show_set),
    ),
    tabs=(Tab("Outcomes", "outcomes"), Tab("Sets", "sets"), Tab("Names", "names")),
)
