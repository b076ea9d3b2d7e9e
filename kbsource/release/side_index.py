"""Indexes that are made from a release on first use. They are stored in the cache folder, never in the release.

The indexes of a release are in a folder named by the hash of its manifest. Each is a folder of files, most often with
one Parquet file of sorted rows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, Generic, Protocol, TypeVar, overload

import duckdb

from kbsource.errors import SetupError, named_faults
from kbsource.files import Folder
from kbsource.release.sql import connected, identifier, quoted
from kbsource.runtime.database import ORDER_MB
from kbsource.temporary import TemporaryFolder

OnProgress = Callable[[int, int], None]


class _StoppedError(Exception):
    """Stops the making of an index that is no longer needed."""


def cache_folder(sha256: str) -> Path:
    """Returns the cache folder of a release, given the hash of its manifest."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kbsource" / "inspector" / sha256


_FILE, _SHA256 = "rows.parquet", "index.sha256"


class OrderedRows:
    """The sorted rows of an index. Several threads may use an object at once."""

    def __init__(self, folder: str) -> None:
        self._open = ExitStack()
        self._db = self._open.enter_context(connected(reads=[folder], memory_mb=ORDER_MB, threads=1))
        self._db.execute(f"create view rows as from read_parquet({quoted(os.path.join(folder, _FILE))})")

    def column(self, query: str, *values: Any) -> list[Any]:
        """Returns the first column of the result of a query on the view ``rows``."""
        return [row[0] for row in self._db.cursor().execute(query, values).fetchall()]

    def close(self) -> None:
        """Closes the file."""
        self._open.close()


class OpenedIndex(Protocol):
    """An open index of any form."""

    def close(self) -> None:
        """Closes its files."""
        ...


Form = TypeVar("Form", bound=OpenedIndex)


class SideIndex(Generic[Form]):
    """An index that is opened if it exists, or else made in a background thread. Any thread may use it.

    Args:
        folder: folder of the complete index.
        make: a function that writes the files of the index to a folder. It reports the amount done and the total.
        opens: a function that opens the folder; by default ``OrderedRows``.
    """

    @overload
    def __init__(self: SideIndex[OrderedRows], folder: Path, make: Callable[[str, OnProgress], None]) -> None: ...

    @overload
    def __init__(self, folder: Path, make: Callable[[str, OnProgress], None], opens: Callable[[str], Form]) -> None: ...

    def __init__(
        self, folder: Path, make: Callable[[str, OnProgress], None], opens: Callable[[str], Any] = OrderedRows
    ) -> None:
        self._folder, self._make, self._opens = folder, make, opens
        self._turn = RLock()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._opened: Form | None = None
        self._done, self._total = 0, 0
        self.fault: str | None = None

    @property
    def percent(self) -> int:
        """Progress of making the index, in per cent."""
        if self._opened is not None:  # also for an index that existed, whose amounts are 0
            return 100
        return 100 * self._done // self._total if self._total else 0

    def get(self) -> Form | None:
        """Returns the index; None while it is being made, or if this failed (see ``fault``). The first call starts the
        work.
        """
        with self._turn:
            if self._opened is None and self._thread is None and self.fault is None:
                if _is_whole(self._folder):
                    self._opened = self._opens(str(self._folder))
                else:
                    self._thread = Thread(target=self._run, name=self._folder.name, daemon=True)
                    self._thread.start()
            return self._opened

    def wait(self) -> Form | None:
        """Waits for the index and returns it; None if it could not be made (see ``fault``)."""
        self.get()
        if (thread := self._thread) is not None:
            thread.join()
        return self.get()

    def close(self) -> None:
        """Closes the index. If it is still being made, stops the work and removes the unfinished files."""
        self._stopped.set()
        if (thread := self._thread) is not None:
            thread.join(timeout=10)
        if self._opened is not None:
            self._opened.close()

    def _run(self) -> None:
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with named_faults(), TemporaryFolder(str(self._folder.parent)) as scratch:
                made = os.path.join(scratch, "made")
                os.mkdir(made)
                self._make(made, self._see)
                Path(made, _SHA256).write_text(_digest(made))
                if not _is_whole(self._folder):  # another process may have made the index meanwhile
                    shutil.rmtree(self._folder, ignore_errors=True)
                    os.rename(made, self._folder)
            opened = self._opens(str(self._folder))
        except (OSError, SetupError, duckdb.Error) as error:
            with self._turn:
                self.fault, self._thread = str(error), None
        except _StoppedError:
            pass
        else:
            with self._turn:
                self._opened, self._thread = opened, None

    def _see(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._stopped.is_set():
            raise _StoppedError


def _is_whole(folder: Path) -> bool:
    """Returns whether an index exists and is undamaged. A damaged index is made again."""
    try:
        return (folder / _SHA256).read_text() == _digest(str(folder))
    except (OSError, ValueError):
        return False


def _digest(folder: str) -> str:
    """Returns a hash of the names and contents of the files of an index."""
    files = Folder.of(folder)
    digest = hashlib.sha256()
    for name in sorted(files.files()):
        if name != _SHA256:
            digest.update(f"{name} {files.sha256(name)}\n".encode())
    return digest.hexdigest()


def write_ordered(db: duckdb.DuckDBPyConnection, table: str, folder: str) -> None:
    """Writes the sorted rows of a table as the file of an index."""
    db.execute(
        f"copy (from {identifier(table)} order by all) to {quoted(os.path.join(folder, _FILE))} (format parquet)"
    )
