"""Options of ``kbsource rerank``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from cyclopts import Parameter

from mapping.options import FLAT, Checked, File, FolderPath, FoundForm, NewFile, Release
from mapping.retrieval.system_options import RerankerOptions


@dataclass(frozen=True, slots=True)
class RerankOptions(Checked):
    """Options for reranking search results."""

    passages: Release
    """Passages made by kbsource passages and indexed by kbsource search."""
    ranked: File
    """Search results to rerank: a TREC run, KILT predictions, or questions with ctxs. They name passages or pages by
    id.
    """
    _: KW_ONLY
    queries: File
    """Queries of the search, in any format that kbsource search accepts."""
    output: NewFile
    """File for the results in the new order. The file appears when it is complete."""
    reranker: Annotated[RerankerOptions, FLAT]
    index: FolderPath | None = None
    """Folder of the passages' index; by default PASSAGES-bm25, next to the passages."""
    form: Annotated[FoundForm | None, Parameter("--format")] = None
    """Format of the results: kilt, trec or ctxs, as in kbsource search."""
