"""What is written to a terminal: lines cut to its width, a little colour; in pipes and files all of it, and plain."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, TextIO

Style = Literal["bold", "red", "green", "yellow"]
_CODES: dict[Style, int] = {"bold": 1, "red": 31, "green": 32, "yellow": 33}
_CUT = "…"
_CELLS = re.compile(r"\S {2,}\S")


def is_terminal(stream: TextIO | None) -> bool:
    """Says whether a stream, which a process may lack, is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def columns_of(stream: TextIO | None) -> int | None:
    """Gives the columns of the terminal that a stream is; None where it is none."""
    if stream is None or not is_terminal(stream):
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # nothing says so
        columns = 0
    return columns or shutil.get_terminal_size().columns


def styled(text: str, style: Style, stream: TextIO | None = None) -> str:
    """Gives a text in a colour where a stream (None: the standard output) is a terminal that shows some.

    Source of NO_COLOR: https://no-color.org.
    """
    stream = sys.stdout if stream is None else stream
    is_plain = not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def cut(line: str, columns: int | None) -> str:
    """Gives a line without colour in at most so many columns, with an ellipsis where something is left out.

    >>> cut("Halvane Isles", 8), cut("東京都庁舎", 7), cut("Halvane", 7), cut("Halvane", None)
    ('Halvane…', '東京都…', 'Halvane', 'Halvane')
    """
    if columns is None or (line.isascii() and len(line) <= columns) or _width(line) <= columns:
        return line
    left, kept = columns - 1, 0
    for letter in line:
        left -= _width(letter)
        if left < 0:
            break
        kept += 1
    return line[:kept] + _CUT


def _width(text: str) -> int:
    """Gives the columns of a text: two for a wide character, none for one that is put upon another."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def table_text(rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Gives a table in columns of the width of what is in them.

    >>> print(table_text([("rows", "table"), ("1,200", "pages"), ("3", "redirects")], right=[0]))
     rows  table
    1,200  pages
        3  redirects

    Args:
        rows: cells, as many in every row; at least one row.
        right: numbers of the columns that are set to the right.
    """
    cells, numbers = list(rows), frozenset(right)
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]

    def padded(cell: str, number: int) -> str:
        blanks = " " * (widths[number] - _width(cell))
        return blanks + cell if number in numbers else cell + blanks

    return "\n".join("  ".join(map(padded, row, range(len(row)))).rstrip() for row in cells)


def print_text(text: str) -> None:
    """Prints what is for reading: rows of tables cut to the terminal where there is one, all else whole.

    A row has cells at least two blanks apart. Running text is left to the terminal, which breaks it, so that paths and
    commands in it can be copied.
    """
    columns = columns_of(sys.stdout)
    lines = (cut(line, columns) if _CELLS.search(line) else line for line in text.split("\n"))
    sys.stdout.write("\n".join(lines) + "\n")
