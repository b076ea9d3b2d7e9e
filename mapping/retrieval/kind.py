"""The kinds of release that retrieval makes."""

from __future__ import annotations

from kbsource.release.kind import ListingKind

ENGINE = "tantivy"
PASSAGES_INDEX = ListingKind(
    name="index of passages",
    format="kbsource-index-1",
    made_by="kbsource search",
    tables={},
    files=(ENGINE,),
)

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
BEIR_DATASET = ListingKind(
    name="data set for BEIR",
    format="kbsource-beir-1",
    made_by="kbsource beir",
    tables={},
    files=(CORPUS, QUERIES, QRELS),
)
