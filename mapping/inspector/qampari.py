"""Views of QAMPARI releases: the counts that only the report contains, and single questions with their proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from mapping.document import Section, TableSection, flat_values
from mapping.inspector.about import stored_report
from mapping.inspector.frame import paging
from mapping.inspector.listing import Card, KindViews, Listing, Row, render_card
from mapping.inspector.marking import MarkedRange
from mapping.inspector.opened import InPage, OpenRelease, in_page
from mapping.qampari.measures import meaning
from mapping.qampari.selection import KEPT
from mapping.write.kind import REPORT

_ANSWERS_A_PAGE = 20
_SHOWN_ELSEWHERE = {"questions", "funnel", "types", "types_without_class"}
"""Values of the report that are not repeated, because the measures show them or because they are long."""


class ProofShown(NamedTuple):
    """A proof: its row, the sentence that names the answer or entity, the sentences before it, and the context in the
    page."""

    row: Mapping[str, Any]
    lead: str
    sentence: str
    place: InPage


def about_questions(opened: OpenRelease) -> Iterator[Section]:
    """Shows the counts in the report of the release that no measure shows."""
    if any(entry.file == REPORT for entry in opened.manifest.files):
        report = stored_report(opened)
        others = {name: value for name, value in report.items() if name not in _SHOWN_ELSEWHERE}
        table = TableSection("Counts of the job", ("name", "value"), tuple(flat_values(others)))
        yield Section("Other counts", (table,), is_folded=True)


def show_question(request: Request, opened: OpenRelease, card: Card) -> Response:
    """Shows one question with its answers, each with its proofs in their pages."""
    row = card.row
    pages = paging(request, len(row["answers"]), n_rows=_ANSWERS_A_PAGE)
    return render_card(
        request,
        opened,
        card,
        "question.html",
        title=row["qid"] or row["key"],
        paging=pages,
        answers=[
            (answer, [proof_shown(proof, opened) for proof in answer["proofs"]])
            for answer in row["answers"][pages.start : pages.end]
        ],
        made_from=opened.values.get("release") or {},
    )


def proof_shown(proof: Mapping[str, Any], opened: OpenRelease | None) -> ProofShown:
    """Returns a proof in its page, if pages are open."""
    text, start, element = proof["text"], proof["start_char"], proof["element"]
    at = max(0, min(proof["sentence_char"] - start, len(text)))
    span = MarkedRange(element, start, element, proof["end_char"], "proof")
    place = InPage() if opened is None else in_page(opened, proof["page_id"], span, text)
    return ProofShown(proof, text[:at], text[at:], place)


def _question_of(opened: OpenRelease, row: Row) -> str | None:
    return opened.url("tables/questions", subset=row["subset"], key=row["key"]) if row["outcome"] == KEPT else None


def _add_question(_: OpenRelease, rows: list[Row]) -> None:
    for row in rows:
        row["question"] = row["paraphrase"] or row["question_text"]


QAMPARI_VIEWS = KindViews(
    about=about_questions,
    listings={
        "questions": Listing(
            label="Questions",
            columns=("question", "subset", "split", "n_validated", "n_answers", "qid"),
            facets=("subset", "split"),
            searched=("question_text", "paraphrase", "key", "qid"),
            prepare=_add_question,
            prepared=("question",),
            led_by="question",
            card=show_question,
        ),
        "queries": Listing(
            label="Queries",
            columns=("key", "subset", "outcome", "n_answers", "n_with_page", "n_aligned", "n_validated"),
            facets=("subset", "outcome"),
            searched=("key", "type_label"),
            links={"key": _question_of},
            notes=lambda row: {"outcome": meaning(row["subset"], row["outcome"])},
        ),
    },
)
