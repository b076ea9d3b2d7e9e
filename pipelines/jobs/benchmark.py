"""Benchmarks systems on datasets: each is run once, and its predictions and metrics are stored in a release."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from kbsource.columns import schema_of
from kbsource.errors import counted
from kbsource.files import Folder, base_name, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_lines, write_rejected, write_rows
from kbsource.rows import Row
from kbsource.runtime.chunks import once_value
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.benchmark import Dataset, metric_values, scores_of
from mapping.retrieval.benchmark_kind import BENCHMARK, PAPERS, PREDICTIONS, Cost, Score, ScoreValue
from mapping.retrieval.layouts import paper_tables, tables_markdown
from pipelines.progress import Progress
from pipelines.terminal import Summary


class PlannedSystem(NamedTuple):
    """A system to run."""

    name: str
    options: tuple[str, ...]  # options of the system, as on the command line: --name=value
    top: int  # maximum number of results
    answer: Callable[..., Summary]  # answers a file of ``queries`` and writes ``output``

    def facts(self) -> dict[str, Any]:
        """Returns the options for a manifest; folders are represented by hashes of their content."""
        typed = (option.removeprefix("--").partition("=") for option in self.options)
        return {
            key: [asdict(file) for file in input_files([value])] if Folder.of(value).exists() else value
            for key, _, value in typed
        }


class _Run(Row):
    cost: Cost
    rejected: tuple[BadRecord, ...]


def make_benchmark(
    passages: str,
    datasets: Sequence[Dataset],
    systems: Sequence[PlannedSystem],
    output: str,
    *,
    resamples: int,
    progress: Progress,
) -> tuple[list[Score], list[Cost], list[BadRecord]]:
    """Runs every system on every dataset; an interrupted run is resumed. Returns the scores of the systems, the costs
    of each run, and the unusable lines, each once.

    Raises:
        SetupError: the folder contains something else, or a system cannot be opened.
    """
    corpus = PASSAGES_CORPUS.read(passages)
    facts: dict[str, Any] = {
        "release": corpus.facts["release"],
        "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
        "datasets": [
            {**dataset._asdict(), "path": base_name(dataset.path), "sha256": Folder.of(dataset.path).sha256()}
            for dataset in datasets
        ],
        "systems": [{"name": system.name, "options": system.facts()} for system in systems],
        "options": {"resamples": resamples},
    }
    costs: list[Cost] = []
    rejected: dict[BadRecord, None] = {}
    runs = [
        (dataset, system, join(PREDICTIONS, dataset.name, f"{system.name}.jsonl"))
        for system in systems
        for dataset in datasets
    ]

    def values(out: ReleaseFolder) -> Iterator[ScoreValue]:
        for dataset, system, file in runs:
            path = join(out.folder, file)
            ran = once_value(join(out.staging, f"{file}.json"), partial(_run, dataset, system, path), _Run)
            rejected.update(dict.fromkeys(ran.rejected))
            costs.append(ran.cost)
            said = f"{counted(ran.cost.queries, 'queries')}, {ran.cost.seconds:.1f} s"
            progress.note(f"{system.name} on {dataset.name}: {said}")
            found = metric_values(dataset, path, most=system.top, reject=lambda bad: rejected.setdefault(bad))
            for metric, own in found.items():
                for number, value in enumerate(own):
                    yield ScoreValue(dataset.pool, dataset.name, system.name, metric, number, value)

    with ReleaseFolder(output, kind=BENCHMARK, job=facts) as out:
        measures = write_rows(values(out), "values", schema_of(ScoreValue), output=out.folder)
        scores = list(scores_of(out.folder, measures, resamples=resamples))
        entries = [
            measures,
            write_rows(scores, "scores", schema_of(Score), output=out.folder),
            write_rows(costs, "costs", schema_of(Cost), output=out.folder),
            write_rejected(rejected, output=out.folder),
            write_lines(
                tables_markdown(paper_tables(datasets, [system.name for system in systems], scores))
                .encode()
                .splitlines(keepends=True),
                PAPERS,
                output=out.folder,
            ),
            *(FileEntry.of(out.folder, file) for _, _, file in runs),
        ]
        facts = with_counts(BENCHMARK, entries, {**facts, "code": code_facts()}, out.folder)
        commit(BENCHMARK, BENCHMARK.listing(entries, facts), out.folder)
    return scores, costs, list(rejected)


def _run(dataset: Dataset, system: PlannedSystem, path: str) -> _Run:
    """Runs a system."""
    started = time.monotonic()
    peak = _peak_memory()
    found = system.answer(queries=dataset.path, output=path)
    seconds = round(time.monotonic() - started, 3)
    cost = Cost(dataset.name, system.name, found.values["queries"], seconds, peak())
    return _Run(cost, tuple(bad for bad in found.faults if isinstance(bad, BadRecord)))


def _peak_memory() -> Callable[[], int | None]:
    """Returns a function that reports this process's peak memory from now on, in bytes; None if this is not Linux."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")

    def peak() -> int | None:
        with suppress(OSError), open("/proc/self/status") as file:
            kilobytes = next((line.split()[1] for line in file if line.startswith("VmHWM:")), None)
            return None if kilobytes is None else int(kilobytes) << 10
        return None

    return peak
