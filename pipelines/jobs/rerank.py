"""A run in the order of a cross-encoder: its queries through a model, some at a time, by one pipeline.

Beside the output lies, while it is made, a folder that is called after what decides its bytes. It holds what the model
is to read and the scores of what it has read, so that a run that was killed goes on behind these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.errors import RecordError
from kbsource.files import Folder, absolute, glob, join
from kbsource.identity import stable_sha256
from kbsource.records import BadRecord
from kbsource.release.manifest import code_facts
from kbsource.release.reader import row_groups
from kbsource.runtime.chunks import (
    ChunkKey,
    Report,
    chunk_path,
    once,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from mapping.contexts.gold import Reject
from mapping.entail.signal import digest_of, model_folder, weight_files
from mapping.passages.cut import passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import Hit, PassageIndex
from mapping.retrieval.queries import Query, read_queries
from mapping.retrieval.rerank import Reranker, reordered
from mapping.retrieval.runs import RankedDocument, found_line, of_queries, place_of, ranked_queries
from pipelines.options import RerankOptions
from pipelines.progress import Done, Progress
from pipelines.runners.counters import count
from pipelines.runners.running import NotRunError, check_paths, new_pipeline, run_pipeline
from pipelines.transforms.tables import ReadTable
from pipelines.transforms.verify_entailment import ListHandler, RunModel

QUERIES_TOGETHER = 8
"""That a worker takes at once: of a hundred passages each some seconds of work for a small model on a core."""
_CANDIDATES = pa.schema(
    [
        ("query_id", pa.string()),
        ("query", pa.string()),
        ("passage_id", pa.string()),  # empty for a page
        ("page_id", pa.int64()),  # null where nothing was found for a query
        ("title", pa.string()),
        ("text", pa.string()),
    ]
)
_SCORES = pa.schema([("score", pa.float64())])


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
    candidates, scores = str(staging / "candidates.parquet"), str(staging / "scores")
    # Also where they are there: lines that cannot be used are told by every run.
    n_queries = _write_candidates(candidates, _candidates(options.ranked, queries, index, faults.append))
    try:
        _ = (
            pipeline
            | "candidates" >> ReadTable([candidates], None, chunk_rows=1)
            | "score"
            >> RunModel(
                ListHandler(partial(Reranker, options.reranker), partial(_score, folder=scores)), options.reranker
            )
        )
        with progress.stage("score", partial(_done, scores, n_queries)):
            run_pipeline(pipeline, "rerank")
    except NotRunError:
        staging.delete()
        raise
    with Folder.of(output).create() as target:
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


def _write_candidates(path: str, candidates: Iterator[tuple[Query, list[Hit]]]) -> int:
    """Writes what the model is to read, ``QUERIES_TOGETHER`` to a row group; gives the number of queries."""
    n_queries = 0
    with Folder.of(path).create() as sink, pq.ParquetWriter(sink, _CANDIDATES) as target:
        while together := list(islice(candidates, QUERIES_TOGETHER)):
            n_queries += len(together)
            rows = [row for query, hits in together for row in _rows(query, hits)]
            target.write_batch(rows_batch(rows, _CANDIDATES))
    return n_queries


def _rows(query: Query, hits: Sequence[Hit]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [(hit.passage_id, hit.page_id, hit.title, hit.text) for hit in hits]
    return [(query.query_id, query.text, *one) for one in found or [(None,) * 4]]


def _score(reranker: Reranker, element: tuple[ChunkKey, pa.RecordBatch], *, folder: str) -> int:
    """Scores the passages of a row group, into a file of the folder, which is made unless it is there."""
    key, rows = ChunkKey(*element[0]), element[1].to_pylist()

    def make() -> None:
        scores: list[tuple[float | None]] = []
        for _, own in groupby(rows, key=itemgetter("query_id")):
            hits = list(own)
            read = [(hit["title"], hit["text"]) for hit in hits[: reranker.depth] if hit["page_id"] is not None]
            count({"model_calls": 1, "model_pairs": len(read)})
            found = reranker.scores(hits[0]["query"], read)
            scores += zip([*found, *[None] * (len(hits) - len(read))], strict=True)
        write_chunk([rows_batch(scores, _SCORES)], _SCORES, Report(), path=chunk_path(folder, key))

    return once(chunk_path(folder, key), make, read_chunk_report)[0].n_rows


def _reordered(candidates: str, folder: str) -> Iterator[tuple[str, list[Hit]]]:
    """The queries of the run, each with what was found for it in the new order."""
    for number, group in enumerate(row_groups(candidates)):
        stored, _ = read_chunk_report(chunk_path(folder, ChunkKey(0, number)))
        scores = [row["score"] for batch in read_stored(stored) for row in batch.to_pylist()]
        rows = zip(group.to_pylist(), scores, strict=True)
        for query_id, own in groupby(rows, key=lambda row: row[0]["query_id"]):
            found = [(row, score) for row, score in own if row["page_id"] is not None]
            hits = [Hit(row["passage_id"], row["page_id"], row["title"], row["text"], 0.0) for row, _ in found]
            yield query_id, reordered(hits, [score for _, score in found])


def _done(folder: str, n_queries: int) -> Done:
    return Done(min(len(glob(join(folder, "*.arrow"))) * QUERIES_TOGETHER, n_queries), n_queries, unit="queries")
