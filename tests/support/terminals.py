"""Commands run in a terminal of some width."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence


def run_in_terminal(arguments: Sequence[str], *, columns: int, **environment: str) -> tuple[int, str]:
    """Runs ``kbsource`` where both outputs are a terminal, and gives exit code and what was shown."""
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    env = {**own, "TERM": "xterm", **environment}
    with subprocess.Popen(command, stdin=writing, stdout=writing, stderr=writing, env=env) as process:
        os.close(writing)
        shown = b""
        try:
            while block := os.read(reading, 1 << 16):
                shown += block
        except OSError:  # Linux says so that the other end is closed
            pass
        os.close(reading)
    return process.returncode, shown.decode().replace("\r\n", "\n")
