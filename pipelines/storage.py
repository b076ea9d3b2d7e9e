"""The storage protocol on Beam's file systems: buckets, HDFS and whatever else Beam has a file system for."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from kbsource.files import LocalStorage, Storage


def is_local(path: str) -> bool:
    """Says whether a path is one of the local file system: it has no ``scheme://``."""
    return "://" not in path


def absolute(path: str) -> str:
    """Gives a local path from the root, for workers run in folders of their own; others as they are."""
    return os.path.abspath(path) if is_local(path) else path


def storage_for(*paths: str) -> Storage:
    """Gives the storage that reads and writes all of the paths; Beam is only imported for remote ones."""
    if all(is_local(path) for path in paths):
        return LocalStorage()
    return BeamStorage()


_OPTIONS = "KBSOURCE_BEAM_OPTIONS"


def use_options(options: Mapping[str, Any]) -> None:
    """Sets the options that Beam's file systems have in this process and in those that it starts: the endpoint of an
    object store, the host of HDFS."""
    os.environ[_OPTIONS] = json.dumps(options, sort_keys=True, default=str)


def options_in_use() -> dict[str, Any]:
    """Gives the options that ``use_options`` set, here or in the process that started this one."""
    return dict(json.loads(os.environ.get(_OPTIONS, "{}")))


class BeamStorage:
    """Any path that Beam knows, local ones included; bytes as stored, never decompressed."""

    def __init__(self) -> None:
        from apache_beam.io.filesystem import CompressionTypes, FileSystem
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import PipelineOptions

        FileSystems.set_options(PipelineOptions.from_dictionary(options_in_use()))
        self._systems = FileSystems
        self._raw = CompressionTypes.UNCOMPRESSED
        self._file_system = FileSystem

    def open_read(self, path: str) -> BinaryIO:
        file = self._systems.open(path, compression_type=self._raw)
        if isinstance(file, io.RawIOBase):
            return io.BufferedReader(file)
        return cast(BinaryIO, file)

    def open_write(self, path: str) -> BinaryIO:
        self._make_parent(path)
        return cast(BinaryIO, self._systems.create(path, compression_type=self._raw))

    def size(self, path: str) -> int:
        matches = self._systems.match([path])[0].metadata_list
        if not matches:
            raise FileNotFoundError(path)
        return int(matches[0].size_in_bytes)

    def exists(self, path: str) -> bool:
        # Object stores have no folders: one is there when something lies under it.
        return bool(self._systems.exists(path)) or bool(self._match(path.rstrip("/") + "/**"))

    def glob(self, pattern: str) -> list[str]:
        return sorted(self._match(pattern))

    def rename(self, source: str, target: str) -> None:
        self._make_parent(target)
        if self._systems.exists(target):
            self._systems.delete([target])
        self._systems.rename([source], [target])

    def delete_tree(self, path: str) -> None:
        files = self._match(path.rstrip("/") + "/**")
        if files:
            self._systems.delete(files)
        if self._systems.exists(path):
            self._systems.delete([path])

    def _match(self, pattern: str) -> list[str]:
        return [str(entry.path) for entry in self._systems.match([pattern])[0].metadata_list]

    def _make_parent(self, path: str) -> None:
        parent = path.rsplit("/", 1)[0]
        if is_local(path) and parent and not self._systems.exists(parent):
            self._systems.mkdirs(parent)
