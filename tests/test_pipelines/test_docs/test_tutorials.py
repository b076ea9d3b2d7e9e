"""The tutorials, command by command, on what the demo writes; a dump's address leads to a server on this machine."""

from __future__ import annotations

import re
import shlex
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipelines.cli import main
from tests.support import mini_wiki
from tests.support.demo_datasets import CONFIG, chunks_in_this_process
from tests.support.passages import cut_release
from tests.support.real_data import ROOT

pytestmark = pytest.mark.slow

TUTORIALS = sorted((ROOT / "docs").glob("tutorial_*.md"))
WIKIMEDIA = "https://dumps.wikimedia.org"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def demo(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tutorials use of the demo's folder."""
    folder = tmp_path_factory.mktemp("tutorials") / "kbsource-demo"
    folder.mkdir()
    (folder / "release").symlink_to(release)
    fever, kb = CONFIG.parent / "datasets" / "fever", str(folder / "release")
    records = [*("--input", f"{fever}/shared_task_dev.jsonl"), *("--wiki-pages", f"{fever}/wiki-pages")]
    with chunks_in_this_process():
        cut_release(folder / "passages", release)
        aligned = ["--split", "dev", "--max-rejects", "0.5", "--output", f"{folder}/aligned/fever/dev"]
        assert main(["map", "fever", kb, *records, *aligned]) == 0
    assert main(["export-kilt", kb, "--output", f"{folder}/kilt.jsonl"]) == 0
    return folder


class _Ranges(SimpleHTTPRequestHandler):
    """Serves parts of files, as Wikimedia does, and prints nothing."""

    def do_GET(self) -> None:
        content = Path(self.translate_path(self.path)).read_bytes()
        first, last = 0, len(content) - 1
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or last), last)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Last-Modified", self.date_time_string(0))
        self.end_headers()
        self.wfile.write(content[first : last + 1])

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def wikimedia(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has the mini-wiki where Wikimedia has the Simple English Wikipedia."""
    folder = tmp_path_factory.mktemp("wikimedia")
    day = folder / "simplewiki" / "20261001"
    day.mkdir(parents=True)
    for path in (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS):
        shutil.copyfile(path, day / Path(path).name.replace("miniwiki-20260101", "simplewiki-20261001"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Ranges, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_from_its_first_command_to_its_last(
    path: Path,
    demo: Path,
    wikimedia: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "kbsource-demo").symlink_to(demo)
    text, printed, n_commands = path.read_text("utf-8"), "", 0

    for block in _BLOCK.finditer(text):
        if block[1] == "jsonl":
            name = re.findall(r"`([\w.]+)`", text[: block.start()])[-1]
            (tmp_path / name).write_text(block[2], "utf-8")
        elif block[1] == "text":
            parts = (re.escape(part.strip("\n")) for part in block[2].split("…"))
            assert re.search(".*".join(parts), printed, re.DOTALL), f"{block[2]}\n{printed}"
        elif block[1] == "":
            for line in block[2].splitlines():
                words = shlex.split(line.replace(WIKIMEDIA, wikimedia))
                assert words[0] == "kbsource"
                if words[1] == "build":  # two pages of the mini-wiki are broken on purpose
                    words += ["--max-rejects", "0.05"]
                assert main(words[1:]) == 0, line
                printed = capsys.readouterr().out
                n_commands += 1
    assert n_commands >= 3


def test_there_are_four() -> None:
    assert [path.stem for path in TUTORIALS] == ["tutorial_dataset", "tutorial_demo", "tutorial_kilt", "tutorial_wiki"]
