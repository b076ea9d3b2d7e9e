"""The folder of a release while it is made: one run at a time, taken up where a killed one was, and committed."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any, BinaryIO

from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, atomic_write, is_local, join
from kbsource.identity import stable_sha256
from kbsource.release.intact import file_fault
from kbsource.release.kind import Kind, M
from kbsource.release.layout import (
    BUILDING,
    EXTRA,
    MANIFEST,
    MARKS,
    STAGING,
    check_output,
    foreign_file,
    is_in,
    stored_files,
)
from kbsource.release.manifest import code_facts

BEAT_S = 15.0
"""How often a run shows in a bucket that it is alive."""
SILENCE_S = 2.5 * BEAT_S
"""How long a mark in a bucket must stay the same before its run counts as dead."""
_UNFINISHED = (".tmp", ".unnamed")
_NOTE = "written while a job runs; without a manifest.json this folder is not finished"


def commit(kind: Kind[M], manifest: M, output: str, storage: Storage, *, kept: Collection[str] = ()) -> None:
    """Checks what was written against the manifest, writes the manifest, and removes marks and staging.

    Killed before the manifest has its name, there is no release; killed after it, there is a whole one.

    Args:
        kind: of the release.
        manifest: of it.
        output: its folder.
        storage: of the folder.
        kept: folders in it that are finished by themselves.

    Raises:
        SetupError: a file is missing, has another size, or is not listed; a DataError where counts do not add up.
    """
    if kind.count_faults is not None and (faults := kind.count_faults(manifest)):
        raise DataError(f"The counts do not add up, so nothing was released: {'; '.join(faults)}.")
    entries = sorted(manifest.entries(), key=lambda entry: entry.file)
    found = set(stored_files(output, storage)) - {entry.file for entry in entries}
    if extra := sorted(file for file in found if not is_in(file, (MANIFEST, *MARKS, STAGING, *EXTRA, *kept))):
        raise SetupError(f"{output}: {extra[0]} is no part of the release ({len(extra)} such files); make it again.")
    for entry in entries:
        if (fault := file_fault(output, entry, storage, hashes=False)) is not None:
            said = "was not written" if fault[0] == "missing" else f"has {fault[1]}"
            raise SetupError(f"{output}: {entry.file} {said}; make it again.")
    with atomic_write(storage, join(output, MANIFEST)) as file:
        file.write(manifest.to_bytes())
    storage.delete_tree(join(output, STAGING))
    with suppress(OSError):  # while a mark is renewed it may go under one's hands; ReleaseFolder removes what stays
        for mark in MARKS:
            storage.delete_tree(join(output, mark))


class ReleaseFolder:
    """The folder of a release while it is made. A context: the folder is locked in it, against a second run.

    A run that dies leaves no lock behind: on a local disk the system drops it, in a bucket the mark is no longer
    renewed. What a dead run left is kept where the job is the same one, so that what was done is not done again, and
    removed where it is another.

    Args:
        folder: absolute path; made here.
        storage: of the folder.
        kind: of the release.
        job: JSON values that decide its bytes, as the code does: the inputs with their hashes, the options. None for
            work of seconds, which is begun anew.
        further: paths that are written beside those that the kind has.
        kept: folders in it that are finished by themselves and stay as they are.

    Attributes:
        folder: as given.
        staging: folder for what is only needed while the job runs.
        is_resumed: a run of the same job was here before.

    Raises:
        SetupError: the folder holds something finished or foreign, or another run writes to it.
    """

    def __init__(
        self,
        folder: str,
        storage: Storage,
        *,
        kind: Kind[Any],
        job: object = None,
        further: Iterable[str] = (),
        kept: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.staging = join(folder, STAGING)
        self.is_resumed = False
        self._storage = storage
        self._owned, self._kept = (*kind.owned, *further), kept
        self._job = None if job is None else stable_sha256(json.dumps([job, asdict(code_facts())], sort_keys=True))
        self._mark = join(folder, BUILDING)
        self._lock: BinaryIO | None = None
        self._heart: _Heart | None = None

    def __enter__(self) -> ReleaseFolder:
        check_output(self.folder, self._storage, kept=self._kept)
        if is_local(self.folder):
            self._lock = _locked(self._mark, self.folder)
        elif any(self._storage.exists(join(self.folder, mark)) for mark in MARKS):
            _wait_for_silence(self._mark, self.folder, self._storage)
        try:
            check_output(self.folder, self._storage, kept=self._kept)  # it may have been finished meanwhile
            self._take_over()
        except BaseException:
            self._unlock()
            raise
        return self

    def _take_over(self) -> None:
        marks = [_read_mark(join(self.folder, mark), self._storage) for mark in MARKS]
        before = next((mark["job"] for mark in marks if mark.get("job") is not None), None)
        self.is_resumed = before is not None and before == self._job
        found = self._files()
        left = [file for file in found if file.endswith(_UNFINISHED)]
        if not self.is_resumed:
            left += [name for name in (*self._owned, STAGING) if any(is_in(file, (name,)) for file in found)]
        for name in left:
            self._storage.delete_tree(join(self.folder, name))
        mark = {"note": _NOTE, "job": self._job, "run": f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"}
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.write(json.dumps(mark).encode())
            self._lock.flush()
        else:
            self._heart = _Heart(self._mark, mark, self._storage)
        if odd := [file for file in self._files() if not is_in(file, (*self._owned, *MARKS, STAGING))]:
            raise foreign_file(self.folder, odd[0])

    def _files(self) -> list[str]:
        return [file for file in stored_files(self.folder, self._storage) if not is_in(file, self._kept)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()

    def _unlock(self) -> None:
        if self._heart is not None:
            self._heart.stop()
        if self._storage.exists(join(self.folder, MANIFEST)):  # a beat may have crossed with the commit
            for mark in MARKS:
                self._storage.delete_tree(join(self.folder, mark))
        if self._lock is not None:
            self._lock.close()


def _locked(path: str, folder: str) -> BinaryIO:
    os.makedirs(folder, exist_ok=True)
    file = open(path, "ab")  # noqa: SIM115  # its lock lives as long as the file is open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise _in_use(folder) from None
    return file


def _read_mark(path: str, storage: Storage) -> dict[str, Any]:
    """Gives the content of a mark; nothing for one that is none of this form, or that was not written to its end."""
    if not storage.exists(path):
        return {}
    with storage.open_read(path) as file, suppress(ValueError, RecursionError):
        value = json.loads(file.read())
        return value if isinstance(value, dict) else {}
    return {}


def _wait_for_silence(path: str, folder: str, storage: Storage) -> None:
    before = _read_mark(path, storage)
    time.sleep(SILENCE_S)
    if _read_mark(path, storage) != before:
        raise _in_use(folder)


def _in_use(folder: str) -> SetupError:
    return SetupError(f"{folder}: another run is writing it; wait until it has ended, or choose another folder.")


class _Heart:
    """Renews the mark in a bucket until it is stopped, or until another run has taken the folder or finished it."""

    def __init__(self, path: str, mark: dict[str, Any], storage: Storage) -> None:
        self._path, self._mark, self._storage = path, mark, storage
        self._is_over = threading.Event()
        self._n_beats = 0
        self._write()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        with atomic_write(self._storage, self._path) as file:
            file.write(json.dumps({**self._mark, "beat": self._n_beats}).encode())
        self._n_beats += 1

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_S):
            # A store that is out of reach for a while is no reason to stop: the next beat may come through.
            with suppress(OSError):
                if _read_mark(self._path, self._storage).get("run") != self._mark["run"]:
                    return
                self._write()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
