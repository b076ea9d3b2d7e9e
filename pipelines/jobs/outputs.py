"""The folder that a job writes: one run at a time, and one that was killed is taken up where it was."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO

from kbsource.errors import SetupError
from kbsource.files import Storage, atomic_write, join
from kbsource.identity import stable_sha256
from kbsource.release.layout import BUILDING, MANIFEST, STAGING, check_output, is_in, stored_files
from pipelines.runners.workers import installed
from pipelines.stores.storage import is_local

BEAT_S = 15.0
"""How often a run shows in a bucket that it is alive."""
SILENCE_S = 2.5 * BEAT_S
"""How long a mark in a bucket must stay the same before its run counts as dead."""
_UNFINISHED = (".tmp", ".unnamed")
_NOTE = "written while a job runs; without a manifest.json this folder is not finished"


class Output:
    """The output folder of a job while it runs. A context: the folder is locked in it, against a second run.

    A run that dies leaves no lock behind: on a local disk the system drops it, in a bucket the mark is no longer
    renewed. What a dead run left is kept where the job is the same one, so that what was done is not done again, and
    removed where it is another.

    Args:
        folder: absolute path; made here.
        storage: of the folder.
        job: JSON values that decide the bytes of the output: the inputs with their hashes, the options.
        owned: paths in the folder that such a job writes, of files or folders.
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
        job: Mapping[str, Any],
        owned: Collection[str],
        kept: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.staging = join(folder, STAGING)
        self.is_resumed = False
        self._storage = storage
        self._owned, self._kept = owned, kept
        self._job = stable_sha256(json.dumps([job, installed()], sort_keys=True))
        self._mark = join(folder, BUILDING)
        self._lock: BinaryIO | None = None
        self._heart: _Heart | None = None

    def __enter__(self) -> Output:
        check_output(self.folder, self._storage, kept=self._kept)
        if is_local(self.folder):
            self._lock = _locked(self._mark, self.folder)
        elif self._storage.exists(self._mark):
            _wait_for_silence(self._mark, self.folder, self._storage)
        try:
            check_output(self.folder, self._storage, kept=self._kept)  # it may have been finished meanwhile
            self._take_over()
        except BaseException:
            self._unlock()
            raise
        return self

    def _take_over(self) -> None:
        self.is_resumed = _read_mark(self._mark, self._storage).get("job") == self._job
        for file in self._files():
            is_ours = is_in(file, (*self._owned, STAGING)) or file.endswith(_UNFINISHED)
            if is_ours and (not self.is_resumed or file.endswith(_UNFINISHED)):
                self._storage.delete_tree(join(self.folder, file))
        mark = {"note": _NOTE, "job": self._job, "run": f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"}
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.write(json.dumps(mark).encode())
            self._lock.flush()
        else:
            self._heart = _Heart(self._mark, mark, self._storage)
        if odd := [file for file in self._files() if not is_in(file, (*self._owned, BUILDING, STAGING))]:
            raise SetupError(
                f"{self.folder}: neither empty nor the remains of a run (it holds {odd[0]}); choose an empty folder."
            )

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
                self._storage.delete_tree(self._mark)
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
    with storage.open_read(path) as file, suppress(ValueError):
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
