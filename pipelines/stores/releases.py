"""Releases wherever they lie."""

from __future__ import annotations

from kbsource.lookup import KnowledgeSource
from pipelines.stores.storage import storage_for


def open_release(path: str) -> KnowledgeSource:
    """Opens a release of pages on a local disk, in an object store or in HDFS.

    Raises:
        SetupError: the folder holds no finished release, or cannot be reached.
    """
    return KnowledgeSource.open(path, storage_for(path))
