"""Views of changed facts: the properties that have questions, and single facts with their old and new proofs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from mapping.document import Paragraph, Section, TableSection
from mapping.facts import OUTCOMES, PROBLEMS, SIDES
from mapping.inspector.about import stored_report
from mapping.inspector.listing import Card, KindViews, Listing, Row, render_card
from mapping.inspector.opened import OpenRelease
from mapping.inspector.qampari import proof_shown
from mapping.write.kind import REPORT


def about_facts(opened: OpenRelease) -> Iterator[Section]:
    """Shows which properties have questions."""
    properties = stored_report(opened)["properties"]
    of_properties = tuple(
        (
            name,
            own["label"] or "–",
            own["question"],
            *(own[side][n] for side in SIDES for n in own[side]),
        )
        for name, own in properties.items()
        if own["question"] is not None
    )
    n_others = len(properties) - len(of_properties)
    others = Paragraph(f"{n_others:,} further properties have no question; {REPORT} counts their statements.")
    columns = ("property", "label", "question", "old", "old without page", "new", "new without page")
    table = TableSection("Statements about items, in either release of Wikidata", columns, of_properties)
    linked = table.linked(property=lambda row: opened.url("tables/facts", property_id=row["property"]))
    yield Section("Properties", (linked, others))


def show_fact(request: Request, opened: OpenRelease, card: Card) -> Response:
    """Shows a fact: the answers of each release, with the proofs in their pages."""
    row = card.row
    sides = [
        (
            side,
            opened.values[side]["dump_date"],
            opened.sources.get(side, opened),
            _page_url(opened, row, side),
            [
                (answer, None if answer["proof"] is None else proof_shown(answer["proof"], opened.sources.get(side)))
                for answer in row[f"{side}_answers"]
            ],
        )
        for side in SIDES
    ]
    meaning = {**OUTCOMES, **PROBLEMS}
    return render_card(
        request,
        opened,
        card,
        "fact.html",
        title=row["question"],
        sides=sides,
        meaning=meaning,
    )


def _page_url(opened: OpenRelease, row: Row, side: str) -> str | None:
    source = opened.sources.get(side)
    return None if source is None or row[f"{side}_page_id"] is None else source.page_url(row[f"{side}_page_id"])


def _texts(answers: str) -> str:
    return f"array_to_string([coalesce(answer.text, answer.value) for answer in {answers}], ', ')"


FACTS_VIEWS = KindViews(
    about=about_facts,
    apart=("counts", *SIDES),
    listings={
        "facts": Listing(
            label="Facts",
            columns=("question", "outcome", "problem", "old", "new", "item_id", "property_id"),
            facets=("outcome", "problem", "property"),
            searched=("question", "old_title", "new_title"),
            computed={"old": _texts("old_answers"), "new": _texts("new_answers")},
            led_by="question",
            links={f"{side}_page_id": partial(_page_url, side=side) for side in SIDES},
            notes=lambda row: {"outcome": OUTCOMES[row["outcome"]], "problem": PROBLEMS.get(row["problem"] or "", "")},
            card=show_fact,
        ),
    },
)
