"""A use of a template, and the functions that read its arguments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from kbsource.site import Site
from kbsource.wikitext.markers import BLANKS

# An argument with one of these values counts as absent if a template expects yes or no. Source:
# https://en.wikipedia.org/wiki/Module:Yesno
_FALSE_WORDS = frozenset({"", "no", "n", "false", "f", "off", "0", "none"})


@cache
def read_rules(name: str) -> dict[str, Any]:
    """Returns the content of ``rules/NAME.toml``, which callers must not change; empty if there is no such file."""
    source = resources.files("kbsource.wikitext").joinpath(f"rules/{name}.toml")
    return tomllib.loads(source.read_text("utf-8")) if source.is_file() else {}


def read_section(name: str, section: str) -> dict[str, Any]:
    """Returns one table of ``rules/NAME.toml``, without parsing the rest of a large file; empty if there is no such
    table. The file must have a bracket at the beginning of a line only for the names of tables.
    """
    return tomllib.loads(sections(name).get(section, ""))


@cache
def sections(name: str) -> dict[str, str]:
    """Returns the text of each table of ``rules/NAME.toml``, which callers must not change, by its name."""
    source = resources.files("kbsource.wikitext").joinpath(f"rules/{name}.toml").read_text("utf-8")
    pieces = _SECTION.split(source)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


_SECTION = re.compile(r"(?m)^\[(.+)\]$")


@cache
def table(name: str, file: str = "tables") -> dict[str, Any]:
    """Returns one of the small tables of ``rules/tables.toml`` or another file."""
    found: dict[str, Any] = read_rules(file)[name]
    return found


class Template(NamedTuple):
    """A use of a template, a parser function or a variable. Templates in its arguments are already rendered."""

    name: str  #: normal form: no namespace prefix, spaces for underscores, first letter upper; ``#if`` for functions
    #: unnamed arguments in order as wikitext, not stripped; numbered ones (``2=``) are merged in, stripped, as in
    #: MediaWiki. All arguments of a parser function are positional.
    positional: tuple[str, ...]
    named: dict[str, str]  #: named arguments, stripped; of a repeated name the last

    def argument(self, position: int, *names: str, default: str = "") -> str:
        """Returns the stripped value of the argument at a position (from 1) or under one of the names, else the
        default.

        An empty value counts as absent. Position 0 looks up only the names.
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
        """Returns the positional arguments without surrounding white space."""
        return [value.strip(BLANKS) for value in self.positional]

    def padded(self, n_values: int) -> list[str]:
        """Returns the positional arguments, stripped, followed by ``n_values`` empty strings, so that this many values
        can always be unpacked.
        """
        return self.stripped() + [""] * n_values

    def filled(self) -> list[str]:
        """Returns the non-empty positional arguments, stripped."""
        return [value for value in self.stripped() if value]

    def shown(self) -> str:
        """Returns the positional arguments joined by spaces: the output if a template is used incorrectly."""
        return " ".join(self.filled())


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts about its page that a template may use."""

    lang: str  #: language code of the wiki
    title: str = ""  #: page title with spaces
    #: ISO time of the revision, ``2016-02-19T12:00:00Z``; empty if unknown. It is "now" for ages.
    timestamp: str = ""
    site: Site = field(default_factory=Site)  #: facts about the wiki
    exists: Callable[[str], bool] | None = None  #: returns whether an article of a title exists; None if unknown

    @property
    def date(self) -> tuple[int, int, int] | None:
        """Date of the revision as (year, month, day); None if unknown."""
        try:
            return int(self.timestamp[:4]), int(self.timestamp[5:7]), int(self.timestamp[8:10])
        except ValueError:
            return None


# A function returns the wikitext that replaces the use, or None if the use shows nothing.
Function = Callable[..., "str | None"]


def is_true(value: str) -> bool:
    """Returns whether the value of an option means yes."""
    return value.strip().lower() not in _FALSE_WORDS


def wikitext_link(target: str, label: str = "") -> str:
    """Returns a link in wikitext; a label that contains a link is returned as it is, because links cannot be nested."""
    target = target.strip()
    label = label.strip()
    if not target or "[[" in label:
        return label
    if "[[" in target or any(character in target for character in "[]{}|<>\n"):
        return label or target
    if not label or label == target:
        return f"[[{target}]]"
    return f"[[{target}|{label}]]"
