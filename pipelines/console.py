"""The console command, which ends quietly where it is interrupted while it still loads."""

from __future__ import annotations

import sys


def run_and_leave() -> int:
    """Runs one command and gives its exit code, as ``pipelines.cli.run_and_leave`` does."""
    try:
        from pipelines import cli  # takes half a second
    except KeyboardInterrupt:
        sys.stderr.write("\nkbsource: interrupted\n")
        return 130  # as cli.INTERRUPTED
    return cli.run_and_leave()
