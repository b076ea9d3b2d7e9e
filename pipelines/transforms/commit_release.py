"""The end of a pipeline that writes tables: a manifest that says what was written, and makes a release of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import apache_beam as beam

from kbsource.errors import named_faults
from kbsource.release.kind import ListingKind
from kbsource.release.layout import check_output
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.output import commit
from mapping.kinds import OWN_TABLES
from pipelines.primitives.together import Together
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for


class CommitRelease(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """``FileEntry`` -> the folder, once it is a release: one element.

    Checks that the folder holds the files that were written, whole, and no others; then writes ``manifest.json``, the
    last of all, with the files, their sizes, rows and hashes, and the versions of the code. ``kbsource verify`` checks
    it.

    Args:
        output: folder that ``WriteTable`` wrote to; it must be new or empty when the pipeline is put together.
        facts: JSON values of what the tables are made from and how, for the manifest.
        kind: of the release.

    Raises:
        SetupError: the folder holds something; a file is missing, has another size, or was not written by this
            pipeline.
    """

    def __init__(self, output: str, *, facts: Mapping[str, Any], kind: ListingKind = OWN_TABLES) -> None:
        super().__init__()
        self._output, self._facts, self._kind = absolute(output), dict(facts), kind
        check_output(self._output, storage_for(self._output))

    def expand(self, entries: Any) -> Any:
        return (
            entries
            | "by name" >> beam.Map(_by_name)
            | "all files" >> Together()
            | "commit" >> beam.ParDo(_Commit(self._output, self._facts, self._kind))
        )


def _by_name(entry: FileEntry) -> tuple[str, FileEntry]:
    return entry.file, entry


class _Commit(WorkerDoFn):
    def __init__(self, output: str, facts: dict[str, Any], kind: ListingKind) -> None:
        super().__init__()
        self._output, self._facts, self._kind = output, facts, kind

    def process(self, element: list[tuple[str, FileEntry]]) -> Iterator[str]:
        facts = {"facts": self._facts, "code": asdict(code_facts())}
        with named_faults():
            manifest = self._kind.listing([entry for _, entry in element], facts)
            commit(self._kind, manifest, self._output, storage_for(self._output))
        yield self._output
