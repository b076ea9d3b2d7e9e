"""Records the dependencies of pages on their snapshot while their wikitext is read: names of definitions, and
titles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kbsource.identity import title_hash
from kbsource.site import TEMPLATE, Site
from kbsource.titles import clean_title, upper_first

T = TypeVar("T")
MODULE = 828
GENERATOR = "generator"
"""Represents the version of MediaWiki that wrote the dump, which modules may request."""


def template_name(name: str, site: Site) -> str:
    """Returns the name of a template's definition, ``10:Age``, from its normalised name, with or without the wiki's
    prefix.
    """
    prefix, colon, rest = name.partition(":")
    if colon and site.namespace_by_name.get(prefix.strip().casefold()) == TEMPLATE:
        name = upper_first(rest.strip(), site.lang)
    return f"{TEMPLATE}:{name}"


def module_name(name: str, site: Site) -> str:
    """Returns the name of a module's source, ``828:Age``, from its name without prefix."""
    return f"{MODULE}:{upper_first(clean_title(name), site.lang)}"


def source_name(text_hash: int) -> str:
    """Returns a name that represents all templates whose definition has this hash."""
    return f"source:{text_hash}"


class Dependencies:
    """Records dependencies. A cache must record the dependencies of every hit again."""

    __slots__ = ("_site", "names")

    def __init__(self, site: Site) -> None:
        self._site = site
        self.names: set[str] = set()  #: names of definitions, and titles as they are; cleared before each page

    def template(self, name: str) -> None:
        """Records a dependency on the definition of a template, whether it exists or not."""
        self.names.add(template_name(name, self._site))

    def module(self, name: str) -> None:
        """Records a dependency on the source of a module, whether it exists or not."""
        self.names.add(module_name(name, self._site))

    def same_source(self, text: str) -> None:
        """Records a dependency on the set of templates that have this definition."""
        self.names.add(source_name(title_hash(text)))

    def recording(self, exists: Callable[[str], bool]) -> Callable[[str], bool]:
        """Returns a function that checks whether an article of a title exists, and records the title."""

        def noted(title: str) -> bool:
            self.names.add(title)
            return exists(title)

        return noted

    def apart(self, make: Callable[[], T]) -> tuple[T, frozenset[str]]:
        """Returns the result of a function, and the dependencies that were recorded while it ran. These are also in
        ``names``.
        """
        before, self.names = self.names, set()
        try:
            made = make()
        finally:
            own, self.names = frozenset(self.names), before | self.names
        return made, own
