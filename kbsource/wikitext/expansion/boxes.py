"""Boxes within an expansion by what they say of themselves: they leave the text, and infoboxes are known for such."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from kbsource.wikitext.expansion.tree import Parameter, Text, Use
from kbsource.wikitext.markers import CUT, TEMPLATE_LINK

_KINDS = ("hidden", "maintenance", "aside", "infobox")  # where several fit, the first counts
# A tag, or the line that begins or ends a table of wikitext.
_PIECE = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s[^<>]*)?)>|(?:\A|\n)[ \t:*#\x02\x0b]*\{\|([^\n]*)|\n[ \t\x02]*\|\}"
)
_ATTRIBUTE = re.compile(r"\b(class|style|role|id)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>|]+))", re.IGNORECASE)
_TELLING = re.compile(r"class|style|role|\bid\b", re.IGNORECASE)
_NO_CONTENT = frozenset({"br", "hr", "img", "wbr", "link", "meta", "col", "input"})
_CATEGORY = re.compile(rf"\[\[{TEMPLATE_LINK}?\s*([^\[\]|:\n]{{1,100}}):[^\[\]\n]*\]\]")
_TAG = re.compile(r"<[^<>\n]*>")
_LONGEST_HATNOTE = 1000
_NODE = "\x00"  # stands for what is no text, in no source


class _Signs(NamedTuple):
    """What tells a kind of box; ``prefixes`` are beginnings of classes, with ``kinds`` beside them."""

    values: dict[tuple[str, str], str]
    prefixes: dict[str, str]
    styles: dict[str, re.Pattern[str]]


class _Box(NamedTuple):
    start: int
    inner_start: int
    inner_end: int
    end: int
    kind: str


@cache
def _signs() -> _Signs:
    text = resources.files("kbsource.wikitext").joinpath("rules/box_classes.toml").read_text("utf-8")
    data: dict[str, dict[str, Any]] = tomllib.loads(text)
    values: dict[tuple[str, str], str] = {}
    prefixes: dict[str, str] = {}
    styles: dict[str, re.Pattern[str]] = {}
    for kind in _KINDS:
        for attribute, key in (("class", "classes"), ("role", "roles"), ("id", "ids")):
            for value in data[kind].get(key, ()):
                if value.endswith("*"):
                    prefixes.setdefault(value[:-1], kind)
                else:
                    values.setdefault((attribute, value), kind)
        if data[kind].get("styles"):
            styles[kind] = re.compile("|".join(data[kind]["styles"]), re.IGNORECASE)
    return _Signs(values, prefixes, styles)


def read_boxes(text: str, is_category: Callable[[str], bool]) -> tuple[str, frozenset[str]]:
    """Gives an expansion without its boxes, and their kinds.

    Tables that are no boxes stay. Categories in boxes stay as well, but where one of the boxes is of maintenance:
    then all of them go.

    Args:
        text: the expansion, HTML and tables as they are written.
        is_category: says whether links with this prefix put a page into a category.
    """
    if text[:1] == ":" and _is_hatnote(text):
        return "", frozenset({"aside"})
    if not _TELLING.search(text):
        return text, frozenset()
    boxes = _find_boxes(text)
    if not boxes:
        return text, frozenset()
    out: list[str] = []
    position = 0
    for box in boxes:
        out += [text[position : box.start], CUT]
        out += [link[0] for link in _CATEGORY.finditer(text, box.start, box.end) if is_category(link[1])]
        position = box.end
    out.append(text[position:])
    text = "".join(out)
    kinds = frozenset(box.kind for box in boxes)
    if "maintenance" in kinds:
        text = _CATEGORY.sub(lambda link: CUT if is_category(link[1]) else link[0], text)
    return text, kinds


def without_insides(tree: Text, is_category: Callable[[str], bool], n_levels: int = 20) -> Text:
    """Gives a definition whose boxes are empty, so that nothing is worked out for what nobody sees of them.

    What its uses show is the same. Boxes that are no maintenance keep their categories, and those of them keep all
    that hold braces, from which categories may come.

    Args:
        tree: the definition.
        is_category: see ``read_boxes``.
        n_levels: braces within braces so deep are looked into.
    """
    if not n_levels:
        return tree
    nodes = [node if isinstance(node, str) else _with_empty_boxes(node, is_category, n_levels - 1) for node in tree]
    text = "".join(node if isinstance(node, str) else _NODE for node in nodes)
    if not _TELLING.search(text):
        return tuple(nodes)
    others = iter(node for node in nodes if not isinstance(node, str))
    out: list[str | Use | Parameter] = []
    position = 0
    for box in _find_boxes(text):
        inside = text[box.inner_start : box.inner_end]
        if box.kind != "maintenance" and _NODE in inside:
            continue
        out += _filled(text[position : box.inner_start], others)
        if box.kind != "maintenance":
            out += [link[0] for link in _CATEGORY.finditer(inside) if is_category(link[1])]
        for _ in range(inside.count(_NODE)):
            next(others)
        position = box.inner_end
    return (*out, *_filled(text[position:], others))


def _with_empty_boxes(node: Use | Parameter, *args: Any) -> Use | Parameter:
    if isinstance(node, Parameter):
        return node if node.default is None else node._replace(default=without_insides(node.default, *args))
    is_choice = bool(node.head) and str(node.head[0]).lstrip().startswith("#if")
    parts: list[tuple[Text | None, Text]] = []
    for name, value in node.parts:
        is_apart = name is not None and not is_choice  # an equals sign of an attribute parts nothing
        text: Text = value if name is None or is_apart else (*name, "=", *value)
        parts.append((name if is_apart else None, without_insides(text, *args)))
    return node._replace(parts=tuple(parts))


def _filled(text: str, nodes: Iterator[Use | Parameter]) -> Iterator[str | Use | Parameter]:
    """Gives a text with its nodes back in their places."""
    first, *rest = text.split(_NODE)
    if first:
        yield first
    for piece in rest:
        yield next(nodes)
        if piece:
            yield piece


def _is_hatnote(text: str) -> bool:
    """Says whether a text is a note to the reader from before there were classes: one indented line in italics."""
    if len(text) > _LONGEST_HATNOTE or "[[" not in text or "\n" in text.strip():
        return False
    words = _TAG.sub("", text).strip(": \n")
    return words.startswith("''") and words.endswith("''") and words[2:3] != "'"


def _find_boxes(text: str) -> list[_Box]:
    """Gives the outermost boxes that are closed, in order."""
    found: list[_Box] = []
    stack: list[tuple[str, int, int, str]] = []  # name of the tag, where it begins and ends, kind of box or ""
    opened = [Counter[str]()]  # open tags by name, outside of tables and in each table within the one before
    for match in _PIECE.finditer(text):
        name = (match[2] or "{|").lower()
        attributes = match[3] if match[2] else match[4]
        if match[1] or attributes is None:
            if attributes is None:
                if len(opened) == 1:
                    continue
                opened.pop()
            elif not opened[-1][name]:
                continue
            while True:
                last, start, inner_start, kind = stack.pop()
                if last == name:
                    break
                opened[-1][last] -= attributes is not None
            opened[-1][name] -= attributes is not None
            if kind:
                while found and found[-1].start >= start:
                    found.pop()
                found.append(_Box(start, inner_start, match.start(), match.end(), kind))
        elif name not in _NO_CONTENT and not attributes.endswith("/"):
            start = match.start() + (match[0][:1] == "\n")
            stack.append((name, start, match.end(), _kind_of(attributes) if attributes else ""))
            if match[2]:
                opened[-1][name] += 1
            else:
                opened.append(Counter())
    return found


def _kind_of(attributes: str) -> str:
    """Gives the kind of box that a tag with these attributes opens; empty where it opens none."""
    signs = _signs()
    kinds: set[str] = set()
    for name, *values in _ATTRIBUTE.findall(attributes):
        name, value = name.lower(), "".join(values).lower()
        if name == "style":
            kinds.update(kind for kind, pattern in signs.styles.items() if pattern.search(value))
            continue
        for word in value.split():
            kind = signs.values.get((name, word))
            if kind is None and name == "class":
                kind = next((kind for prefix, kind in signs.prefixes.items() if word.startswith(prefix)), None)
            if kind:
                kinds.add(kind)
    return next((kind for kind in _KINDS if kind in kinds), "")
