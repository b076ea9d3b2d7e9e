"""Everything of a QAMPARI release but its manifest.

::

    qampari_data/train_data.jsonl, dev_data.jsonl, test_data.jsonl      as QAMPARI's files are
    questions/questions-00000-of-00001.parquet                          every question that passed the filter
    queries/queries-00000-of-00001.parquet                              every query that was considered
    manifest.json                                                       written last, see mapping.write.output
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import orjson

from kbsource.errors import SetupError
from kbsource.files import HashingWriter, Storage, atomic_write, join, sha256_of
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry
from mapping.qampari.records import Question
from mapping.qampari.released import record_line, released_record
from mapping.qampari.rows import SPLITS, DrawnQuestion, QueryRow, question_row
from mapping.qampari.schema import QUERIES, QUESTIONS
from mapping.qampari.selection import Side
from mapping.sources.reading.base import Split
from mapping.write.output import manifest_bytes
from mapping.write.tables import table_path, write_table

FORMAT = "kbsource-qampari-1"
DATA = "qampari_data"
_CHANGED = "is not as it was written; fetch it again, and check its folder with kbsource verify."
GROUP_ROWS = 512
"""Questions in a row group: with all their proofs some 20 KB each."""


class Form(NamedTuple):
    """How a release is written; stands in its manifest under ``form``.

    Attributes:
        host: of the wiki, for the addresses of pages.
        with_meta: records have ``meta``.
        is_released_case: proofs are written as ``evidence.released_case`` does.
        seed: of every draw.
    """

    host: str
    with_meta: bool
    is_released_case: bool
    seed: str


def data_path(split: Split) -> str:
    """Gives the path of a split's file in the release."""
    return f"{DATA}/{split}_data.jsonl"


def release_paths() -> set[str]:
    """Gives the paths of the files that every release has."""
    return {*map(data_path, SPLITS), table_path("questions", 0, 1), table_path("queries", 0, 1)}


def write_release_files(
    questions: Iterable[DrawnQuestion | tuple[Question, Side | None, Split | None, str | None]],
    queries: Iterable[QueryRow],
    *,
    output: str,
    storage: Storage,
    page_url: Callable[[str], str],
    with_meta: bool,
    is_released_case: bool,
) -> list[FileEntry]:
    """Writes the tables and the files of the splits, and gives the manifest's entries, by path.

    Memory: ``GROUP_ROWS`` questions.

    Args:
        questions: every one that passed the filter, with side, split and qid, in the order of the files.
        queries: every one that was considered, in the order of the table.
        output: folder of the release, as ``mapping.write.output.begin_output`` leaves it.
        storage: of the folder.
        page_url: gives the address of the page with a title.
        with_meta: records get ``meta``.
        is_released_case: proofs are written as ``evidence.released_case`` does; the table has them as they stand.
    """
    with ExitStack() as stack:
        sinks = {
            split: HashingWriter(stack.enter_context(atomic_write(storage, join(output, data_path(split)))))
            for split in SPLITS
        }
        n_lines = dict.fromkeys(SPLITS, 0)

        def rows() -> Iterator[tuple[Any, ...]]:
            for one in questions:
                drawn = DrawnQuestion(*one)
                if drawn.split is not None and drawn.qid is not None:
                    record = released_record(
                        drawn.question,
                        qid=drawn.qid,
                        page_url=page_url,
                        with_meta=with_meta,
                        is_released_case=is_released_case,
                        text=drawn.paraphrase,
                    )
                    sinks[drawn.split].write(record_line(record))
                    n_lines[drawn.split] += 1
                yield question_row(drawn)

        table = write_table(
            rows(),
            "questions",
            output=output,
            file=table_path("questions", 0, 1),
            storage=storage,
            schema=QUESTIONS,
            group_rows=GROUP_ROWS,
        )
    entries = [
        FileEntry(data_path(split), n_lines[split], sink.n_bytes, sink.hexdigest()) for split, sink in sinks.items()
    ]
    considered = write_table(
        queries, "queries", output=output, file=table_path("queries", 0, 1), storage=storage, schema=QUERIES
    )
    return sorted([*entries, table, considered], key=lambda entry: entry.file)


def read_form(output: str, storage: Storage) -> tuple[dict[str, Any], Form]:
    """Gives the manifest of a finished release, and how the release is written.

    Raises:
        SetupError: there is none, it is that of something else, or not as it was written.
    """
    path = join(output, MANIFEST)
    if not storage.exists(path):
        raise SetupError(f"{output}: no {MANIFEST}, so no finished QAMPARI release; make it, or name another folder.")
    manifest = read_listing(output, storage, FORMAT)
    if manifest is None:
        raise SetupError(f"{path}: not the manifest of a QAMPARI release ({FORMAT}); name the folder of one.")
    try:
        return manifest, Form(**manifest["form"])
    except (KeyError, TypeError) as error:
        raise SetupError(f"{path}: made by another version of kbsource, which can read it ({error}).") from error


def read_listing(output: str, storage: Storage, form: str) -> dict[str, Any] | None:
    """Gives the manifest of a folder; None where it has none, or one that is not of this format.

    Raises:
        SetupError: it is of this format, but not as it was written.
    """
    path = join(output, MANIFEST)
    if not storage.exists(path):
        return None
    with storage.open_read(path) as file:
        content = file.read()
    try:
        manifest = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        return None
    values = {name: one for name, one in manifest.items() if name != "manifest_sha256"}
    if manifest_bytes(values, form=form) != content:
        raise SetupError(f"{path} {_CHANGED}")
    return manifest


def check_files(output: str, manifest: Mapping[str, Any], storage: Storage) -> None:
    """Raises where a file is not what the manifest says; reads all of them.

    Raises:
        SetupError: a file is missing, or has another size or content.
    """
    for entry in manifest["files"]:
        path = join(output, entry["file"])
        if (
            not storage.exists(path)
            or storage.size(path) != entry["bytes"]
            or sha256_of(storage, path) != entry["sha256"]
        ):
            raise SetupError(f"{path} {_CHANGED}")
