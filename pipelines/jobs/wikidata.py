"""The release of Wikidata: a JSON dump becomes tables, by one pipeline.

The dump is read in ranges, each of which becomes files of its own; ranges with entities that come twice are read again
without them; one worker names the files, adds classes and rejected lines and, last of all, the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.dump.lines import LineRange
from kbsource.dump.rejects import DAMAGED_BYTES, check_rejects, loss_findings
from kbsource.errors import DataError, named_faults
from kbsource.files import join
from kbsource.languages import language_codes
from kbsource.pages.assembly import dump_date
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.runtime.chunks import Key, Stored, read_chunk_report
from kbsource.runtime.regroup import read_group
from kbsource.wikidata.assemble import (
    entity_counts,
    find_superseded,
    name_tables,
    summed_facts,
    write_classes,
    write_rejected,
)
from kbsource.wikidata.entity import EntityReader
from kbsource.wikidata.kind import WIKIDATA_RELEASE, EntityCounts, WikidataManifest
from kbsource.wikidata.lines import plan_lines
from kbsource.wikidata.parts import IDS, ORDINALS, PartReport
from pipelines.jobs.shared_inputs import line_files
from pipelines.jobs.wikidata_files import MakeFiles, write_plan
from pipelines.options.fields import nearest
from pipelines.options.wikidata import WikidataOptions
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.primitives.regroup import Regroup
from pipelines.primitives.together import Together
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

READ = "read"
"""Folder in the staging folder for the chunks of the ranges that were read."""
_BYTES_OF_GROUP = 2 << 30
"""Of the dump, for each group that entities are compared in: two to three million entities of Wikidata."""


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
        DataError: too much of the dump cannot be used, a law does not hold, or a file changed while it was read.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    given = line_files(
        options.dump, options.output, options.range_bytes, plan=plan_lines, flags=flags, progress=progress
    )
    output, storage, hashed, ranges, inputs = given
    with ReleaseFolder(output, storage, kind=WIKIDATA_RELEASE, job=given.job(options.data_options())) as out:
        write_plan(ranges, hashed, out.staging, storage)
        _ = pipeline | "wikidata" >> MakeWikidata(options, inputs, ranges, output=output, staging=out.staging)
        sizes = [part.end - part.start for part in ranges]
        with progress.stage("entities", chunks_done(out.staging, join(out.staging, READ), sizes)):
            run_pipeline(pipeline, "wikidata")
    manifest = WIKIDATA_RELEASE.read(output, storage)
    return WikidataSummary(options.output, manifest, time.monotonic() - started)


class MakeWikidata(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Ranges of a dump -> the path of the release, once it is whole. Applied to a pipeline.

    Args:
        options: what to make.
        inputs: files of the dump, with their hashes.
        ranges: of the dump, as the staging folder has them too.
        output: folder of the release, marked as unfinished.
        staging: folder in it for what is only needed meanwhile.
    """

    def __init__(
        self,
        options: WikidataOptions,
        inputs: Sequence[InputFile],
        ranges: Sequence[LineRange],
        *,
        output: str,
        staging: str,
    ) -> None:
        super().__init__()
        self._staging = staging
        self._ranges = [(Key(part.index, 0), None) for part in ranges]
        self._groups = _Groups(1 + sum(part.end - part.start for part in ranges) // _BYTES_OF_GROUP)
        self._make = MakeFiles(
            staging,
            EntityReader(
                languages=options.languages,
                sites=None if options.sites is None else frozenset(options.sites),
                qualifiers=None if options.qualifiers is None else frozenset(options.qualifiers),
            ),
        )
        self._memory_bytes = options.worker_memory_bytes
        self._commit = Commit(options, inputs, output, staging)

    def expand(self, pipeline: Any) -> Any:
        read = (
            pipeline
            | "ranges" >> beam.Create(self._ranges, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read" >> self._read_ranges()
        )
        again = (
            read.chunks
            | "by entity" >> Regroup(join(self._staging, "ids"), self._groups)
            | "come twice" >> beam.ParDo(_FindSuperseded())
            | "by range" >> beam.GroupByKey()
            | "left out" >> beam.MapTuple(_left_out)
            | "read again" >> self._read_ranges()
        )
        return (
            (read.chunks, again.chunks)
            | "both" >> beam.Flatten()
            | "all" >> Together()
            | "release" >> beam.ParDo(self._commit)
        )

    def _read_ranges(self) -> GuardedMap:
        staging = self._staging
        return GuardedMap(
            self._make,
            folder=join(staging, READ),
            memory_bytes=self._memory_bytes,
            beats=join(staging, "beats"),
        )


@dataclass(frozen=True, slots=True)
class _Groups:
    """Puts the lines of an entity, of schema ``IDS``, in one of some groups."""

    n_groups: int

    def __call__(self, ids: pa.RecordBatch) -> npt.NDArray[np.int64]:
        groups: npt.NDArray[np.int64] = (ids["number"].to_numpy() % self.n_groups).astype(np.int64)
        return groups


class _FindSuperseded(WorkerDoFn):
    """Of each group, by range: the ordinals of the lines whose entity another line supersedes."""

    def process(self, element: tuple[int, tuple[Stored, ...]]) -> Iterator[tuple[int, tuple[int, ...]]]:
        pieces = element[1]
        with named_faults():
            ids = pa.Table.from_batches(read_group(pieces, storage_for(pieces[0].path)), IDS)
            yield from find_superseded(ids).items()


def _left_out(part: int, ordinals: Iterable[tuple[int, ...]]) -> tuple[Key, pa.RecordBatch]:
    """Gives the range to read again, without those lines."""
    return Key(part, 1), pa.record_batch({"ordinal": sorted(chain.from_iterable(ordinals))}, schema=ORDINALS)


def _check_used(options: WikidataOptions, reports: Sequence[PartReport]) -> None:
    """Raises for a name that was chosen, in other than the default options, and that nothing in the dump has."""
    codes = language_codes()
    known = {"languages": codes, "sites": {f"{code.replace('-', '_')}wiki" for code in codes}, "qualifiers": ()}
    for field_ in fields(options):
        chosen = getattr(options, field_.name)
        if field_.name not in known or chosen is None or chosen == field_.default:
            continue
        used = {name for report in reports for name in report.used[field_.name]}
        for name in chosen:
            if name not in used:
                near = "" if name in known[field_.name] else nearest(name, known[field_.name])
                raise DataError(
                    f"--{field_.name} {name}: nothing in the dump has it, nothing was made.{near} "
                    "Correct it, or leave it out."
                )


class Commit(WorkerDoFn):
    """Makes the release out of what the ranges gave, the manifest last."""

    def __init__(self, options: WikidataOptions, inputs: Sequence[InputFile], output: str, staging: str) -> None:
        super().__init__()
        self._options, self._inputs = options, tuple(inputs)
        self._output, self._staging = output, staging

    def process(self, element: list[tuple[Key, Stored]]) -> Iterator[str]:
        # A range that was read again comes after itself.
        last = {key[0]: (Key(*key), Stored(*stored)) for key, stored in element}
        with named_faults():
            self._commit(*zip(*last.values(), strict=True))
        yield self._output

    def _commit(self, keys: Sequence[Key], chunks: Sequence[Stored]) -> None:
        options, storage = self._options, storage_for(self._output)
        folders = {"output": self._output, "staging": self._staging}
        reports = [PartReport.from_json(read_chunk_report(chunk.path, storage)[1].facts) for chunk in chunks]
        counts = entity_counts(reports)
        totals = sum_counts(counts.values(), EntityCounts())
        facts = summed_facts(reports)
        loss = loss_findings(
            totals.lines_read,
            n_bytes=sum(input_.bytes for input_ in self._inputs),
            damaged_bytes=facts.get(DAMAGED_BYTES, 0),
        )
        check_rejects(
            Counter(totals.rejected),
            totals.lines_read,
            max_share=options.max_rejects,
            allow_truncated=options.allow_truncated,
            what="lines",
            loss=loss,
        )
        _check_used(options, reports)
        if not totals.items + totals.properties:
            others = f"{totals.other_entities} other entities and " if totals.other_entities else ""
            raise DataError(
                f"The dump has no item and no property, {others}{totals.n_rejected} rejected lines; nothing was made. "
                "Take wikidata-YYYYMMDD-all.json.bz2."
            )
        tables = name_tables(reports, storage, **folders)
        tables["classes"] = write_classes(keys, storage, **folders)
        tables["rejected"] = write_rejected(chunks, storage, output=self._output)
        manifest = WikidataManifest(
            code=code_facts(),
            inputs=self._inputs,
            date=dump_date([input_.name for input_ in self._inputs]),
            options=options.data_options(),
            tables=tables,
            counts=counts,
            totals=totals,
            findings=dict(sorted((facts | loss).items())),
        )
        commit(WIKIDATA_RELEASE, manifest, self._output, storage)
