"""Tf-idf over hashed unigrams and bigrams, as in DrQA: makes an index on disk and searches it.

::

    documents/documents-00000-of-00001.parquet    a row per document, in the order of the corpus
    postings/postings-00000-of-00001.parquet      which documents contain the n-grams of a bucket, and how often
    manifest.json                                 written last

A document is a passage or a whole page, with the title in front. Its text is decomposed (NFD), put in lower case and
split into words (runs of letters, digits and combining marks) and single other characters. N-grams with a stop word or
a punctuation mark are skipped; the others are hashed to 2²⁴ buckets by MurmurHash3. The weight of a bucket, in
documents and queries alike, is ::

    log(tf + 1) · max(0, log((N - df + 0.5) / (df + 0.5)))

where tf is the number of the text's n-grams in the bucket, and df is the number of documents, out of N, with any. The
score is the inner product.

DuckDB sorts the postings on disk when the index is made, and joins a query with them by SQL, so memory stays flat.

Source: Chen et al., Reading Wikipedia to Answer Open-Domain Questions (2017), and ``drqa.retriever``. KILT and AmbER
use this retriever with its tokenizer ``simple``.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import Annotated, NamedTuple

import pyarrow as pa

from kbsource.columns import batch_of, schema_of
from kbsource.errors import SetupError
from kbsource.files import Folder, join
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.sql import add_release, connected, with_counts
from kbsource.release.writer import write_batches
from kbsource.rows import Int32, Row
from kbsource.runtime.chunks import rows_batch
from kbsource.runtime.database import insert
from mapping.options import Level
from mapping.passages.corpus import read_passages
from mapping.passages.cut import Passage
from mapping.passages.kind import PASSAGES_CORPUS

N_BUCKETS = 1 << 24
DECIMALS = 6
"""Digits of scores, because the last digits of a sum depend on its order."""
_HELD_POSTINGS = 1 << 20
"""Maximum postings in memory before they are passed to the database, which sorts them."""
_GROUP_ROWS = 1 << 16
_MEMORY_MB = 500

_ENGLISH = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma
    mightn mustn needn shan shouldn wasn weren won wouldn
    """.split()
)
"""English stop words. Source: ``drqa.retriever.utils``, without words that its tokenizer ``simple`` never produces."""


class TfidfDocument(Row):
    """One row per document, in the order of the corpus."""

    document: Annotated[Int32, "number of the document in the index, from 0"]
    page_id: Annotated[int, "page of the document"]
    passage_number: Annotated[
        Int32 | None, "number of the passage within its page, from 0; null if documents are pages"
    ]
    title: Annotated[str, "title of the page"]


class TfidfPosting(Row):
    """One row per bucket and document that contains n-grams of the bucket, ordered by both."""

    bucket: Annotated[Int32, "MurmurHash3 of the n-gram, modulo 2²⁴"]
    document: Annotated[Int32, "number of the document"]
    n_occurrences: Annotated[Int32, "number of n-grams of the document in the bucket"]


DOCUMENTS, POSTINGS = "documents", "postings"
_SCHEMAS = {DOCUMENTS: schema_of(TfidfDocument), POSTINGS: schema_of(TfidfPosting)}
_CORPUS = {
    "passage": "select page_id, number as passage_number, title, _file_number, _row from passages.passages",
    "page": """select page_id, null as passage_number, first(title order by _file_number, _row) as title,
        min(_file_number) as _file_number, min(_row) as _row from passages.passages group by page_id""",
}


TFIDF_INDEX = ListingKind(
    name="Tf-idf index of passages",
    format="kbsource-tfidf-1",
    made_by="kbsource search",
    card=CardText(
        title="Tf-idf index of passages",
        summary="Counts of hashed unigrams and bigrams in passages or pages, for kbsource search.",
        main="postings",
        holds=("wikipedia",),
        tasks=("text-retrieval",),
        tags=("wikipedia", "retrieval"),
    ),
    tables=_SCHEMAS,
    required=tuple(_SCHEMAS),
    invariants=(
        Invariant(
            "invalid_posting",
            "a posting has an impossible bucket, document or number of occurrences",
            f"""case when bucket not between 0 and {N_BUCKETS - 1} or n_occurrences < 1
                or document not between 0 and (select n from settings where name = 'documents') - 1
                then [format('bucket {{}}, document {{}}: {{}}', bucket, document, n_occurrences)] end""",
            table=POSTINGS,
        ),
        Invariant(
            "postings_out_of_order",
            "postings are not ordered by bucket and document, or a pair of both appears twice",
            """select _file, format('bucket {}, document {}', bucket, document) from (
                select _file, bucket, document,
                    lag((bucket, document)) over (order by _file_number, _row) as before from postings
            ) where (bucket, document) <= before""",
            needs=(POSTINGS,),
        ),
        Invariant(
            "documents_out_of_order",
            "documents are not numbered consecutively from 0",
            """select _file, 'document ' || document from (
                select _file, document, row_number() over (order by _file_number, _row) - 1 as place from documents
            ) where document <> place""",
            needs=(DOCUMENTS,),
        ),
        Invariant(
            "passages_disagree",
            "the documents are not those of the passages, in their order",
            f"""select own._file, 'document ' || place from documents as own full join (
                select *, row_number() over (order by _file_number, _row) - 1 as place from (
                    select * from ({_CORPUS["passage"]}) where 0 = (select n from settings where name = 'by page')
                    union all
                    select * from ({_CORPUS["page"]}) where 1 = (select n from settings where name = 'by page'))
            ) as corpus on own.document = place
            where (own.page_id, own.passage_number, own.title)
                is distinct from (corpus.page_id, corpus.passage_number, corpus.title)""",
            needs=(DOCUMENTS, "passages"),
        ),
    ),
    counts=(
        TableCount("counts.documents", "select count(*) from documents", summary="documents"),
        TableCount("counts.postings", "select count(*) from postings"),
    ),
    settings=lambda manifest: {
        "documents": manifest.n_rows(DOCUMENTS),
        "by page": int(manifest.facts["options"]["level"] == "page"),
    },
    made_from={"passages": MadeFrom(PASSAGES_CORPUS, "passages", ("passages",))},
    shown_by=((DOCUMENTS, "page_id"), (DOCUMENTS, "title"), (POSTINGS, "bucket")),
)


@lru_cache(maxsize=8)
def filtered_words(lang: str) -> frozenset[str]:
    """Returns the stop words of a language: DrQA's for English, and spaCy's for other languages, if it has any."""
    if lang in ("en", "simple"):
        return _ENGLISH
    from spacy.util import get_lang_class  # takes a while

    try:
        words = get_lang_class(lang).Defaults.stop_words
    except ImportError:  # spaCy does not know the language
        return frozenset()
    return frozenset(unicodedata.normalize("NFD", word) for word in words)


def open_analyser(lang: str) -> Callable[[str], Counter[int]]:
    """Returns a function that counts the n-grams of a text by bucket.

    >>> counts = open_analyser("en")("The Halvane Isles, and the Halvane Sea")
    >>> sorted(counts.values())  # halvane twice; isles, sea, "halvane isles", "halvane sea"
    [1, 1, 1, 1, 2]
    """
    import regex
    from murmurhash.mrmr import hash_unicode

    find_words = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]").findall
    is_punctuation = regex.compile(r"\p{P}+").fullmatch
    stopped, mask = filtered_words(lang), N_BUCKETS - 1

    @lru_cache(maxsize=1 << 16)
    def bucket_of_word(word: str) -> int | None:
        """Returns the bucket of a word; None if the word is skipped."""
        return None if word in stopped or is_punctuation(word) else hash_unicode(word) & mask

    def count(text: str) -> Counter[int]:
        words = [word.lower() for word in find_words(unicodedata.normalize("NFD", text))]
        buckets = [bucket_of_word(word) for word in words]
        counts = Counter(bucket for bucket in buckets if bucket is not None)
        counts.update(
            hash_unicode(f"{first} {second}") & mask
            for (first, second), (bucket, other) in zip(pairwise(words), pairwise(buckets), strict=True)
            if bucket is not None and other is not None
        )
        return counts

    return count


def make_tfidf_index(passages: str, index: str, *, level: Level) -> int:
    """Writes the index of a corpus and returns the number of its documents.

    Memory: ``_HELD_POSTINGS`` postings, a page, and ``_MEMORY_MB`` of the database, which sorts on the output's disk.

    Raises:
        SetupError: the corpus has changed since it was written, or the output folder is not empty.
    """
    corpus = PASSAGES_CORPUS.read(passages)
    entries = corpus.tables["passages"]
    check_hashes(passages, entries)
    with ReleaseFolder(index, kind=TFIDF_INDEX) as out, ExitStack() as stack:
        db = stack.enter_context(connected(memory_mb=_MEMORY_MB, threads=1, scratch=out.staging))
        every = chain.from_iterable(read_passages(join(passages, entry.file)) for entry in entries)
        counted = _count_documents(_documents(every, level), open_analyser(corpus.facts["lang"]))
        for table, schema in _SCHEMAS.items():
            insert(db, table, (), schema)
        for rows, postings in counted:
            insert(db, DOCUMENTS, [rows], _SCHEMAS[DOCUMENTS])
            insert(db, POSTINGS, [postings], _SCHEMAS[POSTINGS])
        files = []
        for table, order in ((DOCUMENTS, "document"), (POSTINGS, "bucket, document")):
            found = db.sql(f"select * from {table} order by {order}").to_arrow_reader(_GROUP_ROWS)
            batches = (_typed(batch, _SCHEMAS[table]) for batch in found)
            files.append(write_batches(batches, table, _SCHEMAS[table], output=out.folder))
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "lang": corpus.facts["lang"],
            "options": {"level": level},
            "code": code_facts(),
        }
        stack.close()
        facts = with_counts(TFIDF_INDEX, files, facts, out.folder)
        commit(TFIDF_INDEX, TFIDF_INDEX.listing(files, facts), out.folder)
    return int(facts["counts"][DOCUMENTS])


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch from the database, with its columns cast to the types of a schema."""
    return pa.RecordBatch.from_arrays([batch[field.name].cast(field.type) for field in schema], schema=schema)


class _Document(NamedTuple):
    page_id: int
    passage_number: int | None
    title: str
    text: str


def _documents(passages: Iterator[Passage], level: Level) -> Iterator[_Document]:
    """Reads the documents of a corpus in order. The passages of a page are joined into one text that has the title
    once."""
    if level == "passage":
        for passage in passages:
            yield _Document(passage.page_id, passage.number, passage.title, f"{passage.title}\n{passage.text}")
        return
    for page_id, own in groupby(passages, key=attrgetter("page_id")):
        first, *others = own
        yield _Document(
            page_id, None, first.title, "\n".join([first.title, first.text, *(passage.text for passage in others)])
        )


def _count_documents(
    documents: Iterator[_Document], count: Callable[[str], Counter[int]]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Builds rows of both tables, with at most ``_HELD_POSTINGS`` postings plus the postings of one document."""
    rows, postings = list[TfidfDocument](), list[tuple[int, int, int]]()

    def batches() -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return batch_of(rows, TfidfDocument), rows_batch(postings, _SCHEMAS[POSTINGS])

    for number, document in enumerate(documents):
        rows.append(TfidfDocument(number, document.page_id, document.passage_number, document.title))
        postings += ((bucket, number, n) for bucket, n in count(document.text).items())
        if len(postings) >= _HELD_POSTINGS:
            yield batches()
            rows, postings = [], []
    if rows:
        yield batches()


class ScoredDocument(NamedTuple):
    """A document with its score for a query."""

    page_id: int
    passage_number: int | None
    title: str
    score: float


class TfidfIndex:
    """A searchable index. Its files are checked against their hashes when it is opened.

    Raises:
        SetupError: it is missing, has changed since it was written, or belongs to other passages or another level.
    """

    def __init__(self, passages: str, index: str, level: Level) -> None:
        corpus = PASSAGES_CORPUS.read(passages)
        if not Folder.of(index).exists(MANIFEST):
            command = f"kbsource search {passages} QUERY --system tfidf --level {level}"
            raise SetupError(f"{index}: no finished index. Run {command} to make it.")
        manifest = TFIDF_INDEX.read(index)
        if manifest.made_from("passages") != corpus.sha256:
            raise SetupError(f"{index} was not made from {passages}; name the index of these passages.")
        if (found := manifest.facts["options"]["level"]) != level:
            raise SetupError(
                f"{index}: this index contains {found}s, but the search is for {level}s; name another index."
            )
        check_hashes(index, manifest.entries())
        self._n_documents = manifest.n_rows(DOCUMENTS)
        self._count = open_analyser(manifest.facts["lang"])
        self._open = ExitStack()
        self._db = self._open.enter_context(connected(reads=[index], memory_mb=_MEMORY_MB, threads=1))
        add_release(self._db, TFIDF_INDEX, index)

    def search(self, query: str, n_documents: int) -> list[ScoredDocument]:
        """Returns the best documents for a query, best first; documents with equal scores are in the order of the
        corpus.

        Documents with a score of 0, which share no relevant n-gram with the query, are skipped.
        """
        counts = self._count(query)
        if not counts:
            return []
        # Buckets are literals in the query, so that DuckDB skips row groups without them.
        buckets = ", ".join(map(str, counts))
        found = self._db.execute(
            f"""
            with given as (select unnest(?) as bucket, unnest(?) as n_in_query),
            matches as (
                select *, count(*) over (partition by bucket) as n_documents
                from (select * from postings where bucket in ({buckets})) join given using (bucket)),
            weighted as (
                select bucket, document, ln(1 + n_occurrences) * ln(1 + n_in_query) * pow(greatest(
                    ln(({self._n_documents} - n_documents + 0.5) / (n_documents + 0.5)), 0), 2) as weight from matches)
            select page_id, passage_number, title, score from (
                select document, round(sum(weight order by bucket), {DECIMALS}) as score from weighted
                group by document having score > 0 order by score desc, document limit ?
            ) join documents using (document) order by score desc, document""",
            [[*counts], [*counts.values()], n_documents],
        )
        return [ScoredDocument(*row) for row in found.fetchall()]

    def close(self) -> None:
        """Closes the database."""
        self._open.close()
