"""What pages ask of their snapshot while their wikitext is read: names of definitions, and titles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kbsource.identity import title_hash
from kbsource.site import TEMPLATE, Site
from kbsource.titles import clean_title, upper_first

T = TypeVar("T")
MODULE = 828
GENERATOR = "generator"
"""Stands for the version of MediaWiki that wrote the dump, which modules may ask for."""


def template_name(name: str, site: Site) -> str:
    """The name of a template's definition, ``10:Age``, by its normalised name, with or without the wiki's prefix."""
    prefix, colon, rest = name.partition(":")
    if colon and site.namespace_by_name.get(prefix.strip().casefold()) == TEMPLATE:
        name = upper_first(rest.strip(), site.lang)
    return f"{TEMPLATE}:{name}"


def module_name(name: str, site: Site) -> str:
    """The name of a module's source, ``828:Age``, by its name without prefix."""
    return f"{MODULE}:{upper_first(clean_title(name), site.lang)}"


def source_name(text_hash: int) -> str:
    """Stands for all templates whose definition has this hash."""
    return f"source:{text_hash}"


class Asked:
    """Takes note of what is asked for; what is remembered from page to page is noted again by who remembers it."""

    __slots__ = ("_site", "names")

    def __init__(self, site: Site) -> None:
        self._site = site
        self.names: set[str] = set()  #: of definitions, and titles as they are; to be emptied before a page

    def template(self, name: str) -> None:
        """Notes that the definition of a template counts, whether there is one or not."""
        self.names.add(template_name(name, self._site))

    def module(self, name: str) -> None:
        """The same of a module."""
        self.names.add(module_name(name, self._site))

    def same_source(self, text: str) -> None:
        """Notes that it counts which templates have this definition."""
        self.names.add(source_name(title_hash(text)))

    def noting(self, exists: Callable[[str], bool]) -> Callable[[str], bool]:
        """What says whether there is an article of a title, and notes the title."""

        def noted(title: str) -> bool:
            self.names.add(title)
            return exists(title)

        return noted

    def apart(self, make: Callable[[], T]) -> tuple[T, frozenset[str]]:
        """What a function gives, and the names that it asks for, which are noted as well."""
        before, self.names = self.names, set()
        try:
            made = make()
        finally:
            own, self.names = frozenset(self.names), before | self.names
        return made, own
