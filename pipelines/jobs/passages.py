"""The corpus of passages: every page of a release cut into passages of whole sentences.

Independent tasks, one for each file of pages; then the driver joins what belongs into one file and writes the manifest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kbsource.errors import DataError
from kbsource.release.layout import check_output
from kbsource.release.manifest import Manifest, code_facts, read_manifest
from kbsource.release.sizes import check_sizes
from mapping.output import begin_output, commit_output, release_facts
from mapping.passages.corpus import COUNTS, FORMAT, ShardReport, join_lines
from mapping.passages.forms import FORMS
from pipelines.options_passages import PassagesOptions
from pipelines.passages_tasks import CUT, RUN_TASK, PassagesJob, parts_folder, read_shard_report
from pipelines.progress import Progress
from pipelines.shown_stages import ShownStages, Task
from pipelines.stages import Stages
from pipelines.storage import absolute, storage_for


@dataclass(frozen=True, slots=True)
class PassagesSummary:
    """What was made.

    Attributes:
        output: folder of the corpus.
        manifest: as written, without its own hash.
        seconds: wall time.
    """

    output: str
    manifest: dict[str, Any]
    seconds: float


def make_passages(options: PassagesOptions, *, flags: Sequence[str], progress: Progress) -> PassagesSummary:
    """Makes a corpus of passages.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: a file of pages is damaged, or pages are missing.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    with Stages(flags) as stages:
        stages.check_paths(options.kb, options.output)
        manifest = _Cutting(options, stages, progress).run()
    return PassagesSummary(options.output, manifest, time.monotonic() - started)


class _Cutting:
    """One corpus, step by step."""

    def __init__(self, options: PassagesOptions, stages: Stages, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._kb = absolute(options.kb)
        self._output = absolute(options.output.rstrip("/") or "/")
        self._stages = stages
        self._storage = storage_for(self._output, self._kb)

    def run(self) -> dict[str, Any]:
        options, storage, output = self._options, self._storage, self._output
        check_output(output, storage)
        release = read_manifest(self._kb, storage)
        check_sizes(self._kb, release.tables["pages"], storage)
        staging = begin_output(output, storage)
        pages = release.tables["pages"]
        PassagesJob(self._kb, output, pages, options.cut, options.formats).write(staging, storage)
        tasks = ShownStages(RUN_TASK, staging, self._stages, self._progress, options.worker_memory_bytes)
        tasks.run(CUT, [Task(number, entry.rows) for number, entry in enumerate(pages)], unit="pages")
        reports = [read_shard_report(staging, number, storage) for number in range(len(pages))]
        files = [entry for report in reports for entry in report.files]
        for name in sorted(options.formats):
            if FORMS[name].is_joined:
                self._progress.note(f"{name}: one file out of all parts")
                files.append(join_lines(name, reports, output=output, parts=parts_folder(staging), storage=storage))
        counts = {name: sum(report.counts[name] for report in reports) for name in COUNTS}
        _check_counts(counts, release, reports)
        files.sort(key=lambda entry: entry.file)
        values = {
            "release": release_facts(release),
            "options": options.data_options(),
            "counts": counts,
            "code": asdict(code_facts()),
            "files": [asdict(entry) for entry in files],
        }
        commit_output(output, values, files=files, storage=storage, form=FORMAT)
        return values


def _check_counts(counts: dict[str, int], release: Manifest, reports: Sequence[ShardReport]) -> None:
    n_rows = sum(report.files[0].rows for report in reports)
    if counts["pages"] != release.totals.articles or counts["passages"] != n_rows:
        raise DataError(
            f"The counts do not add up, so nothing was released: {counts['pages']} pages of {release.totals.articles}, "
            f"{n_rows} rows of {counts['passages']} passages."
        )
