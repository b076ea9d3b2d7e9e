"""Every kind of release, by name: the kinds that ``kbsource verify`` and ``kbsource show`` accept."""

from __future__ import annotations

from typing import Any

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.pageviews import PAGEVIEWS_RELEASE
from kbsource.release.kind import CardText, Kind, ListingKind
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.age import AGE
from mapping.amber.kind import AMBER_SETS
from mapping.annotation.tasks import CAMPAIGN, CAMPAIGN_TASKS, CROWD_TASKS
from mapping.contexts.kind import CONTEXTS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.facts import FACTS
from mapping.passages.kind import BEIR_DATASET, PASSAGES_CORPUS, PASSAGES_INDEX
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.benchmark_kind import BENCHMARK
from mapping.retrieval.tfidf import TFIDF_INDEX
from mapping.retrieval.training_kind import TRAINING_DATA
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, VECTORS_GRAPH
from mapping.schema import VERIFICATION
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

_MADE: tuple[Kind[Any], ...] = (
    PAGES_RELEASE,
    WIKIDATA_RELEASE,
    PAGEVIEWS_RELEASE,
    RELEASE_DIFF,
    PASSAGES_CORPUS,
    PASSAGES_INDEX,
    TFIDF_INDEX,
    PASSAGE_VECTORS,
    VECTORS_GRAPH,
    ALIGNMENT,
    ALIGNMENTS,
    AGE,
    QAMPARI_RELEASE,
    CROWD_TASKS,
    CONTEXTS,
    AMBER_SETS,
    FACTS,
    ENTITY_LINKING,
    BEIR_DATASET,
    CAMPAIGN_TASKS,
    CAMPAIGN,
    BENCHMARK,
    TRAINING_DATA,
)

OWN_TABLES = ListingKind(
    name="folder of tables",
    format="kbsource-tables-1",
    made_by="your own pipeline",
    card=CardText(
        title="Tables of Wikipedia",
        summary="Tables that a user's own pipeline wrote in the schemas of kbsource.",
        holds=("wikipedia",),
        tags=("wikipedia",),
    ),
    tables={table: schema for kind in _MADE for table, schema in kind.tables.items()},
    further={"alignments": VERIFICATION},
    shown_by=tuple(dict.fromkeys(pair for kind in _MADE for pair in kind.shown_by)),
)
"""The output of a user's own pipeline: tables of any kind."""

KINDS: tuple[Kind[Any], ...] = (*_MADE, OWN_TABLES)
