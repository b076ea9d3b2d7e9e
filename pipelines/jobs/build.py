"""The build: a dump becomes a release.

Two pipelines of independent tasks, each task one file or a few, and short work on one machine between and after
them (``kbsource.assembly``). Reports of tasks are files, since not every runner gives metrics back.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kbsource.assembly import DataError, Indexes, assemble, build_indexes, check_rejects
from kbsource.dump.check import CheckReport, Finding, check_dump
from kbsource.dump.ranges import DumpRange, expand_inputs, plan_ranges
from kbsource.dump.siteinfo import merge_siteinfo_json, read_siteinfo_json
from kbsource.errors import SetupError
from kbsource.files import LocalStorage, Storage, base_name, join, sha256_of
from kbsource.release.commit import commit_release
from kbsource.release.layout import begin_release
from kbsource.release.manifest import InputFile, Manifest
from kbsource.shards import Shard, ShardReport, plan_shards, read_shard_report
from kbsource.site import Site
from kbsource.staging import ScanReport, read_report, write_json
from kbsource.titles import normalise_title
from pipelines.options import BuildOptions
from pipelines.progress import Done, Progress, beats_of
from pipelines.runners import pipeline_options, quiet_beam
from pipelines.storage import is_local, storage_for
from pipelines.tasks import PAGES, SCAN, Job, copy_file, index_files

MAX_RANGE_BYTES = 32 << 20
MIN_RANGE_BYTES = 1 << 20
RANGES_WANTED = 32
"""Ranges that a middling dump is cut into, so that a handful of workers end at about the same time."""

# What allowing a truncated dump makes no error of: all that a file that breaks off is bound to show.
_SIGNS_OF_TRUNCATION = frozenset({"truncated_dump", "size_mismatch", "checksum_mismatch", "index_beyond_end"})
# Damage in the content is counted, recorded, and judged by the ceiling.
_DAMAGE = frozenset({"damaged_block", "damaged_gzip", "trailing_garbage"})


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build made.

    Attributes:
        output: folder of the release.
        manifest: as written.
        titles_not_found: titles of ``only_titles`` that the dump does not have, in order of the alphabet.
        seconds: wall time.
    """

    output: str
    manifest: Manifest
    titles_not_found: tuple[str, ...]
    seconds: float


class BadDumpError(DataError):
    """The check of the dump found errors; nothing was written."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("The dump is not in order, nothing was built.")
        self.findings = tuple(findings)


def build(options: BuildOptions, *, flags: Sequence[str], progress: Progress) -> BuildSummary:
    """Builds a release.

    Args:
        options: what to build.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        BadDumpError: the dump has errors.
        DataError: too much of the dump cannot be used, or a law does not hold.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    run = _Build(options, flags, progress)
    manifest, missing = run.run()
    return BuildSummary(options.output, manifest, missing, time.monotonic() - started)


def range_size(n_bytes: int) -> int:
    """Gives the bytes per range that suit a dump of that size; depends on nothing else."""
    return min(MAX_RANGE_BYTES, max(MIN_RANGE_BYTES, -(-n_bytes // RANGES_WANTED)))


def fatal_findings(report: CheckReport, *, allow_truncated: bool) -> list[Finding]:
    """Gives the findings that forbid a build."""
    passed = _DAMAGE | _SIGNS_OF_TRUNCATION if allow_truncated else _DAMAGE
    return [one for one in report.findings if one.severity == "error" and one.code not in passed]


class _Build:
    """One build, step by step."""

    def __init__(self, options: BuildOptions, flags: Sequence[str], progress: Progress) -> None:
        self._options = options
        self._flags = flags
        self._progress = progress
        self._output = options.output.rstrip("/") or "/"
        self._storage = storage_for(self._output, *options.dump)
        self._beam_options = pipeline_options(flags)
        quiet_beam()

    def run(self) -> tuple[Manifest, tuple[str, ...]]:
        options, storage = self._options, self._storage
        paths = expand_inputs(options.dump, storage)
        _check_names(paths)
        report = self._check(paths)
        site = self._site(report)
        titles = self._titles(site)
        ranges = self._ranges(paths)
        inputs = self._inputs(report)
        staging = begin_release(self._output, storage)
        job = Job(
            output=self._output,
            site=site,
            ranges=tuple(ranges),
            as_of=options.as_of,
            limit_pages=options.limit_pages,
            has_titles=titles is not None,
            has_page_props=options.page_props is not None,
            parser=options.parser,
        )
        job.write(staging, storage)
        if titles is not None:
            write_json(storage, join(staging, "titles.json"), sorted(titles))
        scans = self._scan(staging, ranges)
        with _local_folder(staging) as folder:
            indexes = self._index(staging, folder, scans)
            shards, shard_reports = self._pages(staging, scans, indexes)
            self._check_rejects(scans, shard_reports, indexes)
            self._progress.note("finish: indexes, small tables and manifest")
            manifest = assemble(
                scans,
                shards,
                shard_reports,
                indexes,
                storage,
                output=self._output,
                staging=staging,
                site=site,
                schema_version=(report.header.schema_version if report.header else None) or "",
                inputs=inputs,
                options=options.data_options(),
            )
            missing = self._titles_not_found(titles, indexes)
        commit_release(self._output, manifest, storage=storage)
        return manifest, missing
