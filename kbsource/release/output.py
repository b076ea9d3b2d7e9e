"""The folder of a release while it is being written: locked for one run, resumed after a crash, and committed."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, BinaryIO

from kbsource.errors import DataError, SetupError
from kbsource.files import TEMPORARY, Folder, is_local, is_special, join
from kbsource.identity import stable_sha256
from kbsource.release.invariants import M
from kbsource.release.kind import Kind
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
from kbsource.release.reader import file_fault

BEAT_S = 15.0
"""Interval at which a run renews its mark in a bucket."""
SILENCE_S = 2.5 * BEAT_S
"""Time for which a mark in a bucket must stay unchanged before its run counts as dead."""
_UNFINISHED = (TEMPORARY, ".unnamed")
_NOTE = "this file exists while a job runs; the folder is finished when it contains manifest.json"


def commit(kind: Kind[M], manifest: M, output: str, *, kept: Collection[str] = ()) -> None:
    """Checks the written files against the manifest, writes the manifest, and removes marks and staging files.

    If the process is killed before the manifest has its final name, there is no release; after that, the release is
    complete.

    Args:
        kept: folders inside it that are finished releases.

    Raises:
        SetupError: a file is missing, has another size, or is not listed.
        DataError: the counts do not add up.
    """
    if faults := kind.count_faults(manifest):
        raise DataError(f"The counts do not add up, so no release was made: {'; '.join(faults)}.")
    entries = sorted(manifest.entries(), key=lambda entry: entry.file)
    found = set(stored_files(output)) - {entry.file for entry in entries}
    if extra := sorted(file for file in found if not is_in(file, (MANIFEST, *MARKS, STAGING, *EXTRA, *kept))):
        raise SetupError(
            f"{output}: {extra[0]} is not part of the release ({len(extra)} such files); make the release again."
        )
    for entry in entries:
        if (fault := file_fault(output, entry, hashes=False)) is not None:
            said = "was not written" if fault[0] == "missing" else f"has {fault[1]}"
            raise SetupError(f"{output}: {entry.file} {said}; make the release again.")
    with Folder.of(join(output, MANIFEST)).create() as file:
        file.write(manifest.to_bytes())
    Folder.of(join(output, STAGING)).delete()
    for mark in MARKS:
        Folder.of(join(output, mark)).delete()


_is_trial: ContextVar[bool] = ContextVar("trial", default=False)


@contextmanager
def trial() -> Iterator[None]:
    """A context in which every ``ReleaseFolder`` writes to a temporary folder, so that output folders stay
    unchanged.
    """
    before = _is_trial.set(True)
    try:
        yield
    finally:
        _is_trial.reset(before)


def _check_writable(folder: str) -> None:
    """Checks that this process may write to a folder, by writing and removing an empty file.

    Raises:
        OSError: the folder cannot be written to.
    """
    if is_local(folder):
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        with tempfile.TemporaryFile(dir=folder):
            return
    probe = Folder.of(join(folder, STAGING, f"trial-{uuid.uuid4().hex}"))
    probe.write(b"")
    probe.delete()


class ReleaseFolder:
    """The folder of a release while it is being written. Use it as a context manager: it locks the folder against a
    second run.

    If a run dies, its lock ends: on a local disk the system releases it; for a bucket see ``_Lease``. The files of an
    interrupted run of the same job are kept, so that finished work is not repeated. Files of another job are removed.

    Args:
        folder: absolute path; created if missing.
        job: JSON values that, together with the code, determine the output: the options, and the inputs with their
            hashes. None for a job of a few seconds, which always starts from the beginning.
        further: paths that are written in addition to the kind's own.
        kept: folders inside it that are finished releases and stay unchanged.

    Raises:
        SetupError: the folder contains a finished release or foreign files, or another run is writing it.
    """

    def __init__(
        self,
        folder: str,
        *,
        kind: Kind[Any],
        job: object = None,
        further: Iterable[str] = (),
        kept: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.staging = join(folder, STAGING)  #: folder for files needed only while the job runs
        self.is_resumed = False  #: true if an earlier run of the same job was interrupted in this folder
        self._owned, self._kept = (*kind.owned, *further), kept
        self._job = None if job is None else stable_sha256(json.dumps([job, code_facts()], sort_keys=True))
        self._mark = join(folder, BUILDING)
        self._lock: BinaryIO | None = None
        self._lease: _Lease | None = None
        self._trial: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> ReleaseFolder:
        check_output(self.folder, kept=self._kept)
        if _is_trial.get():
            _check_writable(self.folder)
            self._trial = tempfile.TemporaryDirectory(prefix="kbsource-trial-")
            self.staging = self._trial.name
            return self
        if is_local(self.folder):
            self._lock = _locked(self._mark, self.folder)
        else:
            self._lease = _Lease(Folder.of(self._mark), what=self.folder)
        try:
            check_output(
                self.folder, kept=self._kept
            )  # again, because another run may have finished the release in the meantime
            self._take_over()
        except BaseException:
            self._unlock()
            raise
        return self

    def _take_over(self) -> None:
        mark = _parse_mark(Folder.of(self._mark).read()) if self._lease is None else self._lease.mark
        before = mark.get("job")
        self.is_resumed = before is not None and before == self._job
        found = self._files()
        left = [file for file in found if file.endswith(_UNFINISHED)]
        if not self.is_resumed:
            names = (*self._owned, STAGING)
            left += [name for name in names if any(is_in(file, (name,)) for file in found)]
            if mark:  # an earlier run may have left empty folders and hidden files, which stored_files does not find
                left += [name for name in names if not any(is_in(kept, (name,)) for kept in self._kept)]
        for name in left:
            Folder.of(join(self.folder, name)).delete()
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.write(json.dumps({"note": _NOTE, "job": self._job}).encode())
            self._lock.flush()
        elif self._lease is not None:
            self._lease.hold(self._job)
        if odd := [file for file in self._files() if not is_in(file, (*self._owned, *MARKS, STAGING))]:
            raise foreign_file(self.folder, odd[0])

    def _files(self) -> list[str]:
        return [file for file in stored_files(self.folder) if not is_in(file, self._kept)]

    def __exit__(self, *_: object) -> None:
        self._unlock()

    def _unlock(self) -> None:
        if self._trial is not None:
            self._trial.cleanup()
        if self._lease is not None:
            self._lease.release(lambda: Folder.of(self.folder).exists(MANIFEST))
        if self._lock is not None:
            self._lock.close()


def _locked(path: str, folder: str) -> BinaryIO:
    os.makedirs(folder, exist_ok=True)
    return _flocked(path, folder)


def _flocked(path: str, what: str) -> BinaryIO:
    file = open(path, "ab")  # noqa: SIM115  # the lock lasts as long as the file is open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise _in_use(what) from None
    return file


@contextmanager
def locked_output(path: str) -> Iterator[None]:
    """Locks an output file against a second run, as ``ReleaseFolder`` locks a folder.

    On a local disk, the lock is on the file under its temporary name, so a run that dies leaves no lock. In a bucket,
    the lock is a second file next to the output, which is removed at the end. Pipes and devices are not locked.

    Raises:
        SetupError: another run is writing the file.
    """
    if _is_trial.get() or (is_local(path) and is_special(path)):
        yield
        return
    if is_local(path):
        temporary = f"{path}{TEMPORARY}"
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _locked_file(temporary, path) as lock:
            try:
                yield
            finally:
                if _is_same(temporary, lock):  # the output was not written
                    os.remove(temporary)
        return
    lease = _Lease(Folder.of(f"{path}.{BUILDING}"), what=path)
    lease.hold(None)
    try:
        yield
    finally:
        lease.release(lambda: True)


@contextmanager
def output_file(path: str) -> Iterator[BinaryIO]:
    """Opens an output file that appears under its name only if the context ends without an error. Only one run at a
    time can write to it.

    Raises:
        SetupError: another run is writing the file.
    """
    if not is_local(path):  # in a store, only complete files appear, so no lock is needed
        with Folder.of(path).create() as file:
            yield file
        return
    with locked_output(path), Folder.of(path).create() as file:
        yield file


def _locked_file(temporary: str, path: str) -> BinaryIO:
    while True:
        file = _flocked(temporary, path)
        if _is_same(temporary, file):
            return file
        file.close()  # the run that had it open has ended, and has renamed or removed it


def _is_same(path: str, file: BinaryIO) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    return False


def _parse_mark(content: bytes) -> dict[str, Any]:
    """Returns the values in a mark; empty if the mark is malformed or incomplete."""
    with suppress(ValueError, RecursionError):
        value = json.loads(content)
        return value if isinstance(value, dict) else {}
    return {}


def _in_use(path: str) -> SetupError:
    return SetupError(
        f"{path}: another run is writing to this output; wait until that run has ended, or choose another output."
    )


class _Lease:
    """The mark of a run in a store. It is created only if it does not exist, and overwritten only if it is unchanged
    since it was read.

    If several runs start or take over at the same moment, exactly one succeeds. A mark names its run. The end of a run
    is detected at once if the run recorded it in the mark, or was on this machine. A run on another machine counts as
    dead if its mark was not renewed for ``SILENCE_S``; clocks are not compared.

    Raises:
        SetupError: another run is writing the folder.
    """

    def __init__(self, file: Folder, *, what: str) -> None:
        self._file, self._what = file, what
        self._own: dict[str, Any] = {
            "note": _NOTE,
            "run": uuid.uuid4().hex,
            "machine": _machine(),
            "process": _process(os.getpid()),
        }
        self._is_over = threading.Event()
        self._renewing: threading.Thread | None = None
        self.mark: dict[str, Any] = {}  #: the mark of the previous run
        tag = file.write_new(json.dumps(self._own).encode())
        if tag is None:
            tag = self._taken_over()
        self._tag = tag

    def _taken_over(self) -> str:
        with suppress(FileNotFoundError):  # the other run has just ended without an error
            content, tag = self._file.read_tagged()
            self.mark = _parse_mark(content)
            if self._is_dead(tag):
                # Files of the previous run belong to its job until they are removed.
                self._own["job"] = self.mark.get("job")
                taken = self._file.replace(json.dumps(self._own).encode(), tag)
                if taken is not None:
                    return taken
        raise _in_use(self._what)

    def _is_dead(self, tag: str) -> bool:
        if self.mark.get("run") is None:
            return True  # the run recorded its end
        if self.mark.get("machine") == _machine() != "":
            before: list[int] = self.mark["process"]
            return before != _process(before[0])
        time.sleep(SILENCE_S)
        return self._file.read_tagged()[1] == tag

    def hold(self, job: str | None) -> None:
        """Records the job, and renews the mark from now on."""
        self._own["job"] = job
        self._write({"beat": 0})
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()

    def _write(self, further: dict[str, Any]) -> bool:
        content = json.dumps({**self._own, **further}).encode()
        written = self._file.replace(content, self._tag)
        if (
            written is None
        ):  # the mark has changed: written by another run, or by this one if the store's answer was lost
            found, written = self._file.read_tagged()
            if _parse_mark(found).get("run") != self._own["run"]:
                return False
        self._tag = written
        return True

    def _renew(self) -> None:
        n_beats = 0
        while not self._is_over.wait(BEAT_S):
            n_beats += 1
            # If the store is unreachable for a while, keep going: the next renewal may succeed.
            with suppress(OSError):
                if not self._write({"beat": n_beats}):
                    return

    def release(self, is_done: Callable[[], bool]) -> None:
        """Ends the lease. If the output was not finished, the mark records that the run has ended."""
        self._is_over.set()
        if self._renewing is not None:
            self._renewing.join()
        with suppress(OSError):  # another run has taken over, or the store is unreachable and the mark will expire
            if is_done():  # a renewal at the same moment may have restored the mark
                self._file.delete()
            else:
                self._write({"run": None})


def _machine() -> str:
    """Returns an id of the machine and its process namespace; empty if unknown."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    return ""


def _process(pid: int) -> list[int]:
    """Returns the id and start time of a process, which together identify it. The time is 0 if the process has
    ended.
    """
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        state, *numbers = file.read().rpartition(")")[2].split()
        return [pid, 0 if state in "ZX" else int(numbers[18])]
    return [pid, 0]
