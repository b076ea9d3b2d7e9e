"""Defines the kind of release that contains questions with their passages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.manifest import Count, ListingManifest, SourceFacts, counts_shape, shape
from mapping.contexts.records import FID, OF_RETRIEVERS, UNPLACED
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.write.kind import REPORT

INVARIANTS = (
    Invariant("invalid_context", "a question with passages is malformed"),
    Invariant("context_differs", "a line differs from the one recomputed from its question, passages and ranking"),
    Invariant("proof_unplaced", "a proof must have either a passage or a line with the reason why it has none"),
    Invariant("unknown_passage", "a ranked passage is not in the corpus"),
)


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.contexts.check_contexts import check_contexts  # needs numpy and RapidFuzz, which reading does not

    return check_contexts(checking)


CONTEXTS = ListingKind(
    facts=shape(
        "facts",
        passages=SourceFacts,
        qampari=dict[str, Any],
        options=shape("options", most_ranked=Count, most_edits=Count),
        counts=shape("counts", questions=counts_shape("without_retrieved", "fewer_negatives_than_positives")),
    ),
    name="folder of questions with passages",
    format="kbsource-qampari-contexts-1",
    made_by="kbsource qampari-contexts",
    card=CardText(
        title="QAMPARI questions with passages",
        summary=(
            "Questions of a QAMPARI release with passages that contain their proofs and passages that do not, for "
            "training retrievers and readers."
        ),
        main="qampari_contexts-data_with_contexts",
        holds=("wikipedia", "wikidata"),
        tasks=("question-answering", "text-retrieval"),
        tags=("wikipedia", "QAMPARI", "retrieval"),
        limits=("Proofs that no passage contains are listed in `unplaced.jsonl`.",),
    ),
    shown_by=(("rejected", "key"),),
    tables={"rejected": schema_of(BadRecord)},
    files=(OF_RETRIEVERS, FID, UNPLACED, REPORT),
    documents={REPORT: dict[str, Any]},
    invariants=INVARIANTS,
    check=_check,
    made_from={
        "qampari": MadeFrom(QAMPARI_RELEASE, "qampari"),
        "passages": MadeFrom(PASSAGES_CORPUS, "passages", ("passages",)),
    },
)
