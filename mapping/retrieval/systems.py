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
from mapping.retrieval.index import Hit, PassageIndex, best_of_pages, make_index
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
    for part, what, *names in (
        ("aliases", "a folder that kbsource entity-linking wrote", "linking", "mentions"),
        ("dense", "the encoder that made the vectors, for the queries", "model", "vectors", "approximate"),
        ("rerank", "a cross-encoder that reads what was found", "reranker", "depth"),
    ):
        given = [f"--{name}" for name in names if getattr(options, name) != getattr(SystemOptions(), name)]
        if part not in named and given:
            said = " and ".join(given).replace("--mentions", "what says which mentions count")
            raise SetupError(f"{said}: for --system {part}, not for {named}; leave it out.")
        if part in named and f"--{names[0]}" not in given:
            raise SetupError(f"--system {named} needs --{names[0]}, {what}.")
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
        return partial(_SEARCHES[name], sources=sources, level=level, with_texts=with_texts)

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
            pages = [hit.as_page() for hit in hits[: reranker.depth]]
            hits = _in_order([pages, find_pages(query, n_documents)])
        return hits[:n_documents]

    return search


def _combined(systems: Sequence[Search], rank: Callable[[Sequence[list[Hit]]], list[Hit]]) -> Search:
    """One system as it is, and what several find as ``rank`` has it."""

    def search(query: Query, n_documents: int) -> list[Hit]:
        return rank([each(query, n_documents) for each in systems])[:n_documents]

    return systems[0] if len(systems) == 1 else search


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


def _by_bm25(query: Query, n_documents: int, *, sources: Sources, level: Level, with_texts: bool) -> list[Hit]:
    """The best passages, or the pages that these are of; a page has the score of its best passage."""
    search = partial(sources.index.search, query.text, with_texts=with_texts)
    if level == "passage":
        return search(n_documents)
    return [hit.as_page() for hit in best_of_pages(search, n_documents, n_first=n_documents)]


def _by_vectors(query: Query, n_documents: int, *, sources: Sources, level: Level, with_texts: bool) -> list[Hit]:
    """The passages whose vectors are nearest, or the pages of these; texts come out of the index of words."""
    assert sources.vectors is not None
    hits = [
        sources.index.passage(found.page_id, found.number, with_texts=with_texts)._replace(score=found.score)
        for found in sources.vectors.search(query.text, n_documents, level)
    ]
    return [hit.as_page() for hit in hits] if level == "page" else hits


def _by_gold(query: Query, n_documents: int, *, sources: Sources, level: Level, with_texts: bool) -> list[Hit]:
    """The pages of a query's gold provenance, each by its best passage where passages are wanted; of those without
    passages none."""
    pages = sorted(int(page) for page in query.pages if page.isdecimal())[:n_documents]
    found = [hit for page in pages if (hit := sources.index.best_of_page(page, query.text)) is not None]
    return _in_order([[hit.as_page() for hit in found] if level == "page" else found])


def _by_aliases(query: Query, n_documents: int, *, sources: Sources, level: Level, with_texts: bool) -> list[Hit]:
    """The pages that the mentions of a query may mean, those of its subject first, each by its best passage where
    passages are wanted. Of a subject the score is one above the likelihood."""
    assert sources.table is not None
    found: dict[int, Hit] = {}
    for text, above in ((query.subject, 1), (query.text, 0)):
        for alias, likelihood in rank_pages(text, sources.table, sources.linking, most=n_documents):
            found.setdefault(alias.page_id, Hit("", alias.page_id, alias.title, "", likelihood + above))
    pages = list(found.values())[:n_documents]
    if level == "page":
        return pages
    best = ((sources.index.best_of_page(page.page_id, query.text), page.score) for page in pages)
    return [hit._replace(score=score) for hit, score in best if hit is not None]


_SEARCHES = {"bm25": _by_bm25, "dense": _by_vectors, "oracle": _by_gold, "aliases": _by_aliases}
