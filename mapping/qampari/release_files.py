"""Everything of a QAMPARI release but its manifest.

::

    qampari_data/train_data.jsonl, dev_data.jsonl, test_data.jsonl      as QAMPARI's files are
    questions/questions-00000-of-00001.parquet                          every question that passed the filter
    queries/queries-00000-of-00001.parquet                              every query that was considered
    manifest.json                                                       written last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from kbsource.files import Storage
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry, ListingManifest
from kbsource.release.writer import LinesFile, write_rows
from mapping.qampari.question_rows import SPLITS, DrawnQuestion, QueryRow, question_row
from mapping.qampari.records import Question
from mapping.qampari.released import Form, record_line, released_record
from mapping.qampari.schema import QUERIES, QUESTIONS
from mapping.qampari.selection import Side
from mapping.sources.reading.base import Split

DATA = "qampari_data"
GROUP_ROWS = 512
"""Questions in a row group: with all their proofs some 20 KB each."""


def data_path(split: Split) -> str:
    """Gives the path of a split's file in the release."""
    return f"{DATA}/{split}_data.jsonl"


def release_paths() -> set[str]:
    """Gives the paths of the files that every release has."""
    return {*map(data_path, SPLITS), shard_path("questions", 0, 1), shard_path("queries", 0, 1)}


def write_release_files(
    questions: Iterable[DrawnQuestion | tuple[Question, Side | None, Split | None, str | None]],
    queries: Iterable[QueryRow],
    *,
    form: Form,
    output: str,
    storage: Storage,
) -> list[FileEntry]:
    """Writes the tables and the files of the splits, and gives the manifest's entries.

    Memory: ``GROUP_ROWS`` questions.

    Args:
        questions: every one that passed the filter, with side, split and qid, in the order of the files.
        queries: every one that was considered, in the order of the table.
        form: of the records; the table has proofs as they stand.
        output: folder of the release, empty.
        storage: of the folder.
    """
    with ExitStack() as stack:
        files = {split: stack.enter_context(LinesFile(output, data_path(split), storage)) for split in SPLITS}

        def rows() -> Iterator[tuple[Any, ...]]:
            for question in questions:
                drawn = DrawnQuestion(*question)
                if drawn.split is not None and drawn.qid is not None:
                    files[drawn.split].write(record_line(released_record(drawn, form)))
                yield question_row(drawn)

        table = write_rows(rows(), "questions", QUESTIONS, output=output, storage=storage, group_rows=GROUP_ROWS)
    considered = write_rows(queries, "queries", QUERIES, output=output, storage=storage)
    return [*(file.entry for file in files.values()), table, considered]


def form_of(manifest: ListingManifest) -> Form | None:
    """Gives how a release is written, by its manifest; None where that does not say so."""
    try:
        return Form(**manifest.facts["form"])
    except (KeyError, TypeError):
        return None
