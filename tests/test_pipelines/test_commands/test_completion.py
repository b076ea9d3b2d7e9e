"""What the shell is told while somebody types."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from pipelines.cli import main
from pipelines.commands import COMMANDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["qampari-c"], ["qampari-contexts"]),
        (["build", "--limit"], ["--limit-pages"]),
        (["show", "release", "A", "--js"], ["--json"]),
        (["map", "fever", "--wiki-p"], ["--wiki-pages"]),
        (["campaign", "cand"], ["candidates"]),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_choices(
    words: list[str], found: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert script.startswith('# Add this line to ~/.bashrc: eval "$(kbsource completion bash)"\n')
    typed = f"COMP_WORDS=(kbsource {' '.join(words)}) COMP_CWORD={len(words)}"
    code = f"{script}\n{typed}\n_kbsource\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    # By standard input: an argument is 128 KiB at most.
    done = subprocess.run(["bash"], input=code, capture_output=True, text=True, check=False)

    assert done.stdout.split() == found, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
