"""Parses the source of a template into a tree of text, uses of templates and ``{{{parameters}}}``.

Braces match, and pipes and equals signs separate arguments, as in MediaWiki. Source: its Preprocessor_Hash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from kbsource.wikitext.functions.arguments import read_rules
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants
from kbsource.wikitext.markers import CUT, TEMPLATE_LINK, as_read
from kbsource.wikitext.tags import find_closer, strip_extensions

_TOKEN = re.compile(r"(\{\{+|\}\}+|\[\[|\]\]|\||=)")


class Use(NamedTuple):
    """``{{head|part|name=part}}``."""

    head: Text  #: the text before the first pipe
    #: (name, value) of the arguments; an unnamed argument has the name None
    parts: tuple[tuple[Text | None, Text], ...]
    begins_line: bool  #: true if it comes directly after a newline in the source


class Parameter(NamedTuple):
    """``{{{name|default}}}``; the default may be None."""

    name: Text
    default: Text | None


Text = tuple[str | Use | Parameter, ...]


MAX_SOURCE_CHARS = 2 << 20
"""Maximum length of a page's source. MediaWiki's $wgMaxArticleSize, which counts bytes, allows no longer page."""

_OPAQUE = "nowiki|pre|syntaxhighlight|source|math|templatedata"
_PART = re.compile(rf"<(?:!--|((?ai:noinclude|includeonly|onlyinclude|{_OPAQUE}))(\s[^<>]*)?(/?)>)")
_CLOSERS = re.compile(r"</?(?ai:noinclude|includeonly|onlyinclude)(?:\s[^<>]*)?/?>")


def transcluded(source: str, lang: str, losses: Counter[str], *, is_marked: bool = False) -> str:
    r"""Returns the part of a template's source that is inserted into a page, before its braces are expanded.

    Comments are removed. Extension tags are processed as on pages and counted in ``losses``. Links are marked as made
    by a template. With ``is_marked``, characters of ``markers`` in the source are kept; otherwise they are removed.

    >>> source = "a<noinclude>b</noinclude><!-- c -->[[d]]<includeonly>e</includeonly>"
    >>> transcluded(source, "en", Counter()).replace("\x1c", "")
    'a[[d]]e'
    """
    if len(source) > MAX_SOURCE_CHARS:
        return ""
    source = source.replace(f"[[{TEMPLATE_LINK}", "[[") if is_marked else as_read(source)[0]
    if "<" in source:
        if "<onlyinclude>" in source and "</onlyinclude>" in source:
            source = "".join(_only(source))
        source = strip_extensions(_included(source), losses)
    if lang in VARIANT_LANGS:
        source = choose_variants(source)
    return source.replace("[[", f"[[{TEMPLATE_LINK}")


def _only(source: str) -> Iterator[str]:
    """Returns the texts between ``<onlyinclude>`` and its closing tag."""
    position = 0
    while (start := source.find("<onlyinclude>", position)) >= 0:
        position = source.find("</onlyinclude>", start)
        if position < 0:
            return
        yield source[start + len("<onlyinclude>") : position]


def _included(source: str) -> str:
    """Returns the source without the parts shown only on the template's own page; an unclosed ``<noinclude>``
    extends to the end.
    """
    out: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while match := _PART.search(source, position):
        out.append(_CLOSERS.sub("", source[position : match.start()]))
        position = match.end()
        tag = (match[1] or "!--").lower()
        if tag in ("includeonly", "onlyinclude") or (match[3] and tag == "noinclude"):
            continue
        if match[3] or tag in unclosed:
            out.append(match[0])
            continue
        if tag == "!--":
            end = source.find("-->", position)
            position = end + 3 if end >= 0 else len(source)
            if end >= 0:  # a line with only comments is removed later, with the tags
                out.append(source[match.start() : position])
        elif tag == "noinclude":
            closer = find_closer(tag, source, position)
            position = closer.end() if closer else len(source)
        elif closer := find_closer(tag, source, position):
            position = closer.end()
            out.append(source[match.start() : position])
        else:
            unclosed.add(tag)
            out.append(match[0])
    out.append(_CLOSERS.sub("", source[position:]))
    return "".join(out)


def count_pieces(source: str) -> int:
    """Returns the approximate number of syntax elements in the tree of a source."""
    return sum(map(source.count, ("{{", "}}", "[[", "|", "=")))


class _Open:
    """A run of opening braces that is not yet closed, with its arguments so far. Pipes in links separate no
    arguments.
    """

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
        """Returns the content of a run that is never closed as text. Unmatched braces are left out, as on pages."""
        for key, value in self.parts:
            yield from (*key, "=") if key is not None else ()
            yield from (*value, "|")
        yield from (*self.key, "=") if self.key is not None else ()
        yield from self.current


def read_tree(source: str) -> Text:
    """Returns the tree of a source, in linear time."""
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
    """Closes the open runs that match a run of closing braces."""
    while n_closers >= 2 and len(stack) > 1:
        opened = stack.pop()
        opened.end_part()
        taken = 3 if opened.n_braces >= 3 and n_closers >= 3 else 2
        left = opened.n_braces - taken
        n_closers -= taken
        head = _joined(opened.parts[0][1])
        node: Use | Parameter
        if taken == 3:
            defaults = (value if key is None else (*key, "=", *value) for key, value in opened.parts[1:2])
            node = Parameter(head, next(map(_joined, defaults), None))
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


def _joined(pieces: Iterable[str | Use | Parameter]) -> Text:
    """Returns the nodes with adjacent texts joined."""
    out: list[str | Use | Parameter] = []
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_text:
            out.append("".join(map(str, group)))
        else:
            out += group
    return tuple(out)


_KINDS = ("hidden", "maintenance", "aside", "infobox")  # if several apply, the first is used
# A tag, or the first or last line of a wikitext table.
_PIECE = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s[^<>]*)?)>|(?:\A|\n)[ \t:*#\x02\x0b]*\{\|([^\n]*)|\n[ \t\x02]*\|\}"
)
_ATTRIBUTE = re.compile(r"\b((?ai:class|style|role|id))\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>|]+))")
_TELLING = re.compile(r"(?ai:class|style|role)|\b(?ai:id)\b")
_NO_CONTENT = frozenset({"br", "hr", "img", "wbr", "link", "meta", "col", "input"})
_CATEGORY = re.compile(rf"\[\[{TEMPLATE_LINK}?\s*([^\[\]|:\n]{{1,100}}):[^\[\]\n]*\]\]")
_TAG = re.compile(r"<[^<>\n]*>")
_LONGEST_HATNOTE = 1000
_NODE = "\x00"  # placeholder for a node that is not text; cannot occur in a source


class _Signs(NamedTuple):
    """The attributes that identify boxes. ``prefixes`` are pairs of a class name's prefix and the kind of box."""

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
    data: dict[str, dict[str, Any]] = read_rules("box_classes")
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
    """Returns the output of a template without its boxes, and the kinds of these boxes.

    Tables that are not boxes stay. Categories in boxes stay too, except if one of the boxes is a maintenance box: then
    no category stays. ``is_category`` returns whether a link with a prefix adds the page to a category.
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
    """Returns a template's definition with its boxes emptied, so that text that is not carried over is not expanded.

    The resulting text is the same. Boxes other than maintenance boxes keep their categories, so such a box is not
    emptied if it contains braces, which may add categories. Nested braces are searched ``n_levels`` deep.
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
        is_apart = name is not None and not is_choice  # so that an equals sign in an attribute separates nothing
        text: Text = value if name is None or is_apart else (*name, "=", *value)
        parts.append((name if is_apart else None, without_insides(text, *args)))
    return node._replace(parts=tuple(parts))


def _filled(text: str, nodes: Iterator[Use | Parameter]) -> Iterator[str | Use | Parameter]:
    """Returns a text with the nodes in place of their placeholders."""
    first, *rest = text.split(_NODE)
    if first:
        yield first
    for piece in rest:
        yield next(nodes)
        if piece:
            yield piece


def _is_hatnote(text: str) -> bool:
    """Returns whether a text is a hatnote without a CSS class, as in old templates: one indented line in italics."""
    if len(text) > _LONGEST_HATNOTE or "[[" not in text or "\n" in text.strip():
        return False
    words = _TAG.sub("", text).strip(": \n")
    return words.startswith("''") and words.endswith("''") and words[2:3] != "'"


def _find_boxes(text: str) -> list[_Box]:
    """Returns the boxes of a text in order. Boxes inside others and unclosed boxes are skipped."""
    found: list[_Box] = []
    stack: list[tuple[str, int, int, str]] = []  # name of the tag, start and end of the tag, kind of box or ""
    opened = [Counter[str]()]  # open tags by name, outside tables and in each nested table
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
    """Returns the kind of box that a tag opens, from its attributes; empty if it opens no box."""
    return kind_of_box((name.lower(), "".join(values).lower()) for name, *values in _ATTRIBUTE.findall(attributes))


def kind_of_box(attributes: Iterable[tuple[str, str]]) -> str:
    """Returns the kind of box of an HTML element: ``hidden``, ``maintenance``, ``aside`` or ``infobox``; empty if it is
    no box.

    Args:
        attributes: the element's ``class``, ``style``, ``role`` and ``id``, names and values in lower case.
    """
    signs = _signs()
    kinds: set[str] = set()
    for name, value in attributes:
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
