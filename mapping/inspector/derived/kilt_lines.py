"""Records of a KILT file by the number of their line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from kbsource.errors import DataError
from kbsource.files import Storage
from kbsource.release.manifest import ListingManifest

_BLOCK_BYTES = 1 << 22


class KiltLines:
    """Lines of a file by number. Memory: eight bytes a line, of all of them; the file is read once to find them.

    Args:
        path: of the file.
        storage: of the path.
    """

    def __init__(self, path: str, storage: Storage) -> None:
        self._path, self._storage = path, storage
        self._starts = self._line_starts()

    def _line_starts(self) -> npt.NDArray[np.int64]:
        found, at = [np.zeros(1, dtype=np.int64)], 0
        with self._storage.open_read(self._path) as file:
            while block := file.read(_BLOCK_BYTES):
                found.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + (at + 1))
                at += len(block)
        return np.concatenate(found)

    def record(self, number: int) -> dict[str, Any] | None:
        """Gives the record of a line by its number from 0; None where the file has fewer lines.

        Raises:
            DataError: the line is no record.
        """
        if number + 1 >= len(self._starts):
            return None
        start, end = self._starts[number : number + 2].tolist()
        with self._storage.open_ranges(self._path) as file:
            file.seek(start)
            try:
                record = orjson.loads(file.read(end - start))
            except orjson.JSONDecodeError as error:
                raise DataError(
                    f"{self._path}, line {number + 1}: {error}; kbsource verify says what differs."
                ) from error
        return record if isinstance(record, dict) else None


def records_file(manifest: ListingManifest) -> str | None:
    """Gives the file of an alignment that says most of its records: with inputs, and with answers; None without any."""
    files = [entry.file for entry in manifest.files if entry.file.endswith("-kilt.jsonl")]
    return min(files, key=lambda file: ("_id" in file, "_without_answers" in file), default=None)
