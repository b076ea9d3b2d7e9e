"""Systems that answer questions with passages or pages, and combinations of systems.

A system is written as names joined by ``+`` and ``,``. ``aliases+bm25`` returns the results of the first, followed by
those that only the second finds. The results of ``aliases,bm25`` are fused: documents are ranked by the sum of 1 / (60
+ rank) over the systems that return them among their first ``depth`` documents; all other documents follow by their
best rank. The depth does not depend on the number of requested documents, so a request for fewer documents returns the
first ones of a larger request. A comma binds more tightly than a plus. ``aliases+bm25:rerank`` is the system before the
colon, reordered by a cross-encoder.

``bm25`` ranks the passages of a corpus by words, ``dense`` by vectors; ``tfidf`` ranks passages, or whole pages, by
hashed n-grams; ``aliases`` ranks the pages that the mentions of a question may refer to. ``oracle`` knows the gold
pages of a question and returns them in the order of their ids.

A cross-encoder reads each passage together with the query. It is opened and run like a model that judges entailment
(``mapping.entail.model``): Hugging Face folders, safetensors on PyTorch or ``model.onnx`` on ONNX Runtime, query first,
passages truncated at the end. A passage's score is the only output of ranking models, such as those trained on MS MARCO
and BGE; the second output minus the first for models with two outputs, such as monoBERT; and for NLI models the output
for entailment minus the larger of the others.

Sources: Cormack, Clarke and Büttcher, Reciprocal rank fusion (2009); Nogueira and Cho, Passage re-ranking with BERT
(2019).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.release.layout import MANIFEST
from mapping.entail.signal import Pair, read_labels
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.linker import AliasTable, rank_meanings, rank_pages
from mapping.entity_linking.records import LinkerOptions
from mapping.options import Level
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import PassageIndex, best_of_pages, make_index
from mapping.retrieval.queries import MENTION, Hit, Query, ScoredPassage, marked
from mapping.retrieval.system_options import DEPTH, RerankerOptions, SystemOptions
from mapping.retrieval.tfidf import TfidfIndex, make_tfidf_index
from mapping.retrieval.vector_kind import GRAPH, PASSAGE_VECTORS

if TYPE_CHECKING:
    from mapping.retrieval.mentions import MentionFinder
    from mapping.retrieval.vectors import VectorIndex

FUSION_K = 60
RERANK = ":rerank"
"""Suffix of the names of systems with a cross-encoder."""
DECIMALS = 5
"""Decimals of a cross-encoder's scores. The last digits of a float32 product depend on the backend."""


@dataclass(frozen=True, slots=True)
class SearchSystem:
    """A system with the indexes it searches. Create it with ``open_system``. Without texts, titles are left out too,
    except by aliases."""

    name: str
    index: PassageIndex
    level: Level = "passage"
    with_texts: bool = True
    table: AliasTable | None = None  # alias table, for ``aliases``
    linking: LinkerOptions = LinkerOptions()
    vectors: VectorIndex | None = None  # index of vectors, for ``dense``
    reranker: Reranker | None = None  # cross-encoder, for ``rerank``
    depth: int = DEPTH  # number of documents that are fused from each system
    mention_finder: MentionFinder | None = None
    tfidf: Mapping[Level, TfidfIndex] = field(default_factory=dict)  # for ``tfidf``, by searched level

    def search(self, queries: Sequence[Query], n_documents: int) -> Iterator[list[Hit]]:
        """Finds at most this number of documents for each query, best first. Vectors are searched for many queries at
        once.
        """
        if self.name.endswith(RERANK):
            return self._reranked(queries, n_documents)
        groups = [self._group(group.split(","), queries, n_documents) for group in self.name.split("+")]
        return _combined(groups, _in_order, n_documents)

    def _group(self, names: Sequence[str], queries: Sequence[Query], n_documents: int) -> Iterator[list[Hit]]:
        """Finds the results of a single system, or the fused results of several."""
        if len(names) == 1:
            return self._found(names[0], queries, n_documents)
        runs = [self._found(name, queries, max(n_documents, self.depth)) for name in names]
        return _combined(runs, partial(_fused, depth=self.depth), n_documents)

    def _reranked(self, queries: Sequence[Query], n_documents: int) -> Iterator[list[Hit]]:
        """Orders the first passages of each result by a cross-encoder. A page has the position of its best passage;
        pages without any of these passages follow."""
        assert self.reranker is not None
        depth = self.reranker.depth
        inner = replace(self, name=self.name.removesuffix(RERANK), level="passage", with_texts=True)
        found = inner.search(queries, max(n_documents, depth))
        ranked = (self.reranker.rerank(query.input, hits) for query, hits in zip(queries, found, strict=True))
        if self.level == "passage":
            return (hits[:n_documents] for hits in ranked)
        firsts = ([hit.as_page() for hit in hits[:depth]] for hits in ranked)
        return _combined([firsts, replace(inner, level="page").search(queries, n_documents)], _in_order, n_documents)

    def _found(self, name: str, queries: Sequence[Query], n_documents: int) -> Iterator[list[Hit]]:
        """Finds the results of a single system: passages, or the pages of the best passages."""
        if name == "dense":
            found = self._by_vectors(queries, n_documents)
        else:
            search = {
                "bm25": self._by_words,
                "tfidf": self._by_ngrams,
                "oracle": self._by_gold,
                "aliases": self._by_aliases,
            }[name]
            found = (search(query, n_documents) for query in queries)
        return ([hit.as_page() for hit in hits] if self.level == "page" else hits for hits in found)

    def _by_words(self, query: Query, n_documents: int) -> list[Hit]:
        """Returns the best passages; a page has the score of its best passage."""
        search = partial(self.index.search, query.text, with_texts=self.with_texts)
        if self.level == "passage":
            return search(n_documents)
        return best_of_pages(search, n_documents, n_first=n_documents)

    def _by_ngrams(self, query: Query, n_documents: int) -> list[Hit]:
        """Returns the best documents by Tf-idf; a page is ranked by all of its text."""
        hits = []
        for document in self.tfidf[self.level].search(query.text, n_documents):
            if document.passage_number is None:
                hits.append(Hit(str(document.page_id), str(document.page_id), document.title, "", document.score))
            else:
                passage = self.index.passage(document.page_id, document.passage_number, with_texts=self.with_texts)
                hits.append(structs.replace(passage, score=document.score))
        return hits

    def _by_vectors(self, queries: Sequence[Query], n_documents: int) -> Iterator[list[Hit]]:
        """Finds the passages with the nearest vectors; their texts come from the BM25 index. If a query has several
        mentions, a document has the score of its nearest mention."""
        assert self.vectors is not None
        passage = partial(self.index.passage, with_texts=self.with_texts)
        inputs = [self._inputs(query) for query in queries]
        found = self.vectors.search([*chain.from_iterable(inputs)], n_documents, self.level)
        for own in inputs:
            best: dict[tuple[int, int], ScoredPassage] = {}
            for hit in chain.from_iterable(islice(found, len(own))):
                place = (hit.page_id, 0 if self.level == "page" else hit.number)
                if place not in best or best[place].score < hit.score:
                    best[place] = hit
            ranked = sorted(best.values(), key=lambda hit: -hit.score) if len(own) > 1 else best.values()
            hits = [structs.replace(passage(hit.page_id, hit.number), score=hit.score) for hit in ranked]
            yield hits[:n_documents]

    def _inputs(self, query: Query) -> list[str]:
        """Returns the inputs of the encoder: the query itself, or one copy for each mention, with that mention
        marked."""
        assert self.vectors is not None
        if self.mention_finder is None or not self.vectors.reads_mentions or MENTION.search(query.input):
            return [query.input]
        text = query.text
        (mentions,) = self.mention_finder.find([text])
        return [marked(text, *mention) for mention in mentions] or [query.input]

    def _by_gold(self, query: Query, n_documents: int) -> list[Hit]:
        """Returns the best passage of each page in a query's gold provenance; pages without passages are skipped."""
        pages = sorted(int(page) for page in query.pages if page.isdecimal())
        best = (self.index.best_of_page(page, query.text) for page in pages)
        return _in_order([list(islice((hit for hit in best if hit is not None), n_documents))])

    def _by_aliases(self, query: Query, n_documents: int) -> list[Hit]:
        """Returns the pages that the mentions of a query may refer to, starting with the pages of its subject; for
        passages, each page's best passage. For a subject, the score is the likelihood plus one."""
        assert self.table is not None
        found: dict[int, Hit] = {}
        ranked = [(1, rank_pages(query.subject, self.table, self.linking))]
        if self.mention_finder is None:
            ranked.append((0, rank_pages(query.text, self.table, self.linking)))
        else:
            (mentions,) = self.mention_finder.find([query.text])
            names = [" ".join(query.text[start:end].split()) for start, end in mentions]
            ranked.append((0, rank_meanings(names, self.table, self.linking, are_certain=True)))
        for above, pages in ranked:
            for alias, likelihood in pages:
                page_id = str(alias.page_id)
                found.setdefault(alias.page_id, Hit(page_id, page_id, alias.title, "", likelihood + above))
        if self.level == "page":
            return list(found.values())[:n_documents]
        best = ((self.index.best_of_page(page_id, query.text), page.score) for page_id, page in found.items())
        hits = (structs.replace(hit, score=score) for hit, score in best if hit is not None)
        return list(islice(hits, n_documents))


def _combined(
    systems: Sequence[Iterator[list[Hit]]], rank: Callable[[Sequence[list[Hit]]], list[Hit]], n_documents: int
) -> Iterator[list[Hit]]:
    """Fuses the results of several systems by ``rank``; the results of a single system are unchanged."""
    return systems[0] if len(systems) == 1 else (rank(runs)[:n_documents] for runs in zip(*systems, strict=True))


def _in_order(runs: Sequence[list[Hit]]) -> list[Hit]:
    """Returns the results of the first run, then those that only the next one has; scores are 1 divided by the rank."""
    found: dict[str, Hit] = {}
    for hit in (hit for run in runs for hit in run):
        found.setdefault(hit.document, hit)
    return [structs.replace(hit, score=1 / rank) for rank, hit in enumerate(found.values(), start=1)]


def _fused(runs: Sequence[list[Hit]], depth: int) -> list[Hit]:
    """Returns the reciprocal rank fusion of the first ``depth`` documents of each run; documents with equal scores are
    in the order of the first run that has them. All other documents follow by their best rank."""
    scores: defaultdict[str, float] = defaultdict(float)
    firsts = [run[:depth] for run in runs]
    for run in firsts:
        for rank, hit in enumerate(run, start=1):
            scores[hit.document] += 1 / (FUSION_K + rank)
    hits = [structs.replace(hit, score=scores[hit.document]) for hit in _in_order(firsts)]
    hits.sort(key=lambda hit: -hit.score)
    for rank, row in enumerate(zip_longest(*(run[depth:] for run in runs)), start=depth + 1):
        for hit in row:
            if hit is not None and hit.document not in scores:
                scores[hit.document] = 1 / (FUSION_K + rank)  # lower than any score above
                hits.append(structs.replace(hit, score=scores[hit.document]))
    return hits


class Reranker:
    """Scores passages for a query.

    Raises:
        SetupError: the model cannot be opened, or its outputs do not measure relevance.
    """

    def __init__(self, options: RerankerOptions) -> None:
        from mapping.entail.model import open_pair_model  # importing it is slow

        self.depth = options.depth
        self._model, names = open_pair_model(options.model_options())
        self._n_outputs = len(names)
        self._place = len(names) - 1 if len(names) <= 2 else read_labels(names, None, model=options.model).entailment

    def scores(self, query: str, passages: Sequence[tuple[str, str]]) -> list[float | None]:
        """Returns a score per passage, each a title and a text; None for an empty passage, or if the query leaves no
        room for it.

        Scores depend only on query and passages. Memory: the scores and a batch.
        """
        from mapping.entail.model import check_outputs  # importing it is slow

        pairs = [Pair(f"{title}\n{text}", query) for title, text in passages]
        outputs, refused = self._model.outputs(pairs)
        if len(refused) == len(pairs):
            return [None] * len(pairs)
        check_outputs(outputs, self._n_outputs)
        found = outputs[:, self._place].astype(np.float64)
        if outputs.shape[1] > 1:
            found -= np.delete(outputs, self._place, axis=1).max(axis=1)
        rounded = np.round(found, DECIMALS).tolist()
        return [None if place in refused else score for place, score in enumerate(rounded)]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Returns the hits for a query ordered by their scores, see ``reordered``."""
        first = hits[: self.depth]
        return reordered(hits, self.scores(query, [(hit.title, hit.text) for hit in first]))


def reordered(hits: Sequence[Hit], scores: Sequence[float | None]) -> list[Hit]:
    """Returns documents ordered by score, followed by documents without a score. Documents with equal scores keep their
    order. Documents without a score get descending scores below the lowest score, because trec_eval ignores ranks.

    >>> hits = [Hit(page_id, page_id, "", "", 1.0) for page_id in "1234"]
    >>> [(hit.page_id, hit.score) for hit in reordered(hits, [0.5, None, 0.75])]
    [('3', 0.75), ('1', 0.5), ('2', -0.5), ('4', -1.5)]
    """
    known = {place: score for place, score in enumerate(scores) if score is not None}
    order = sorted(range(len(hits)), key=lambda place: (place not in known, -known.get(place, 0.0)))
    least = min(known.values(), default=0.0)
    numbered = enumerate(order, start=1 - len(known))
    return [structs.replace(hits[place], score=known.get(place, least - number)) for number, place in numbered]


@contextmanager
def open_system(
    passages: str,
    name: str,
    options: SystemOptions,
    *,
    level: Level = "passage",
    with_texts: bool = True,
    note: Callable[[str], None] | None = None,
) -> Iterator[SearchSystem]:
    """Opens a system and the indexes it searches.

    Args:
        note: receives messages while an index is made; without it, a missing index is an error.

    Raises:
        SetupError: a required option is missing, an option does not apply to the system, or parts were made from
            different data.
    """
    for part, what, *names in (
        ("aliases", "a folder that kbsource entity-linking wrote", "linking", "mentions"),
        (
            "dense",
            "the encoder that made the vectors, for the queries",
            "model",
            "query-model",
            "vectors",
            "approximate",
        ),
        ("rerank", "a cross-encoder that reads the retrieved passages", "reranker"),
        ("tfidf", "", "tfidf"),
    ):
        fields = {name: name.replace("-", "_") for name in names}
        given = [
            f"--{option}" for option, own in fields.items() if getattr(options, own) != getattr(SystemOptions(), own)
        ]
        if part not in name and given:
            said = " and ".join(given).replace("--mentions", "the options that choose mentions")
            raise SetupError(f"{said} works only with --system {part}, not with {name}; leave it out.")
        if part in name and what and not {f"--{names[0]}", "--query-model"} & {*given}:
            raise SetupError(f"--system {name} needs --{names[0]}, {what}.")
    if options.mention_model is not None and not ("aliases" in name or "dense" in name):
        raise SetupError(f"--mention-model works only with --system aliases and dense, not with {name}; leave it out.")
    if options.depth is not None and not name.endswith(RERANK) and "," not in name:
        raise SetupError(f"--depth works only with systems that are fused or reranked, not with {name}; leave it out.")
    depth = options.depth or DEPTH
    with ExitStack() as stack:
        table = vectors = reranker = None
        if options.linking is not None:
            if ENTITY_LINKING.read(options.linking).made_from() != PASSAGES_CORPUS.read(passages).made_from():
                raise SetupError(
                    f"{options.linking} and {passages} are made from different releases; name data from the same "
                    f"release."
                )
            table = stack.enter_context(closing(AliasTable(options.linking)))
        if options.model is not None or options.query_model is not None:
            vectors = _vectors(passages, options, note)
        if options.reranker is not None:
            reranker = Reranker(RerankerOptions(options.reranker, depth=depth))
        finder: MentionFinder | None = None
        if options.mention_model is not None:
            from mapping.retrieval.mentions import open_mention_finder  # importing it is slow

            if "aliases" not in name and vectors is not None and not vectors.reads_mentions:
                raise SetupError(
                    "--mention-model: the encoder of the vectors does not read marked mentions; make vectors with "
                    "--text-form blink, or leave --mention-model out."
                )
            finder = open_mention_finder(options.mention_model)
        index = open_index(passages, options.index, note)
        tfidf: dict[Level, TfidfIndex] = {}
        if "tfidf" in name:
            searched: set[Level] = {level, "passage"} if name.endswith(RERANK) else {level}
            for searched_level in sorted(searched):
                tfidf[searched_level] = stack.enter_context(
                    closing(_tfidf(passages, options.tfidf, searched_level, note))
                )
        yield SearchSystem(
            name, index, level, with_texts, table, options.mentions, vectors, reranker, depth, finder, tfidf
        )


def open_index(passages: str, folder: str | None, note: Callable[[str], None] | None) -> PassageIndex:
    """Opens the index of passages, by default in the folder next to them. If the index is missing and ``note`` is
    given, it is built.
    """
    folder = folder or f"{passages.rstrip('/')}-bm25"
    if note is not None and not Folder.of(folder).exists(MANIFEST):
        PASSAGES_CORPUS.read(passages)  # raises an error for another kind of release before a message is printed
        note(f"indexing {passages} into {folder}")
        note(f"{make_index(passages, folder):,} passages indexed")
    return PassageIndex(passages, folder)


def _tfidf(passages: str, folder: str | None, level: Level, note: Callable[[str], None] | None) -> TfidfIndex:
    """Opens the Tf-idf index of passages or pages, by default next to the passages; makes it if it is missing and
    ``note`` is given."""
    folder = f"{(folder or passages.rstrip('/') + '-tfidf').rstrip('/')}-{level}"
    if note is not None and not Folder.of(folder).exists(MANIFEST):
        note(f"indexing {passages} by {level} into {folder}")
        note(f"{make_tfidf_index(passages, folder, level=level):,} {level}s indexed")
    return TfidfIndex(passages, folder, level)


def _vectors(passages: str, options: SystemOptions, note: Callable[[str], None] | None) -> VectorIndex:
    from mapping.retrieval.vectors import Neighbours, VectorIndex, make_neighbours  # importing it is slow

    vectors = options.vectors or f"{passages.rstrip('/')}-vectors"
    has_two = "query_encoder" in PASSAGE_VECTORS.read(vectors).facts
    needed, other = ("query_model", "model") if has_two else ("model", "query_model")
    model: str | None = getattr(options, needed)
    if model is None or getattr(options, other) is not None:
        option, instead = (f"--{name.replace('_', '-')}" for name in (needed, other))
        how = "with an encoder of queries" if has_two else "by one encoder"
        raise SetupError(f"{vectors} was made {how}; give {option} instead of {instead}.")
    if not options.approximate:
        return VectorIndex(passages, vectors, model)
    folder = f"{vectors.rstrip('/')}-{GRAPH}"
    if note is not None and not Folder.of(folder).exists(MANIFEST):
        note(f"building the graph of {vectors} in {folder}")
        recall = make_neighbours(vectors, folder)
        share = 100 * recall["found"]
        note(f"of the {recall['nearest']} nearest vectors of {recall['sampled']} passages it finds {share:.1f} %")
    return VectorIndex(passages, vectors, model, Neighbours(vectors, folder))
