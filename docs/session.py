"""Draws a session at a terminal with the demo, for the README: ``python docs/session.py DEMO``.

``DEMO`` is the folder that ``kbsource demo`` wrote. The commands are run, and the picture, ``docs/session.svg``, shows
their output: line after line, or all at once for readers who want no movement.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PICTURE = Path(__file__).with_name("session.svg")
SESSION = (
    ("kbsource show kbsource-demo/release 57", 16),
    ("kbsource show kbsource-demo/aligned/fever/dev 2001", 15),
    (
        "kbsource sql kbsource-demo/release "
        '"select title, len(anchors) as links from pages order by links desc, title limit 3"',
        12,
    ),
)
"""The commands, each with the number of lines of its output that are shown."""
_COLUMNS, _LINE, _CHAR, _PAD = 100, 18, 7.82, 18
_PAUSE_S, _LINE_S = 1.6, 0.05


class _Line(NamedTuple):
    """A line of the picture."""

    text: str
    is_typed: bool
    at_s: float  #: when it appears


def session_picture(demo: Path) -> str:
    """Returns the SVG of the session, with what the commands print of a demo.

    Raises:
        SystemExit: a command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kbsource-demo").symlink_to(demo.resolve())
        return _svg(list(_lines(Path(folder))))


def _lines(folder: Path) -> Iterator[_Line]:
    at_s = 0.0
    for command, most in SESSION:
        printed = _run(command, folder).rstrip("\n").split("\n")
        shown = printed[:most]
        if more := len(printed) - most:
            shown += [f"… {more:,} more lines"] if more > 0 else []
        for number, text in enumerate([f"$ {command}", *shown, ""]):
            yield _Line(text, number == 0, at_s)
            at_s += _PAUSE_S / 2 if number == 0 else _LINE_S
        at_s += _PAUSE_S


def _run(command: str, folder: Path) -> str:
    """Returns what a command of kbsource prints."""
    given = {**os.environ, "COLUMNS": str(_COLUMNS), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    line = command.replace("kbsource ", f'"{sys.executable}" -m pipelines.cli ', 1)
    done = subprocess.run(line, shell=True, cwd=folder, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def _wrapped(lines: list[_Line]) -> Iterator[_Line]:
    """Yields the lines as a terminal breaks them."""
    for line in lines:
        for start in range(0, max(len(line.text), 1), _COLUMNS):
            yield line._replace(text=line.text[start : start + _COLUMNS])


def _svg(lines: list[_Line]) -> str:
    rows = list(_wrapped(lines))[:-1]  # without the empty line at the end
    width, height = round(2 * _PAD + _COLUMNS * _CHAR), 2 * _PAD + _LINE * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-label="A session at a terminal: a page, a record of FEVER and a query of the demo">',
        "<style>text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6e6e6;white-space:pre}"
        ".typed{fill:#8bd69f;font-weight:bold}@media (prefers-reduced-motion:no-preference){"
        "text{animation:shown 1ms both}}@keyframes shown{from{opacity:0}to{opacity:1}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#15161a"/>',
    ]
    for number, line in enumerate(rows):
        look = ' class="typed"' if line.is_typed else ""
        place = f'x="{_PAD}" y="{_PAD + 13 + number * _LINE}" style="animation-delay:{line.at_s:.2f}s"'
        if line.text:
            parts.append(f'<text{look} {place} xml:space="preserve">{escape(line.text)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    PICTURE.write_text(session_picture(Path(sys.argv[1])), "utf-8")


if __name__ == "__main__":
    main()
