"""What a template use says, and the few ways in which every function reads its arguments."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from kbsource.site import Site
from kbsource.wikitext.markers import BLANKS

# An argument with one of these values is as good as absent where a template asks for yes or no.
# Source: https://en.wikipedia.org/wiki/Module:Yesno
_FALSE_WORDS = frozenset({"", "no", "n", "false", "f", "off", "0", "none"})


def read_rules(name: str) -> dict[str, Any]:
    """What stands in ``rules/NAME.toml``; nothing where there is no such file."""
    source = resources.files("kbsource.wikitext").joinpath(f"rules/{name}.toml")
    return tomllib.loads(source.read_text("utf-8")) if source.is_file() else {}


@cache
def table(name: str, file: str = "tables") -> dict[str, Any]:
    """One of the small tables of ``rules/tables.toml`` or another file."""
    found: dict[str, Any] = read_rules(file)[name]
    return found


class Template(NamedTuple):
    """One use of a template, a parser function or a variable, its inner templates already rendered."""

    name: str  #: normal form: no namespace prefix, spaces for underscores, first letter upper; ``#if`` for functions
    #: unnamed arguments in order as wikitext, not stripped; numbered ones (``2=``) merged in, those stripped, as
    #: MediaWiki does. All arguments of a parser function are positional.
    positional: tuple[str, ...]
    named: dict[str, str]  #: named arguments, stripped; the last of a repeated name counts

    def argument(self, position: int, *names: str, default: str = "") -> str:
        """The stripped value of the argument at a position (from 1) or under one of the names, else the default.

        An empty value counts as absent. Position 0 asks for the names only.
        """
        if position and position <= len(self.positional):
            value = self.positional[position - 1].strip(BLANKS)
            if value:
                return value
        if self.named:
            for name in names:
                value = self.named.get(name, "")
                if value:
                    return value
        return default

    def stripped(self) -> list[str]:
        """The positional arguments without the white space around them."""
        return [value.strip(BLANKS) for value in self.positional]

    def padded(self, n_values: int) -> list[str]:
        """The positional arguments stripped, with empty ones behind them: so many values are safe to unpack."""
        return self.stripped() + [""] * n_values

    def filled(self) -> list[str]:
        """The positional arguments that are not empty, stripped."""
        return [value for value in self.stripped() if value]

    def shown(self) -> str:
        """The positional arguments side by side: what is left to say when a template is used wrongly."""
        return " ".join(self.filled())


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a template may know of the page it stands on."""

    lang: str  #: language code of the wiki
    title: str = ""  #: page title with spaces
    #: ISO time of the revision, ``2016-02-19T12:00:00Z``; empty when unknown. It is "now" for ages.
    timestamp: str = ""
    site: Site = field(default_factory=Site)  #: what the wiki says about itself
    exists: Callable[[str], bool] | None = None  #: says whether there is an article of a title; None where nobody knows

    @property
    def date(self) -> tuple[int, int, int] | None:
        """Day of the revision as (year, month, day); None when unknown."""
        try:
            return int(self.timestamp[:4]), int(self.timestamp[5:7]), int(self.timestamp[8:10])
        except ValueError:
            return None


# A function gives the wikitext that stands for the use, or None when the use shows nothing.
Function = Callable[..., "str | None"]


def is_true(value: str) -> bool:
    """Whether the value of an option means yes."""
    return value.strip().lower() not in _FALSE_WORDS


def link(target: str, label: str = "") -> str:
    """A link in wikitext; a label that holds a link itself stays as it is, as nested links do not exist."""
    target = target.strip()
    label = label.strip()
    if not target or "[[" in label:
        return label
    if "[[" in target or any(character in target for character in "[]{}|<>\n"):
        return label or target
    if not label or label == target:
        return f"[[{target}]]"
    return f"[[{target}|{label}]]"
