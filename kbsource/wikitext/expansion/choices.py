"""Parser functions whose arguments are worked out only where they are chosen: ``#if``, ``#switch`` and their kin.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions and ParserFunctions.php of the extension.
"""

from __future__ import annotations

from collections.abc import Callable

from kbsource.wikitext.expansion.tree import Text
from kbsource.wikitext.functions.conditions import is_same
from kbsource.wikitext.functions.measures.expressions import evaluate

ERROR = '<strong class="error">!</strong>'
"""What stands for an error message: ``#iferror`` finds it, and no reader sees it."""

Parts = tuple[tuple["Text | None", Text], ...]
Read = Callable[[Text], str]


def is_error(text: str) -> bool:
    """Says whether a text holds an error message, as ``#iferror`` looks for it."""
    return 'class="error"' in text or "class='error'" in text or "class=error" in text


def nth(parts: Parts, number: int, read: Read) -> str:
    """Gives an argument with its name, stripped; empty where there is none."""
    if number >= len(parts):
        return ""
    key, value = parts[number]
    return (read(value) if key is None else f"{read(key)}={read(value)}").strip()


def if_filled(first: str, parts: Parts, read: Read) -> str:
    """Gives the second argument where the first is not empty, else the third."""
    return nth(parts, 0 if first else 1, read)


def if_equal(first: str, parts: Parts, read: Read) -> str:
    """Gives the third argument where the first two are equal, as numbers or as text, else the fourth."""
    return nth(parts, 1 if is_same(first, nth(parts, 0, read)) else 2, read)


def if_expression(first: str, parts: Parts, read: Read) -> str:
    """Gives the second argument where the expression is true, else the third; an error where it is none."""
    value = evaluate(first) if first else 0.0
    return ERROR if value is None else nth(parts, 0 if value else 1, read)


def if_error(first: str, parts: Parts, read: Read) -> str:
    """Gives the second argument where the first holds an error message, else the third or the first itself."""
    if is_error(first):
        return nth(parts, 0, read)
    return nth(parts, 1, read) if len(parts) > 1 else first


def switch(first: str, parts: Parts, read: Read) -> str:
    """Gives the value of the case that equals the first argument, falling through cases without a value."""
    is_found = is_default = False
    default: Text | None = None
    last = ""
    for key, value in parts:
        if key is None:
            last = read(value).strip()
            is_found = is_found or is_same(last, first)
            is_default = is_default or last == "#default"
            continue
        name = read(key).strip()
        if is_found or is_same(name, first):
            return read(value).strip()
        if name == "#default" or is_default:
            default = value
            is_default = False
    if parts and parts[-1][0] is None and last != "#default":
        return last
    return read(default).strip() if default is not None else ""


CHOICES: dict[str, Callable[[str, Parts, Read], str]] = {
    "#if": if_filled,
    "#ifeq": if_equal,
    "#ifexpr": if_expression,
    "#iferror": if_error,
    "#switch": switch,
}
"""By canonical name; each takes its stripped first argument, the others, and what works one out."""
