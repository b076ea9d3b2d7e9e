"""What the records of benchmarks ask: those of KILT's form, AmbER sets, and QAMPARI's questions.

A set of AmbER asks several queries; every other record is one. Released files are read as they are, and so are those of
this project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Literal

from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.rows import Row
from mapping.metrics.qampari import gold_names, qid_of, strings_at
from mapping.metrics.ranks import title_form
from mapping.passages.cut import PassageSpan
from mapping.sources.raw_records import (
    Json,
    digits_or_text,
    iter_records,
    object_at,
    objects_at,
    optional_objects,
    readable_records,
    text_at,
)

Benchmark = Literal["kilt", "amber", "qampari"]
_MARKS = re.compile(r"\[(?:START_ENT|END_ENT|SEP)\]")
# What is asked about: the marked mention of entity linking, the subject of slot filling.
MENTION = re.compile(r"\[START_ENT\](.*?)\[END_ENT\]", re.DOTALL)
"""The marked mention of entity linking."""
_SUBJECT = re.compile(r"\[START_ENT\](.*?)\[END_ENT\]|\A(.*?)\[SEP\]", re.DOTALL)


class Hit(Row):
    """A passage that was found, or a page."""

    document: str  # its id; of a page that of the page
    page_id: str
    title: str
    text: str
    score: float = 0.0
    spans: tuple[PassageSpan, ...] = ()  # where it stands in the page; empty where that is not known

    @property
    def passage_id(self) -> str:
        """The id of the passage; empty for a page."""
        return "" if self.document == self.page_id else self.document

    def as_page(self) -> Hit:
        """The page of the passage."""
        return replace(self, document=self.page_id, text="", spans=())


class Query(Row):
    """What is asked."""

    query_id: str
    input: str  # as its record has it, with the marks around an entity and between subject and relation
    answers: tuple[str, ...] = ()  # what its gold answers are called; none where they are not given
    pages: tuple[str, ...] = ()  # ids of the pages of its gold provenance
    titles: tuple[str, ...] = ()  # titles of pages with its proofs, as ``title_form`` has them
    benchmark: str = "kilt"  # of ``Benchmark``: whose form its record has
    subject: str = ""  # the words that marks set apart; empty where there are none
    is_mention: bool = False  # whether they are to be linked: the title of their page is the answer
    contexts: tuple[Hit, ...] = ()  # what a model reads beside it, best first
    template_question: str = ""  # what a model is asked in place of a subject and a relation, if anything

    @property
    def text(self) -> str:
        """The words of the input, for search by words: without marks, and with single spaces."""
        return _plain(self.input)

    def has_gold(self, hit: Hit) -> bool:
        """Whether a page, or that of a passage, is one of its gold pages."""
        return hit.page_id in self.pages or title_form(hit.title) in self.titles


def marked(text: str, start_char: int, end_char: int) -> str:
    """Returns a text with KILT's marks around a mention.

    >>> marked("Ada lives in Corvo.", 13, 18)
    'Ada lives in [START_ENT] Corvo [END_ENT].'
    """
    return f"{text[:start_char]}[START_ENT] {text[start_char:end_char]} [END_ENT]{text[end_char:]}"


def benchmark_of(record: Json) -> Benchmark:
    """Whose form a record has: a set of AmbER lists entities, a question of QAMPARI has no ``input``."""
    if "qids" in record:
        return "amber"
    return "qampari" if "input" not in record and not {"question_text", "question"}.isdisjoint(record) else "kilt"


def queries_of(record: Json) -> tuple[Query, ...]:
    """What a record asks; raises RecordError: ``missing_field`` or ``wrong_type``."""
    if (form := benchmark_of(record)) != "amber":
        return (_question(record) if form == "qampari" else _with_input(record, form),)
    entities = object_at(record, "qids")
    queries = chain.from_iterable(objects_at(object_at(entities, qid), "queries") for qid in entities)
    return tuple(_with_input(query, form) for query in queries)


def _with_input(record: Json, benchmark: Benchmark) -> Query:
    # A query of AmbER has one output, which in the first form of the release, as in KILT's, is in a list.
    is_one = isinstance(record.get("output"), dict)
    outputs = [object_at(record, "output")] if is_one else optional_objects(record, "output")
    spans = [span for output in outputs for span in optional_objects(output, "provenance")]
    text = text_at(record, "input")
    subject = _SUBJECT.search(text)
    return Query(
        _id(record),
        text,
        tuple(dict.fromkeys(chain.from_iterable(map(_answers, outputs)))),
        # As in the evaluation, a span without a page is none.
        tuple(dict.fromkeys(str(page_id) for span in spans if (page_id := span.get("wikipedia_id")) is not None)),
        benchmark=benchmark,
        subject=_plain(subject[1] or subject[2] or "") if subject else "",
        is_mention=subject is not None and subject[1] is not None,
    )


def _id(record: Json) -> str:
    return str(record["id"]) if isinstance(record.get("id"), float) else digits_or_text(record, "id")


def _answers(output: Json) -> Iterable[str]:
    """The answers of an output, none where it has null; a number is its digits, as the evaluation reads it."""
    answer = output.get("answer")
    if isinstance(answer, list):
        return strings_at(output, "answer")
    return () if answer is None else (str(answer) if isinstance(answer, int | float) else text_at(output, "answer"),)


def _question(record: Json) -> Query:
    listed = optional_objects(record, "answer_list")
    names = chain.from_iterable((answer.text, *answer.aliases) for answer in gold_names(listed))
    single = strings_at(record, "answers") if not listed and "answers" in record else ()
    proofs = (proof for answer in listed for proof in optional_objects(answer, "proof") if "found_in_url" in proof)
    return Query(
        qid_of(record),
        text_at(record, "question_text" if "question_text" in record else "question"),
        tuple(dict.fromkeys((*names, *single))),
        titles=tuple(dict.fromkeys(title_form(text_at(proof, "found_in_url")) for proof in proofs)),
        benchmark="qampari",
    )


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text).split())


def read_queries(path: str) -> Iterator[Query]:
    """What the records of a file ask; raises SetupError: a record asks nothing, or there is none."""
    n_queries = 0
    for raw in iter_records(path):
        try:
            queries = queries_of(raw.parse())
        except RecordError as error:
            raise SetupError(
                f"{path}, line {raw.line}: {error}; give records with id and input, AmbER sets or QAMPARI's questions."
            ) from error
        n_queries += len(queries)
        yield from queries
    if not n_queries:
        raise SetupError(f"{path} has no records, so there is nothing to ask; name another file.")


def benchmark_of_file(path: str) -> Benchmark:
    """Whose form the first record of a file has that can be read; KILT's where none can."""
    return next((benchmark_of(record) for record in readable_records(path)), "kilt")


def first_query(path: str) -> Query | None:
    """The first query of a file; records that ask nothing are passed over."""
    for record in readable_records(path):
        with suppress(RecordError):
            return next(iter(queries_of(record)), None)
    return None
