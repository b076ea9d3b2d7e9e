"""Datasets in their original forms read: each by one worker, front to back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError, fault_values, named_faults
from kbsource.runtime.chunks import Key
from pipelines.alignment.reading import EvidenceFiles, ReadDataset, read_part
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute

EXAMPLES, EVIDENCE, REJECTED, DATASETS, FAULTS = "examples", "evidence", "rejected", "datasets", "faults"


class ReadEvidence(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Nothing -> the records of datasets, and a row for each piece of evidence in them.

    Outputs:
        ``examples``: (Key, ``Stored``) of all records that were read, schema ``EXAMPLES`` of
            ``pipelines.alignment.rows``. A key is (number of the dataset, number of the chunk); there is at least one.
        ``evidence``: (Key, ``Stored``) under the same keys, schema ``EVIDENCE``.
        ``rejected``: (Key, ``Stored``) of the records that cannot be used, schema ``kbsource.schema.REJECTED``.
        ``datasets``: (number of the dataset, ``ReadDataset``) once all of it has been read.
        ``faults``: (number of the dataset, ``kbsource.errors.fault_values``) of a dataset that cannot be read to its
            end or of which too much is bad; nothing else comes of that one.

    The same files give the same chunks. A dataset that was read into the folder before is not read again, so a folder
    must only be given again to the same job with the same input.

    Args:
        datasets: what is read, see ``EvidenceFiles``.
        folder: takes the rows.
    """

    def __init__(self, datasets: Sequence[EvidenceFiles], folder: str) -> None:
        super().__init__()
        self._datasets, self._folder = tuple(datasets), absolute(folder)

    def expand(self, begin: Any) -> Any:
        return (
            begin
            | "datasets" >> beam.Create(range(len(self._datasets)), reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(_ReadPart(self._datasets, self._folder)).with_outputs()
        )


class _ReadPart(WorkerDoFn):
    def __init__(self, datasets: tuple[EvidenceFiles, ...], folder: str) -> None:
        super().__init__()
        self._datasets, self._folder = datasets, folder

    def process(self, part: int) -> Iterator[Any]:
        try:
            with named_faults():
                read = read_part(self._datasets[part], part, self._folder)
        except SetupError as fault:
            yield beam.pvalue.TaggedOutput(FAULTS, (part, fault_values(fault)))
            return
        yield from _outputs(part, read)


def _outputs(part: int, read: ReadDataset) -> Iterator[Any]:
    for name in (EXAMPLES, EVIDENCE, REJECTED):
        for number, stored in enumerate(getattr(read, name)):
            yield beam.pvalue.TaggedOutput(name, (Key(part, number), stored))
    yield beam.pvalue.TaggedOutput(DATASETS, (part, read))
