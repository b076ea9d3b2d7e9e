"""The console command, which ends quietly if it is interrupted while loading."""

from __future__ import annotations

import sys


def start_command() -> int:
    """Runs one command and returns its exit code, like ``pipelines.cli.run_and_leave``."""
    try:
        from pipelines import cli  # takes half a second
    except KeyboardInterrupt:
        sys.stderr.write("\nkbsource: interrupted\n")
        return 130  # same as cli.INTERRUPTED
    return cli.run_and_leave()
