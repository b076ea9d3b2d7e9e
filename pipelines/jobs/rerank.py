"""A run in the order of a cross-encoder: its queries through a model, some at a time, by one pipeline.

Beside the output lies, while it is made, a folder that is called after what decides its bytes. It holds what the model
is to read and the scores of what it has read, so that a run that was killed goes on behind these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Folder, absolute
from kbsource.identity import stable_sha256
from kbsource.records import BadRecord
from kbsource.release.manifest import code_facts
from kbsource.rows import Row
from mapping.contexts.gold import Reject
from mapping.entail.signal import digest_of, model_folder, weight_files
from mapping.passages.cut import passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import Hit, PassageIndex
from mapping.retrieval.queries import Query, read_queries
from mapping.retrieval.rerank import Reranker, reordered
from mapping.retrieval.runs import RankedDocument, found_line, of_queries, place_of, ranked_queries
from pipelines.jobs.through_model import through_model
from pipelines.options import RerankOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count
from pipelines.runners.running import check_paths, new_pipeline

QUERIES_TOGETHER = 8
"""That a worker takes at once: of a hundred passages each some seconds of work for a small model on a core."""


class _Candidate(Row):
    """A document that was found for a query; of a query without any, nothing but this."""

    query_id: str
    query: str
    passage_id: str = ""  #: empty for a page
    page_id: int | None = None
    title: str = ""
    text: str = ""


class _Scored(Row):
    """The score of a candidate; null for what was not read."""

    score: float | None


class RerankedRun(NamedTuple):
    """What became of a run."""

    n_queries: int
    faults: list[BadRecord]  # lines that cannot be used


def rerank_run(options: RerankOptions, index: PassageIndex, *, flags: Sequence[str], progress: Progress) -> RerankedRun:
    """Writes a run in a new order.

    Raises:
        SetupError: a file, the model or the index is wrong.
    """
    pipeline = new_pipeline(flags)
    check_paths(flags, options.output)
    Reranker(options.reranker)  # so that what is wrong with it is said at once
    queries = {query.query_id: query for query in read_queries(options.queries)}
    output, faults = absolute(options.output), list[BadRecord]()
    staging = Folder.of(f"{output}.{_job(options)}.partial")
    found = _candidates(options.ranked, queries, index, faults.append)
    n_queries, scored = through_model(
        pipeline,
        (_rows(query, hits) for query, hits in found),
        _Candidate,
        _Scored,
        name="rerank",
        together=QUERIES_TOGETHER,
        staging=staging,
        model=options.reranker,
        open_model=partial(Reranker, options.reranker),
        answer=_scores,
        progress=progress,
    )
    with Folder.of(output).create() as target:
        for candidates, scores in scored:
            for query_id, hits in _reordered(candidates, scores):
                target.write(found_line(queries[query_id], hits, options.form))
    staging.delete()
    return RerankedRun(n_queries, faults)


def _job(options: RerankOptions) -> str:
    """What decides the bytes of the output."""
    model = options.reranker.model_options()
    folder = Folder.of(model_folder(model))
    files = [str(folder / name) for name in ("config.json", "tokenizer.json") if folder.exists(name)]
    decides = (
        Folder.of(options.ranked).sha256(),
        Folder.of(options.queries).sha256(),
        PASSAGES_CORPUS.read(options.passages).sha256,
        digest_of([*files, *weight_files(str(folder), model.backend)]),
        str(options.reranker.depth),
        repr(code_facts()),
    )
    return stable_sha256(*decides)[:16]


def _candidates(
    path: str, queries: Mapping[str, Query], index: PassageIndex, reject: Reject
) -> Iterator[tuple[Query, list[Hit]]]:
    """The queries of a run, each with what was found for it."""

    def found(query_id: str, documents: Sequence[RankedDocument]) -> tuple[Query, list[Hit]]:
        if (query := queries.get(query_id)) is None:
            raise RecordError("unknown_question", query_id)
        return query, [_hit(place_of(one.document), query, index) for one in documents]

    return of_queries(ranked_queries(path, reject), reject, found)


def _hit(place: tuple[int, int | None], query: Query, index: PassageIndex) -> Hit:
    """A passage, or a page with the text of its best passage; of one without passages there is none."""
    page_id, number = place
    if number is None:
        best = index.best_of_page(page_id, query.text)
        return Hit("", page_id, "", "", 0.0) if best is None else best._replace(passage_id="")
    if (passage := index.find(page_id, number)) is None:
        raise RecordError("unknown_passage", passage_id(page_id, number))
    return passage


def _rows(query: Query, hits: Sequence[Hit]) -> list[_Candidate]:
    found = [_Candidate(query.query_id, query.text, hit.passage_id, hit.page_id, hit.title, hit.text) for hit in hits]
    return found or [_Candidate(query.query_id, query.text)]


def _scores(reranker: Reranker, candidates: Sequence[_Candidate]) -> Iterator[_Scored]:
    """The scores of candidates, of each query those that the model reads."""
    for _, own in groupby(candidates, key=attrgetter("query_id")):
        hits = list(own)
        read = [(hit.title, hit.text) for hit in hits[: reranker.depth] if hit.page_id is not None]
        count({"model_calls": 1, "model_pairs": len(read)})
        yield from map(_Scored, reranker.scores(hits[0].query, read))
        yield from (_Scored(None) for _ in hits[len(read) :])


def _reordered(candidates: Sequence[_Candidate], scores: Sequence[_Scored]) -> Iterator[tuple[str, list[Hit]]]:
    """The queries of candidates, each with what was found for it in the new order."""
    rows = zip(candidates, scores, strict=True)
    for query_id, own in groupby(rows, key=lambda row: row[0].query_id):
        found = [(row, one.score) for row, one in own if row.page_id is not None]
        hits = [Hit(row.passage_id, row.page_id or 0, row.title, row.text, 0.0) for row, _ in found]
        yield query_id, reordered(hits, [score for _, score in found])
