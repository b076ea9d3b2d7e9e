"""Converts runs of retrieval systems to KILT predictions and TREC lines, and reads them.

Sources: the predictions that KILT's retrievers write; the run files of trec_eval (query, ``Q0``, document, rank, score,
name of the run). A document is a passage, identified by its id, or a page, identified by its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from math import inf
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from kbsource.errors import RecordError
from mapping.contexts.gold import Reject
from mapping.metrics.qampari import record_qid
from mapping.options import FoundForm
from mapping.passages.forms import json_line
from mapping.retrieval.queries import Hit, Query, queries_of
from mapping.sources.raw_records import (
    Json,
    RawRecord,
    digits_or_text,
    iter_lines,
    iter_records,
    object_at,
    objects_at,
    optional_objects,
)

Q = TypeVar("Q")
T = TypeVar("T")

RUN_NAME = "kbsource"
_DECIMALS = 6
_PASSAGE_ID = re.compile(r"([0-9]{1,18})(?:__([0-9]{1,18}))?")
_TREC_COLUMNS = 6
_NO_COLUMN = re.compile(r"[\s%]")


RankedDocument = tuple[str, float]
"""A document of a run, identified by passage or page id, and its score; without a score, 1 divided by the rank."""


def prediction_line(query: Query, hits: Sequence[Hit], answer: str | None = None) -> bytes:
    """Returns hits as a KILT prediction; with an answer, the passages that were read, without scores. For AmbER sets
    the output is an object instead of a list with one object, as required by their released script. If no passages were
    read, a mention is answered by the title of the first page, as KILT's entity linkers do."""
    is_read = answer is not None
    provenance = [
        {
            "wikipedia_id": hit.page_id,
            "title": hit.title,
            **({"text": hit.text} if hit.passage_id or (is_read and hit.text) else {}),
            **({} if is_read else {"score": f"{hit.score:.6f}"}),
            **({"passage_id": hit.passage_id} if hit.passage_id else {}),
        }
        for hit in hits
    ]
    if query.is_mention and not is_read:
        answer = hits[0].title if hits else ""
    output = {**({} if answer is None else {"answer": answer}), "provenance": provenance}
    is_one = query.benchmark == "amber"
    return json_line({"id": query.query_id, "input": query.input, "output": output if is_one else [output]})


def contexts_line(query: Query, hits: Iterable[Hit]) -> bytes:
    """Returns hits in the format of QAMPARI, DPR and Fusion-in-Decoder. A page has its page id, and the text that was
    used to rank it, if any."""
    contexts = [
        {"id": hit.document, "title": hit.title, "text": hit.text, "score": round(hit.score, _DECIMALS)} for hit in hits
    ]
    name = "qid" if query.benchmark == "qampari" else "id"
    return json_line({name: query.query_id, "question": query.input, "ctxs": contexts})


def hits_line(query: Query, hits: Sequence[Hit], form: FoundForm | None) -> bytes:
    """Returns the hits for a query, by default in the format of its benchmark.

    Raises:
        RecordError: as ``trec_lines``.
    """
    if form == "trec":
        return trec_lines(query.query_id, ((hit.document, hit.score) for hit in hits))
    is_listed = query.benchmark == "qampari" if form is None else form == "ctxs"
    return contexts_line(query, hits) if is_listed else prediction_line(query, hits)


def trec_lines(query_id: str, found: Iterable[RankedDocument]) -> bytes:
    """Returns a query's distinct documents, best first, as lines of a run.

    Scores decrease by at least 0.000001 with each rank, because trec_eval ignores ranks and sorts by score, then by id.

    Raises:
        RecordError: ``wrong_type`` for an empty id, which the format cannot represent.
    """
    once: dict[str, float] = {}
    for document, score in found:
        once.setdefault(column(document), score)
    if not all((query_id, *once)):
        raise RecordError("wrong_type", "an id is empty: runs separate their columns by white space")
    query_id = column(query_id)
    lines, last = [], inf
    for rank, (document, score) in enumerate(once.items(), start=1):
        last = round(min(score, last - 10**-_DECIMALS), _DECIMALS)
        lines.append(f"{query_id} Q0 {document} {rank} {last:.{_DECIMALS}f} {RUN_NAME}\n")
    return "".join(lines).encode()


def column(text: str) -> str:
    """Returns an id as a column of a run or of qrels: white space and percent signs are percent-encoded.

    >>> column("12testa ROWING:0")
    '12testa%20ROWING:0'
    """
    return _NO_COLUMN.sub(lambda found: quote(found[0]), text)


def provenance_of(record: Json, key: str = "ctxs") -> list[Json]:
    """Returns the locations of a prediction, best first, or the passages of a question with ``ctxs``.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    if key in record:
        return objects_at(record, key)
    is_one = isinstance(record.get("output"), dict)
    outputs = [object_at(record, "output")] if is_one else objects_at(record, "output")
    return [place for output in outputs for place in optional_objects(output, "provenance")]


def prediction_id(record: Json) -> str:
    """Returns the id of the question that passages were found for; raises as ``provenance_of``."""
    return record_qid(record) if "qid" in record or "ctxs" in record else digits_or_text(record, "id")


def ranked_documents(record: Json) -> list[RankedDocument]:
    """Returns the documents of a prediction, or of a question with ``ctxs``, best first: passages if it names them,
    otherwise pages. Raises as ``provenance_of``."""
    places = provenance_of(record)
    is_passages = places and all("passage_id" in place for place in places)
    name = "id" if "ctxs" in record else "passage_id" if is_passages else "wikipedia_id"
    return [
        (digits_or_text(entry, name), score_of(entry.get("score", 1 / rank)))
        for rank, entry in enumerate(places, start=1)
    ]


def run_prediction_line(query_id: str, found: Iterable[RankedDocument], texts: Mapping[str, str]) -> bytes:
    """Returns the documents of a run, best first, as a KILT prediction.

    Args:
        texts: the input of each query; empty if unknown.

    Raises:
        RecordError: ``wrong_type`` for a document that is neither a passage nor a page, ``unknown_question``.
    """
    if texts and query_id not in texts:
        raise RecordError("unknown_question", query_id)
    provenance = []
    for document, score in found:
        page_id, number = page_and_number(document)
        passage = {} if number is None else {"passage_id": document}
        provenance.append({"wikipedia_id": str(page_id), "score": f"{score:.6f}", **passage})
    asked = {"input": texts[query_id]} if texts else {}
    return json_line({"id": query_id, **asked, "output": [{"provenance": provenance}]})


def page_and_number(document: str) -> tuple[int, int | None]:
    """Returns the page of a document and, for a passage, its number in that page.

    Raises:
        RecordError: ``wrong_type`` for a document that is neither a passage nor a page.

    >>> page_and_number("12__3"), page_and_number("12")
    ((12, 3), (12, None))
    """
    if (place := _PASSAGE_ID.fullmatch(document)) is None:
        raise RecordError(
            "wrong_type", f"document {document[:80]!r} is not a page id, nor a page id with __ and a number"
        )
    return int(place[1]), None if place[2] is None else int(place[2])


def score_of(value: Any) -> float:
    """Returns the score of a passage, a number or its digits; raises RecordError: ``wrong_type``."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise RecordError("wrong_type", f"'score': expected a number, found {repr(value)[:80]}") from error


Ranked = tuple[RawRecord, str, list[RankedDocument]]
"""The position of a query in a run, its id, and its documents, best first."""


def ranked_queries(path: str, reject: Reject) -> Iterator[Ranked]:
    """Reads the queries of a TREC run, or of predictions or questions with ``ctxs``; rejects all other lines."""
    if is_run(path):
        for query_id, lines in groupby(_parsed(path, reject, _run_line), key=lambda placed: placed[1][0]):
            ranked = sorted(lines, key=lambda placed: placed[1][1])
            yield ranked[0][0], query_id, [found for _, (_, _, found) in ranked]
        return
    for raw, (query_id, found) in _parsed(
        path, reject, lambda raw: (prediction_id(record := raw.parse()), ranked_documents(record))
    ):
        yield raw, query_id, found


def is_run(path: str) -> bool:
    """Returns whether a file is a TREC run, by its first line."""
    first = next(iter_lines(path), None)
    return first is None or not first.data.lstrip().startswith((b"{", b"["))


def searched_queries(
    path: str, reject: Reject, *, search: Callable[[Sequence[Query]], Iterable[list[Hit]]], n_queries: int = 1024
) -> Iterator[tuple[RawRecord, str, tuple[Query, list[Hit]]]]:
    """Searches for the queries of a file, ``n_queries`` together. Iterates over the position of each query, its id, and
    the query with its hits; records without a query are rejected."""
    records = _parsed(path, reject, lambda raw: queries_of(raw.parse()))
    asked = ((raw, query) for raw, queries in records for query in queries)
    while group := list(islice(asked, n_queries)):
        for (raw, query), hits in zip(group, search([query for _, query in group]), strict=True):
            yield raw, query.query_id, (query, hits)


def of_queries(queries: Iterable[tuple[RawRecord, str, Q]], reject: Reject, make: Callable[[str, Q], T]) -> Iterator[T]:
    """Calls ``make`` for each query and rejects queries that cannot be used or are repeated."""
    seen: set[str] = set()
    for raw, query_id, found in queries:
        with raw.rejecting(reject):
            if query_id in seen:
                raise RecordError("duplicate_question", query_id)
            seen.add(query_id)
            yield make(query_id, found)


def _parsed(path: str, reject: Reject, parse: Callable[[RawRecord], T]) -> Iterator[tuple[RawRecord, T]]:
    """Reads and parses the lines of a file; rejects lines that cannot be parsed."""
    for raw in iter_records(path):
        with raw.rejecting(reject):
            yield raw, parse(raw)


def _run_line(raw: RawRecord) -> tuple[str, int, RankedDocument]:
    """Returns the query, the rank and the document of a line."""
    columns = (line := raw.text()).split()
    if len(columns) != _TREC_COLUMNS or not columns[3].isdecimal():
        raise RecordError("wrong_type", f"expected query, Q0, document, rank, score and run, found {line[:80]!r}")
    return unquote(columns[0]), int(columns[3]), (unquote(columns[2]), score_of(columns[4]))
