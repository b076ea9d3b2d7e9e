"""No command speaks to anyone beyond this machine, nor leaves anything in the user's cache or the temporary folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from pipelines.commands import COMMANDS
from pipelines.commands.demo import STEPS, DemoStep, step_arguments
from tests.support import mini_wiki, traced
from tests.support.command_lines import required_line
from tests.support.edited_wiki import DATE, write_edited
from tests.support.installed import skip_without
from tests.support.real_data import ROOT
from tests.support.snapshots import paired, write_lines
from tests.support.tiny_encoder import tiny_encoder
from tests.support.tiny_nli import overlap_model

skip_without("onnxruntime", "onnx", "transformers", "tantivy", "mcp", reason="needs kbsource[nli,search,serve]")

MULTI = "--workers 2"
REJECTS = f"--max-rejects {mini_wiki.MAX_REJECTS}"
GOLD = "%aligned/nq/dev/nq-dev-kilt.jsonl"
QUESTIONS = "%qampari/qampari_data/dev_data.jsonl"


class Run(NamedTuple):
    line: str  #: of ``kbsource``, with the places of the demo: ``@NAME`` of the mini-wiki, ``%NAME`` of what is made
    codes: tuple[int, ...] = (0,)


RUNS = (
    Run("check-dump @miniwiki-20260101-pages-articles-multistream.xml.bz2 --deep", (0, 1)),
    Run("check-text %snapshot.ndjson"),
    Run(f"build %miniwiki-{DATE}-pages-articles.xml --page-props %miniwiki-{DATE}-page_props.sql.gz "
        f"--output %later --references {REJECTS} {MULTI}"),
    Run("check-sources %later --model %nli --backend onnx --output %verdicts.jsonl " + MULTI),
    Run(f"vectors %passages --model %encoder --output %passages-vectors {MULTI}"),
    Run("search %passages 'Port Sellick' --system dense --vectors %passages-vectors --model %encoder"),
    Run(f"rerank %passages %bm25-dev.jsonl --model %ranker --queries {QUESTIONS} --depth 3 --output %reranked {MULTI}"),
    Run("nli --model %nli --backend onnx --premise 'Ada lives.' --hypothesis 'Ada lives.'"),
    # Reading needs PyTorch, and a model that writes; it ends once it has looked for them.
    Run(f"read {QUESTIONS} --model %nli --form closed --output %read.jsonl", (2,)),
    Run("facts %release %later --wikidata %wikidata %wikidata --model %nli --backend onnx --output %facts"),
    Run(f"age %release %later --input {GOLD} --from-kb %release --output %age"),
    Run("diff %release %later --output %diff"),
    Run("locate %release --title 'Halvane Isles' --evidence 'Halvane Isles'"),
    Run(f"validate-kilt %release {GOLD}"),
    Run("catalogue %"),
    Run("report %release --output %report.html"),
    Run("sql %release 'from kb_text() limit 3'"),
    Run("verify %passages-vectors --passages %passages"),
    Run(f"evaluate kilt {GOLD} {GOLD}", (0, 1)),
    Run("qampari-tasks export %qampari --output %tasks"),
    Run(f"campaign candidates {GOLD} {GOLD} --kb %release --output %candidates.jsonl", (0, 1)),
    Run("publish %release --output %published --repo-id someone/miniwiki"),
    Run("export %release --output %pages.jsonl"),
    Run("beir %aligned/nq/dev %passages --output %beir"),
    Run("training-data %qampari --split dev --for pig --passages %passages --retrieved %bm25-dev.jsonl "
        "--output %training"),
    Run("trec %bm25-dev.jsonl --output %run.trec"),
    Run("completion bash"),
)  # fmt: skip
SERVED = ("inspect %release %passages", "serve %release --passages %passages")
"""Commands that run until they are told to end."""
LISTED = {line.split()[0] for line in (*(step.arguments for step in STEPS), *(run.line for run in RUNS), *SERVED)}
OTHERS = tuple(
    Run(f"{name} {required_line(name, release='%release', output=f'%{name}')}")
    for name in COMMANDS
    if name not in {*LISTED, "demo"}
)
"""Commands in none of the lists, which therefore need only releases."""


@pytest.mark.slow  # only the kernel knows what a process and its children say to whom
@pytest.mark.skipif(traced.why_not_traced() is not None, reason=str(traced.why_not_traced()))
def test_no_command_speaks_to_anyone_but_this_machine(tmp_path: Path) -> None:
    made = tmp_path / "made"
    sent = _traced(["demo", "--output", str(made)], tmp_path, codes=(0,))
    write_edited(made)
    write_lines(made / "snapshot.ndjson", [paired("<p>Ada lives.</p>", "Ada lived.")])
    texts = ["Where does Port Sellick lie?"]
    tiny_encoder(made / "encoder", texts=texts)
    overlap_model(made / "ranker", texts=texts, is_ranker=True)
    overlap_model(made / "nli", texts=texts)
    sent += _traced_together(made, tmp_path)
    for line in SERVED:
        sent += _traced_while_it_answers(step_arguments(DemoStep("", "", line), str(made)), tmp_path)

    assert sent == []
    assert left_behind(tmp_path) == []


def _command(arguments: Sequence[str], folder: Path) -> list[str]:
    return traced.tracing([sys.executable, "-P", "-m", "pipelines.cli", *arguments], folder / "calls")


def _environment(folder: Path) -> dict[str, str]:
    return {**traced.environment(folder), "PYTHONPATH": str(ROOT)}


def _traced(arguments: Sequence[str], folder: Path, *, codes: Sequence[int]) -> list[str]:
    """Runs a command, and returns its calls to the outside."""
    command = _command(arguments, folder)
    ended = subprocess.run(command, env=_environment(folder), cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode in codes, f"{' '.join(arguments)}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return [f"{arguments[0]}: {call}" for call in traced.sent_outside(folder / "calls")]


_TOGETHER = """\
import json, sys
from pipelines.cli import main
if __name__ == "__main__":
    for arguments, codes in json.load(sys.stdin):
        code = main(arguments)
        if code not in codes:
            sys.exit(f"{arguments} ended with {code}")
"""


def _traced_together(made: Path, folder: Path) -> list[str]:
    """Runs the other commands in one process, whose start takes seconds, and returns the calls to the outside."""
    runs = [(step_arguments(DemoStep("", "", run.line), str(made)), run.codes) for run in (*RUNS, *OTHERS)]
    command = traced.tracing([sys.executable, "-P", "-c", _TOGETHER], folder / "calls")
    ended = subprocess.run(
        command, input=json.dumps(runs), env=_environment(folder), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return traced.sent_outside(folder / "calls")


def _traced_while_it_answers(arguments: Sequence[str], folder: Path) -> list[str]:
    command = _command([*arguments, "--port", "0"], folder)
    with subprocess.Popen(
        command, env=_environment(folder), cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        try:
            with urlopen(url) as answer:
                assert answer.status == 200
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate()
    return [f"{arguments[0]}: {call}" for call in traced.sent_outside(folder / "calls")]


def left_behind(folder: Path) -> list[str]:
    """Files in the home and in the temporary folder that are not an index that kbsource keeps."""
    found = [path for name in ("home", "tmp") for path in (folder / name).rglob("*") if path.is_file()]
    return [str(path) for path in found if "kbsource" not in str(path.relative_to(folder))]
