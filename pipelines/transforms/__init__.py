"""The transforms that the jobs are made of, for pipelines of anyone's own.

Elements are ``(Key, rows)``: the key is the place in the order of the input, rows are an Arrow record batch or a
``Stored``, a reference to batches in a file (``kbsource.runtime.chunks``). docs/pipelines.md shows how they compose.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.primitives.checkpoint import Checkpoint
    from pipelines.primitives.guarded_map import GuardedMap
    from pipelines.primitives.regroup import Regroup
    from pipelines.primitives.together import Together
    from pipelines.primitives.write_table import WriteTable
    from pipelines.transforms.align_spans import AlignSpans
    from pipelines.transforms.commit_release import CommitRelease
    from pipelines.transforms.cut_passages import CutPassages
    from pipelines.transforms.parse_wikitext import ParseWikitext
    from pipelines.transforms.read_dump import ReadWikipediaDump
    from pipelines.transforms.read_evidence import ReadEvidence
    from pipelines.transforms.read_pages import ReadPages
    from pipelines.transforms.read_table import ReadStatements, ReadTable
    from pipelines.transforms.read_wikidata import ReadWikidata
    from pipelines.transforms.resolve_pages import EvidenceOfPairs, ResolvePages
    from pipelines.transforms.title_index import BuildDefinitions, BuildTitleIndex
    from pipelines.transforms.verify_entailment import VerifyEntailment
    from pipelines.transforms.write_alignment import Filter, JoinOutcomes, WriteAlignment

__all__ = [
    "AlignSpans",
    "BuildDefinitions",
    "BuildTitleIndex",
    "Checkpoint",
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
    "Together",
    "VerifyEntailment",
    "WriteAlignment",
    "WriteTable",
]

_MODULES = {
    "AlignSpans": "pipelines.transforms.align_spans",
    "BuildDefinitions": "pipelines.transforms.title_index",
    "BuildTitleIndex": "pipelines.transforms.title_index",
    "Checkpoint": "pipelines.primitives.checkpoint",
    "CommitRelease": "pipelines.transforms.commit_release",
    "CutPassages": "pipelines.transforms.cut_passages",
    "EvidenceOfPairs": "pipelines.transforms.resolve_pages",
    "Filter": "pipelines.transforms.write_alignment",
    "JoinOutcomes": "pipelines.transforms.write_alignment",
    "GuardedMap": "pipelines.primitives.guarded_map",
    "ParseWikitext": "pipelines.transforms.parse_wikitext",
    "ReadEvidence": "pipelines.transforms.read_evidence",
    "ReadPages": "pipelines.transforms.read_pages",
    "ReadStatements": "pipelines.transforms.read_table",
    "ReadTable": "pipelines.transforms.read_table",
    "ReadWikidata": "pipelines.transforms.read_wikidata",
    "ReadWikipediaDump": "pipelines.transforms.read_dump",
    "Regroup": "pipelines.primitives.regroup",
    "ResolvePages": "pipelines.transforms.resolve_pages",
    "Together": "pipelines.primitives.together",
    "VerifyEntailment": "pipelines.transforms.verify_entailment",
    "WriteAlignment": "pipelines.transforms.write_alignment",
    "WriteTable": "pipelines.primitives.write_table",
}


def __getattr__(name: str) -> Any:
    """Gives a transform. Its module is imported then: guarded processes need this package, and nothing of Beam."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
