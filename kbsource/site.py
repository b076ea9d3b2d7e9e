"""Facts about a wiki: language, namespaces and their names, first-letter rule, addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from kbsource.languages import Language, edition_code, language, language_codes, own_prefixes
from kbsource.web_addresses import base_address

# Canonical names, which every wiki accepts in addition to its own. Source:
# https://www.mediawiki.org/wiki/Help:Namespaces
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

SPECIAL, TALK, FILE, TEMPLATE, CATEGORY = -1, 1, 6, 10, 14


@dataclass(frozen=True)
class Site:
    """Facts about one wiki, from the dump's ``<siteinfo>`` if present."""

    lang: str = "en"  #: language code, from the dump's ``xml:lang`` or from dbname
    dbname: str = ""  #: ``enwiki``; empty when unknown
    name: str = ""  #: site name, ``Wikipedia``
    #: URL of the main page, ``https://en.wikipedia.org/wiki/Main_Page``, possibly without scheme; empty if unknown
    base_url: str = ""
    generator: str = ""  #: MediaWiki version that wrote the dump
    case: str = "first-letter"  #: ``first-letter`` or ``case-sensitive``
    #: local name of every namespace by number, from siteinfo; the main namespace is ""
    namespaces: dict[int, str] = field(default_factory=dict)
    aliases: tuple[tuple[str, int], ...] = ()  #: further names, from siteinfo JSON or from the language's data

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", base_address(self.base_url))

    @cached_property
    def edition(self) -> str:
        """Code of the wiki's language edition in URLs and links: ``en``, ``simple``, ``no``, ``zh-yue``.

        It is taken from the host, or else from the database name, or else from the language.
        """
        labels = self.host.split(".")
        if self.base_url and len(labels) > 2 and labels[0] not in ("www", "m"):
            return edition_code(labels[0])
        if self.dbname.endswith("wiki"):
            return edition_code(self.dbname.removesuffix("wiki"))
        return edition_code(self.lang)

    @cached_property
    def language_facts(self) -> Language:
        """The data about the wiki's language and edition that is not in the dump."""
        return language(self.edition if self.edition in language_codes() else self.lang)

    @cached_property
    def namespace_by_name(self) -> dict[str, int]:
        """The number of every namespace by its case-folded names: local, canonical, and the language's aliases.

        If a name belongs to several namespaces, canonical names have precedence, then those in the dump, then those in
        the language's data. If siteinfo lists the namespaces, names of other namespaces are ignored. Source:
        Language::getNsIndex and getNamespaceAliases of MediaWiki.
        """
        names: dict[str, int] = {}

        def add(name: str, number: int) -> None:
            if number != 0 and name and (number < 16 or not self.namespaces or number in self.namespaces):
                names[name.casefold()] = number

        for number, canonical in CANONICAL_NAMESPACES.items():
            for word in canonical:
                add(word, number)
        for alias, number in self.language_facts.namespace_aliases:
            add(alias, number)
        for number, local in self.namespaces.items():
            add(local, number)
        for alias, number in self.aliases:
            add(alias, number)
        for number, canonical in CANONICAL_NAMESPACES.items():
            if number < 16:
                add(canonical[0], number)
        return names

    @cached_property
    def own_prefixes(self) -> frozenset[str]:
        """Lower-case interwiki prefixes that point to this wiki: ``en`` and ``w`` on enwiki."""
        return own_prefixes(self.edition)

    @property
    def host(self) -> str:
        """Host name of the wiki, ``en.wikipedia.org``."""
        if self.base_url:
            return self.base_url.partition("//")[2].partition("/")[0]
        if self.dbname.endswith("wiki"):
            return f"{edition_code(self.dbname.removesuffix('wiki'))}.wikipedia.org"
        return f"{edition_code(self.lang)}.wikipedia.org"

    def to_json(self) -> dict[str, Any]:
        """Returns the facts as plain JSON values, for manifests and workers."""
        values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return values

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Site:
        """Returns the facts that ``to_json`` wrote."""
        return msgspec.convert(value, cls, str_keys=True)
