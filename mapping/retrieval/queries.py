"""The queries in benchmark records: KILT's format, AmbER sets, and QAMPARI's questions.

An AmbER set contains several queries; every other record contains one. The released files and the files of this project
are both read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Literal, NamedTuple

from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.rows import Row
from mapping.metrics.qampari import gold_names, record_qid, strings_at
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
MENTION = re.compile(r"\[START_ENT\](.*?)\[END_ENT\]", re.DOTALL)
"""The marked mention of entity linking."""
_SUBJECT = re.compile(r"\[START_ENT\](.*?)\[END_ENT\]|\A(.*?)\[SEP\]", re.DOTALL)


class Hit(Row):
    """A retrieved passage or page."""

    document: str  # id of the passage or page that was found
    page_id: str
    title: str
    text: str
    score: float = 0.0
    spans: tuple[PassageSpan, ...] = ()  # location of the passage in the page; empty if unknown

    @property
    def passage_id(self) -> str:
        """The id of the passage; empty for a page."""
        return "" if self.document == self.page_id else self.document

    def as_page(self) -> Hit:
        """Returns the page of the passage."""
        return replace(self, document=self.page_id, text="", spans=())


class ScoredPassage(NamedTuple):
    """A passage that was found by its vector."""

    page_id: int
    number: int
    score: float


class Query(Row):
    """A query."""

    query_id: str
    input: str  # input of the record, with markers around a mention and between subject and relation
    answers: tuple[str, ...] = ()  # names of the gold answers; empty if the record has none
    pages: tuple[str, ...] = ()  # ids of the pages in the gold provenance
    titles: tuple[str, ...] = ()  # titles of the pages that contain proofs, normalised by ``title_form``
    benchmark: str = "kilt"  # format of the record, see ``Benchmark``
    subject: str = ""  # subject of a slot, or the marked mention; empty without markers
    is_mention: bool = False  # true for entity linking, where an answer is the title of the page to link to
    contexts: tuple[Hit, ...] = ()  # passages that a model reads, best first
    template_question: str = ""  # question that a model gets instead of subject and relation, or empty

    @property
    def text(self) -> str:
        """The words of the input, for keyword search: without markers, with single spaces."""
        return _plain(self.input)

    def has_gold(self, hit: Hit) -> bool:
        """Returns whether a page, or the page of a passage, is one of its gold pages."""
        return hit.page_id in self.pages or title_form(hit.title) in self.titles


def marked(text: str, start_char: int, end_char: int) -> str:
    """Returns a text with KILT's markers around a mention.

    >>> marked("Ada lives in Corvo.", 13, 18)
    'Ada lives in [START_ENT] Corvo [END_ENT].'
    """
    return f"{text[:start_char]}[START_ENT] {text[start_char:end_char]} [END_ENT]{text[end_char:]}"


def benchmark_of(record: Json) -> Benchmark:
    """Returns the format of a record: an AmbER set lists entities, a QAMPARI question has no ``input``."""
    if "qids" in record:
        return "amber"
    return "qampari" if "input" not in record and not {"question_text", "question"}.isdisjoint(record) else "kilt"


def queries_of(record: Json) -> tuple[Query, ...]:
    """Returns the queries of a record; raises RecordError: ``missing_field`` or ``wrong_type``."""
    if (form := benchmark_of(record)) != "amber":
        return (_question(record) if form == "qampari" else _with_input(record, form),)
    entities = object_at(record, "qids")
    queries = chain.from_iterable(objects_at(object_at(entities, qid), "queries") for qid in entities)
    return tuple(_with_input(query, form) for query in queries)


def _with_input(record: Json, benchmark: Benchmark) -> Query:
    # A query of AmbER has one output; in the first version of the release it is in a list, as in KILT.
    is_one = isinstance(record.get("output"), dict)
    outputs = [object_at(record, "output")] if is_one else optional_objects(record, "output")
    spans = [span for output in outputs for span in optional_objects(output, "provenance")]
    text = text_at(record, "input")
    subject = _SUBJECT.search(text)
    return Query(
        _id(record),
        text,
        tuple(dict.fromkeys(chain.from_iterable(map(_answers, outputs)))),
        # Spans without a page are ignored, as in the evaluation.
        tuple(dict.fromkeys(str(page_id) for span in spans if (page_id := span.get("wikipedia_id")) is not None)),
        benchmark=benchmark,
        subject=_plain(subject[1] or subject[2] or "") if subject else "",
        is_mention=subject is not None and subject[1] is not None,
    )


def _id(record: Json) -> str:
    return str(record["id"]) if isinstance(record.get("id"), float) else digits_or_text(record, "id")


def _answers(output: Json) -> Iterable[str]:
    """Returns the answers of an output; a null answer is skipped, and a number becomes its digits, as in the
    evaluation."""
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
        record_qid(record),
        text_at(record, "question_text" if "question_text" in record else "question"),
        tuple(dict.fromkeys((*names, *single))),
        titles=tuple(dict.fromkeys(title_form(text_at(proof, "found_in_url")) for proof in proofs)),
        benchmark="qampari",
    )


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text).split())


def read_queries(path: str) -> Iterator[Query]:
    """Reads the queries of a file; raises SetupError if a record contains no query, or if the file has no records."""
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
        raise SetupError(f"{path} has no records, so there are no questions; name another file.")


def benchmark_of_file(path: str) -> Benchmark:
    """Returns the format of the first readable record of a file; KILT's if no record is readable."""
    return next((benchmark_of(record) for record in readable_records(path)), "kilt")


def first_query(path: str) -> Query | None:
    """Returns the first query of a file; records without a query are skipped."""
    for record in readable_records(path):
        with suppress(RecordError):
            return next(iter(queries_of(record)), None)
    return None
