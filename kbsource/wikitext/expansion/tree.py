"""The source of a template as a tree of text, uses of templates and ``{{{parameters}}}``.

Source: Preprocessor_Hash of MediaWiki: which braces belong together, and which pipes and equals signs part arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

_TOKEN = re.compile(r"(\{\{+|\}\}+|\[\[|\]\]|\||=)")


class Use(NamedTuple):
    """``{{head|part|name=part}}``.

    Attributes:
        head: what stands before the first pipe.
        parts: the arguments; None as the name of one without.
        begins_line: it stands behind a newline in the source.
    """

    head: Text
    parts: tuple[tuple[Text | None, Text], ...]
    begins_line: bool


class Parameter(NamedTuple):
    """``{{{name|default}}}``; None as the default of one without."""

    name: Text
    default: Text | None


Text = tuple[str | Use | Parameter, ...]


def count_pieces(source: str) -> int:
    """Gives about the number of pieces that the tree of a source has."""
    return sum(map(source.count, ("{{", "}}", "[[", "|", "=")))


class _Open:
    """A run of braces that is open, with its arguments so far. Pipes in links within it part no arguments."""

    __slots__ = ("begins_line", "current", "key", "n_braces", "n_links", "parts")

    def __init__(self, n_braces: int, begins_line: bool) -> None:
        self.n_braces = n_braces
        self.begins_line = begins_line
        self.n_links = 0
        self.parts: list[tuple[Text | None, Text]] = []
        self.key: Text | None = None
        self.current: list[str | Use | Parameter] = []

    def end_part(self) -> None:
        self.parts.append((self.key, tuple(self.current)))
        self.key, self.current = None, []

    def written(self) -> Iterator[str | Use | Parameter]:
        """Gives it as text: nothing closes it. Braces without partner are left out, as on pages."""
        for key, value in self.parts:
            yield from (*key, "=") if key is not None else ()
            yield from (*value, "|")
        yield from (*self.key, "=") if self.key is not None else ()
        yield from self.current


def read_tree(source: str) -> Text:
    """Gives the tree of a source, in time linear in it."""
    if "{{" not in source and "}}" not in source:
        return (source,) if source else ()
    stack = [_Open(0, False)]
    pieces = _TOKEN.split(source)
    for text, token in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        top = stack[-1]
        if text:
            top.current.append(text)
        if not token:
            break
        if token[:2] == "{{":
            stack.append(_Open(len(token), text[-1:] == "\n"))
        elif token[:2] == "}}":
            _close(stack, len(token))
        elif token == "|" and top.n_braces and not top.n_links:
            top.end_part()
        elif token == "=" and top.parts and top.key is None and not top.n_links:
            top.key, top.current = tuple(top.current), []
        else:
            top.n_links = top.n_links + 1 if token == "[[" else max(top.n_links - (token == "]]"), 0)
            top.current.append(token)
    return _joined(piece for opened in stack for piece in opened.written())


def _close(stack: list[_Open], n_closers: int) -> None:
    """Closes what a run of closing braces closes."""
    while n_closers >= 2 and len(stack) > 1:
        opened = stack.pop()
        opened.end_part()
        taken = 3 if opened.n_braces >= 3 and n_closers >= 3 else 2
        left = opened.n_braces - taken
        n_closers -= taken
        head = _joined(opened.parts[0][1])
        node: Use | Parameter
        if taken == 3:
            node = Parameter(head, _default(*opened.parts[1]) if len(opened.parts) > 1 else None)
        else:
            parts = [(None if key is None else _joined(key), _joined(value)) for key, value in opened.parts[1:]]
            node = Use(head, tuple(parts), opened.begins_line and not left)
        if left >= 2:
            stack.append(_Open(left, opened.begins_line))
            stack[-1].current.append(node)
        else:
            stack[-1].current += ["{", node] if left else [node]
    if n_closers == 1:
        stack[-1].current.append("}")


def _default(key: Text | None, value: Text) -> Text:
    return _joined(value) if key is None else _joined((*key, "=", *value))


def _joined(pieces: Iterable[str | Use | Parameter]) -> Text:
    """Gives the pieces with texts side by side as one."""
    out: list[str | Use | Parameter] = []
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_text:
            out.append("".join(map(str, group)))
        else:
            out += group
    return tuple(out)
