"""Shows QAMPARI releases: outcomes of queries and answers with figures of the paper, and single questions with their
proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from mapping.document import (
    ENTAILMENT_BINS,
    Block,
    Chart,
    Charts,
    Paragraph,
    Section,
    Table,
    bars,
    entailment_bin,
    flat_values,
    share,
)
from mapping.inspector.about import about_sections, other_values, report_of
from mapping.inspector.frame import KindViews, paging
from mapping.inspector.listing import Card, Listing, Row, render_card
from mapping.inspector.marking import Span
from mapping.inspector.opened import InPage, Opened, in_page
from mapping.qampari.questions import SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.release import AnswerStatistics
from mapping.qampari.selection import KEPT, OUTCOMES
from mapping.qampari.table_questions import REASONS
from mapping.write.kind import REPORT

_ANSWERS_A_PAGE = 20
_STEPS = {"n_answers": "answers", "n_with_page": "with a page", "n_aligned": "with a sentence", "n_validated": "proved"}
_SAID = {"questions", "funnel", "types", "types_without_class"}
"""Values of the release's report that are left out, because they are counted here or are long."""


class ProofShown(NamedTuple):
    """A proof: its row, the sentences before the one that names answer or entity, that sentence, and the context in the
    page."""

    row: Mapping[str, Any]
    lead: str
    sentence: str
    place: InPage


def about_questions(opened: Opened) -> Iterator[Section]:
    """Yields the outcomes of queries, and the report stored in the release."""
    yield from about_sections(opened, has_counts=True)
    if "queries" in opened.tables:
        yield Section("Funnel", tuple(_funnel(opened)))
    if "questions" in opened.tables:
        yield Section("Questions and answers", tuple(_questions(opened)))
    if any(entry.file == REPORT for entry in opened.manifest.files):
        report = report_of(opened)
        others = {name: value for name, value in report.items() if name not in _SAID}
        table = Table("Counts of the job", ("name", "value"), tuple(flat_values(others)))
        yield Section("Other counts", (table,))
    yield other_values(opened)


def measured_questions(opened: Opened) -> Iterator[Section]:
    """Yields the measures of the proofs."""
    if "questions" not in opened.tables:
        return
    counted = opened.db.execute(
        f"""with proofs as (
            select if(len(property_ids) > 0, property_ids, ['tables']) as properties,
                unnest(flatten([a.proofs for a in answers])).entailment as entailment from questions
            ), named as (select unnest(properties) as property, entailment from proofs)
        select property, {entailment_bin("entailment")}, count(*) from named group by all"""
    ).fetchall()
    counts = {(name, number): n for name, number, n in counted}
    every = opened.db.execute(
        "select distinct unnest(if(len(property_ids) > 0, property_ids, ['tables'])) as p from questions order by p"
    ).fetchall()
    rows = tuple((name, *(counts.get((name, at), 0) for at in range(len(ENTAILMENT_BINS)))) for (name,) in every)
    table = Table("Proofs by property and entailment", ("property", *ENTAILMENT_BINS), rows, is_shaded=True)
    said = Paragraph("Proofs of answers; of a question that rests on two properties, each counts them all.")
    yield Section(
        "Entailment of proofs by property",
        (said, table.linked(property=lambda row: opened.entity_url(row["property"]))),
    )


def meaning(subset: str, outcome: str) -> str:
    """Returns the meaning of a query's outcome. Some outcomes of queries on tables have a meaning of their own."""
    own = REASONS if subset in (TABLE_SIMPLE, TABLE_COMPOSITION) else {}
    return own.get(outcome) or OUTCOMES.get(outcome, "")


def _funnel(opened: Opened) -> Iterator[Block]:
    sums = ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in _STEPS)
    found = opened.db.execute(f"select subset, outcome, count(*), {sums} from queries group by all").fetchall()
    n_queries = {(subset, outcome): n for subset, outcome, n, *_ in found}
    subsets = [subset for subset in SUBSETS if any(subset == known for known, _ in n_queries)]
    names = sorted({outcome for _, outcome in n_queries}, key=lambda name: (name != KEPT, name))
    columns = ("kind of question", "queries", *(name.replace("_", " ") for name in names))
    rows = tuple(
        (
            subset,
            sum(n_queries.get((subset, name), 0) for name in names),
            *(n_queries.get((subset, name), 0) for name in names),
        )
        for subset in subsets
    )

    def listed(outcome: str) -> Any:
        return lambda row: opened.url("tables/queries", subset=row["kind of question"], outcome=outcome or None)

    links = {name.replace("_", " "): listed(name) for name in names} | {"queries": listed("")}
    yield Table("What became of the queries", columns, rows).linked(**links)
    meanings = tuple(
        (
            subset,
            name,
            n_queries[subset, name],
            share(n_queries[subset, name], sum(n for (of, _), n in n_queries.items() if of == subset)),
            meaning(subset, name),
        )
        for subset in subsets
        for name in names
        if (subset, name) in n_queries
    )
    yield Table("What each outcome means", ("kind of question", "outcome", "queries", "share", "meaning"), meanings)
    answers = {
        subset: [sum(row[3 + at] for row in found if row[0] == subset) for at in range(len(_STEPS))]
        for subset in subsets
    }
    is_judged = opened.values.get("model") is not None
    labels = [label if is_judged or name != "n_validated" else "taken unjudged" for name, label in _STEPS.items()]
    steps = tuple((label, sum(own[at] for own in answers.values())) for at, label in enumerate(labels))
    said = "Answers of all queries considered; those of intersections were proved before."
    yield bars("How far answers came", ("step", "answers"), steps, said)
    rows = tuple((subset, *own) for subset, own in answers.items())
    yield Table("How far answers came, by kind of question", ("kind of question", *labels), rows)


def _questions(opened: Opened) -> Iterator[Block]:
    statistics = AnswerStatistics()
    asked = "select subset, split, len(answers), coalesce(paraphrase, question_text) from questions"
    rows_asked = opened.db.execute(asked)
    for subset, split, n, text in iter(rows_asked.fetchone, None):
        statistics.add(subset, split, n, text)
    found = statistics.values()
    answers = found["answers"]
    means = ((name, row["mean"], row["published_mean"]) for name, row in answers.items())
    said = "Mean number of answers, beside that of the published set."
    yield bars("Answers a question", ("questions", "here", "QAMPARI paper"), means, said)
    names = ("questions", "mean", "published_mean", "median", "published_median", "words", "published_words")
    columns = ("questions", "number", "mean", "mean (paper)", "median", "median (paper)", "words", "words (paper)")
    rows: tuple[Any, ...] = tuple((name, *(row[key] for key in names)) for name, row in answers.items())
    yield Table("Answers a question beside the paper", columns, rows)
    sets = ("train", "dev and test")
    bins = [(name, *(answers[one]["distribution"][name] for one in sets)) for name in answers[sets[0]]["distribution"]]
    table = Table("Questions by number of answers", ("answers", *sets), tuple(bins))
    yield Charts((Chart(table=table, about="How many questions have so many answers: the paper's figure 3."),))
    drawn, kept = found["drawn"], found["kept"]
    rows = tuple((kind, n, *(drawn[split].get(kind, 0) for split in drawn)) for kind, n in kept.items())
    yield Table("Questions kept, and drawn by split", ("kind of question", "kept", *drawn), rows).linked(
        kept=lambda row: opened.url("tables/questions", subset=row["kind of question"])
    )


def show_question(request: Request, opened: Opened, card: Card) -> Response:
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


def proof_shown(proof: Mapping[str, Any], opened: Opened | None) -> ProofShown:
    """Returns a proof in its page, if pages are open."""
    text, start, element = proof["text"], proof["start_char"], proof["element"]
    at = max(0, min(proof["sentence_char"] - start, len(text)))
    span = Span(element, start, element, proof["end_char"], "proof")
    place = InPage() if opened is None else in_page(opened, proof["page_id"], span, text)
    return ProofShown(proof, text[:at], text[at:], place)


def _question_of(opened: Opened, row: Row) -> str | None:
    return opened.url("tables/questions", subset=row["subset"], key=row["key"]) if row["outcome"] == KEPT else None


def _add_question(_: Opened, rows: list[Row]) -> None:
    for row in rows:
        row["question"] = row["paraphrase"] or row["question_text"]


QAMPARI_VIEWS = KindViews(
    about=about_questions,
    measured=measured_questions,
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
            columns=("key", "subset", "outcome", *_STEPS),
            facets=("subset", "outcome"),
            searched=("key", "type_label"),
            links={"key": _question_of},
            notes=lambda row: {"outcome": meaning(row["subset"], row["outcome"])},
        ),
    },
)
