"""Systems that answer questions with passages or pages, and what is made of several.

A system is written as names with ``+`` and ``,`` between them. ``aliases+bm25`` is what the first finds and, behind it,
what only the second finds. ``aliases,bm25`` are fused: documents by the sum of 1 / (60 + rank) over the systems that
find them. A comma binds closer.

``bm25`` ranks the passages of a corpus; ``aliases`` the pages that the mentions of a question may mean.

Source: Cormack, Clarke and Büttcher, Reciprocal rank fusion (2009).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from kbsource.errors import SetupError
from mapping.entity_linking.aliases import AliasTable, rank_pages
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import LinkerOptions
from mapping.options import Level
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import Hit, PassageIndex
from mapping.retrieval.queries import Query

FUSION_K = 60

Search = Callable[[Query, int], list[Hit]]
"""The documents for a query, best first, so many at most."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What systems search."""

    index: PassageIndex
    table: AliasTable | None  # where a system has ``aliases``
    linking: LinkerOptions


@contextmanager
def alias_table(system: str, passages: str, linking: str | None, options: LinkerOptions) -> Iterator[AliasTable | None]:
    """The alias table that a system needs; None for one without ``aliases``.

    Raises:
        SetupError: the table is missing, not needed, or of another release than the passages.
    """
    if "aliases" not in system:
        if linking is not None or options != LinkerOptions():
            raise SetupError(
                f"--linking, and which mentions count, are for --system aliases, not for {system}; leave them out."
            )
        yield None
        return
    if linking is None:
        raise SetupError(f"--system {system} needs --linking, a folder that kbsource entity-linking wrote.")
    if ENTITY_LINKING.read(linking).made_from() != PASSAGES_CORPUS.read(passages).made_from():
        raise SetupError(f"{linking} and {passages} are made from different releases; give those of one release.")
    with closing(AliasTable(linking)) as table:
        yield table


def make_system(system: str, sources: Sources, *, level: Level, with_texts: bool = True) -> Search:
    """The search that a system's name says. Without texts BM25 leaves out titles too."""

    def single(name: str) -> Search:
        if name == "bm25":
            return partial(_by_bm25, index=sources.index, level=level, with_texts=with_texts)
        assert sources.table is not None
        return partial(_by_aliases, sources=sources, table=sources.table, level=level)

    fused = [_combined([single(name) for name in group.split(",")], _fused) for group in system.split("+")]
    return _combined(fused, _in_order)


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
