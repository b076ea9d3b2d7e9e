"""Wikitext tables: cut out of the text line by line, and split into captions, rows and cells.

Source: https://www.mediawiki.org/wiki/Help:Tables and Parser::doTableStuff of MediaWiki.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from kbsource.wikitext.markers import CUT, PLACE

# Every alternative begins with the newline before the line, so that the search leaps from line to line.
_TABLE_LINE = re.compile(r"\n[ \t:*#\x02]*\{\|[^\n]*|\n[ \t\x02]*\|\}|\n=[^\n]*=[ \t\x02]*(?=\n|\Z)")
_CELL_MARKS = frozenset("|!")
_ORPHAN = re.compile(r"(?:\A|\n)[ \t\x02]*\|[-}+]")
_LINE_MARKS = frozenset("*#:;=-")
# Attributes that no pipe parts from the cell's text, as the template behind them would.
_ATTRIBUTES_ALONE = re.compile(
    r"\s*(?:(?:colspan|rowspan|align|valign|bgcolor|style|class|width|scope)\s*=\s*(?:\"[^\"\n]*\"|[\w#%]+)\s*)+",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)


class RawCell(NamedTuple):
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


def cut_tables(text: str, tables: list[RawTable], losses: Counter[str]) -> str:
    """Gives the text with each outermost table replaced by a place line, and adds the tables, nested ones included.

    A table that is never closed ends before the next heading, or with the text. Rows that no ``{|`` stands before, as
    where a template opens the table, are a table all the same.
    """
    if "{|" in text:
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
            if depth:
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


def _cut_orphans(text: str, tables: list[RawTable], losses: Counter[str]) -> str:
    """Gives the text with the rows that stand outside of tables replaced by place lines, and adds them as tables."""
    if not _ORPHAN.search(text):
        return text
    out: list[str] = []
    rows: list[str] = []  # of the table at work, or lines that may turn out to begin one
    is_table = False

    def end() -> None:
        nonlocal is_table
        if not is_table:
            out.extend(rows)
        elif any(line.lstrip(" \t\x02")[:2] not in ("|}", "|-") for line in rows):
            out.append(f"{PLACE}T{len(tables)}")
            parse_table("\n".join(("{|", *rows)), tables)
            losses["broken_markup"] += 1
        is_table = False
        rows.clear()

    for line in text.split("\n"):
        mark = line.lstrip(" \t\x02")[:2]
        if mark in ("|-", "|}", "|+"):
            is_table = True
            rows.append(line)
            if mark == "|}":
                end()
        elif mark[:1] in _CELL_MARKS or (rows and is_table and line.strip(" \t\x02") and mark[0] not in "=" + PLACE):
            rows.append(line)
        else:
            end()
            out.append(line)
    end()
    return "\n".join(out)


def parse_table(source: str, tables: list[RawTable]) -> None:
    """Adds the table that ``source`` holds and, after it, the tables nested in its cells."""
    stack: list[RawTable] = []
    in_caption = False
    for line in source.split("\n"):
        stripped = line.strip(" \t\x02")
        first = stripped[:1]
        if not stack or (first in ":*#{" and "{|" in stripped and stripped.lstrip(":*# \x02").startswith("{|")):
            table = RawTable()
            stack.append(table)
            tables.append(table)
            in_caption = False
            continue
        table = stack[-1]
        if first == "|":
            second = stripped[1:2]
            if second == "}":
                if len(stack) > 1:
                    stack.pop()
                in_caption = False
                if rest := stripped[2:].strip():
                    _continue_cell(stack[-1], rest)
                continue
            if second == "-":
                table.rows.append([])
                in_caption = False
                continue
            if second == "+":
                table.caption = _without_attributes(stripped[2:])[0].strip()
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


def _add_cells(table: RawTable, line: str, *, is_header: bool) -> None:
    if not table.rows:
        table.rows.append([])
    row = table.rows[-1]
    if is_header and "!!" in line:
        line = line.replace("!!", "||")
    for piece in line.split("||") if "||" in line else (line,):
        content, attributes = _without_attributes(piece) if "|" in piece else (piece, "")
        if "=" in content and not attributes and (alone := _ATTRIBUTES_ALONE.match(content)):
            content, attributes = content[alone.end() :], alone[0]
        content = content.strip()
        if content and content[0] in _LINE_MARKS:
            content = CUT + content  # not at the start of a line, so no list and no heading
        colspan = rowspan = 1
        if attributes and "span" in attributes.lower():
            for key, value in _SPAN.findall(attributes):
                if key.lower() == "colspan":
                    colspan = max(int(value), 1)
                else:
                    rowspan = max(int(value), 1)
        row.append(RawCell(content, is_header, colspan, rowspan))


def _without_attributes(piece: str) -> tuple[str, str]:
    """Gives a cell's content and its attributes: what stands before a pipe, unless a link opens before it."""
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
    if row:
        row[-1] = row[-1]._replace(text=f"{row[-1].text}\n{line}")
    else:
        row.append(RawCell(line, False))
