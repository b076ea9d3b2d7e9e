"""What a wiki says about itself: language, namespaces and their names, first-letter rule, addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kbsource.languages import language

# Canonical names, understood by every wiki beside its own. Source: https://www.mediawiki.org/wiki/Help:Namespaces
CANONICAL_NAMESPACES: dict[int, tuple[str, ...]] = {
    -2: ("Media",),
    -1: ("Special",),
    1: ("Talk",),
    2: ("User",),
    3: ("User talk",),
    4: ("Project",),
    5: ("Project talk",),
    6: ("File", "Image"),
    7: ("File talk", "Image talk"),
    8: ("MediaWiki",),
    9: ("MediaWiki talk",),
    10: ("Template",),
    11: ("Template talk",),
    12: ("Help",),
    13: ("Help talk",),
    14: ("Category",),
    15: ("Category talk",),
    100: ("Portal",),
    101: ("Portal talk",),
    118: ("Draft",),
    119: ("Draft talk",),
    710: ("TimedText",),
    711: ("TimedText talk",),
    828: ("Module",),
    829: ("Module talk",),
}

FILE, TEMPLATE, CATEGORY = 6, 10, 14


@dataclass(frozen=True)
class Site:
    """Facts of one wiki, from the dump's ``<siteinfo>`` where it has one.

    Attributes:
        lang: language code, from the dump's ``xml:lang`` or from dbname.
        dbname: ``enwiki``; empty when unknown.
        name: site name, ``Wikipedia``.
        base_url: address of the main page, ``https://en.wikipedia.org/wiki/Main_Page``; empty when unknown.
        generator: MediaWiki version that wrote the dump.
        case: ``first-letter`` or ``case-sensitive``.
        namespaces: local name of every namespace by number, from siteinfo; the main one is "".
        aliases: further names, from siteinfo JSON or from the language's data.
    """

    lang: str = "en"
    dbname: str = ""
    name: str = ""
    base_url: str = ""
    generator: str = ""
    case: str = "first-letter"
    namespaces: dict[int, str] = field(default_factory=dict)
    aliases: tuple[tuple[str, int], ...] = ()

    @cached_property
    def namespace_by_name(self) -> dict[str, int]:
        """Number of every namespace by its case-folded names: local, canonical, and the language's aliases."""
        names: dict[str, int] = {}
        for alias, number in language(self.lang).namespace_aliases:
            names[alias.casefold()] = number
        for number, canonical in CANONICAL_NAMESPACES.items():
            if number < 100 or not self.namespaces or number in self.namespaces:
                for one in canonical:
                    names[one.casefold()] = number
        for alias, number in self.aliases:
            names[alias.casefold()] = number
        for number, local in self.namespaces.items():
            if number != 0:
                names[local.casefold()] = number
        return names

    @property
    def host(self) -> str:
        """Host of the wiki, ``en.wikipedia.org``."""
        if "://" in self.base_url:
            return self.base_url.split("://", 1)[1].split("/", 1)[0]
        return f"{self.lang}.wikipedia.org"

    def to_json(self) -> dict[str, Any]:
        """Gives the facts as plain JSON values, for manifests and workers."""
        return {
            "lang": self.lang,
            "dbname": self.dbname,
            "name": self.name,
            "base_url": self.base_url,
            "generator": self.generator,
            "case": self.case,
            "namespaces": {str(number): name for number, name in sorted(self.namespaces.items())},
            "aliases": [list(alias) for alias in self.aliases],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Site:
        """Gives back what ``to_json`` gave."""
        return cls(
            lang=value["lang"],
            dbname=value["dbname"],
            name=value["name"],
            base_url=value["base_url"],
            generator=value["generator"],
            case=value["case"],
            namespaces={int(number): name for number, name in value["namespaces"].items()},
            aliases=tuple((str(name), int(number)) for name, number in value["aliases"]),
        )
