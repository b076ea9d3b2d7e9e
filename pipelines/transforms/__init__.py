"""The transforms that the jobs are made of, for pipelines of anyone's own.

Elements are ``(key, rows)``: the key is the place in the order of the input, rows are an Arrow record batch or a
``BatchRef``, a reference to batches in a file (``kbsource.runtime.chunks``). docs/pipelines.md shows how they compose.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.primitives.guarded_map import GuardedMap
    from pipelines.primitives.shuffle import Checkpoint, CollectSorted, Regroup
    from pipelines.transforms.align import (
        AlignSpans,
        EvidenceOfPairs,
        Filter,
        JoinOutcomes,
        ReadEvidence,
        ResolvePages,
        WriteAlignment,
    )
    from pipelines.transforms.pages import CutPassages, ParseWikitext, ReadPages
    from pipelines.transforms.rows import AsChunks, AsEmbeddable, AsRows
    from pipelines.transforms.tables import CommitRelease, ReadStatements, ReadTable, WriteTable
    from pipelines.transforms.verify_entailment import VerifyEntailment
    from pipelines.transforms.wikidata import ReadWikidata
    from pipelines.transforms.wikipedia import BuildDefinitions, BuildTitleIndex, ReadWikipediaDump

__all__ = [
    "AlignSpans",
    "AsChunks",
    "AsEmbeddable",
    "AsRows",
    "BuildDefinitions",
    "BuildTitleIndex",
    "Checkpoint",
    "CollectSorted",
    "CommitRelease",
    "CutPassages",
    "EvidenceOfPairs",
    "Filter",
    "GuardedMap",
    "JoinOutcomes",
    "ParseWikitext",
    "ReadEvidence",
    "ReadPages",
    "ReadStatements",
    "ReadTable",
    "ReadWikidata",
    "ReadWikipediaDump",
    "Regroup",
    "ResolvePages",
    "VerifyEntailment",
    "WriteAlignment",
    "WriteTable",
]

_MODULES = {
    "pipelines.primitives.guarded_map": ("GuardedMap",),
    "pipelines.primitives.shuffle": ("Checkpoint", "CollectSorted", "Regroup"),
    "pipelines.transforms.pages": ("CutPassages", "ParseWikitext", "ReadPages"),
    "pipelines.transforms.rows": ("AsChunks", "AsEmbeddable", "AsRows"),
    "pipelines.transforms.tables": ("CommitRelease", "ReadStatements", "ReadTable", "WriteTable"),
    "pipelines.transforms.verify_entailment": ("VerifyEntailment",),
    "pipelines.transforms.wikidata": ("ReadWikidata",),
    "pipelines.transforms.wikipedia": ("BuildDefinitions", "BuildTitleIndex", "ReadWikipediaDump"),
}


def __getattr__(name: str) -> Any:
    """A transform. Its module is imported then: guarded processes need this package, and nothing of Beam."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    own = (module for module, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(next(own, "pipelines.transforms.align")), name)
