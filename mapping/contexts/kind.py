"""The kind of release that questions with their passages are."""

from __future__ import annotations

from kbsource.release.kind import ListingKind
from kbsource.schema import REJECTED
from mapping.contexts.check_contexts import RULES, check_contexts
from mapping.contexts.writing import CONTEXTS as OF_RETRIEVERS
from mapping.contexts.writing import FID, UNPLACED
from mapping.write.kind import REPORT

CONTEXTS = ListingKind(
    name="folder of questions with passages",
    format="kbsource-qampari-contexts-1",
    made_by="kbsource qampari-contexts",
    tables={"rejected": REJECTED},
    files=(OF_RETRIEVERS, FID, UNPLACED, REPORT),
    rules=RULES,
    check=check_contexts,
    made_from=("qampari", "passages"),
)
