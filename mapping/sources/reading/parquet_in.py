"""Rows of Parquet files as records, for datasets that are passed on in that form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import Storage, base_name
from kbsource.release.reader import parquet_file
from mapping.sources.reading.files_in import RawRecord

_MAGIC = b"PAR1"
_ROWS_AT_ONCE = 256
_BUFFER_BYTES = 1 << 20


def is_parquet(storage: Storage, path: str) -> bool:
    """Says whether a file begins as Parquet does; False for one that does not exist."""
    if not storage.exists(path):
        return False
    with storage.open_read(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC


def iter_parquet(storage: Storage, path: str, columns: Sequence[str]) -> Iterator[RawRecord]:
    """Gives the rows of a file as JSON objects of those columns that it has; lines are numbers of rows.

    Memory: some rows and pages, whatever the size of the row groups.

    Raises:
        SetupError: the file breaks off or is no Parquet.
    """
    name = base_name(path)
    try:
        with (
            storage.open_read(path) as file,
            parquet_file(file, buffer_size=_BUFFER_BYTES, pre_buffer=False) as table,
        ):
            known = [column for column in columns if column in table.schema_arrow.names]
            number = 0
            for batch in table.iter_batches(_ROWS_AT_ONCE, columns=known, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield RawRecord(name, number, -1, orjson.dumps(row))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} cannot be read to its end: {error}. Download it again.") from error
