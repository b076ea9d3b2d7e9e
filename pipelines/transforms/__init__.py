"""The transforms that the jobs consist of, for use in your own pipelines.

Elements are ``(key, rows)``. The key is the position in the input. The rows are an Arrow record batch or a
``BatchRef``, a reference to batches in a file (``kbsource.runtime.chunks``). docs/pipelines.md shows how to combine
them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.primitives.guarded_map import GuardedMap as GuardedMap
    from pipelines.primitives.shuffle import Checkpoint as Checkpoint
    from pipelines.primitives.shuffle import CollectSorted as CollectSorted
    from pipelines.primitives.shuffle import Regroup as Regroup
    from pipelines.transforms.align import AlignSpans as AlignSpans
    from pipelines.transforms.align import EvidenceOfPairs as EvidenceOfPairs
    from pipelines.transforms.align import Filter as Filter
    from pipelines.transforms.align import JoinOutcomes as JoinOutcomes
    from pipelines.transforms.align import ReadEvidence as ReadEvidence
    from pipelines.transforms.align import ResolvePages as ResolvePages
    from pipelines.transforms.align import WriteAlignment as WriteAlignment
    from pipelines.transforms.pages import ParseWikitext as ParseWikitext
    from pipelines.transforms.pages import ReadPages as ReadPages
    from pipelines.transforms.passages import CutPassages as CutPassages
    from pipelines.transforms.rows import AsChunks as AsChunks
    from pipelines.transforms.rows import AsEmbeddable as AsEmbeddable
    from pipelines.transforms.rows import AsRows as AsRows
    from pipelines.transforms.tables import CommitRelease as CommitRelease
    from pipelines.transforms.tables import ReadStatements as ReadStatements
    from pipelines.transforms.tables import ReadTable as ReadTable
    from pipelines.transforms.tables import WriteTable as WriteTable
    from pipelines.transforms.verify_entailment import VerifyEntailment as VerifyEntailment
    from pipelines.transforms.wikidata import ReadWikidata as ReadWikidata
    from pipelines.transforms.wikipedia import BuildDefinitions as BuildDefinitions
    from pipelines.transforms.wikipedia import BuildTitleIndex as BuildTitleIndex
    from pipelines.transforms.wikipedia import ReadWikipediaDump as ReadWikipediaDump

_MODULES = {
    "pipelines.primitives.guarded_map": "GuardedMap",
    "pipelines.primitives.shuffle": "Checkpoint CollectSorted Regroup",
    "pipelines.transforms.align": "AlignSpans EvidenceOfPairs Filter JoinOutcomes ReadEvidence ResolvePages "
    "WriteAlignment",
    "pipelines.transforms.pages": "ParseWikitext ReadPages",
    "pipelines.transforms.passages": "CutPassages",
    "pipelines.transforms.rows": "AsChunks AsEmbeddable AsRows",
    "pipelines.transforms.tables": "CommitRelease ReadStatements ReadTable WriteTable",
    "pipelines.transforms.verify_entailment": "VerifyEntailment",
    "pipelines.transforms.wikidata": "ReadWikidata",
    "pipelines.transforms.wikipedia": "BuildDefinitions BuildTitleIndex ReadWikipediaDump",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    """Imports the module of a transform on first use, because guarded processes need this package without Beam."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
