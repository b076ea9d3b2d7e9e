"""The release of Wikidata: one pipeline turns a JSON dump into tables.

The dump is read in ranges, and each range is written to separate files. Ranges with duplicate entities are read again
without the duplicates. One worker names the files, adds classes and rejected lines, and finally writes the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import chain
from typing import Any

import apache_beam as beam
import msgspec
import pyarrow as pa

from kbsource.dump.dates import check_one_day
from kbsource.dump.lines import LineRange
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.errors import DataError
from kbsource.files import join
from kbsource.languages import language_codes
from kbsource.pages.assembly import dump_date
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report
from kbsource.runtime.regroup import ByNumber, read_group
from kbsource.wikidata.assemble import (
    entity_counts,
    find_superseded,
    name_tables,
    write_classes,
    write_rejected_entities,
)
from kbsource.wikidata.entity import EntityReader
from kbsource.wikidata.kind import WIKIDATA_RELEASE, WikidataManifest
from kbsource.wikidata.lines import plan_entities
from kbsource.wikidata.parts import IDS, ORDINALS, PartReport, planned_files, write_plan
from kbsource.wikidata.records import EntityCounts
from pipelines.jobs.shared_inputs import MadeRelease, line_files, line_findings
from pipelines.options.wikidata import WikidataOptions
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.primitives.shuffle import CollectSorted, Regroup
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do
from pipelines.terminal import nearest

READ = "read"
"""Folder in the staging folder for the chunks of the ranges that were read."""
_BYTES_OF_GROUP = 2 << 30
"""Bytes of the dump per group for comparing entities: two to three million entities of Wikidata."""


def make_wikidata(
    options: WikidataOptions, *, flags: Sequence[str], progress: Progress
) -> MadeRelease[WikidataManifest]:
    """Makes a release of Wikidata.

    Raises:
        DataError: too much of the dump cannot be used, an invariant is violated, or a file changed while it was read.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    given = line_files(
        options.dump,
        options.output,
        options.range_bytes,
        plan=plan_entities,
        check=check_one_day,
        flags=flags,
        progress=progress,
    )
    output, hashed, ranges, inputs = given
    with ReleaseFolder(output, kind=WIKIDATA_RELEASE, job=given.job(options.data_options())) as out:
        write_plan(ranges, hashed, out.staging)
        _make(pipeline, options, inputs, ranges, output=output, staging=out.staging)
        sizes = [part.end - part.start for part in ranges]
        with progress.stage("entities", chunks_done(out.staging, join(out.staging, READ), sizes)):
            steps = run_pipeline(pipeline, "wikidata")
    return MadeRelease(options.output, WIKIDATA_RELEASE.read(output), time.monotonic() - started, steps)


def _make(
    pipeline: Any,
    options: WikidataOptions,
    inputs: Sequence[InputFile],
    ranges: Sequence[LineRange],
    *,
    output: str,
    staging: str,
) -> None:
    """Constructs the pipeline that makes the release from ranges of the dump, which are also in the staging folder."""
    reader = EntityReader(
        languages=options.languages,
        sites=None if options.sites is None else frozenset(options.sites),
        qualifiers=None if options.qualifiers is None else frozenset(options.qualifiers),
    )
    read_ranges = partial(
        GuardedMap,
        partial(planned_files, staging, reader),
        folder=join(staging, READ),
        memory_bytes=options.worker_memory_bytes,
        beats=join(staging, "beats"),
    )
    n_groups = 1 + sum(part.end - part.start for part in ranges) // _BYTES_OF_GROUP
    read = (
        pipeline
        | "ranges" >> beam.Create([(ChunkKey(part.index, 0), None) for part in ranges], reshuffle=False)
        | "spread" >> beam.Reshuffle()
        | "read" >> read_ranges()
    )
    again = (
        read.chunks
        | "by entity" >> Regroup(join(staging, "ids"), ByNumber("number", n_groups))
        | "come twice" >> do(_superseded)
        | "by range" >> beam.GroupByKey()
        | "left out" >> beam.MapTuple(_left_out)
        | "read again" >> read_ranges()
    )
    _ = (
        (read.chunks, again.chunks)
        | "both" >> beam.Flatten()
        | "all" >> CollectSorted()
        | "release" >> do(finish_wikidata, options=options, inputs=tuple(inputs), output=output, staging=staging)
    )


def _superseded(element: tuple[int, tuple[BatchRef, ...]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Finds, for each group and range, the ordinals of lines whose entity is superseded by another line."""
    yield from find_superseded(pa.Table.from_batches(read_group(element[1]), IDS)).items()


def _left_out(part: int, ordinals: Iterable[tuple[int, ...]]) -> tuple[ChunkKey, pa.RecordBatch]:
    """Returns a range to read again, with the ordinals of the lines to leave out."""
    return ChunkKey(part, 1), pa.record_batch({"ordinal": sorted(chain.from_iterable(ordinals))}, schema=ORDINALS)


def _check_used(options: WikidataOptions, reports: Sequence[PartReport]) -> None:
    """Raises an error if a name chosen with a non-default option does not occur in the dump."""
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
                    f"--{field_.name} {name} does not occur in the dump, so no release was made.{near} Correct the "
                    f"value, or leave it out."
                )


def finish_wikidata(
    element: list[tuple[ChunkKey, BatchRef]],
    *,
    options: WikidataOptions,
    inputs: tuple[InputFile, ...],
    output: str,
    staging: str,
) -> Iterator[str]:
    """Makes the release from the results of the ranges, the manifest last."""
    folders = {"output": output, "staging": staging}
    # A range that was read again comes after its first version.
    last = {key[0]: (ChunkKey(*key), BatchRef(*stored)) for key, stored in element}
    keys, chunks = zip(*last.values(), strict=True)
    reports = [msgspec.convert(read_chunk_report(chunk.path)[1].facts, PartReport) for chunk in chunks]
    counts = entity_counts(reports)
    totals = sum_counts(counts.values(), EntityCounts())
    facts = sum((Counter(report.facts) for report in reports), Counter())
    every = (bad for chunk in chunks for bad in read_chunk_report(chunk.path)[1].rejected)
    loss = line_findings(totals, inputs, facts.get(DAMAGED_BYTES, 0), options, every)
    _check_used(options, reports)
    if not totals.items + totals.properties:
        others = f"{totals.other_entities} other entities and " if totals.other_entities else ""
        raise DataError(
            f"The dump has no item and no property, {others}{totals.n_rejected} rejected lines, so no release was "
            f"made. Download wikidata-YYYYMMDD-all.json.bz2."
        )
    tables = name_tables(reports, **folders)
    tables["classes"] = write_classes(keys, **folders)
    tables["rejected"] = write_rejected_entities(chunks, output=output)
    manifest = WikidataManifest(
        code=code_facts(),
        inputs=inputs,
        date=dump_date([input_.name for input_ in inputs]),
        options=options.data_options(),
        tables=tables,
        counts=counts,
        totals=totals,
        findings=dict(sorted((facts | loss).items())),
    )
    commit(WIKIDATA_RELEASE, manifest, output)
    yield output
