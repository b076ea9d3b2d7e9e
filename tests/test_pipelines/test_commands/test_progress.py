"""What is shown of long work."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from kbsource.runtime.beat import Beat
from pipelines import progress
from pipelines.progress import Done, Progress, Start, beats_in, chunks_done, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_work_that_has_not_begun_has_no_time_left() -> None:
    line = progress_line("scan", Done(0, 1000), elapsed_s=1)

    assert line == "scan: 0 bytes of 1.0 kB (0 %), time left unknown"


def test_more_than_all_is_shown_as_all() -> None:
    assert "1.0 kB of 1.0 kB (100 %)" in progress_line("scan", Done(2000, 1000), elapsed_s=1)


def test_a_log_gets_plain_lines() -> None:
    log = io.StringIO()

    with Progress(log).stage("pages", lambda: Done(10, 10, 1234)):
        pass

    assert log.getvalue() == "pages: 1,234 pages in 0:00\n"


def test_a_terminal_gets_a_clean_line() -> None:
    terminal = Terminal()

    with Progress(terminal).stage("pages", lambda: Done(10, 10, 1234)):
        pass

    assert terminal.getvalue().endswith("\r\x1b[Kpages: 1,234 pages in 0:00\n")


def test_a_stage_that_fails_is_not_said_to_be_done() -> None:
    log = io.StringIO()

    with pytest.raises(ValueError), Progress(log).stage("pages", lambda: Done(0, 10)):
        raise ValueError

    assert log.getvalue() == ""


def test_beats_in_one_kind_are_summed_up_and_not_forgotten(tmp_path: Path) -> None:
    for name, pages in (("scan-1", 3), ("scan-2", 4), ("chunks-1", 9)):
        Beat.create(str(tmp_path / f"{name}.beat")).done(pages=pages, amount=10 * pages)
    poll = beats_in(str(tmp_path), "scan-")

    assert poll()[2:] == (7, 70)
    (tmp_path / "scan-1.beat").unlink()
    assert poll()[2:] == (7, 70)


@pytest.mark.parametrize(("chunk_size", "n_done"), [(None, 130), (20, 70)])
def test_a_part_is_done_by_its_chunks_where_their_size_is_known(
    tmp_path: Path, chunk_size: int | None, n_done: int
) -> None:
    for name in ("00000-00000", "00000-00001", "00002-00000", "00002-00001"):
        (tmp_path / f"{name}.arrow").touch()

    done = chunks_done(str(tmp_path / "staging"), str(tmp_path), [100, 50, 30], chunk_size=chunk_size)()

    assert (done.n_bytes, done.total_bytes) == (n_done, 180)


def test_the_line_that_is_redrawn_fits_into_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(progress, "_POLL_S", 0.001)
    terminal, drawn = Terminal(), threading.Event()
    polls = iter(range(2))

    def poll() -> Done:
        if next(polls, 2) == 1:  # the first poll draws nothing
            drawn.set()
        return Done(50_000_000, 200_000_000, 9_000)

    with Progress(terminal).stage("scan", poll):
        assert drawn.wait(60)

    redrawn = terminal.getvalue().split("\r\x1b[K")[1]
    assert redrawn == "scan: 50.0 MB of 2…"


def test_the_pace_of_a_step_is_not_that_of_the_steps_before_it() -> None:
    done = Done(50_000_000, 200_000_000, 9_000, step="parsing")

    line = progress_line("build", done, elapsed_s=1010, start=Start(1000))

    assert line == "build (parsing): 50.0 MB of 200.0 MB (25 %), 900 pages/s, 0:30 left"


def test_what_an_earlier_run_did_adds_nothing_to_the_pace() -> None:
    line = progress_line("links", Done(150, 200, unit="pages"), elapsed_s=10, start=Start(0, 100))

    assert line == "links: 150 of 200 pages (75 %), 5 pages/s, 0:10 left"


def test_a_rate_below_one_is_left_out() -> None:
    assert progress_line("sets", Done(9, 10, unit="joins"), elapsed_s=27) == "sets: 9 of 10 joins (90 %), 0:03 left"


def test_a_step_starts_with_what_is_done_when_it_is_first_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_POLL_S", 0.001)
    reading, parsing = Done(9, 10, 9, step="reading"), Done(60, 100, 600, step="parsing")
    readings = [reading, reading, parsing, parsing]
    terminal, is_over = Terminal(), threading.Event()

    def poll() -> Done:
        if len(readings) == 1:
            is_over.set()
            return readings[0]
        return readings.pop(0)

    with Progress(terminal).stage("build", poll):
        assert is_over.wait(60)

    lines = terminal.getvalue().split("\r\x1b[K")
    assert "build (reading): 9 bytes of 10 bytes (90 %), time left unknown" in lines
    assert "build (parsing): 60 bytes of 100 bytes (60 %), time left unknown" in lines


def test_what_is_done_before_the_first_line_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_POLL_S", 0.001)
    readings, terminal, is_over = [Done(0, 100), Done(50, 100)], Terminal(), threading.Event()

    def poll() -> Done:
        if len(readings) == 1:
            is_over.set()
            return readings[0]
        return readings.pop(0)

    with Progress(terminal).stage("verify", poll):
        assert is_over.wait(60)

    assert "verify: 50 bytes of 100 bytes (50 %), 0:00 left" in terminal.getvalue()
