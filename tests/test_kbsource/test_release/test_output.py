"""The folder of a job: locked while a run is alive, kept for the same job, cleared for another."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.release import output as outputs
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE

HOLD = """
import sys

from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE

with ReleaseFolder(sys.argv[1], kind=PAGES_RELEASE, job={"a": 1}):
    print("locked", flush=True)
    sys.stdin.read()
"""


def output(folder: Path, job: int = 1) -> ReleaseFolder:
    return ReleaseFolder(str(folder), kind=PAGES_RELEASE, job={"a": job})


def leave(folder: Path, job: int = 1) -> None:
    """Leaves what a run does that is killed."""
    with output(folder, job) as out:
        Path(out.staging).mkdir(exist_ok=True)
        Path(out.staging, "scan.json").write_text("done")
        (folder / "pages").mkdir(exist_ok=True)
        (folder / "pages" / "0.parquet").write_text("whole")
        (folder / "pages" / "1.parquet.tmp").write_text("half")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_same_job_finds_what_was_done_and_nothing_half_written(tmp_path: Path) -> None:
    leave(tmp_path)

    with output(tmp_path) as out:
        assert out.is_resumed
        assert files(tmp_path) == ["BUILDING", "_staging/scan.json", "pages/0.parquet"]


def test_another_job_finds_nothing(tmp_path: Path) -> None:
    leave(tmp_path)

    with output(tmp_path, job=2) as out:
        assert not out.is_resumed
        assert files(tmp_path) == ["BUILDING"]


def test_hidden_files_and_empty_folders_of_another_job_are_removed(tmp_path: Path) -> None:
    with output(tmp_path):
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages" / ".tmpX3a").write_text("half")
        (tmp_path / "index").mkdir()

    with output(tmp_path, job=2):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["BUILDING"]


def test_a_second_run_is_refused_and_a_dead_one_is_not_in_the_way(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(SetupError, match="another run is writing to this output"), output(tmp_path):
        pass
    holder.kill()
    holder.wait()

    with output(tmp_path) as out:
        assert out.is_resumed


@pytest.mark.parametrize(
    ("name", "said"),
    [("notes.txt", r"it contains notes\.txt.*choose an"), ("manifest.json", "never overwritten; choose an")],
)
def test_what_is_not_ours_stays_and_stops_the_job(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text("mine")

    with pytest.raises(SetupError, match=said), output(tmp_path):
        pass

    assert files(tmp_path) == [name]


@pytest.fixture
def bucket() -> Folder:
    """An empty folder of a store."""
    return Folder.of(f"memory://locks/{uuid.uuid4().hex}")


def _locked(bucket: Folder, job: int = 1) -> ReleaseFolder:
    return ReleaseFolder(str(bucket), kind=PAGES_RELEASE, job={"a": job})


def _left_by(bucket: Folder, **mark: object) -> None:
    """Leaves what a run does that dies, which said this of itself."""
    with _locked(bucket):
        bucket.write(b"done", "_staging/scan.json")
        bucket.write(b"whole", "pages/0.parquet")
        held = bucket.read_json("BUILDING")
    bucket.write_json({**held, **mark}, "BUILDING")


def test_in_a_store_a_second_run_is_refused_and_one_that_ended_is_taken_up(bucket: Folder) -> None:
    with _locked(bucket), pytest.raises(SetupError, match="another run is writing to this output"), _locked(bucket):
        pass
    with _locked(bucket) as out:
        assert out.is_resumed


def test_in_a_store_a_run_of_this_machine_that_died_is_taken_up_at_once(
    bucket: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "SILENCE_S", 60)
    ended = subprocess.Popen(["true"])
    ended.wait()
    _left_by(bucket, process=[ended.pid, 7])

    with _locked(bucket) as out:
        assert out.is_resumed
        assert bucket.files() == ["BUILDING", "_staging/scan.json", "pages/0.parquet"]
    with _locked(bucket, job=2) as out:
        assert not out.is_resumed
        assert bucket.files() == ["BUILDING"]


def test_in_a_store_a_run_elsewhere_is_dead_once_it_is_silent(bucket: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "SILENCE_S", 0.3)
    _left_by(bucket, machine="another")
    renewed = threading.Timer(0.1, lambda: bucket.write(bucket.read("BUILDING"), "BUILDING"))
    renewed.start()

    with pytest.raises(SetupError, match="another run is writing to this output"), _locked(bucket):
        pass
    renewed.join()
    with _locked(bucket) as out:
        assert out.is_resumed


def test_in_a_store_a_run_renews_its_mark_and_makes_none_after_the_commit(
    bucket: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "BEAT_S", 0.01)
    with _locked(bucket):
        begun = time.monotonic()
        while bucket.read_json("BUILDING")["beat"] < 3:
            assert time.monotonic() - begun < 30
        bucket.delete("BUILDING")  # as a commit does
        time.sleep(0.05)

    assert bucket.files() == []


def test_in_a_store_a_renewal_at_the_moment_of_the_commit_leaves_no_mark(bucket: Folder) -> None:
    with _locked(bucket):
        mark = bucket.read("BUILDING")
        bucket.write(b"{}", "manifest.json")
        bucket.delete("BUILDING")
        bucket.write(mark, "BUILDING")  # HDFS reads and writes a renewal in two steps

    assert bucket.files() == ["manifest.json"]


def test_folders_that_are_finished_by_themselves_stay_and_the_others_are_cleared_by_path(tmp_path: Path) -> None:
    for name in ("nq/dev", "nq/test"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "report.json").write_text(name)

    def locked(job: int) -> ReleaseFolder:
        return ReleaseFolder(
            str(tmp_path), kind=PAGES_RELEASE, job={"a": job}, further=["nq/test/report.json"], kept=["nq/dev"]
        )

    with pytest.raises(SetupError, match=r"the folder is not empty.*nq/test/report\.json"), locked(1):
        pass
    (tmp_path / "nq/test/report.json").unlink()
    with locked(1):
        (tmp_path / "nq/test/report.json").write_text("half of all")
    with locked(1):
        assert files(tmp_path) == ["BUILDING", "nq/dev/report.json", "nq/test/report.json"]
    with locked(2):
        assert files(tmp_path) == ["BUILDING", "nq/dev/report.json"]
    (tmp_path / "nq/test/mine.txt").write_text("years of work")
    with pytest.raises(SetupError, match=r"the folder is not empty.*nq/test/mine\.txt"), locked(3):
        pass


def write_a_line(path: Path) -> None:
    with outputs.output_file(str(path)) as file:
        file.write(b"whole\n")


def test_a_file_has_one_run_at_a_time_and_nothing_beside_it_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines.jsonl"
    with outputs.output_file(str(path)) as file:
        file.write(b"first\n")
        with pytest.raises(SetupError, match=r"lines\.jsonl: another run is writing to this output"):
            write_a_line(path)
    assert path.read_bytes() == b"first\n"
    assert files(tmp_path) == ["new/lines.jsonl"]

    with pytest.raises(ZeroDivisionError), outputs.output_file(str(path)) as file:
        raise ZeroDivisionError
    assert path.read_bytes() == b"first\n"
    assert files(tmp_path) == ["new/lines.jsonl"]

    (tmp_path / "new" / "lines.jsonl.tmp").write_text("half, of a run that was killed")
    write_a_line(path)
    assert path.read_bytes() == b"whole\n"


def test_a_file_that_is_locked_for_long_is_written_by_its_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with outputs.locked_output(str(path)):
        with pytest.raises(SetupError, match="another run is writing to this output"), outputs.locked_output(str(path)):
            pass
        with Folder.of(str(path)).create() as file:
            file.write(b"whole\n")
    assert files(tmp_path) == ["lines.jsonl"]


def test_of_many_that_write_a_file_at_once_every_one_writes_it_whole_or_is_refused(tmp_path: Path) -> None:
    path, refused, faults = tmp_path / "lines.jsonl", [0], list[OSError]()

    def write(number: int) -> None:
        for _ in range(50):
            try:
                with outputs.output_file(str(path)) as file:
                    file.write(b"%d" % number * 1000)
            except SetupError:
                refused[0] += 1
            except OSError as error:
                faults.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(set(path.read_bytes())) == 1
    assert files(tmp_path) == ["lines.jsonl"]


def test_a_file_in_a_store_has_one_run_at_a_time_too() -> None:
    place = Folder.of(f"memory://{uuid.uuid4().hex}/out/lines.jsonl")
    with outputs.locked_output(str(place)):
        second = outputs.locked_output(str(place))
        with pytest.raises(SetupError, match=r"lines\.jsonl: another run is writing to this output"), second:
            pass
        place.write(b"whole")
    assert place.parent.files() == ["lines.jsonl"]


def test_devices_are_written_to_and_stay_what_they_are(tmp_path: Path) -> None:
    write_a_line(Path("/dev/null"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert not os.path.exists("/dev/null.tmp")

    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    write_a_line(link)
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_a_line(pipe)
    reader.join()
    assert read == [b"whole\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert files(tmp_path) == []


def test_an_open_file_of_a_process_gets_what_is_written(tmp_path: Path) -> None:
    with (tmp_path / "lines.jsonl").open("wb") as file:
        write_a_line(Path(f"/dev/fd/{file.fileno()}"))
    assert (tmp_path / "lines.jsonl").read_bytes() == b"whole\n"


def test_a_device_that_is_full_is_a_fault() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_a_line(Path("/dev/full"))
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
