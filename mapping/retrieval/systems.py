"""Systems that answer questions with passages or pages, and what is made of several.

A system is written as names with ``+`` and ``,`` between them. ``aliases+bm25`` is what the first finds and, behind it,
what only the second finds. ``aliases,bm25`` are fused: documents by the sum of 1 / (60 + rank) over the systems that
find them. A comma binds closer. ``aliases+bm25:rerank`` is what stands before the colon, reordered by a cross-encoder.

``bm25`` ranks the passages of a corpus by words, ``dense`` by vectors; ``aliases`` the pages that the mentions of a
question may mean. ``oracle`` knows the gold pages, and gives those of a question in the order of their ids.

Source: Cormack, Clarke and Büttcher, Reciprocal rank fusion (2009).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.release.layout import MANIFEST
from mapping.entity_linking.aliases import AliasTable, rank_pages
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import LinkerOptions
from mapping.options import Level
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import Hit, PassageIndex, make_index
from mapping.retrieval.queries import Query
from mapping.retrieval.system_options import DEPTH, RerankerOptions, SystemOptions
from mapping.retrieval.vector_kind import GRAPH

if TYPE_CHECKING:
    from mapping.retrieval.rerank import Reranker
    from mapping.retrieval.vectors import VectorIndex

FUSION_K = 60
RERANK = ":rerank"
"""What a system's name ends with whose passages a cross-encoder reads."""

Search = Callable[[Query, int], list[Hit]]
"""The documents for a query, best first, so many at most."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What systems search."""

    index: PassageIndex
    table: AliasTable | None = None  # where a system has ``aliases``
    linking: LinkerOptions = LinkerOptions()
    vectors: VectorIndex | None = None  # where a system has ``dense``
    reranker: Reranker | None = None  # where a system has ``rerank``

    def prepare(self, system: str, queries: Sequence[str], n_best: int, level: Level) -> None:
        """Looks for the nearest vectors of many queries, which takes as long as for one, so that a system has them."""
        if self.vectors is not None and "dense" in system:
            asked = [(n_best, level)]
            if self.reranker is not None and system.endswith(RERANK):
                asked = [(max(n_best, self.reranker.depth), "passage"), *(asked if level == "page" else ())]
            self.vectors.prepare(queries, asked)


@contextmanager
def open_sources(
    passages: str,
    systems: Sequence[str],
    options: SystemOptions,
    *,
    note: Callable[[str], None] | None = None,
) -> Iterator[Sources]:
    """What systems search in a corpus, opened once for all of them.

    Args:
        systems: their names.
        note: takes what is said while an index is made; without it a missing one is a fault.

    Raises:
        SetupError: something is missing that they need, or given that none of them needs, or made of something else.
    """
    named = " and ".join(systems)
    for part, flags, given in (
        ("aliases", "--linking, and which mentions count, are", (options.linking, options.mentions != LinkerOptions())),
        ("dense", "--vectors, --model and --approximate are", (options.vectors, options.model, options.approximate)),
        ("rerank", "--reranker and --depth are", (options.reranker, options.depth)),
    ):
        if part not in named and any(given):
            raise SetupError(f"{flags} for --system {part}, not for {named}; leave them out.")
    for part, flag, value, what in (
        ("aliases", "--linking", options.linking, "a folder that kbsource entity-linking wrote"),
        ("dense", "--model", options.model, "the encoder that made the vectors, for the queries"),
        ("rerank", "--reranker", options.reranker, "a cross-encoder that reads what was found"),
    ):
        if part in named and value is None:
            raise SetupError(f"--system {named} needs {flag}, {what}.")
    with ExitStack() as stack:
        table = vectors = reranker = None
        if options.linking is not None:
            if ENTITY_LINKING.read(options.linking).made_from() != PASSAGES_CORPUS.read(passages).made_from():
                raise SetupError(
                    f"{options.linking} and {passages} are made from different releases; give those of one release."
                )
            table = stack.enter_context(closing(AliasTable(options.linking)))
        if options.model is not None:
            vectors = _vectors(passages, options, note)
        if options.reranker is not None:
            from mapping.retrieval.rerank import Reranker  # likewise

            reranker = Reranker(RerankerOptions(options.reranker, depth=options.depth or DEPTH))
        index = open_index(passages, options.index, note)
        yield Sources(index, table, options.mentions, vectors, reranker)


def open_index(passages: str, folder: str | None, note: Callable[[str], None] | None) -> PassageIndex:
    """The index of passages, by default beside them; made where there is none and ``note`` is given."""
    folder = folder or f"{passages.rstrip('/')}-bm25"
    if note is not None and not Folder.of(folder).exists(MANIFEST):
        note(f"indexing {passages} into {folder}")
        note(f"{make_index(passages, folder):,} passages indexed")
    return PassageIndex(passages, folder)


def _vectors(passages: str, options: SystemOptions, note: Callable[[str], None] | None) -> VectorIndex:
    from mapping.retrieval.vectors import VectorIndex  # takes a while

    vectors = options.vectors or f"{passages.rstrip('/')}-vectors"
    assert options.model is not None
    if not options.approximate:
        return VectorIndex(passages, vectors, options.model)
    from mapping.retrieval.neighbours import Neighbours, make_neighbours

    folder = f"{vectors.rstrip('/')}-{GRAPH}"
    if note is not None and not Folder.of(folder).exists(MANIFEST):
        note(f"making the graph of {vectors} in {folder}")
        recall = make_neighbours(vectors, folder)
        share = 100 * recall["found"]
        note(f"of the {recall['nearest']} nearest vectors of {recall['sampled']} passages it finds {share:.1f} %")
    return VectorIndex(passages, vectors, options.model, Neighbours(vectors, folder))


def make_system(system: str, sources: Sources, *, level: Level, with_texts: bool = True) -> Search:
    """The search that a system's name says. Without texts titles are left out too, but by aliases."""
    name = system.removesuffix(RERANK)
    if name != system:
        return _reranked(name, sources, level)

    def single(name: str) -> Search:
        if name == "bm25":
            return partial(_by_bm25, index=sources.index, level=level, with_texts=with_texts)
        if name == "dense":
            assert sources.vectors is not None
            return partial(_by_vectors, sources=sources, vectors=sources.vectors, level=level, with_texts=with_texts)
        if name == "oracle":
            return partial(_by_gold, index=sources.index, level=level)
        assert sources.table is not None
        return partial(_by_aliases, sources=sources, table=sources.table, level=level)

    fused = [_combined([single(name) for name in group.split(",")], _fused) for group in name.split("+")]
    return _combined(fused, _in_order)


def _reranked(system: str, sources: Sources, level: Level) -> Search:
    """What a system finds, its first passages in the order of a cross-encoder. A page has the place of its best
    passage, and pages of none of these passages come behind."""
    assert sources.reranker is not None
    reranker = sources.reranker
    find, find_pages = (make_system(system, sources, level=kind) for kind in ("passage", "page"))

    def search(query: Query, n_documents: int) -> list[Hit]:
        hits = reranker.rerank(query.text, find(query, max(n_documents, reranker.depth)))
        if level == "page":
            pages = [hit._replace(passage_id="", text="", spans=()) for hit in hits[: reranker.depth]]
            hits = _in_order([pages, find_pages(query, n_documents)])
        return hits[:n_documents]

    return search


def _combined(systems: Sequence[Search], rank: Callable[[Sequence[list[Hit]]], list[Hit]]) -> Search:
    """One system as it is, and what several find as ``rank`` has it."""
    if len(systems) == 1:
        return systems[0]
    return partial(_by_several, systems=systems, rank=rank)


def _by_several(
    query: Query, n_documents: int, *, systems: Sequence[Search], rank: Callable[[Sequence[list[Hit]]], list[Hit]]
) -> list[Hit]:
    return rank([search(query, n_documents) for search in systems])[:n_documents]


def _in_order(runs: Sequence[list[Hit]]) -> list[Hit]:
    """What the first found, then what only the next found; scores are 1 over the rank."""
    found: dict[str, Hit] = {}
    for hit in (hit for run in runs for hit in run):
        found.setdefault(hit.document, hit)
    return [hit._replace(score=1 / rank) for rank, hit in enumerate(found.values(), start=1)]


def _fused(runs: Sequence[list[Hit]]) -> list[Hit]:
    """Reciprocal rank fusion; documents of one score in the order of the first run that has them."""
    scores: defaultdict[str, float] = defaultdict(float)
    for run in runs:
        for rank, hit in enumerate(run, start=1):
            scores[hit.document] += 1 / (FUSION_K + rank)
    hits = [hit._replace(score=scores[hit.document]) for hit in _in_order(runs)]
    return sorted(hits, key=lambda hit: -hit.score)


def _by_bm25(query: Query, n_documents: int, *, index: PassageIndex, level: Level, with_texts: bool) -> list[Hit]:
    """The best passages, or the pages that these are of; a page has the score of its best passage."""
    n_asked = n_documents
    while True:
        hits = index.search(query.text, n_asked, with_texts=with_texts)
        if level == "passage":
            return hits
        pages: dict[int, Hit] = {}
        for hit in hits:
            pages.setdefault(hit.page_id, hit._replace(passage_id="", text=""))
        if len(pages) >= n_documents or len(hits) < n_asked:
            return list(pages.values())[:n_documents]
        n_asked *= 4


def _by_vectors(
    query: Query, n_documents: int, *, sources: Sources, vectors: VectorIndex, level: Level, with_texts: bool
) -> list[Hit]:
    """The passages whose vectors are nearest, or the pages of these; texts come out of the index of words."""
    hits = []
    for found in vectors.search(query.text, n_documents, level):
        hit = sources.index.passage(found.page_id, found.number, with_texts=with_texts)._replace(score=found.score)
        hits.append(hit._replace(passage_id="", text="") if level == "page" else hit)
    return hits


def _by_gold(query: Query, n_documents: int, *, index: PassageIndex, level: Level) -> list[Hit]:
    """The pages of a query's gold provenance, each by its best passage where passages are wanted; of those without
    passages none."""
    pages = sorted(int(page) for page in query.pages if page.isdecimal())[:n_documents]
    found = [hit for page in pages if (hit := index.best_of_page(page, query.text)) is not None]
    hits = [hit._replace(passage_id="", text="", spans=()) for hit in found] if level == "page" else found
    return [hit._replace(score=1 / rank) for rank, hit in enumerate(hits, start=1)]


def _by_aliases(query: Query, n_documents: int, *, sources: Sources, table: AliasTable, level: Level) -> list[Hit]:
    """The pages that the mentions of a query may mean, those of its subject first, each by its best passage where
    passages are wanted. Of a subject the score is one above the likelihood."""
    found: dict[int, Hit] = {}
    for text, above in ((query.subject, 1), (query.text, 0)):
        for alias, likelihood in rank_pages(text, table, sources.linking, most=n_documents):
            found.setdefault(alias.page_id, Hit("", alias.page_id, alias.title, "", likelihood + above))
    pages = list(found.values())[:n_documents]
    if level == "page":
        return pages
    best = ((sources.index.best_of_page(page.page_id, query.text), page.score) for page in pages)
    return [hit._replace(score=score) for hit, score in best if hit is not None]
