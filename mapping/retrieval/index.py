"""An index of passages on disk, and BM25 search in it.

The library is tantivy. It maps its files into memory, so that a search does not need more memory for more passages, and
it skips postings that cannot reach the top. Its BM25 uses k1 = 1.2 and b = 0.75, and stores passage lengths in one
byte, like Lucene. Title and text are indexed together; words are lower-cased, and for languages that Snowball supports,
stop words are removed and words are stemmed.

Source: Robertson and Zaragoza (2009), in Lucene's form.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import astuple

from kbsource.columns import rows_of
from kbsource.errors import DataError, SetupError
from kbsource.files import Folder, is_local, join
from kbsource.release.layout import MANIFEST, is_in, stored_files
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes, row_groups
from mapping.passages.cut import Passage, PassageSpan, passage_id
from mapping.passages.kind import ENGINE, PASSAGES_CORPUS, PASSAGES_INDEX
from mapping.retrieval.queries import Hit, ScoredPassage

if TYPE_CHECKING:
    import tantivy

HEAP_BYTES = 256 << 20
"""Memory for postings before they are written."""
SLACK = 16
"""Additional passages requested, so that all passages with the last score are seen."""
TIE = 1e-5
"""Scores that differ by a smaller share are equal: sums in single precision depend on their order."""

_ANALYSER, _TEXT, _PAGE, _NUMBER, _SPANS = "passages", "text", "page_id", "number", "spans"
_PLACE = ("row", _PAGE, _NUMBER)
_SPAN = struct.Struct("<3i")
"""Storage format of a span: element, first code point, one past the last."""
_SNOWBALL = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "simple": "english", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_LONGEST_WORD = 255


P = TypeVar("P", Hit, ScoredPassage)


def best_of_pages(search: Callable[[int], Sequence[P]], n_pages: int, *, n_first: int) -> list[P]:
    """Returns the best passages of the best pages. ``search`` returns a given number of passages; this number is
    quadrupled until there are enough pages, or no more passages."""
    while True:
        pages: dict[int | str, P] = {}
        found = search(n_first)
        for hit in found:
            pages.setdefault(hit.page_id, hit)
        if len(pages) >= n_pages or len(found) < n_first:
            return list(pages.values())[:n_pages]
        n_first *= 4


class _Scored(NamedTuple):
    score: float
    address: tantivy.DocAddress
    row: int
    page_id: int
    number: int


def analyser(lang: str) -> tantivy.TextAnalyzer:
    """Returns the analyser that splits a text into words: runs of letters and digits, lower-cased, and stemmed if the
    language is supported."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = (
        TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(_LONGEST_WORD)).filter(Filter.lowercase())
    )
    if (name := _SNOWBALL.get(lang)) is not None:
        builder = builder.filter(Filter.stopword(name)).filter(Filter.stemmer(name))
    return builder.build()


def make_index(passages: str, index: str) -> int:
    """Indexes a corpus of passages in its order; returns their number. Memory: ``HEAP_BYTES`` and the memory for
    merging.

    Raises:
        SetupError: the corpus was changed after it was written, or the index is not on a local disk.
    """
    if not is_local(index):
        raise SetupError(f"--index {index}: an index is mapped into memory; name a folder on a local disk.")
    corpus = PASSAGES_CORPUS.read(passages)
    entries, words = corpus.tables["passages"], analyser(corpus.facts["lang"])
    check_hashes(passages, entries)
    with ReleaseFolder(os.path.abspath(index), kind=PASSAGES_INDEX) as out:
        n_passages = _write([join(passages, entry.file) for entry in entries], join(out.folder, ENGINE), words)
        files = [FileEntry.of(out.folder, file) for file in stored_files(out.folder) if is_in(file, (ENGINE,))]
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "lang": corpus.facts["lang"],
            "counts": {"passages": n_passages},
            "code": {**code_facts(), ENGINE: version(ENGINE)},
        }
        commit(PASSAGES_INDEX, PASSAGES_INDEX.listing(files, facts), out.folder)
    return n_passages


def _write(paths: Sequence[str], folder: str, words: tantivy.TextAnalyzer) -> int:
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field(_TEXT, stored=True, tokenizer_name=_ANALYSER, index_option="freq")
    schema.add_bytes_field(_SPANS, stored=True)
    for name in _PLACE:
        schema.add_unsigned_field(name, stored=False, indexed=name == _PAGE, fast=True)
    os.makedirs(folder)
    fields = schema.build()
    engine = tantivy.Index(fields, folder)
    engine.register_tokenizer(_ANALYSER, words)
    writer = engine.writer(heap_size=HEAP_BYTES, num_threads=1)
    n_passages = 0
    for path in paths:
        for group in row_groups(path, ("page_id", "number", "title", "text", "spans")):
            for passage in rows_of(group, Passage):
                spans = b"".join(_SPAN.pack(*astuple(span)) for span in passage.spans)
                place = {"row": n_passages, _PAGE: passage.page_id, _NUMBER: passage.number}
                text = f"{passage.title}\n{passage.text}"
                if passage.page_id < 0 or passage.number < 0:
                    raise DataError(
                        f"{path}: row {n_passages} has a negative page_id or number; download the passages again."
                    )
                writer.add_document(tantivy.Document.from_dict({_TEXT: text, _SPANS: spans, **place}, fields))
                n_passages += 1
    writer.commit()
    writer.wait_merging_threads()
    return n_passages


class PassageIndex:
    """A searchable index, mapped into memory.

    The whole index is read once to verify its hashes: changed files would return other passages, and tantivy does not
    detect that.

    Raises:
        SetupError: the index does not exist, was changed after it was written, or belongs to another corpus.
    """

    def __init__(self, passages: str, index: str) -> None:
        corpus = PASSAGES_CORPUS.read(passages)
        self._words = analyser(corpus.facts["lang"])
        if not Folder.of(index).exists(MANIFEST):
            raise SetupError(f"{index}: not a finished index; run kbsource search {passages} QUERY to make it.")
        manifest = PASSAGES_INDEX.read(index)
        if manifest.facts["passages"]["manifest_sha256"] != corpus.sha256:
            raise SetupError(
                f"{index} was not made from {passages}; name the passages that the index was made from, or a new "
                f"folder with --index."
            )
        if (made := manifest.facts["code"][ENGINE]) != version(ENGINE):
            raise SetupError(
                f"{index} was made with tantivy {made}, and {version(ENGINE)} is installed; make the index again."
            )
        check_hashes(index, manifest.entries())
        import tantivy

        try:
            engine = tantivy.Index.open(join(index, ENGINE))
        except ValueError as error:  # raised if tantivy's own list of files is damaged, which no manifest lists
            raise DataError(f"{index} cannot be read ({error}); remove it and make it again.") from error
        self._queries, self._occur, self._unsigned = tantivy.Query, tantivy.Occur, tantivy.FieldType.Unsigned
        self._schema, self._searcher = engine.schema, engine.searcher()
        if self._searcher.num_docs != manifest.facts["counts"]["passages"]:
            raise DataError(f"{index}: it has {self._searcher.num_docs} passages; remove the index and make it again.")

    def search(self, query: str, n_passages: int, *, with_texts: bool = True) -> list[Hit]:
        """Returns the best passages for a query, best first; passages with equal scores are in corpus order.

        Passages without any of the words are not returned. A search that does not return texts and titles is twice as
        fast.
        """
        return self._ranked(self._terms(query), n_passages, with_texts=with_texts)

    def best_of_page(self, page_id: int, query: str) -> Hit | None:
        """Returns the passage of a page that matches a query best, or its first passage if none contains a word of it;
        None if the page has no passage."""
        page = self._queries.const_score_query(self._queries.term_query(self._schema, _PAGE, page_id), 0.0)
        return next(iter(self._ranked([(self._occur.Must, page), *self._terms(query)], 1)), None)

    def find(self, page_id: int, number: int) -> Hit | None:
        """Returns a passage by its page and its number in that page; None if it does not exist."""
        page = self._queries.term_query(self._schema, _PAGE, page_id)
        place = self._queries.range_query(self._schema, _NUMBER, self._unsigned, number, number)
        return next(iter(self._ranked([(self._occur.Must, page), (self._occur.Must, place)], 1)), None)

    def passage(self, page_id: int, number: int, *, with_texts: bool = True) -> Hit:
        """Returns a passage by its page and number. Without ``with_texts``, its text and title are empty, and nothing
        is read.
        """
        name = passage_id(page_id, number)
        found = self.find(page_id, number) if with_texts else Hit(name, str(page_id), "", "")
        if found is None:
            raise DataError(f"There is no passage {name} in the index; make it again.")
        return found

    def _terms(self, query: str) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        term = partial(self._queries.term_query, self._schema, _TEXT, index_option="freq")
        return [(self._occur.Should, term(word)) for word in self._words.analyze(query)]

    def _ranked(
        self, terms: Sequence[tuple[tantivy.Occur, tantivy.Query]], n_passages: int, *, with_texts: bool = True
    ) -> list[Hit]:
        query, n_asked = self._queries.boolean_query(terms), n_passages + SLACK
        while True:
            hits = self._searcher.search(query, limit=n_asked, count=False).hits
            if len(hits) < n_asked or not _are_tied(hits[n_passages - 1][0], hits[-1][0]):
                break
            n_asked *= 4
        addresses = [address for _, address in hits]
        places = (self._searcher.fast_field_values(name, addresses) for name in _PLACE)
        scored = in_order([_Scored(*hit, *place) for hit, *place in zip(hits, *places, strict=True)])
        return [self._hit(scored_passage, with_texts) for scored_passage in scored[:n_passages]]

    def _hit(self, found: _Scored, with_texts: bool) -> Hit:
        name, page = passage_id(found.page_id, found.number), str(found.page_id)
        if not with_texts:
            return Hit(name, page, "", "", found.score)
        stored = self._searcher.doc(found.address)
        title, _, text = stored[_TEXT][0].partition("\n")
        spans = tuple(PassageSpan(*span) for span in _SPAN.iter_unpack(bytes(stored[_SPANS][0])))
        return Hit(name, page, title, text, found.score, spans)


def _are_tied(score: float, lower: float) -> bool:
    return score - lower <= TIE * score


def in_order(scored: Sequence[_Scored]) -> list[_Scored]:
    """Puts passages that are already sorted by descending score into rank order: those with equal scores are sorted by
    row.
    """
    ranks = accumulate((not _are_tied(higher.score, lower.score) for higher, lower in pairwise(scored)), initial=0)
    return [
        scored_passage
        for _, scored_passage in sorted(zip(ranks, scored, strict=False), key=lambda ranked: (ranked[0], ranked[1].row))
    ]
