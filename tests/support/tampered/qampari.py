"""Ways to tamper with QAMPARI releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import COMPOSITION
from tests.support.qampari import PAGES, questions_of_each_split, write_qampari
from tests.support.releases import TitleRow, write_release
from tests.support.tampered.edits import (
    Group,
    Place,
    Released,
    Tampered,
    again,
    at,
    content,
    drop,
    lines,
    manifest,
    put,
    rows,
    unlisted,
)

QUESTIONS = "questions/questions-00000-of-00001.parquet"
QUERIES = "queries/queries-00000-of-00001.parquet"
DEV = "qampari_data/dev_data.jsonl"


def _qampari(folder: Path, release: Path) -> Released:
    write_release(folder, PAGES, titles=[TitleRow(page.page_id, page.title) for page in PAGES])
    return Released(write_qampari(folder / "qampari", questions_of_each_split()), {"kb": folder / "release"})


_ANSWER = (0, "answer_list", 1)
_PROOF = (0, "answers", 0, "proofs", 0)
_NOT_IN_THE_FILE = ((DEV, "not_released"),)
_DIFFERS = ((DEV, "released_differs"),)
_NOT_DRAWN = ((DEV, "not_sampled"),)


def _line(what: str, edit: Callable[[list[Any]], object], text: str) -> Tampered:
    """Returns a line of the questions for development that is malformed."""
    return Tampered(what, lines(DEV, edit), "invalid_record", text, also=_NOT_IN_THE_FILE)


def _question(
    what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = _DIFFERS
) -> Tampered:
    """Returns a row of the table of questions that is malformed."""
    return Tampered(what, rows(QUESTIONS, *edits), "invalid_question", text, also=also)


def _proof(what: str, text: str, *, also: tuple[Place, ...] = (), **values: Any) -> Tampered:
    """Returns a proof that is not on its page."""
    edits = [put(value, *_PROOF, name) for name, value in values.items()]
    return Tampered(what, rows(QUESTIONS, *edits), "proof_differs", text, also=also, is_compared=True)


_QAMPARI = (
    _line("a line is no JSON", put("{", 0), "line 1"),
    _line(
        "a qid has no split",
        put("0__wikidata_simple__development", 0, "qid"),
        "does not have the form <number>__<subset>__<split>",
    ),
    _line("a qid is of another split", put("0__wikidata_simple__test", 0, "qid"), "in the file of dev"),
    _line(
        "two answers have one aid",
        put("0__wikidata_simple__dev__0", *_ANSWER, "aid"),
        "answer 1 of 0__wikidata_simple__dev has the aid",
    ),
    _line("a proof has another pid", put("0__wikidata_simple__dev__1__1", *_ANSWER, "proof", 0, "pid"), "has the pid"),
    _line("a proof has no text", put("", *_ANSWER, "proof", 0, "proof_text"), "has no text or no address"),
    _line("an answer has no proof", put([], *_ANSWER, "proof"), "0__wikidata_simple__dev__1 has no proof"),
    _line("a question has no answers", put([], 0, "answer_list"), "has no answers"),
    _line(
        "the name of an answer is its second alias",
        put(["Sorn the Great", "Sorn"], *_ANSWER, "aliases"),
        "the first alias of 'Sorn' must be its name",
    ),
    _line(
        "an entity has no aliases",
        put([], 0, "entities", 0, "aliases"),
        "the first alias of 'Lake Miravel' must be its name",
    ),
    Tampered("a line is there twice", lines(DEV, again(0)), "duplicate_question", "line 3: 0__wikidata_simple__dev"),
    Tampered(
        "two questions of a split have one number",
        (
            rows(QUESTIONS, at(1, qid="0__wikidata_comp__dev")),
            content(DEV, lambda before: before.replace(b"1__wikidata_comp__dev", b"0__wikidata_comp__dev")),
        ),
        "duplicate_question",
        "line 2: 0__wikidata_comp__dev",
        DEV,
        also=_NOT_IN_THE_FILE,
    ),
    Tampered("a line of a drawn question is missing", lines(DEV, drop(-1)), "not_released", "1__wikidata_comp__dev"),
    Tampered(
        "a question with a line is not drawn",
        rows(QUESTIONS, at(0, split=None, qid=None)),
        "not_sampled",
        "0__wikidata_simple__dev",
        DEV,
    ),
    *(
        Tampered(what, lines(DEV, put(value, *path)), "released_differs", "0__wikidata_simple__dev")
        for what, value, path in (
            ("a line asks something else", "What else?", (0, "question_text")),
            ("an answer is on another wiki", "https://de.wikipedia.org/wiki/Sorn", (*_ANSWER, "answer_url")),
            ("a proof has another text", "The Sorn is short.", (*_ANSWER, "proof", 0, "proof_text")),
            ("a line has no meta", {}, (0, "meta")),
        )
    ),
    _question(
        "the subset is unknown",
        "the subset is unknown",
        at(0, subset="wikidata", split=None, qid=None),
        also=_NOT_DRAWN,
    ),
    _question(
        "a drawn question has no qid", "either the qid or the split is missing", at(0, qid=None), also=_NOT_DRAWN
    ),
    _question(
        "a qid is of another subset",
        "names another subset or split",
        at(0, qid="0__wikidata_comp__dev"),
        also=(*_NOT_DRAWN, *_NOT_IN_THE_FILE),
    ),
    _question(
        "a qid is a word",
        "does not have the form <number>__<subset>__<split>",
        at(0, qid="first"),
        also=(*_NOT_DRAWN, *_NOT_IN_THE_FILE),
    ),
    _question(
        "a question for development is of the training side",
        "a question eligible for train is in split dev",
        at(0, eligible_split="train"),
        also=(),
    ),
    _question(
        "fewer answers are validated than there are",
        "the question has more answers than were validated",
        at(0, n_validated=4),
        also=(),
    ),
    _question(
        "an answer was dropped that is there",
        "the question has more answers than were validated",
        at(0, n_dropped=1),
        also=(),
    ),
    _question("more answers are validated than found", "or the query has fewer", at(0, n_answers=4), also=()),
    _question(
        "an entity has no aliases",
        "the first alias of Lake Miravel must be its name",
        put([], 2, "entities", 0, "aliases"),
        also=(),
    ),
    _question(
        "an answer of two hops has one proof",
        "Brack has a wrong number of proofs: 1",
        at(2, subset=COMPOSITION),
        also=(),
    ),
    _question("a proof has no sentence", "has no sentence", put(40, 2, *_PROOF[1:], "start_char"), also=()),
    _question(
        "a proof is shorter than its span",
        "and its span differ in length",
        put("The Ullane.", 2, *_PROOF[1:], "text"),
        also=(),
    ),
    Tampered("a query has two questions", rows(QUESTIONS, again(2)), "duplicate_question", "wikidata_simple, P50__Q3"),
    Tampered("a query is there twice", rows(QUERIES, again(0)), "duplicate_question 2", "wikidata_simple, P50__Q1"),
    _proof("a proof is of no page", "no page 1000", page_id=1000),
    _proof("a title differs", "not 'Other'", also=_DIFFERS, title="Other"),
    _proof("a proof is of no element", "has no element 99", element=99),
    _proof(
        "a proof is elsewhere",
        "has a different text at the position of the proof",
        start_char=1,
        end_char=41,
        sentence_char=1,
    ),
    Tampered(
        "the manifest does not say how the files are written",
        manifest(put({"host": "en.wikipedia.org"}, "form")),
        "manifest",
        "its content does not have the form of a QAMPARI release",
    ),
    Tampered("a file of a split is missing", unlisted(DEV), "missing", "every QAMPARI release has this file"),
)

GROUPS = {
    "qampari": Group(QAMPARI_RELEASE, _qampari, _QAMPARI),
}
