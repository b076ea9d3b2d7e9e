"""Full-text search in a release of pages: BM25 over the titles and texts of whole pages.

The index is built by tantivy at first use and stored in the cache folder. It contains no texts: the snippets of results
are read from the release. Words are those of ``mapping.retrieval.index.analyser``. A word of the query counts
``TITLE_WEIGHT`` times as much in the title.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import DataError, SetupError
from kbsource.files import join
from kbsource.records import Page
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import row_groups
from kbsource.release.side_index import OnProgress, SideIndex, cache_folder
from mapping.inspector.marking import MarkedRange
from mapping.retrieval.index import analyser

if TYPE_CHECKING:
    import tantivy

TITLE_WEIGHT = 3.0
MOST_RESULTS = 1_000
"""Maximum number of results that can be listed; all are counted."""
SNIPPET_CHARS = 300
_HEAP_BYTES = 64 << 20
_MOST_WORDS = 64
_TITLE, _TEXT, _PAGE, _ANALYSER = "title", "text", "page_id", "words"
_WORD = re.compile(r"\w+")


class FoundPages(NamedTuple):
    """Results of a search."""

    n_pages: int  #: number of pages that contain a word of the query
    ids: Sequence[int]  #: ids of the requested pages, best first


class Snippet(NamedTuple):
    """The part of a page that contains the most words of a query."""

    text: str
    spans: Sequence[tuple[int, int]]  #: half-open spans, in code points of the text, of the words of the query
    place: MarkedRange | None  #: location of the first of these words in the page; None if only the title has any


class FullText:
    """An open index."""

    def __init__(self, folder: str, lang: str) -> None:
        tantivy = _library()
        self._analyser = analyser(lang)
        self._queries, self._occur = tantivy.Query, tantivy.Occur
        try:
            index = tantivy.Index.open(folder)
        except ValueError as error:  # raised for the file that lists tantivy's own files, which is not hashed
            raise DataError(
                f"{folder} cannot be read ({error}); delete this folder, and the inspector builds the index again."
            ) from error
        self._schema, self._searcher = index.schema, index.searcher()
        # Analysed words are cached, because texts repeat the same words.
        self._word = lru_cache(maxsize=100_000)(self._analysed)

    def close(self) -> None:
        """Does nothing: the files are unmapped when the object is deleted."""

    def words(self, query: str) -> list[str]:
        """Returns the words of a query that are searched; at most ``_MOST_WORDS``."""
        return list(dict.fromkeys(self._analyser.analyze(query)))[:_MOST_WORDS]

    def search(self, query: str, start: int, end: int) -> FoundPages:
        """Returns the pages from ``start`` to ``end`` of all that have a word of a query, best first."""
        terms = [self._of_word(word) for word in self.words(query)]
        if not terms or start >= end:
            return FoundPages(0, ())
        asked = self._queries.boolean_query([(self._occur.Should, term) for term in terms])
        found = self._searcher.search(asked, limit=end - start, offset=start, count=True)
        addresses = [address for _, address in found.hits]
        return FoundPages(found.count or 0, self._searcher.fast_field_values(_PAGE, addresses) if addresses else ())

    def _of_word(self, word: str) -> tantivy.Query:
        term = partial(self._queries.term_query, self._schema, index_option="freq")
        title = self._queries.boost_query(term(_TITLE, word), TITLE_WEIGHT)
        weights = [(self._occur.Should, title), (self._occur.Should, term(_TEXT, word))]
        found: tantivy.Query = self._queries.boolean_query(weights)
        return found

    def snippet(self, page: Page, query: str) -> Snippet:
        """Returns the part of a page that has most of the words of a query: by different words, then by all words."""
        wanted = set(self.words(query))
        best, found = (0, 0), Snippet("", (), None)
        for number, element in enumerate(page.elements):
            if number == 0:  # the title, which is shown anyway
                continue
            spans = [(*match.span(), word) for match in _WORD.finditer(element.text) if (word := self._word(match[0]))]
            spans = [span for span in spans if span[2] in wanted]
            rank = (len({word for _, _, word in spans}), len(spans))
            if spans and rank > best:
                first = spans[0]
                start = _cut(element.text, first[0])
                end = min(len(element.text), start + SNIPPET_CHARS)
                text = ("…" if start else "") + element.text[start:end] + ("…" if end < len(element.text) else "")
                shift = start - (start > 0)
                inside = [(begin - shift, stop - shift) for begin, stop, _ in spans if stop <= end]
                best = rank
                found = Snippet(text, inside, MarkedRange(number, first[0], number, first[1]))
        if found.place is None:
            text = next((element.text for element in page.elements if element.kind == "paragraph"), "")
            found = Snippet(text[:SNIPPET_CHARS] + "…" * (len(text) > SNIPPET_CHARS), (), None)
        return found

    def _analysed(self, word: str) -> str | None:
        return next(iter(self._analyser.analyze(word)), None)


def _cut(text: str, place: int) -> int:
    """Returns the start of a snippet that shows a position: some words before it."""
    if place < SNIPPET_CHARS // 3:
        return 0
    blank = text.find(" ", place - SNIPPET_CHARS // 4, place)
    return place if blank < 0 else blank + 1


def full_text(path: str, manifest: PagesManifest) -> SideIndex[FullText]:
    """Returns the index of a release of pages."""
    lang = manifest.site.lang
    folder = cache_folder(manifest.sha256) / f"text-1-{_version()}"
    return SideIndex(folder, partial(_write, path, manifest), partial(FullText, lang=lang))


def _version() -> str:
    """Returns the version of tantivy, which cannot read the files of another version; empty if it is not installed."""
    try:
        return version("tantivy")
    except PackageNotFoundError:
        return ""


def _library() -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise SetupError(
            f"full-text search needs tantivy ({error}). Install the extra: pip install 'kbsource[search]'"
        ) from error
    return tantivy


def _write(path: str, manifest: PagesManifest, folder: str, on_progress: OnProgress) -> None:
    """Indexes the pages in the order of the release; ``on_progress`` receives the number of pages indexed so far."""
    tantivy = _library()
    builder = tantivy.SchemaBuilder()
    for name in (_TITLE, _TEXT):
        builder.add_text_field(name, stored=False, tokenizer_name=_ANALYSER, index_option="freq")
    builder.add_unsigned_field(_PAGE, stored=False, indexed=False, fast=True)
    schema = builder.build()
    index = tantivy.Index(schema, folder)
    index.register_tokenizer(_ANALYSER, analyser(manifest.site.lang))
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    n_done, n_pages = 0, manifest.n_rows("pages")
    for entry in manifest.tables["pages"]:
        for group in row_groups(join(path, entry.file), ("page_id", "title", "elements")):
            for batch in group.to_batches(max_chunksize=100):
                rows = zip(
                    batch["page_id"].to_pylist(), batch["title"].to_pylist(), _texts(batch["elements"]), strict=True
                )
                for page_id, title, text in rows:
                    if page_id < 0:
                        raise DataError(
                            f"{entry.file}: page {page_id}: a page id must not be negative; download the release again."
                        )
                    writer.add_document(
                        tantivy.Document.from_dict({_TITLE: title, _TEXT: text, _PAGE: page_id}, schema)
                    )
                n_done += batch.num_rows
                on_progress(n_done, n_pages)
    writer.commit()
    writer.wait_merging_threads()
    for name in os.listdir(folder):
        if name.endswith(".lock"):
            os.remove(join(folder, name))


def _texts(elements: pa.ListArray) -> list[str]:
    """Returns the text of each page: its elements, each on a line."""
    texts = pc.struct_field(elements.flatten(), "text")
    lengths = pc.fill_null(pc.list_value_length(elements), 0).to_numpy()
    offsets = pa.array([0, *map(int, lengths.cumsum())], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), "\n")
    return [text or "" for text in joined.to_pylist()]
