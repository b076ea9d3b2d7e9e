"""Small QAMPARI releases whose proofs stand on made-up pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from kbsource.records import Page
from kbsource.release.output import ReleaseFolder, commit
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.release import Form, qid_of, write_release_files
from tests.support.pages import synthetic_pages

HOST = "en.wikipedia.org"
FORM = Form(HOST, with_meta=False, is_released_case=False, seed="s")
PAGES = tuple(synthetic_pages(6, n_paragraphs=3))
_N_PROOFS = {SIMPLE: 1, COMPOSITION: 2, INTERSECTION: 2}


def proof(page: Page, number: int = 0, *, length: int = 40) -> ProofText:
    """The beginning of the paragraph with that number as a proof."""
    places = [place for place, page_element in enumerate(page.elements) if page_element.kind == "paragraph"]
    element = places[number % len(places)]
    text = page.elements[element].text[:length]
    return ProofText(text, page.page_id, page.title, element, 0, length, 0, 0.75, f"Hypothesis {number}.")


def answer(name: str, number: int, *, n_proofs: int = 1, titled: bool = True) -> QuestionAnswer:
    """An answer called by the name, with proofs on the pages from that number on."""
    proofs = tuple(proof(PAGES[(number + place) % len(PAGES)], number) for place in range(n_proofs))
    title = PAGES[number % len(PAGES)].title if titled else None
    return QuestionAnswer(name, (name, f"{name} the Great"), title, f"Q{number + 1}", proofs)


def question(
    key: str,
    names: Iterable[str],
    *,
    subset: str = SIMPLE,
    property_ids: tuple[str, ...] = ("P50",),
    entity: str = "Lake Miravel",
) -> Question:
    """A question with answers of those names, every third one without a page."""
    given = list(names)
    answers = tuple(
        answer(name, place, n_proofs=_N_PROOFS.get(subset, 1), titled=place % 3 != 2)
        for place, name in enumerate(given)
    )
    about = QuestionEntity(entity, (entity, f"The {entity}"), entity, "Q900")
    text, counts = f"What is by {entity} ({key})?", (len(given) + 1, len(given))
    return Question(subset, key, text, None, property_ids, None, (about,), answers, *counts)


def drawn(asked_question: Question, n: int, split: str) -> Question:
    """A question drawn for a split as its number n."""
    return replace(
        asked_question,
        eligible_split="train" if split == "train" else "test",
        split=split,
        qid=qid_of(n, asked_question.subset, split),
    )


def undrawn(asked_question: Question) -> Question:
    """A question of the test side that was not drawn."""
    return replace(asked_question, eligible_split="test", split=None, qid=None)


def questions_of_each_split() -> list[Question]:
    """Two questions for development, one of them of two hops, one that was not drawn, and one for each other split."""
    names = ("Brack", "Sorn", "Tey", "Ullane", "Halvane")
    return [
        drawn(question("P50__Q1", names), 0, "dev"),
        drawn(question("P50__Q2", names, subset=COMPOSITION), 1, "dev"),
        undrawn(question("P50__Q3", names)),
        drawn(question("P50__Q4", names), 0, "test"),
        drawn(question("P50__Q5", names), 0, "train"),
    ]


def made_alone(asked_question: Question) -> Question:
    """A question without what became of it."""
    return replace(asked_question, eligible_split=None, split=None, qid=None)


def undrawn_row(row: dict[str, Any]) -> Question:
    """The question of a row of the table, without what became of it."""
    return made_alone(convert(row, Question))


def queries_of(questions: Iterable[Question]) -> list[QueryRow]:
    """The rows of the queries of questions, and one that came to nothing."""
    rows = [
        QueryRow(
            asked_question.subset,
            asked_question.key,
            asked_question.property_ids,
            ("Q900",),
            None,
            9,
            9,
            8,
            len(asked_question.answers),
            "kept",
        )
        for asked_question in questions
    ]
    return [*rows, QueryRow(SIMPLE, "P1__Q1", ("P1",), ("Q1",), None, 3, None, None, None, "too_few_answers")]


def write_qampari(
    folder: Path, questions: Iterable[Question], *, form: Form = FORM, facts: dict[str, Any] | None = None
) -> Path:
    """Writes a finished release and gives its folder."""
    given, output = list(questions), str(folder)
    with ReleaseFolder(output, kind=QAMPARI_RELEASE):
        pass
    files = write_release_files(given, queries_of(given), form=form, output=output)
    manifest = QAMPARI_RELEASE.listing(files, {"form": form._asdict(), **(facts or {})})
    commit(QAMPARI_RELEASE, manifest, output)
    return folder
