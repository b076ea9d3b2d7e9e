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

from kbsource.assembly import check_rejects, dump_date
from kbsource.errors import DataError
from kbsource.files import base_name, join
from kbsource.release.commit import commit_files
from kbsource.release.layout import begin_release, check_output
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
from pipelines.dump_files import check_names, range_size
from pipelines.input_hashes import InputHashes
from pipelines.options_wikidata import WikidataOptions
from pipelines.progress import Progress
from pipelines.shown_stages import ShownStages, Task
from pipelines.stages import Stages
from pipelines.storage import absolute, is_local, storage_for
from pipelines.wikidata_tasks import ENTITIES, RUN_TASK, WikidataJob


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
        check_output(output, storage)
        paths = [absolute(path) for path in expand_dumps(options.dump, storage)]
        names = [base_name(path) for path in paths]
        check_names(paths)
        with InputHashes(paths, storage) as hashes:
            ranges = self._ranges(paths)
            staging = begin_release(output, storage)
            job = WikidataJob(output, tuple(ranges), options.languages, options.sites, options.qualifiers)
            job.write(staging, storage)
            tasks = ShownStages(RUN_TASK, staging, self._stages, self._progress, options.worker_memory_bytes)
            tasks.run(ENTITIES, [_task(one, ()) for one in ranges])
            reports = self._without_repeats(tasks, ranges)
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
        return plan_lines(paths, self._storage, range_bytes=self._options.range_bytes or range_size(n_bytes))

    def _without_repeats(self, tasks: ShownStages, ranges: Sequence[LineRange]) -> list[PartReport]:
        """Gives the reports of all ranges; those with entities that come twice are done again without them."""
        storage, staging = self._storage, tasks.staging
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
        tasks.run(ENTITIES, [_task(ranges[part], ordinals) for part, ordinals in superseded.items()])
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


def _task(one: LineRange, skipped: Sequence[int]) -> Task:
    """Gives the task of a range, some of whose lines are left out."""
    return Task(one.index, one.end - one.start, {"skipped": list(skipped)})
