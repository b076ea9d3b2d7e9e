"""The storage protocol on Beam's file systems: buckets, HDFS and whatever else Beam has a file system for."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, cast

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, Storage, is_local
from pipelines.stores.object_stores import S3Writer, check_store, place_of_stores


def absolute(path: str) -> str:
    """Gives a local path from the root, for workers run in folders of their own; others as they are."""
    return os.path.abspath(path) if is_local(path) else path


def storage_for(*paths: str) -> Storage:
    """Gives the storage that reads and writes all of the paths; Beam is only imported for remote ones.

    Raises:
        SetupError: a path is of a file system that is not installed, not told where it is, or does not answer.
    """
    remote = [path for path in paths if not is_local(path)]
    if not remote:
        return LocalStorage()
    for path in remote:
        _check_file_system(path)
    return BeamStorage()


# What Beam's file systems import, and the extra of kbsource that brings it.
_PACKAGES = {
    "gs": ("google.cloud.storage", "gcp"),
    "s3": ("boto3", "aws"),
    "azfs": ("azure.storage.blob", "azure"),
    "hdfs": ("hdfs", "hadoop"),
}


def _check_file_system(path: str) -> None:
    scheme = path.partition("://")[0]
    if scheme not in _PACKAGES:
        raise SetupError(f"{path}: {scheme}:// is none of {', '.join(f'{one}://' for one in _PACKAGES)}.")
    package, extra = _PACKAGES[scheme]
    if not _is_installed(package):
        raise SetupError(f"{path}: Beam lacks what it needs for {scheme}://: pip install 'kbsource[{extra}]'.")
    check_store(path, options_in_use())


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False


_OPTIONS = "KBSOURCE_BEAM_OPTIONS"
_HDFS, _S3, _GOOGLE = "hdfs://", "s3://", "gs://"
_RANGE_BYTES = 1 << 16
_WILDCARD = re.compile(r"[*?[]")
_NO_FOLDER = "is not a directory"  # what HDFS answers when it is to list a file


def use_options(options: Mapping[str, Any]) -> None:
    """Sets the options that Beam's file systems have in this process and in those that it starts: the endpoint of an
    object store, the host of HDFS."""
    os.environ[_OPTIONS] = json.dumps(options, sort_keys=True, default=str)


def options_in_use() -> dict[str, Any]:
    """Gives the options that ``use_options`` set, here or in the process that started this one."""
    return dict(json.loads(os.environ.get(_OPTIONS, "{}")))


class BeamStorage:
    """Any path that Beam knows, local ones included; bytes as stored, never decompressed.

    Beam's file system for HDFS lists one folder only, folders among the files, and neither overwrites a file nor
    makes the folder that one is moved to. All that is done here.
    """

    def __init__(self) -> None:
        from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import PipelineOptions

        self._options = PipelineOptions.from_dictionary(options_in_use())
        FileSystems.set_options(self._options)
        self._systems = FileSystems
        self._raw = CompressionTypes.UNCOMPRESSED
        self._error = BeamIOError
        self._pattern = FileSystem.translate_pattern

    def open_read(self, path: str) -> BinaryIO:
        file = self._systems.open(path, compression_type=self._raw)
        if isinstance(file, io.RawIOBase):
            return io.BufferedReader(file)
        return cast(BinaryIO, file)

    def open_ranges(self, path: str) -> BinaryIO:
        if path.startswith(_GOOGLE):
            from apache_beam.io.gcp.gcsio import GcsIO

            return cast(BinaryIO, GcsIO(pipeline_options=self._options).open(path, "rb", read_buffer_size=_RANGE_BYTES))
        file = self.open_read(path)
        if isinstance(file, io.BufferedReader):  # Beam's buffers take in 16 MiB at a time
            return io.BufferedReader(file.detach(), _RANGE_BYTES)
        return file

    def local_copy(self, folder: str, names: Sequence[str], *, version: str = "") -> str:
        if is_local(folder):
            return folder
        from pipelines.stores.local_copies import local_copy

        return local_copy(folder, names, storage=self, version=version, store=place_of_stores(options_in_use()))

    def open_write(self, path: str) -> BinaryIO:
        if path.startswith(_S3):
            return cast(BinaryIO, S3Writer(path, partial(self._create, path), options_in_use()))
        self._make_parent(path)
        if path.startswith(_HDFS) and self._systems.exists(path):
            self._systems.delete([path])
        return self._create(path)

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

    def _create(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._systems.create(path, compression_type=self._raw))

    def _match(self, pattern: str) -> list[str]:
        wildcard = _WILDCARD.search(pattern)
        if wildcard is None or not pattern.startswith(_HDFS):
            return [str(entry.path) for entry in self._systems.match([pattern])[0].metadata_list]
        folder = pattern[: wildcard.start()].rpartition("/")[0]
        fits = re.compile(self._pattern(pattern))
        is_deep = "**" in pattern or "/" in pattern[wildcard.start() :]
        return [path for path in self._files(folder, is_deep=is_deep) if fits.match(path)]

    def _files(self, folder: str, *, is_deep: bool) -> Iterator[str]:
        """Gives the files in a folder of HDFS, or at any depth below it; none where there is no folder."""
        if not self._systems.exists(folder):
            return
        for entry in self._entries(folder) or ():
            # Folders have no size. An empty file is found out by asking for what is in it.
            inside = self._entries(entry.path) if entry.size_in_bytes == 0 else None
            if inside is None:
                yield str(entry.path)
            elif is_deep and inside:
                yield from self._files(str(entry.path), is_deep=True)

    def _entries(self, folder: str) -> list[Any] | None:
        """Gives what is in a folder of HDFS; None for a file."""
        try:
            return list(self._systems.match([f"{folder}/*"])[0].metadata_list)
        except self._error as error:
            if _NO_FOLDER in str(error):
                return None
            raise

    def _make_parent(self, path: str) -> None:
        parent = path.rsplit("/", 1)[0]
        if not (is_local(path) or path.startswith(_HDFS)) or not parent or self._systems.exists(parent):
            return
        try:
            self._systems.mkdirs(parent)
        except OSError:
            if not self._systems.exists(parent):  # another process made it meanwhile
                raise
