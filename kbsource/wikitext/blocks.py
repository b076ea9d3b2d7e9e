"""Reads the tables of a page's wikitext: their captions, rows and cells, which are still wikitext."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from kbsource.rows import Row
from kbsource.wikitext.markers import (
    BLOCK,
    CUT,
    CUTS,
    DIGIT,
    PLACE,
    has_numbers,
    mark_numbers,
    reach_back,
    without_numbers,
)

# Every alternative begins with the newline before the line, so that the search jumps from line to line.
_TABLE_LINE = re.compile(
    rf"\n[ \t:*#\x02{DIGIT}]*\{{\|[^\n]*|\n[ \t\x02{DIGIT}]*\|\}}|\n=[^\n]*=[ \t\x02{DIGIT}]*(?=\n|\Z)"
)
_CELL_MARKS = frozenset("|!")
_NO_ROW = frozenset(("=", PLACE))
_LONGEST_LINK = 10  # in cells
_LONGEST_CAPTION = 4000
_LINKS_IN_CAPTION = 6
LINK_OF_LINES = re.compile(rf"\[\[[^\[\]|\n]*:[^\[\]|\n]*\|(?:(?:[^\[\]]|\[\[[^\[\]]*\]\])[{DIGIT}]*+){{0,2000}}?\]\]")
_ORPHAN = re.compile(rf"(?:\A|\n)[ \t\x02{DIGIT}]*\|[-}}+]")
_LINE_ENDS = f" \t{CUTS}"
_LINE_MARKS = frozenset("*#:;=-")
# Attributes that no pipe separates from the cell's text, because the template after them, which contained the pipe, was
# cut.
_ATTRIBUTES_ALONE = re.compile(
    r"\s*(?:(?ai:colspan|rowspan|align|valign|bgcolor|style|class|width|scope)"
    r"\s*=\s*(?:\"[^\"\n]*\"|[\w#%]+)\s*)+(?=\x02)"
)
_SPAN = re.compile(r"\b((?ai:colspan|rowspan))\s*=\s*[\"']?\s*(\d{1,4})")


class RawCell(Row):
    """A cell whose content is still wikitext."""

    text: str
    is_header: bool
    colspan: int = 1
    rowspan: int = 1


@dataclass(slots=True)
class RawTable:
    """A table whose cells are still wikitext."""

    caption: str | None = None
    rows: list[list[RawCell]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # numbers of the notes that were cut from it
    is_interrupted: bool = False  # while it is read: a block is in the line of cells, which goes on after it


def cut_tables(text: str, tables: list[RawTable], losses: Counter[str]) -> str:
    """Returns the text with each outermost table replaced by a placeholder line, and adds the tables, including nested
    ones.

    A table that is never closed ends before the next heading, or with the text. Rows without a preceding ``{|``, for
    example because a template opens the table, form a table too.
    """
    if "{" in text and "{|" in text:  # one character is found many times as fast as two
        text = _cut_opened(text, tables, losses)
    return _cut_orphans(text, tables, losses) if "\n|" in text or text[:1] == "|" else text


def _cut_opened(text: str, tables: list[RawTable], losses: Counter[str]) -> str:
    text = "\n" + text
    out: list[str] = []
    position = 1
    depth = 0
    start = 0

    def cut(end: int) -> None:
        out.append(f"\n{PLACE}T{len(tables)}\n")
        parse_table(text[start:end], tables)

    for match in _TABLE_LINE.finditer(text):
        line = match.group()[1:]
        if line[0] == "=":
            if depth and not _is_in_link(
                text, max(start, reach_back(text, match.start(), _LONGEST_CAPTION)), match.start()
            ):
                losses["broken_markup"] += depth
                depth = 0
                cut(match.start())
                position = match.start()
        elif line.endswith("|}") and "{|" not in line:
            if depth == 1:
                depth = 0
                cut(match.end())
                position = match.end()
            elif depth:
                depth -= 1
        else:
            if depth == 0:
                start = match.start() + 1
                out.append(text[position:start])
            depth += 1
    if depth:
        losses["broken_markup"] += depth
        cut(len(text))
        position = len(text)
    out.append(text[position:])
    return "".join(out)


def _is_in_link(text: str, first: int, place: int) -> bool:
    """Returns whether a link over several lines, such as a file with its caption, that begins between two positions
    is still open.
    """
    opener = place
    for _ in range(_LINKS_IN_CAPTION):
        if (opener := text.rfind("[[", first, opener)) < 0:
            return False
        if (link := LINK_OF_LINES.match(text, opener)) and link.end() > place:
            return True
    return False


def _cut_orphans(text: str, tables: list[RawTable], losses: Counter[str]) -> str:
    """Returns the text with the rows outside tables replaced by placeholder lines, and adds them as tables."""
    if not _ORPHAN.search(text):
        return text
    out: list[str] = []
    rows: list[str] = []  # of the current table, or lines that may turn out to begin a table
    is_table = False

    def end() -> None:
        nonlocal is_table
        if not is_table:
            out.extend(rows)
        elif any(line.lstrip(_LINE_ENDS)[:2] not in ("|}", "|-") for line in rows):
            out.append(f"{PLACE}T{len(tables)}")
            parse_table("\n".join(("{|", *rows)), tables)
            losses["broken_markup"] += 1
        is_table = False
        rows.clear()

    position = 0
    for line in text.split("\n"):
        start, position = position, position + len(line) + 1
        mark = line.lstrip(_LINE_ENDS)[:2]
        if mark[:1] in _CELL_MARKS and _is_in_link(text, reach_back(text, start, _LONGEST_CAPTION), start):
            mark = ""  # lines of a file's caption are not rows
        if mark in ("|-", "|}", "|+"):
            is_table = True
            rows.append(line)
            if mark == "|}":
                end()
        elif mark[:1] in _CELL_MARKS or (rows and is_table and line.strip(_LINE_ENDS) and mark[:1] not in _NO_ROW):
            rows.append(line)
        else:
            end()
            out.append(line)
    end()
    return "\n".join(out)


def parse_table(source: str, tables: list[RawTable]) -> None:
    """Adds the table in ``source`` and, after it, the tables nested in its cells."""
    stack: list[RawTable] = []
    in_caption = False
    is_numbered = has_numbers(source)
    has_cuts, has_blocks = CUT in source, BLOCK in source
    n_hidden = 0  # number of open tables in a caption, which are not shown
    last_closer = source.count("\n", 0, max(source.rfind("]]"), 0))
    for number, line in enumerate(source.split("\n")):
        numbers: list[int] = []
        if is_numbered and (numbers := mark_numbers(line)):
            line = without_numbers(line)
            if stack:
                stack[-1].numbers += numbers
        stripped = line.strip(_LINE_ENDS)
        if has_cuts and line[-1:] == CUT and "=" in stripped:
            stripped += CUT  # a cut may mark the end of a cell's attributes
        first = stripped[:1]
        if not stack or (first in ":*#{" and "{|" in stripped and stripped.lstrip(f":*# {CUTS}").startswith("{|")):
            table = RawTable(numbers=[] if stack else numbers)
            if n_hidden or (stack and number < last_closer and _is_in_caption(stack[-1])):
                n_hidden += 1
            else:
                tables.append(table)
            stack.append(table)
            in_caption = False
            continue
        table = stack[-1]
        if has_blocks:
            if table.is_interrupted and first == BLOCK and table.rows and table.rows[-1]:
                table.is_interrupted = stripped[-1] == BLOCK
                _resume_cells(table, stripped.strip(BLOCK))
                continue
            if first in _CELL_MARKS:
                table.is_interrupted = stripped[-1] == BLOCK
        if first == "|":
            second = stripped[1:2]
            if second == "}":
                if len(stack) > 1:
                    stack.pop()
                    n_hidden = max(n_hidden - 1, 0)
                in_caption = False
                if rest := stripped[2:].strip():
                    _continue_cell(stack[-1], rest)
                continue
            if second == "-":
                table.rows.append([])
                in_caption = False
                continue
            if second == "+":
                first_caption = f"{table.caption}\n" if table.caption else ""
                table.caption = first_caption + _without_attributes(stripped[2:])[0].strip()
                in_caption = True
                continue
            in_caption = False
            _add_cells(table, stripped[1:], is_header=False)
        elif first == "!":
            in_caption = False
            _add_cells(table, stripped[1:], is_header=True)
        elif in_caption:
            table.caption = f"{table.caption}\n{stripped}".strip()
        elif stripped or (table.rows and table.rows[-1]):
            _continue_cell(table, line)


def _is_in_caption(table: RawTable) -> bool:
    """Returns whether the last cell opens a file link that it does not close, so that a table in it belongs to the
    caption.
    """
    text = table.rows[-1][-1].text if table.rows and table.rows[-1] else ""
    opener = text.rfind("[[")
    link = text[opener:] if opener >= 0 else ""
    return ":" in link.partition("|")[0] and "|" in link and "]]" not in link


def _add_cells(table: RawTable, line: str, *, is_header: bool) -> None:
    if not table.rows:
        table.rows.append([])
    row = table.rows[-1]
    if is_header and "!!" in line:
        line = line.replace("!!", "||")
    for piece in line.split("||") if "||" in line else (line,):
        content, attributes = _without_attributes(piece) if "|" in piece else (piece, "")
        if "=" in content and not attributes and CUT in content and (alone := _ATTRIBUTES_ALONE.match(content)):
            content, attributes = content[alone.end() :], alone[0]
        if "]]" in content and not 0 <= content.find("[[") < content.find("]]"):
            content = _end_open_link(table, content, content.find("]]"))
        content = content.strip()
        if content and content[0] in _LINE_MARKS:
            content = CUT + content  # not at the start of a line, so no list and no heading
        if attributes and "span" in attributes.lower():
            spans = {key.lower(): max(int(value), 1) for key, value in _SPAN.findall(attributes)}
            row.append(RawCell(content, is_header, **spans))
        else:
            row.append(RawCell(content, is_header))


def _resume_cells(table: RawTable, line: str) -> None:
    """Adds the rest of a line of cells after a block."""
    is_header = table.rows[-1][-1].is_header
    if is_header and "!!" in line:
        line = line.replace("!!", "||")
    rest, bars, cells = line.partition("||")
    _continue_cell(table, rest)
    if bars:
        _add_cells(table, cells, is_header=is_header)


def _end_open_link(table: RawTable, content: str, end: int) -> str:
    """Returns the rest of a cell's content if it closes a link that an earlier cell opens; the text up to the closer is
    moved to that cell.

    Such a link may cross rows if its target has a namespace, as a file with its caption.

    Source: MediaWiki's Parser, which reads links after tables, so that a label continues in the next cell.
    """
    between: list[tuple[list[RawCell], int]] = []  # after the cell that is looked at, the last one first
    for row, number in _last_cells(table):
        text = row[number].text
        opener = _find_open_link(text)
        if opener < 0:
            between.append((row, number))
            continue
        target, bar, _ = text[opener:].partition("|")
        if not bar or not (row is table.rows[-1] or ":" in target):
            break
        texts = [content[: end + 2], *(other[place].text for other, place in between), text]
        row[number] = replace(row[number], text=" ".join(reversed(texts)))
        for other, place in between:
            other[place] = replace(other[place], text="")
        return content[end + 2 :]
    return content


def _last_cells(table: RawTable) -> Iterator[tuple[list[RawCell], int]]:
    """Iterates backwards over the last cells, as pairs of row and position, as far as a link may extend."""
    n_cells = 0
    for row in reversed(table.rows[-_LONGEST_LINK:]):
        for number in range(len(row) - 1, -1, -1):
            yield row, number
            n_cells += 1
            if n_cells == _LONGEST_LINK:
                return


def _find_open_link(text: str) -> int:
    """Returns the position of the last link that is not closed, or -1; looks back over a few links in its label."""
    first = reach_back(text, len(text), _LONGEST_CAPTION)
    position, depth = len(text), 0
    for _ in range(2 * _LINKS_IN_CAPTION + 1):
        opener, closer = text.rfind("[[", first, position), text.rfind("]]", first, position)
        if opener > closer:
            if depth == 0:
                return opener
            depth -= 1
        elif closer < 0:
            return -1
        else:
            depth += 1
        position = max(opener, closer)
    return -1


def _find_closer(content: str) -> int:
    """Returns the position of the first link end without an opener before it, or -1."""
    end = content.find("]]")
    return end if content.find("[[", 0, max(end, 0)) < 0 else -1


def _without_attributes(piece: str) -> tuple[str, str]:
    """Returns a cell's content and its attributes: the text before a pipe, unless a link opens before it."""
    pipe = piece.find("|")
    if pipe < 0:
        return piece, ""
    opener = piece.find("[[")
    if 0 <= opener < pipe:
        return piece, ""
    return piece[pipe + 1 :], piece[:pipe]


def _continue_cell(table: RawTable, line: str) -> None:
    if not table.rows:
        table.rows.append([])
    row = table.rows[-1]
    if "]]" in line and (end := _find_closer(line)) >= 0 and not (row and _find_open_link(row[-1].text) >= 0):
        line = _end_open_link(table, line, end)
    if row:
        row[-1] = replace(row[-1], text=f"{row[-1].text}\n{line}")
    else:
        row.append(RawCell(line, False))
