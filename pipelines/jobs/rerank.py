"""A run in the order of a cross-encoder: its queries through a model, some at a time, by one pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kbsource.errors import RecordError
from kbsource.files import Folder
from kbsource.records import BadRecord
from mapping.contexts.gold import Reject
from mapping.entail.signal import model_folder, model_sha256
from mapping.options import FoundForm
from mapping.passages.cut import passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import Hit, PassageIndex
from mapping.retrieval.queries import Context, Query, read_queries
from mapping.retrieval.rerank import Reranker
from mapping.retrieval.runs import RankedDocument, found_line, of_queries, place_of, ranked_queries
from pipelines.jobs.through_model import through_model
from pipelines.options import RerankOptions
from pipelines.progress import Progress
from pipelines.runners.counters import count

QUERIES_TOGETHER = 8
"""That a worker takes at once: of a hundred passages each some seconds of work for a small model on a core."""


def rerank_run(
    options: RerankOptions, index: PassageIndex, *, flags: Sequence[str], progress: Progress
) -> tuple[int, list[BadRecord]]:
    """Writes a run in a new order; how many queries it has, and what cannot be used.

    Raises:
        SetupError: a file, the model or the index is wrong.
    """
    Reranker(options.reranker)  # so that what is wrong with it is said at once
    queries = {query.query_id: query for query in read_queries(options.queries)}
    faults: list[BadRecord] = []
    n_queries, refused = through_model(
        _asked(options.ranked, queries, index, faults.append),
        options.output,
        source=options.queries,
        name="rerank",
        together=QUERIES_TOGETHER,
        decides=_decides(options),
        model=options.reranker,
        open_model=partial(Reranker, options.reranker),
        answer=partial(_reranked, form=options.form),
        flags=flags,
        progress=progress,
    )
    return n_queries - len(refused), [*faults, *refused]


def _decides(options: RerankOptions) -> Iterator[str]:
    model = options.reranker.model_options()
    yield from (Folder.of(path).sha256() for path in (options.ranked, options.queries))
    yield PASSAGES_CORPUS.read(options.passages).sha256
    yield model_sha256(model_folder(model), model.backend)
    yield f"{options.reranker.depth} {options.form}"


def _asked(path: str, queries: Mapping[str, Query], index: PassageIndex, reject: Reject) -> Iterator[Query]:
    """The queries of a run, each with what was found for it."""

    def found(query_id: str, documents: Sequence[RankedDocument]) -> Query:
        if (query := queries.get(query_id)) is None:
            raise RecordError("unknown_question", query_id)
        return replace(query, contexts=tuple(_context(one.document, query, index) for one in documents))

    return of_queries(ranked_queries(path, reject), reject, found)


def _context(document: str, query: Query, index: PassageIndex) -> Context:
    """A passage, or a page with the text of its best passage; of one without passages there is none."""
    page_id, number = place_of(document)
    name = str(page_id) if number is None else passage_id(page_id, number)
    hit = index.best_of_page(page_id, query.text) if number is None else index.find(page_id, number)
    if hit is None and number is not None:
        raise RecordError("unknown_passage", name)
    return Context(name, str(page_id), *(("", "") if hit is None else (hit.title, hit.text)))


def _reranked(
    reranker: Reranker, questions: Sequence[Query], *, form: FoundForm | None
) -> Iterator[bytes | RecordError]:
    for asked in questions:
        count({"model_calls": 1, "model_pairs": min(len(asked.contexts), reranker.depth)})
        hits = [
            Hit("" if one.document == one.page_id else one.document, int(one.page_id), one.title, one.text, 0.0)
            for one in asked.contexts
        ]
        try:
            yield found_line(asked, reranker.rerank(asked.text, hits), form)
        except RecordError as error:
            yield error
