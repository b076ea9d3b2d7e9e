"""Views of QAMPARI releases: what became of the queries, the list of questions, and each of them with its proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kbsource.release.manifest import ListingManifest
from mapping.inspector.derived.asked import asked_sort, asked_text, given, neighbours
from mapping.inspector.derived.count_steps import Step
from mapping.inspector.derived.in_page import InPage, in_page, title_url
from mapping.inspector.derived.listed_table import ListedTable, listed_table
from mapping.inspector.derived.row_index import Numbers
from mapping.inspector.frame import Crumb, Tab, View, Views, paging, render
from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.lists.table_questions import REASONS
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import KEPT, OUTCOMES

_ANSWERS_A_PAGE = 20
_STAGES = {
    "n_answers": "answers that Wikidata, or the table, has",
    "n_with_page": "with a page",
    "n_aligned": "with a sentence that may prove it",
    "n_validated": "that a text proves",
}
_SORTS = {"": "order of the table", "most": "most answers first", "fewest": "fewest answers first"}
_LISTED = ("subset", "question_text", "paraphrase", "n_answers", "n_validated", "n_dropped", "split", "qid")


class ProofShown(NamedTuple):
    """A proof.

    Attributes:
        row: as the table has it.
        lead: its sentences in front of the one that names answer or entity.
        sentence: that one.
        place: what is around it in its page.
    """

    row: Mapping[str, Any]
    lead: str
    sentence: str
    place: InPage


def _questions(opened: Opened) -> ListedTable:
    return listed_table(opened, "questions", ("subset", "split"), ("n_validated",))


def _queries(opened: Opened) -> ListedTable:
    return listed_table(opened, "queries", ("subset", "outcome"), tuple(_STAGES))


def show_funnel(request: Request, opened: Opened) -> Response:
    """Shows what became of the queries of each kind of question, and of their answers."""
    queries = _queries(opened)
    subsets = queries.index.values["subset"]
    return render(
        request,
        opened,
        "qampari/funnel.html",
        title="Outcomes",
        n_queries=len(queries.rows),
        n_questions=len(_questions(opened).rows),
        funnels=[(subset, [*_funnel(queries, subset), *_answers(queries, subset)]) for subset in subsets],
    )


def _funnel(queries: ListedTable, subset: str) -> Iterator[Step]:
    mask = queries.mask({"subset": subset})
    n_all, counts = int(mask.sum()), queries.index.counts("outcome", mask)
    yield Step("queries", n_all, n_all, query={"subset": subset})
    for outcome, n in sorted(counts.items(), key=lambda pair: (pair[0] != KEPT, -pair[1], pair[0])):
        if n:
            yield Step(outcome, n, n_all, 1, _meaning(subset, outcome), {"subset": subset, "outcome": outcome})


def _meaning(subset: str, outcome: str) -> str:
    """Gives what an outcome of a query means; of those about tables some have a meaning of their own."""
    own = REASONS if subset in (TABLE_SIMPLE, TABLE_COMPOSITION) else {}
    return own.get(outcome) or OUTCOMES.get(outcome, "")


def _answers(queries: ListedTable, subset: str) -> Iterator[Step]:
    mask = queries.mask({"subset": subset})
    n_all = queries.index.total("n_answers", mask) or 0
    for name, label in _STAGES.items():
        if (n := queries.index.total(name, mask)) is not None:
            yield Step(label, n, n_all, int(name != "n_answers"))


def show_queries(request: Request, opened: Opened) -> Response:
    """Shows queries that were considered, a page of them."""
    queries = _queries(opened)
    wanted = {name: asked_text(request, name) for name in ("subset", "outcome")}
    key = asked_text(request, "key")
    numbers = queries.chosen(wanted, containing={"key": key})
    pages = paging(request, len(numbers))
    return render(
        request,
        opened,
        "qampari/queries.html",
        title="Queries",
        facets={name: queries.choices(name) for name in wanted},
        query=given(wanted | {"key": key}),
        paging=pages,
        rows=queries.rows.rows(numbers[pages.start : pages.end].tolist()),
        meaning=_meaning,
        kept=KEPT,
    )


def show_questions(request: Request, opened: Opened) -> Response:
    """Shows questions, a page of them."""
    questions, query = _questions(opened), _question_query(request)
    numbers = _chosen_questions(questions, query)
    pages = paging(request, len(numbers))
    listed = numbers[pages.start : pages.end].tolist()
    return render(
        request,
        opened,
        "qampari/questions.html",
        title="Questions",
        facets={name: questions.choices(name) for name in ("subset", "split")},
        query=given(query),
        sorts=_SORTS,
        paging=pages,
        rows=list(zip(listed, questions.rows.rows(listed, _LISTED), strict=True)),
    )


def _question_query(request: Request) -> dict[str, str]:
    query = {name: asked_text(request, name) for name in ("subset", "split", "text", "key")}
    return {**query, "sort": asked_sort(request, _SORTS)}


def _chosen_questions(questions: ListedTable, query: Mapping[str, str]) -> Numbers:
    return questions.chosen(
        {name: query[name] for name in ("subset", "split")},
        equal={"key": query["key"]},
        containing={"question_text": query["text"]},
        by="n_validated" if query["sort"] else None,
        is_falling=query["sort"] == "most",
    )


def show_question(request: Request, opened: Opened) -> Response:
    """Shows one question with its answers, each with its proofs in their pages."""
    questions, query = _questions(opened), _question_query(request)
    number = int(request.path_params["number"])
    if number >= len(questions.rows):
        raise HTTPException(404, f"There is no question {number:,}: the table has {len(questions.rows):,}.")
    row = questions.row(number)
    pages = paging(request, len(row["answers"]), n_rows=_ANSWERS_A_PAGE)
    assert isinstance(opened.manifest, ListingManifest)
    return render(
        request,
        opened,
        "qampari/question.html",
        title=row["qid"] or row["key"],
        crumbs=[Crumb("Questions", opened.url("questions", **given(query)))],
        number=number,
        row=row,
        query=given(query),
        near=neighbours(_chosen_questions(questions, query), number),
        paging=pages,
        entities=[(entity, title_url(entity["title"], opened)) for entity in row["entities"]],
        answers=[
            (
                answer,
                title_url(answer["title"], opened),
                [_proof_shown(proof, opened) for proof in answer["proofs"]],
            )
            for answer in row["answers"][pages.start : pages.end]
        ],
        made_from=opened.manifest.facts.get("release") or {},
    )


def _proof_shown(proof: Mapping[str, Any], opened: Opened) -> ProofShown:
    text, start, element = proof["text"], proof["start_char"], proof["element"]
    at = max(0, min(proof["sentence_char"] - start, len(text)))
    span = Span(element, start, element, proof["end_char"], "proof")
    return ProofShown(proof, text[:at], text[at:], in_page(opened, proof["page_id"], span, text))


QAMPARI_VIEWS = Views(
    kinds=(QAMPARI_RELEASE,),
    views=(
        View("/outcomes", show_funnel),
        View("/queries", show_queries),
        View("/questions", show_questions),
        View("/questions/{number:int}", show_question),
    ),
    tabs=(Tab("Outcomes", "outcomes"), Tab("Questions", "questions"), Tab("Queries", "queries")),
)
