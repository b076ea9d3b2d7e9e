"""What a template use says, and the few ways in which every function reads its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

# An argument with one of these values is as good as absent where a template asks for yes or no.
# Source: https://en.wikipedia.org/wiki/Module:Yesno
_FALSE_WORDS = frozenset({"", "no", "n", "false", "f", "off", "0", "none"})


class Template(NamedTuple):
    """One use of a template, a parser function or a variable, its inner templates already rendered.

    Attributes:
        name: normal form: no namespace prefix, spaces for underscores, first letter upper; ``#if`` for functions.
        positional: unnamed arguments in order as wikitext, not stripped; numbered ones (``2=``) merged in, those
            stripped, as MediaWiki does. All arguments of a parser function are positional.
        named: named arguments, stripped; the last of a repeated name counts.
    """

    name: str
    positional: tuple[str, ...]
    named: dict[str, str]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a template may know of the page it stands on.

    Attributes:
        lang: language code of the wiki.
        title: page title with spaces.
        timestamp: ISO time of the revision, ``2016-02-19T12:00:00Z``; empty when unknown. It is "now" for ages.
    """

    lang: str
    title: str = ""
    timestamp: str = ""

    @property
    def date(self) -> tuple[int, int, int] | None:
        """Day of the revision as (year, month, day); None when unknown."""
        try:
            return int(self.timestamp[:4]), int(self.timestamp[5:7]), int(self.timestamp[8:10])
        except ValueError:
            return None


class Moment(Protocol):
    """What functions of time ask of a page; ``PageFacts`` is one."""

    @property
    def lang(self) -> str: ...
    @property
    def timestamp(self) -> str: ...
    @property
    def date(self) -> tuple[int, int, int] | None: ...


# A function gives the wikitext that stands for the use, or None when the use shows nothing.
Function = Callable[..., "str | None"]


def argument(template: Template, position: int, *names: str, default: str = "") -> str:
    """Gives the stripped value of the argument at a position (from 1) or under one of the names, else the default.

    An empty value counts as absent. Position 0 asks for the names only.
    """
    if position and position <= len(template.positional):
        value = template.positional[position - 1].strip()
        if value:
            return value
    if template.named:
        for name in names:
            value = template.named.get(name, "")
            if value:
                return value
    return default


def stripped(template: Template) -> list[str]:
    """Gives the positional arguments without the white space around them."""
    return [value.strip() for value in template.positional]


def padded(template: Template, n_values: int) -> list[str]:
    """Gives the positional arguments stripped, with empty ones behind them: so many values are safe to unpack."""
    return [value.strip() for value in template.positional] + [""] * n_values


def filled(template: Template) -> list[str]:
    """Gives the positional arguments that are not empty, stripped."""
    return [value for value in stripped(template) if value]


def is_true(value: str) -> bool:
    """Says whether the value of an option means yes."""
    return value.strip().lower() not in _FALSE_WORDS


def shown(template: Template) -> str:
    """Gives the positional arguments side by side: what is left to say when a template is used wrongly."""
    return " ".join(filled(template))


def link(target: str, label: str = "") -> str:
    """Gives a link in wikitext; a label that holds a link itself stays as it is, as nested links do not exist."""
    target = target.strip()
    label = label.strip()
    if not target or "[[" in label:
        return label
    if "[[" in target or any(character in target for character in "[]{}|<>\n"):
        return label or target
    if not label or label == target:
        return f"[[{target}]]"
    return f"[[{target}|{label}]]"
