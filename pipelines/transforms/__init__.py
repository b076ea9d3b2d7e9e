"""The transforms that the jobs are made of, for pipelines of anyone's own.

Elements are ``(Key, rows)``: the key is the place in the order of the input, rows are an Arrow record batch or a
``Stored``, a reference to batches in a file (``kbsource.chunks``). docs/pipelines.md shows how they compose.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.transforms.align_spans import AlignSpans
    from pipelines.transforms.checkpoint import Checkpoint
    from pipelines.transforms.commit_release import CommitRelease
    from pipelines.transforms.cut_passages import CutPassages
    from pipelines.transforms.guarded_map import GuardedMap
    from pipelines.transforms.parse_wikitext import ParseWikitext
    from pipelines.transforms.read_dump import ReadWikipediaDump
    from pipelines.transforms.read_evidence import ReadEvidence
    from pipelines.transforms.read_pages import ReadPages
    from pipelines.transforms.read_table import ReadStatements, ReadTable
    from pipelines.transforms.read_wikidata import ReadWikidata
    from pipelines.transforms.regroup import Regroup
    from pipelines.transforms.resolve_pages import EvidenceOfPairs, ResolvePages
    from pipelines.transforms.title_index import BuildTitleIndex
    from pipelines.transforms.together import Together
    from pipelines.transforms.verify_entailment import VerifyEntailment
    from pipelines.transforms.write_alignment import Filter, JoinOutcomes, WriteAlignment
    from pipelines.transforms.write_table import WriteTable

__all__ = [
    "AlignSpans",
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
    "AlignSpans": "align_spans",
    "BuildTitleIndex": "title_index",
    "Checkpoint": "checkpoint",
    "CommitRelease": "commit_release",
    "CutPassages": "cut_passages",
    "EvidenceOfPairs": "resolve_pages",
    "Filter": "write_alignment",
    "JoinOutcomes": "write_alignment",
    "GuardedMap": "guarded_map",
    "ParseWikitext": "parse_wikitext",
    "ReadEvidence": "read_evidence",
    "ReadPages": "read_pages",
    "ReadStatements": "read_table",
    "ReadTable": "read_table",
    "ReadWikidata": "read_wikidata",
    "ReadWikipediaDump": "read_dump",
    "Regroup": "regroup",
    "ResolvePages": "resolve_pages",
    "Together": "together",
    "VerifyEntailment": "verify_entailment",
    "WriteAlignment": "write_alignment",
    "WriteTable": "write_table",
}


def __getattr__(name: str) -> Any:
    """Gives a transform. Its module is imported then: guarded processes need this package, and nothing of Beam."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
