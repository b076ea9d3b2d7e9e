"""Compares extractors over the same texts, each in a separate process. They take turns, so that changes in the
machine's speed affect all of them alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environment import OLDER_WIKIEXTRACTOR, older_wikiextractor, peer_python
from benchmarks.slices import REPOSITORY, Slice

OURS = "kbsource"
EXTRACTORS_SCRIPT = Path(__file__).with_name("extractors.py")


@dataclass(frozen=True)
class Peer:
    """An extractor to measure: its name in reports, its key in extractors.py, its packages."""

    name: str
    extractor: str
    is_older_wikiextractor: bool = False

    def start(self, texts: Path, errors: Any) -> subprocess.Popen[str]:
        """Starts its process; it answers a line when it has read the texts."""
        ours = self.extractor == OURS
        paths = [str(REPOSITORY)] if ours else []
        if self.is_older_wikiextractor:
            paths = [str(older_wikiextractor())]
        python = sys.executable if ours else str(peer_python())
        return subprocess.Popen(
            [python, str(EXTRACTORS_SCRIPT), self.extractor, str(texts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
        )


PEERS = (
    Peer(OURS, OURS),
    Peer(f"wikiextractor {OLDER_WIKIEXTRACTOR}", "wikiextractor", is_older_wikiextractor=True),
    Peer(
        f"wikiextractor {OLDER_WIKIEXTRACTOR}, library call",
        "wikiextractor, library call",
        is_older_wikiextractor=True,
    ),
    Peer(f"wikiextractor {OLDER_WIKIEXTRACTOR}, links", "wikiextractor, links", is_older_wikiextractor=True),
    Peer("wikiextractor 3.1.0", "wikiextractor"),
    Peer("wikiextractor 3.1.0, library call", "wikiextractor, library call"),
    Peer("strip_code", "strip_code"),
    Peer("segment_wiki", "segment_wiki"),
    Peer("segment_wiki, links", "segment_wiki, links"),
)


@dataclass(frozen=True)
class Timing:
    """CPU seconds of every round of one extractor over all texts, and the number of characters returned by a round."""

    name: str
    n_bytes: int
    rounds_s: tuple[float, ...]
    n_result_chars: int

    @property
    def cpu_s(self) -> float:
        """Median over the rounds."""
        return median(self.rounds_s)

    @property
    def mb_per_s(self) -> float:
        """MB (10^6 bytes) of UTF-8 wikitext a CPU second."""
        return self.n_bytes / 1e6 / self.cpu_s


def write_texts(slices: list[Slice], path: Path) -> int:
    """Writes the slices' articles in the format that extractors.py reads, and returns their number."""
    n_articles = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"sites": [wiki_slice.site.to_json() for wiki_slice in slices]}) + "\n")
        for i, wiki_slice in enumerate(slices):
            for page in wiki_slice.articles():
                row = {"site": i, "id": page.page_id, "title": page.title, "text": page.text}
                file.write(json.dumps(row) + "\n")
                n_articles += 1
    return n_articles


def time_in_turns(slices: list[Slice], *, peers: tuple[Peer, ...], n_rounds: int) -> list[Timing]:
    """Runs every extractor once to warm up, then ``n_rounds`` times in turns A B C A B C.

    Raises:
        SystemExit: an extractor's process ended; the message has its name and its output.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kbsource-bench-") as folder,
        open(Path(folder) / "errors", "w+", encoding="utf-8") as errors,
    ):
        texts = Path(folder) / "texts.jsonl"
        write_texts(slices, texts)
        processes = [peer.start(texts, errors) for peer in peers]
        try:
            heads = [_answer(process, peer, errors) for process, peer in zip(processes, peers, strict=True)]
            rounds: list[list[dict[str, Any]]] = [[] for _ in peers]
            for _ in range(n_rounds + 1):
                for i, process in enumerate(processes):
                    assert process.stdin is not None
                    process.stdin.write("\n")
                    process.stdin.flush()
                    rounds[i].append(_answer(process, peers[i], errors))
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return [
        Timing(
            name=peer.name,
            n_bytes=heads[i]["bytes"],
            rounds_s=tuple(run_of_round["cpu_s"] for run_of_round in rounds[i][1:]),
            n_result_chars=rounds[i][-1]["result_chars"],
        )
        for i, peer in enumerate(peers)
    ]


def _answer(process: subprocess.Popen[str], peer: Peer, errors: Any) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        errors.seek(0)
        raise SystemExit(f"{peer.name} ended without an answer:\n{errors.read()[-3000:]}")
    answer: dict[str, Any] = json.loads(line)
    return answer
