"""The files of an alignment that are written once all chunks are done, and its manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kbsource.errors import DataError
from kbsource.files import CHUNK_BYTES, Storage, join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry
from kbsource.release.output import commit
from kbsource.release.writer import write_lines, write_rows
from kbsource.runtime.chunks import Key, Stored
from mapping.entail.verification import VerificationCounts
from mapping.schema import TABLES
from mapping.sources.reading.base import Tally
from mapping.write.kilt import ID_FILES, file_name, id_file_name, without_input
from mapping.write.kind import ALIGNMENT, write_report
from mapping.write.report import AlignmentCounts, faults, report_values
from pipelines.alignment.dataset_part import DatasetPart, file_stem, has_ids_alone, policy_name
from pipelines.alignment.merge import ANSWERED, LINES, lines_path, sum_reports
from pipelines.alignment.rows import stored_rows
from pipelines.options.map import MapOptions
from pipelines.stores.storage import storage_for


def record_files(options: MapOptions) -> tuple[str, ...]:
    """Gives the names of the files of records that an alignment may write."""
    stem = file_stem(options)
    return tuple(
        name(stem, options.split, with_answers=answers)
        for name in (file_name, id_file_name)
        for answers in (False, True)
    )


def commit_part(
    part: DatasetPart,
    number: int,
    reports: Sequence[dict[str, Any]],
    *,
    tally: Tally,
    rejected: Sequence[Stored],
    staging: str,
) -> None:
    """Writes what is left to write of an alignment, its manifest last; one that has it is left as it is.

    Args:
        part: the alignment.
        number: of the part.
        reports: of all its chunks, in order.
        tally: counts of the records that were read.
        rejected: where those are that could not be used, in order.
        staging: folder where the lines of the chunks are.

    Raises:
        DataError: a law of the counts does not hold.
    """
    storage = storage_for(part.output)
    if storage.exists(join(part.output, MANIFEST)):
        return
    counts, verification, files = sum_reports(reports)
    report = _report(part.options, tally, counts, verification)
    files += _write_records(part, number, staging, n_chunks=len(reports), n_records=counts.written, storage=storage)
    bad = (row for stored in rejected for row in stored_rows(stored))
    files.append(write_rows(bad, "rejected", TABLES["rejected"], output=part.output, storage=storage))
    files.append(write_report(report, output=part.output, storage=storage))
    facts = {**part.facts, "counts": report["counts"], "records": report["records"]}
    commit(ALIGNMENT, ALIGNMENT.listing(files, facts), part.output, storage)


def _report(
    options: MapOptions, tally: Tally, counts: AlignmentCounts, verification: VerificationCounts
) -> dict[str, Any]:
    if broken := faults(tally, counts):
        raise DataError("The counts do not add up, so nothing was released: " + "; ".join(broken) + ".")
    report = report_values(tally, counts, dataset=policy_name(options), split=options.split)
    if options.accept is not None:
        report["accept"] = {"rule": options.accept, "dropped": counts.dropped["not_accepted"]}
        report["dropped_by_threshold"] = None
    if options.verify is not None:
        report["verification"] = verification.to_json()
    return report


def _write_records(
    part: DatasetPart, number: int, staging: str, *, n_chunks: int, n_records: int, storage: Storage
) -> list[FileEntry]:
    """Joins the lines of all chunks: the records of the split, of test without their answers; gives the files.

    Where there are labels the records of test are written with them too, and where a dataset is published so, every
    file again without the inputs.
    """
    options, output = part.options, part.output
    stem = file_stem(options)
    files = []
    for with_answers in (False, True) if options.labels else (False,):
        ending = ANSWERED if with_answers else LINES
        parts = [lines_path(staging, Key(number, chunk), ending) for chunk in range(n_chunks)]
        name = (id_file_name if has_ids_alone(options) else file_name)(stem, options.split, with_answers=with_answers)
        files.append(write_lines(_blocks(parts), name, output=output, storage=storage, n_rows=n_records))
        if options.dataset in ID_FILES:
            id_name = id_file_name(stem, options.split, with_answers=with_answers)
            with storage.open_read(join(output, name)) as lines:
                files.append(write_lines(map(without_input, lines), id_name, output=output, storage=storage))
    return files


def _blocks(paths: Iterable[str]) -> Iterator[bytes]:
    for path in paths:
        with storage_for(path).open_read(path) as part:
            while block := part.read(CHUNK_BYTES):
                yield block
