"""The alignment of a dataset: its examples with the evidence found again in a release.

The driver reads the dataset, stages its records and looks the pages up in the index; only the pages that are needed are
then read, each once for all its evidences, by tasks over parts of the release; tasks over chunks of the dataset join
the outcomes with their records, filter and write. No text is shuffled, and memory holds a part or a chunk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from kbsource.errors import DataError
from kbsource.files import join
from kbsource.release.manifest import FileEntry, Manifest
from kbsource.staging import write_json
from mapping.entailment import ModelOptions
from mapping.output import REPORT, begin_output, commit_output
from mapping.report import Counts, faults, report_values
from mapping.resolve import Resolver, open_manifest, read_moves
from mapping.sample import cut
from mapping.sources.base import Tally
from mapping.verification import VerificationCounts
from pipelines.alignment.facts import alignment_facts, input_facts, map_job
from pipelines.alignment.merge import iter_standing, sum_reports
from pipelines.alignment.output import write_file, write_records, write_rejected
from pipelines.alignment.reading import StagedDataset, check_dataset, read_dataset
from pipelines.alignment.staging import CUTS, TASK_EVIDENCES, MapJob
from pipelines.alignment.tasks import ALIGN, ASK, MERGE, RUN_TASK
from pipelines.alignment.verify import judge_here
from pipelines.buckets import bucket_groups
from pipelines.options_map import MapOptions
from pipelines.progress import Progress
from pipelines.shown_stages import ShownStages, Task
from pipelines.stages import Stages
from pipelines.storage import absolute, storage_for


@dataclass(frozen=True, slots=True)
class MapSummary:
    """What an alignment made.

    Attributes:
        output: folder of the alignment.
        report: as written to ``report.json``.
        manifest: as written, without its own hash.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    manifest: dict[str, Any]
    seconds: float


def map_dataset(options: MapOptions, *, flags: Sequence[str], progress: Progress) -> MapSummary:
    """Aligns a dataset.

    Args:
        options: what to align.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: too many records cannot be used, or a law of the counts does not hold.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    with Stages(flags) as stages:
        stages.check_paths(options.kb, options.output)
        report, manifest = _Mapping(options, stages, progress).run()
    return MapSummary(options.output, report, manifest, time.monotonic() - started)


class _Mapping:
    """One alignment, step by step."""

    def __init__(self, options: MapOptions, stages: Stages, progress: Progress) -> None:
        self._options = options
        self._stages = stages
        self._progress = progress
        self._output = absolute(options.output.rstrip("/") or "/")

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        options = self._options
        storage = check_dataset(options, self._output)
        release = open_manifest(options.kb)
        moves = read_moves(options.title_map, storage_for(options.title_map)) if options.title_map else None
        self._progress.note("inputs: hashing")
        inputs = input_facts(options)
        resolver = Resolver.open(options.kb, moves=moves)
        staging = begin_output(self._output, storage)
        job = map_job(options, release, self._output)
        job.write(staging, storage)
        tasks = ShownStages(RUN_TASK, staging, self._stages, self._progress, options.worker_memory_bytes)
        read = read_dataset(options, resolver=resolver, release=release, tasks=tasks, storage=storage)
        n_chunks = len(read.n_chars)
        tasks.run(ALIGN, _align_tasks(read), page_timeout_s=options.evidence_timeout_s)
        if options.verify is not None:
            self._verify(tasks, read, options.verify.model)
        if job.is_sampled:
            cuts = cut(iter_standing(staging, n_chunks, job), options.source.sample)
            write_json(storage, join(staging, CUTS), cuts._asdict())
        tasks.run(MERGE, _chunk_tasks(read))
        counts, verification, files = sum_reports(staging, n_chunks, storage)
        report = self._report(job, read.tally, counts, verification)
        files += write_records(
            job, options, staging=staging, n_chunks=n_chunks, n_records=counts.written, storage=storage
        )
        files.append(write_rejected(job, staging=staging, storage=storage))
        content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        files.append(write_file(self._output, REPORT, [content], n_rows=1, storage=storage))
        manifest = self._manifest(release, inputs, report, files)
        commit_output(self._output, manifest, files=files, storage=storage)
        return report, manifest

    def _verify(self, tasks: ShownStages, read: StagedDataset, model: ModelOptions) -> None:
        """Asks a model about every span that was found.

        On this machine alone one process judges: the libraries of models use all of its cores by themselves.
        """
        n_chunks = len(read.n_chars)
        tasks.run(ASK, _chunk_tasks(read))
        self._progress.note(f"verify: {n_chunks:,} chunks put before {model.model}")
        if self._stages.is_here:
            judge_here(tasks.staging, n_chunks, model)
        else:
            from pipelines.transforms.judge_chunks import judge_chunks

            judge_chunks(tasks.staging, n_chunks, model, self._stages.beam_options)

    def _report(self, job: MapJob, tally: Tally, counts: Counts, verification: VerificationCounts) -> dict[str, Any]:
        if broken := faults(tally, counts):
            raise DataError("The counts do not add up, so nothing was released: " + "; ".join(broken) + ".")
        report = report_values(tally, counts, dataset=job.dataset, split=job.split)
        if job.accept is not None:
            report["accept"] = {"rule": job.accept, "dropped": counts.dropped["not_accepted"]}
            report["dropped_by_threshold"] = None
        if job.hypothesis is not None:
            report["verification"] = verification.to_json()
        return report

    def _manifest(
        self,
        release: Manifest,
        inputs: dict[str, list[dict[str, Any]]],
        report: dict[str, Any],
        files: Sequence[FileEntry],
    ) -> dict[str, Any]:
        return {
            **alignment_facts(self._options, release, inputs),
            "files": [asdict(entry) for entry in sorted(files, key=lambda entry: entry.file)],
            "counts": report["counts"],
            "records": report["records"],
        }


def _align_tasks(read: StagedDataset) -> list[Task]:
    groups = bucket_groups(read.bucket_rows, least=TASK_EVIDENCES)
    return [
        Task(number, sum(read.bucket_bytes[bucket] for bucket in buckets), {"buckets": buckets})
        for number, buckets in enumerate(groups)
    ]


def _chunk_tasks(read: StagedDataset) -> list[Task]:
    return [Task(number, n_chars) for number, n_chars in enumerate(read.n_chars)]
