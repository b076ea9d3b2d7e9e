"""What of a release is loaded together: each table, and each group of files of lines, with its splits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import opened_table
from mapping.publish.subject import Part, Subject

WHOLE = "train"
"""Split of what has none: tools expect one of that name."""
_SPLITS = {"train": "train", "dev": "validation", "validation": "validation", "test": "test"}
_SPLIT = re.compile(r"(?:^|(?<=[-_/]))(train|dev|validation|test)(_without_\w+?)?(?:$|(?=[-_/]))")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_LINES = (".jsonl", ".csv", ".tsv")
_HEADS = frozenset({b"id\ttext\ttitle", b"query-id\tcorpus-id\tscore"})
"""First lines of the tables with tabs that name their columns; KILT's, ColBERT's and maps of titles do not."""


@dataclass(frozen=True, slots=True)
class Config:
    """What is loaded together.

    Attributes:
        name: as it is loaded by.
        table: name of the table; None for files of lines.
        schema: as it is stored; None for files of lines.
        splits: files of each split, in order, by their path in the release.
    """

    name: str
    table: str | None
    schema: pa.Schema | None
    splits: dict[str, list[FileEntry]] = field(default_factory=dict)

    def n_rows(self, split: str) -> int:
        """Gives the rows or lines of a split."""
        return sum(entry.rows or 0 for entry in self.splits[split])

    @property
    def total(self) -> int:
        """Rows or lines of all splits."""
        return sum(map(self.n_rows, self.splits))

    def paths(self, split: str) -> str | list[str]:
        """Gives what finds the files of a split: a path, or a pattern where shards of a table are several."""
        files = [entry.file for entry in self.splits[split]]
        folder = {str(PurePosixPath(file).parent) for file in files}
        if len(files) == 1:
            return files[0]
        return f"{folder.pop()}/*.parquet" if self.table is not None and len(folder) == 1 else files


def configs_of(subject: Subject, path: str, storage: Storage) -> list[Config]:
    """Gives everything that can be loaded, what is loaded where nothing is named first.

    Files of lines without a line, and tables with tabs that do not name their columns, are left out: nothing tells
    what is in them.

    Args:
        subject: what is published.
        path: folder of the release, for the schemas of its tables.
        storage: of the folder.
    """
    found: dict[str, Config] = {}
    for part in subject.parts:
        for config, split, entries in (*_tables(part, path, storage), *_lines(part, path, storage)):
            found.setdefault(config.name, config).splits.setdefault(split, []).extend(entries)
    main = subject.about.main
    return sorted(found.values(), key=lambda config: (not _is_named(config, main), config.total == 0))


def _is_named(config: Config, main: str) -> bool:
    return bool(main) and (config.name == main or config.name.endswith(f"-{main}"))


def _prefixed(part: Part, name: str) -> str:
    """Gives a name that tells what is of one benchmark from what is of others."""
    dataset = part.values.get("dataset")
    return f"{dataset}-{name}" if isinstance(dataset, str) and not name.startswith(f"{dataset}-") else name


def _split_of(part: Part) -> str:
    split = part.values.get("split")
    return _SPLITS.get(split, WHOLE) if isinstance(split, str) else WHOLE


def _tables(part: Part, path: str, storage: Storage) -> Iterator[tuple[Config, str, list[FileEntry]]]:
    for table, entries in part.manifest.tables.items():
        located = [part.located(entry) for entry in entries]
        with opened_table(join(path, located[0].file), storage) as file:
            schema = file.schema_arrow
        yield Config(_prefixed(part, table), table, schema), _split_of(part), located


def _lines(part: Part, path: str, storage: Storage) -> Iterator[tuple[Config, str, list[FileEntry]]]:
    for entry in part.manifest.files:
        if entry.bytes and entry.file.endswith(_LINES) and _has_columns(join(path, part.located(entry).file), storage):
            name, split = named_lines(entry.file)
            yield Config(_prefixed(part, name), None, None), split or _split_of(part), [part.located(entry)]


def _has_columns(path: str, storage: Storage) -> bool:
    """Says whether a file of lines tells what its columns are."""
    if not path.endswith(".tsv"):
        return True
    with storage.open_read(path) as file:
        return file.read(max(map(len, _HEADS)) + 1).partition(b"\n")[0] in _HEADS


def named_lines(file: str) -> tuple[str, str | None]:
    """Gives the name of the group that a file of lines is in, and its split; None for a file that names none.

    >>> named_lines("qampari_data/dev_data.jsonl"), named_lines("fever-test_without_answers-kilt.jsonl")
    (('qampari_data-data', 'validation'), ('fever-kilt', 'test_without_answers'))
    >>> named_lines("human/qa/amber_sets.jsonl"), named_lines("qrels/test.tsv")
    (('human-qa-amber_sets', None), ('qrels', 'test'))
    >>> named_lines("pyserini/passages-00000-of-00002.jsonl")
    ('pyserini-passages', None)
    """
    path = PurePosixPath(file)
    stem = _SHARD.sub("", str(path.with_suffix("")))
    found = list(_SPLIT.finditer(stem))
    split = None
    if found:
        said = found[-1]
        split = _SPLITS[said[1]] + (said[2] or "")
        stem = stem[: said.start()] + stem[said.end() :]
    words = [re.sub(r"[-_]{2,}", "-", word).strip("-_") for word in stem.split("/")]
    return "-".join(word for word in words if word) or "lines", split


def hub_values(configs: Sequence[Config]) -> list[Mapping[str, object]]:
    """Gives them as the metadata of a dataset card has them.

    A split without rows is left out where another one has some: ``datasets`` loads no table without rows, and would
    load none of the others either.
    """
    result: list[Mapping[str, object]] = []
    for config in configs:
        full = [split for split in config.splits if config.n_rows(split)] or list(config.splits)
        value: dict[str, object] = {"config_name": config.name}
        if not result:
            value["default"] = True
        value["data_files"] = [{"split": split, "path": config.paths(split)} for split in full]
        result.append(value)
    return result
