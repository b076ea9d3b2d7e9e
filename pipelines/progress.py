"""Shows the progress of long jobs on standard error: a line that is redrawn, or occasional lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TextIO

from kbsource.errors import counted
from kbsource.files import base_name, glob, is_local, join
from kbsource.runtime.beat import Beat, Reading
from pipelines.terminal import columns_of, harmless, is_terminal, shortened

_POLL_S = 0.5
_LOG_S = 30.0
"""Seconds between two lines of a log. On a terminal, each poll redraws the line."""


class Done(NamedTuple):
    """Work done: bytes out of the total, and pages. If ``unit`` is set, it names what is counted instead.

    A stage of several steps names the current one in ``step``. The amounts are those of the step.
    """

    n_bytes: int
    total_bytes: int
    n_pages: int = 0
    unit: str = ""
    step: str = ""


class Start(NamedTuple):
    """The work that was done when a step was first seen, and the time of that in seconds since the stage began.

    Rates and remaining times are computed from the work done after that. The work of an earlier step, or of an earlier
    run, does not show how fast this step is.
    """

    elapsed_s: float = 0
    n_bytes: int = 0
    n_pages: int = 0


_AT_ONCE = Start()
"""The start of a stage's only step."""


class Progress:
    """Shows one stage after another."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = is_terminal(self._stream)

    @contextmanager
    def stage(self, name: str, poll: Callable[[], Done]) -> Iterator[None]:
        """Shows the progress of a stage while the body of the ``with`` statement runs, and a last line at its end.
        Another thread polls the progress.
        """
        started, is_over = time.monotonic(), threading.Event()
        thread = threading.Thread(target=self._watch, args=(name, poll, started, is_over), daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            self._end(thread, is_over)
            raise
        done = poll()
        self._end(thread, is_over)
        self.note(stage_line(name, done, elapsed_s=time.monotonic() - started))

    @contextmanager
    def counting(self, name: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
        """Shows a stage whose body reports its progress: the work done, and the total."""
        seen = Done(0, 0)

        def see(n_done: int, n_total: int) -> None:
            nonlocal seen
            seen = Done(n_done, n_total, unit=unit)

        with self.stage(name, lambda: seen):
            yield see

    @contextmanager
    def adding(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        """Shows a stage whose body reports how many more of ``total`` bytes are done."""
        n_done = 0
        with self.counting(name) as see:

            def add(n_bytes: int) -> None:
                nonlocal n_done
                n_done += n_bytes
                see(n_done, total)

            add(0)
            yield add

    def note(self, message: str) -> None:
        """Shows a permanent line."""
        start = "\r\x1b[K" if self._is_terminal else ""
        self._stream.write(f"{start}{harmless(message)}\n")
        self._stream.flush()

    def _watch(self, name: str, poll: Callable[[], Done], started: float, is_over: threading.Event) -> None:
        done, shown_s = poll(), 0.0
        step, start = done.step, Start(0, done.n_bytes, done.n_pages)
        while not is_over.wait(_POLL_S):
            done, elapsed_s = poll(), time.monotonic() - started
            if done.step != step:
                step, start = done.step, Start(elapsed_s, done.n_bytes, done.n_pages)
            if not self._is_terminal and elapsed_s - shown_s < _LOG_S:
                continue
            shown_s = elapsed_s
            line = progress_line(name, done, elapsed_s=elapsed_s, start=start)
            columns = columns_of(self._stream)  # a wrapped line cannot be redrawn
            self._stream.write(
                f"\r\x1b[K{shortened(line, columns and columns - 1)}" if self._is_terminal else f"{line}\n"
            )
            self._stream.flush()

    def _end(self, thread: threading.Thread, is_over: threading.Event) -> None:
        is_over.set()
        thread.join()
        if self._is_terminal:
            self._stream.write("\r\x1b[K")


def progress_line(name: str, done: Done, *, elapsed_s: float, start: Start = _AT_ONCE) -> str:
    """Returns one line: bytes done out of the total, pages per second and the remaining time of the step.

    Args:
        name: name of the stage.
        done: work done so far.
        elapsed_s: seconds since the stage began.
        start: start of the current step.

    >>> progress_line("scan", Done(50_000_000, 200_000_000, 9_000), elapsed_s=10)
    'scan: 50.0 MB of 200.0 MB (25 %), 900 pages/s, 0:30 left'
    >>> progress_line("build", Done(50_000_000, 200_000_000, 9_000, step="parsing"), elapsed_s=70, start=Start(60))
    'build (parsing): 50.0 MB of 200.0 MB (25 %), 900 pages/s, 0:30 left'
    >>> progress_line("search", Done(500, 2_000, unit="facts"), elapsed_s=10)
    'search: 500 of 2,000 facts (25 %), 50 facts/s, 0:30 left'
    >>> progress_line("sets", Done(0, 0), elapsed_s=10)  # the total is not known yet
    'sets: 0:10'
    """
    if done.step:
        name = f"{name} ({done.step})"
    if not done.total_bytes:
        return f"{name}: {clock(elapsed_s)}"
    n_bytes, step_s = min(done.n_bytes, done.total_bytes), elapsed_s - start.elapsed_s
    n_new, n_pages = n_bytes - start.n_bytes, done.n_pages - start.n_pages
    left = f"{clock(step_s * (done.total_bytes - n_bytes) / n_new)} left" if n_new > 0 else "time left unknown"
    if done.unit:
        come, n_things, unit = f"{n_bytes:,} of {done.total_bytes:,} {done.unit}", n_new, done.unit
    else:
        come, n_things, unit = f"{size(n_bytes)} of {size(done.total_bytes)}", n_pages, "pages"
    rate = f", {n_things / step_s:,.0f} {unit}/s" if 0 < step_s <= n_things else ""  # a rate below 1 says little
    return f"{name}: {come} ({n_bytes / done.total_bytes:.0%}){rate}, {left}".replace("%)", " %)")


def stage_line(name: str, done: Done, *, elapsed_s: float) -> str:
    """Returns the last line of a stage. The line leaves out the number of pages if the stage had not finished when its
    progress was last read, because the number would be too low.

    >>> stage_line("pages", Done(9, 9, 1200), elapsed_s=61), stage_line("pages", Done(8, 9, 1100), elapsed_s=61)
    ('pages: 1,200 pages in 1:01', 'pages: 1:01')
    """
    if not done.total_bytes or done.n_bytes < done.total_bytes:
        return f"{name}: {clock(elapsed_s)}"
    n_done, unit = (done.n_bytes, done.unit) if done.unit else (done.n_pages, "pages")
    come = f"{counted(n_done, unit)} in " if done.unit or n_done else ""
    return f"{name}: {come}{clock(elapsed_s)}"


def clock(seconds: float) -> str:
    """Returns a duration as minutes and seconds, with hours if necessary.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def size(n_bytes: float) -> str:
    """Returns a number of bytes in a suitable unit.

    >>> size(999), size(1_500_000), size(22_300_000_000)
    ('999 bytes', '1.5 MB', '22.3 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def beats_in(folder: str, prefix: str) -> Callable[[], Reading]:
    """Returns a function that sums the progress reports of workers in a local folder; zeros for a remote folder.

    The last values are kept when the folder is removed.
    """
    most = Reading(0, 0, 0, 0)

    def poll() -> Reading:
        nonlocal most
        if is_local(folder):
            with suppress(FileNotFoundError):  # the staging folder is removed as soon as all work is done
                readings = [Beat.glance(path) for path in glob(join(folder, f"{prefix}*.beat"))]
                amount = sum(reading.amount_done for reading in readings)
                n_pages = sum(reading.pages_done for reading in readings)
                most = Reading(0, 0, max(n_pages, most.pages_done), max(amount, most.amount_done))
        return most

    return poll


def chunks_done(
    staging: str, folder: str, sizes: Sequence[int], *, unit: str = "", chunk_size: int | None = None
) -> Callable[[], Done]:
    """Returns a function that reports the progress of a ``GuardedMap``.

    Progress reports are visible only if the staging folder is local. Otherwise, and for steps without reports, finished
    chunks are counted, or parts with at least one chunk.

    Args:
        staging: staging folder, with the folder ``beats``.
        folder: folder of the chunks.
        sizes: size of each part of the input, in bytes or in ``unit``.
        unit: unit of the sizes.
        chunk_size: size of a chunk, except the last one of a part; by default, a part is one chunk.
    """
    total, beats, n_done = sum(sizes), beats_in(join(staging, "beats"), ""), 0

    def seen() -> int:
        parts = Counter(int(base_name(path).partition("-")[0]) for path in glob(join(folder, "*.arrow")))
        return sum(min(sizes[part], n * (chunk_size or sizes[part])) for part, n in parts.items())

    def poll() -> Done:
        nonlocal n_done
        n_done = max(n_done, beats().amount_done, seen())
        return Done(min(n_done, total), total, unit=unit)

    return poll
