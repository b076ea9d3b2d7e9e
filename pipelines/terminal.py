"""Prints the results of commands: a summary for people, or JSON; on a terminal, cut to its width and with some
colour."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from kbsource.records import BadRecord

Style = Literal["bold", "red", "green", "yellow"]
_CODES: dict[Style, int] = {"bold": 1, "red": 31, "green": 32, "yellow": 33}
_CUT = "…"
_NARROWEST, _WIDEST = 40, 100
_LONGEST_WORD, _LONGEST_LINE = 200, 480
"""Maximum characters of a quotation and of a line in a message: long enough for a path, and to recognise a text."""

Row = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a command.

    People see rows and text, then the title, then the next command; ``--json`` prints only ``values``.
    """

    title: str = ""
    rows: Iterable[Row] = ()  # facts, each with a name and a value
    text: str = ""  # output that is not a list of facts: tables, a page
    next: str = ""  # command line that the user may run next
    values: Any = None
    stream: Iterable[str] = ()  # lines that are printed as they are produced, even with --json
    faults: Sequence[BadRecord | str] = ()  # unusable inputs, listed on standard error
    is_ok: bool = True

    @property
    def code(self) -> int:
        """Returns the exit code: 1 if the data have errors."""
        return 0 if self.is_ok and not self.faults else 1

    def to_json(self) -> str:
        """Returns the values as one JSON object."""
        return json.dumps(self.values, ensure_ascii=False, indent=2)

    def to_text(self) -> str:
        """Returns the text for people, without the next step."""
        return "\n\n".join(part for part in (facts_table(self.rows), self.text, self.title) if part)

    def show(self, *, as_json: bool) -> None:
        """Prints the summary."""
        is_seen = is_terminal(sys.stdout)  # otherwise a program reads it and needs the unchanged text
        for line in self.stream:
            print(harmless(line) if is_seen else line)
        if as_json and self.values is not None:
            print(harmless(self.to_json()) if is_seen else self.to_json())
        elif not as_json and (text := self.to_text()):
            print_text(text)
        for fault in self.faults:
            named = fault if isinstance(fault, str) else f"{fault.file}, {fault.detail} ({fault.reason})"
            print(printable(named), file=sys.stderr)
        if self.next and not as_json:
            # Never cut, even if a path contains spaces.
            print(harmless(f"{next_words(self.next)}: {styled(self.next, 'bold')}"))


PLACEHOLDERS = frozenset(
    ("ANSWERS", "DIR", "FILE", "GOLD", "ITEMS", "JUDGEMENTS", "MODEL", "OTHER", "OWNER/NAME", "PREDICTIONS", "SECOND")
)
"""Placeholders in a command line for names that only the reader knows."""


def command_line(*words: str) -> str:
    """Returns a kbsource command as typed in a shell.

    >>> command_line("show", "releases/wiki", "Alan Turing")
    "kbsource show releases/wiki 'Alan Turing'"
    """
    return shlex.join(("kbsource", *words))


def show_line(release: str, title: str) -> str:
    """Returns the command that shows a page. Its title may look like an option.

    >>> show_line("releases/wiki", "-30-")
    'kbsource show releases/wiki -- -30-'
    """
    return command_line("show", release, *(("--",) if title.startswith("-") else ()), title)


def next_words(line: str) -> str:
    """Returns the words before the next command, including which placeholders to replace.

    >>> next_words("kbsource info releases/wiki"), next_words("kbsource trec PREDICTIONS --output FILE")
    ('Next', 'Next, with your own names for PREDICTIONS and FILE')
    """
    words = [spelling for word in shlex.split(line) for spelling in (word, word.rpartition("/")[2])]
    wanted = dict.fromkeys(word for word in words if word in PLACEHOLDERS)
    return f"Next, with your own names for {' and '.join(wanted)}" if wanted else "Next"


_CELLS = re.compile(r"\S {2,}\S")


def is_terminal(stream: TextIO | None) -> bool:
    """Returns whether a stream is a terminal; a process may lack the stream."""
    return stream is not None and not stream.closed and stream.isatty()


def columns_of(stream: TextIO | None) -> int | None:
    """Returns the width of the terminal of a stream; None if it is not a terminal."""
    if stream is None or not is_terminal(stream):
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # the width is unknown
        columns = 0
    return columns or shutil.get_terminal_size().columns


def styled(text: str, style: Style, stream: TextIO | None = None) -> str:
    """Returns a text in colour if a stream (None: standard output) is a terminal that shows colours.

    Source of NO_COLOR: https://no-color.org.
    """
    stream = sys.stdout if stream is None else stream
    is_plain = not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def shortened(line: str, columns: int | None) -> str:
    """Returns a line without colour, cut to a number of columns, with an ellipsis if it was cut.

    >>> shortened("Halvane Isles", 8), shortened("東京都庁舎", 7), shortened("Halvane", 7), shortened("Halvane", None)
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


_COLOURS = "|".join(map(str, (0, *_CODES.values())))
# Control characters, and those that turn the direction of the text after them.
_CONTROL = re.compile(rf"(?!\x1b\[(?:{_COLOURS})m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    r"""Returns a text without effects of control characters on a terminal. Line breaks, tabs and our own colours stay.

    >>> harmless("a\tb\x1b]0;title\x07, \x9b2J, \u202egnp.exe")
    'a\tb\\x1b]0;title\\x07, \\x9b2J, \\u202egnp.exe'
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def on_one_line(text: str) -> str:
    r"""Returns a text with its line breaks escaped. Otherwise a value from a release could look like a line that
    kbsource printed.

    >>> on_one_line("a title\nSound: 6 files checked.")
    'a title\\nSound: 6 files checked.'
    """
    return text.replace("\n", "\\n")


def printable(message: str) -> str:
    """Returns a message for standard error. Quotations are cut in the middle, and control characters are made harmless.

    Further lines of a message are indented. Any other line break belongs to a quotation.

    >>> printable("no page a\\nb\\x1b[31m. Similar:\\n  Halvane"), len(printable("9" * 5000))
    ('no page a\\\\nb\\\\x1b[31m. Similar:\\n  Halvane', 200)
    """
    lines = re.split(r"\n(?= )", message)
    words = (
        re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _ends_of(word[0], _LONGEST_WORD), line) for line in lines
    )
    shown = ("".join(char if char.isprintable() else repr(char)[1:-1] for char in line) for line in words)
    return "\n".join(_ends_of(line, _LONGEST_LINE) for line in shown)


def _ends_of(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 3 // 5]}{_CUT}{text[1 - most * 2 // 5 :]}"


def _width(text: str) -> int:
    """Returns the width of a text in columns: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def table_text(rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Returns a table with columns as wide as their content. The columns with numbers in ``right`` are right-aligned.

    >>> print(table_text([("rows", "table"), ("1,200", "pages"), ("3", "redirects")], right=[0]))
     rows  table
    1,200  pages
        3  redirects
    """
    cells, numbers = [[*map(on_one_line, row)] for row in rows], frozenset(right)
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]

    def padded(cell: str, number: int) -> str:
        blanks = " " * (widths[number] - _width(cell))
        return blanks + cell if number in numbers else cell + blanks

    return "\n".join("  ".join(map(padded, row, range(len(row)))).rstrip() for row in cells)


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a question that suggests a similar name for an unknown one; empty if none is similar.

    >>> nearest("--limit-page", ["--limit-pages", "--output"])
    ' Did you mean --limit-pages?'
    >>> nearest("--runner", ["--new"])
    ''
    """
    # Compare only letters: the dashes of options would make all short ones similar.
    words = {known_name.lstrip("-"): known_name for known_name in sorted(known)}
    near = get_close_matches(name.lstrip("-"), words, n=1) if len(name) <= _WIDEST else ()
    return f" Did you mean {words[near[0]]}?" if near else ""


def text_width() -> int:
    """Returns the maximum line length for running text: the terminal's width, but 100 if it is wider or there is no
    terminal, and 40 if it is narrower."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def facts_table(rows: Iterable[Row]) -> str:
    """Returns names and values in two columns; numbers have thousands separators.

    >>> print(facts_table([("pages", 1200), ("title", "A")]))
    pages  1,200
    title  A
    """
    shown = [
        (on_one_line(name), f"{value:,}" if isinstance(value, int) else on_one_line(str(value))) for name, value in rows
    ]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)


def print_text(text: str) -> None:
    """Prints text for people: rows of tables are cut to the width of the terminal if there is one, other text is not.

    The cells of a row are separated by at least two spaces. The terminal wraps running text, so that paths and commands
    in it can be copied.
    """
    columns = columns_of(sys.stdout)
    lines = (shortened(line, columns) if _CELLS.search(line) else line for line in text.split("\n"))
    print(harmless("\n".join(lines)))
