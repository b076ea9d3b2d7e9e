"""Systems on datasets: each run once, its predictions kept and measured, all of it a release."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, NamedTuple

from msgspec.structs import astuple

from kbsource.columns import schema_of
from kbsource.errors import counted
from kbsource.files import Folder, base_name, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_rejected, write_rows
from kbsource.runtime.chunks import once_json
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.benchmark import Dataset, Tally, measured
from mapping.retrieval.benchmark_kind import BENCHMARK, PREDICTIONS, Cost, Score, Value
from pipelines.progress import Progress
from pipelines.terminal import Summary


class PlannedSystem(NamedTuple):
    """A system."""

    name: str
    options: tuple[str, ...]  # as they are typed, --name=value
    top: int  # places that it gives at most
    answer: Callable[..., Summary]  # answers a file of ``queries`` into ``output``

    def facts(self) -> dict[str, Any]:
        """What is typed, for a manifest: folders by the hashes of what is in them."""
        typed = (one.removeprefix("--").partition("=") for one in self.options)
        return {
            key: [asdict(file) for file in input_files([value])] if Folder.of(value).exists() else value
            for key, _, value in typed
        }


class Benchmark:
    """A benchmark while it is made."""

    def __init__(
        self,
        passages: str,
        datasets: Sequence[Dataset],
        systems: Sequence[PlannedSystem],
        *,
        resamples: int,
        progress: Progress,
    ) -> None:
        self._datasets, self._systems, self._progress = datasets, systems, progress
        self._tally = Tally(resamples)
        self._rejected: dict[BadRecord, None] = {}
        corpus = PASSAGES_CORPUS.read(passages)
        self._facts: dict[str, Any] = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "datasets": [
                {**one._asdict(), "path": base_name(one.path), "sha256": Folder.of(one.path).sha256()}
                for one in datasets
            ],
            "systems": [{"name": one.name, "options": one.facts()} for one in systems],
            "options": {"resamples": resamples},
        }
        self.costs: list[Cost] = []
        self.scores: list[Score] = []

    @property
    def rejected(self) -> list[BadRecord]:
        """Lines that could not be used, each once."""
        return list(self._rejected)

    def write(self, output: str) -> None:
        """Makes it; what a run that was killed has made of it stays.

        Raises:
            SetupError: the folder holds something else, or a system cannot be opened.
        """
        with ReleaseFolder(output, kind=BENCHMARK, job=self._facts) as out:
            runs = [
                (dataset, system, join(PREDICTIONS, dataset.name, f"{system.name}.jsonl"))
                for system in self._systems
                for dataset in self._datasets
            ]
            values = (
                value
                for dataset, system, file in runs
                for value in self._values(dataset, system, join(out.folder, file), join(out.staging, f"{file}.json"))
            )
            entries = [write_rows(values, "values", schema_of(Value), output=out.folder)]
            self.scores = self._tally.scores()
            entries.append(write_rows(self.scores, "scores", schema_of(Score), output=out.folder))
            entries.append(write_rows(self.costs, "costs", schema_of(Cost), output=out.folder))
            entries.append(write_rejected(self._rejected, output=out.folder))
            stored = {file: Folder.of(join(out.folder, file)) for _, _, file in runs}
            entries += [FileEntry(file, None, one.size(), one.sha256()) for file, one in stored.items()]
            facts = {**self._facts, "counts": {"runs": len(runs), "rejected": len(self._rejected)}}
            commit(BENCHMARK, BENCHMARK.listing(entries, {**facts, "code": code_facts()}), out.folder)

    def _values(self, dataset: Dataset, system: PlannedSystem, path: str, done: str) -> Iterator[Value]:
        ran = once_json(done, lambda: self._run(dataset, system, path))
        self._rejected |= dict.fromkeys(BadRecord(*one) for one in ran.pop("rejected"))
        cost = Cost(dataset.name, system.name, **ran)
        self.costs.append(cost)
        self._progress.note(
            f"{system.name} on {dataset.name}: {counted(cost.queries, 'queries')}, {cost.seconds:.1f} s"
        )
        found = measured(dataset, path, most=system.top, reject=lambda bad: self._rejected.setdefault(bad))
        yield from self._tally.add(dataset, system.name, found)

    def _run(self, dataset: Dataset, system: PlannedSystem, path: str) -> dict[str, Any]:
        """Has a system answer; gives what it took, and lines that could not be used."""
        started = time.monotonic()
        with _peak_memory() as peak:
            found = system.answer(queries=dataset.path, output=path)
        return {
            "queries": found.values["queries"],
            "seconds": round(time.monotonic() - started, 3),
            "peak_bytes": peak(),
            "rejected": [astuple(bad) for bad in found.faults if isinstance(bad, BadRecord)],
        }


@contextmanager
def _peak_memory() -> Iterator[Callable[[], int | None]]:
    """What gives the most memory that this process held since the context began, in bytes; None where Linux is not."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")

    def peak() -> int | None:
        with suppress(OSError), open("/proc/self/status") as file:
            kilobytes = next((line.split()[1] for line in file if line.startswith("VmHWM:")), None)
            return None if kilobytes is None else int(kilobytes) << 10
        return None

    yield peak
