"""The kind of release that questions with their passages are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbsource.release.kind import ListingKind
from kbsource.release.manifest import ListingManifest
from kbsource.schema import REJECTED
from mapping.write.kind import REPORT

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

OF_RETRIEVERS, FID, UNPLACED = "qampari_contexts", "qampari_fid", "unplaced.jsonl"
RULES = {
    "context_law": "a question with passages is not built as such questions are",
    "context_differs": "a line is not what its question, passages and ranking give",
    "proof_lost": "a proof has neither a passage nor a line that says why, or both",
    "unknown_passage": "a ranked passage is none of the corpus",
}
"""Every law and what it means that it is broken."""


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.contexts.check_contexts import check_contexts  # needs numpy and RapidFuzz, which reading does not

    return check_contexts(checking)


CONTEXTS = ListingKind(
    name="folder of questions with passages",
    format="kbsource-qampari-contexts-1",
    made_by="kbsource qampari-contexts",
    tables={"rejected": REJECTED},
    files=(OF_RETRIEVERS, FID, UNPLACED, REPORT),
    rules=RULES,
    check=_check,
    made_from=("qampari", "passages"),
)
