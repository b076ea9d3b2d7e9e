"""The release of Wikidata: a JSON dump becomes tables.

One pipeline of independent tasks, each a range of the dump that becomes files of its own; then short work on one
machine: entities that come twice, the class closure, names, counts and the manifest.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbsource.assembly import check_rejects, dump_date
from kbsource.errors import DataError, SetupError
from kbsource.files import base_name, join
from kbsource.release.commit import commit_files
from kbsource.release.layout import MANIFEST, begin_release
from kbsource.release.manifest import code_facts
from kbsource.wikidata.assemble import (
    entity_counts,
    find_superseded,
    name_files,
    summed_facts,
    write_classes,
    write_rejected,
)
from kbsource.wikidata.lines import LineRange, expand_dumps, plan_lines
from kbsource.wikidata.manifest import WikidataManifest, entity_count_faults, sum_entity_counts
from kbsource.wikidata.parts import PartReport, read_part
from pipelines.input_hashes import InputHashes
from pipelines.options_wikidata import WikidataOptions
from pipelines.progress import Done, Progress, beats_of
from pipelines.stages import Stages
from pipelines.storage import absolute, is_local, storage_for
from pipelines.task_runs import Work, workers_line
from pipelines.wikidata_tasks import ENTITIES, WikidataJob

MAX_RANGE_BYTES = 32 << 20
MIN_RANGE_BYTES = 1 << 20
RANGES_WANTED = 32
"""As for page dumps: 32 MiB of bzip2 are about 400 MB of JSON."""


@dataclass(frozen=True, slots=True)
class WikidataSummary:
    """What was made.

    Attributes:
        output: folder of the release.
        manifest: as written.
        seconds: wall time.
    """

    output: str
    manifest: WikidataManifest
    seconds: float


def make_wikidata(options: WikidataOptions, *, flags: Sequence[str], progress: Progress) -> WikidataSummary:
    """Makes a release of Wikidata.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: too much of the dump cannot be used, or a law does not hold.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    with Stages(flags) as stages:
        stages.check_paths(*options.dump, options.output)
        manifest = _Making(options, stages, progress).run()
    return WikidataSummary(options.output, manifest, time.monotonic() - started)


class _Making:
    """One release, step by step."""

    def __init__(self, options: WikidataOptions, stages: Stages, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._output = absolute(options.output.rstrip("/") or "/")
        self._stages = stages
        self._storage = storage_for(self._output, *options.dump)

    def run(self) -> WikidataManifest:
        options, storage, output = self._options, self._storage, self._output
        if storage.exists(join(output, MANIFEST)):
            raise SetupError(f"{output} holds a finished release, which is never overwritten; choose another folder.")
        paths = [absolute(path) for path in expand_dumps(options.dump, storage)]
        names = [base_name(path) for path in paths]
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise SetupError(
                f"{repeated[0]} is given from two folders; counts are kept by name, so rename one of them."
            )
        with InputHashes(paths, storage) as hashes:
            ranges = self._ranges(paths)
            staging = begin_release(output, storage)
            job = WikidataJob(output, tuple(ranges), options.languages, options.sites, options.qualifiers)
            job.write(staging, storage)
            self._run_tasks(staging, ranges, {one.index: () for one in ranges})
            reports = self._without_repeats(staging, ranges)
            self._check_rejects(reports)
            with self._progress.stage("check", hashes.done):
                inputs = hashes.results()
        self._progress.note("classes: what is above every class")
        classes = write_classes(reports, storage, output=output, staging=staging)
        self._progress.note("finish: names, small tables and manifest")
        tables = name_files(reports, output, storage)
        tables |= {
            "classes": classes,
            "rejected": write_rejected(reports, storage, output=output, staging=staging),
        }
        counts = entity_counts(reports)
        manifest = WikidataManifest(
            code=code_facts(),
            inputs=inputs,
            date=dump_date(names),
            options=options.data_options(),
            tables=tables,
            counts=counts,
            totals=sum_entity_counts(counts.values()),
            findings=summed_facts(reports),
        )
        if faults := entity_count_faults(manifest):
            raise DataError("The counts do not add up, so nothing was released: " + "; ".join(faults) + ".")
        commit_files(output, manifest, storage=storage)
        return manifest

    def _ranges(self, paths: Sequence[str]) -> list[LineRange]:
        n_bytes = sum(self._storage.size(path) for path in paths)
        size = min(MAX_RANGE_BYTES, max(MIN_RANGE_BYTES, -(-n_bytes // RANGES_WANTED)))
        return plan_lines(paths, self._storage, range_bytes=self._options.range_bytes or size)

    def _run_tasks(self, staging: str, ranges: Sequence[LineRange], skipped: dict[int, tuple[int, ...]]) -> None:
        """Does ranges, leaving out some of their lines.

        Raises:
            SetupError: one could not be done; a DataError where its data are at fault.
        """
        tasks: list[dict[str, Any]] = [
            {"kind": ENTITIES, "staging": staging, "number": part, "skipped": list(ordinals)}
            for part, ordinals in skipped.items()
        ]
        total = sum(ranges[part].end - ranges[part].start for part in skipped)
        poll = beats_of(staging, ENTITIES, total_bytes=total) if is_local(staging) else lambda: Done(0, 0)
        work = Work("pipelines.wikidata_tasks:run_task", staging, None, self._options.worker_memory_bytes)
        with self._progress.stage(ENTITIES, poll):
            workers = self._stages.run(tasks, work)
        if len(workers) > 1:
            self._progress.note(workers_line(ENTITIES, workers))

    def _without_repeats(self, staging: str, ranges: Sequence[LineRange]) -> list[PartReport]:
        """Gives the reports of all ranges; those with entities that come twice are done again without them."""
        storage = self._storage
        reports = [read_part(storage, staging, one.index) for one in ranges]
        with tempfile.TemporaryDirectory(prefix="kbsource-") as folder:
            scratch = join(staging, "scratch") if is_local(staging) else os.path.join(folder, "scratch")
            superseded = find_superseded(reports, storage, staging=staging, scratch=scratch)
        if not superseded:
            return reports
        n_lines = sum(map(len, superseded.values()))
        self._progress.note(f"entities: {n_lines:,} come twice; {len(superseded):,} ranges are read again")
        for part in superseded:
            for entries in reports[part].tables.values():
                for entry in entries:
                    storage.delete_tree(join(self._output, entry.file))
        self._run_tasks(staging, ranges, superseded)
        return [read_part(storage, staging, one.index) for one in ranges]

    def _check_rejects(self, reports: Sequence[PartReport]) -> None:
        rejected: Counter[str] = Counter()
        for report in reports:
            rejected.update(report.rejected)
        check_rejects(
            rejected,
            sum(report.n_lines for report in reports),
            max_share=self._options.max_rejects,
            allow_truncated=self._options.allow_truncated,
            what="lines",
        )
