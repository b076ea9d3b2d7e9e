"""The command line, or any code, in a process in which distributions are as good as not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Sequence

from pipelines.extras import EXTRAS

OTHERS = (*EXTRAS, "pandas", "polars", "datasets", "dateutil", "google")
"""What an environment with ``pip install kbsource`` alone does not have."""

_BLOCK = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
"""
_COMMAND = "import sys; from pipelines.cli import main; sys.exit(main(ARGUMENTS))"


def run_without(blocked: Collection[str], code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process of its own that cannot import some modules, by their top names."""
    whole = _BLOCK.replace("BLOCKED", repr(frozenset(blocked))) + code
    return subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def command_without(blocked: Collection[str], arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command of kbsource so."""
    return run_without(blocked, _COMMAND.replace("ARGUMENTS", repr(list(arguments))))
