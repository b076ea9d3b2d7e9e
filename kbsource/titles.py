"""Titles and link targets in MediaWiki's normal form, and what kind of page a target names.

Source: https://www.mediawiki.org/wiki/Manual:Page_title and Manual:Linker.
"""

from __future__ import annotations

import html
import re
import unicodedata
import urllib.parse
from functools import lru_cache
from typing import NamedTuple

from kbsource.languages import interwiki_prefixes, language_codes
from kbsource.site import CANONICAL_NAMESPACES, CATEGORY, FILE, Site

_SPACES = re.compile(r"[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE = re.compile(r"[\u200e\u200f\u202a-\u202e]+")
# Languages whose i has a dotted capital. Source: LanguageTr, LanguageAz, LanguageKk, LanguageKaa of MediaWiki.
_DOTTED_I_LANGS = frozenset({"tr", "az", "kaa", "crh", "crh-latn", "kk-latn"})


class Target(NamedTuple):
    """What a link's target names.

    Attributes:
        kind: ``page`` (any page of this wiki that is shown as a link, the main namespace or another), ``file``,
            ``category``, ``interlanguage``, ``interwiki`` or ``invalid``.
        namespace: number; 0 for the main namespace and for targets outside this wiki.
        title: normal form with prefix; for a bare fragment (``[[#History]]``) empty: the page itself.
        fragment: section, None when absent.
        is_escaped: the target began with a colon (``[[:Category:X]]``), so it is shown, not acted on.
    """

    kind: str
    namespace: int
    title: str
    fragment: str | None
    is_escaped: bool


def upper_first(title: str, lang: str) -> str:
    """Gives the title with its first code point in upper case, by MediaWiki's rules for the language.

    Letters whose capital is longer than one code point (ß) and Georgian letters stay as they are, as MediaWiki
    keeps them.
    """
    if not title:
        return title
    first = title[0]
    if first == "i" and lang in _DOTTED_I_LANGS:
        return "İ" + title[1:]
    upper = first.upper()
    if upper == first or len(upper) != 1 or "\u10d0" <= first <= "\u10ff":
        return title
    return upper + title[1:]


def clean_title(written: str) -> str:
    """Gives a title with underscores as spaces, runs of spaces collapsed, invisible marks dropped, in NFC."""
    if not written.isascii():
        written = unicodedata.normalize("NFC", _INVISIBLE.sub("", written))
    return _SPACES.sub(" ", written).strip(" ")


def normalise_title(written: str, site: Site) -> str:
    """Gives the normal form by which a page is found: cleaned, prefix in local form, first letter by the site's rule."""
    title = clean_title(written)
    if ":" in title:
        namespace, rest = split_namespace(title, site)
        if namespace:
            return _with_prefix(namespace, rest, site)
    return upper_first(title, site.lang) if site.case == "first-letter" else title


def split_namespace(title: str, site: Site) -> tuple[int, str]:
    """Gives the namespace number by the title's prefix, and the rest; (0, title) when the prefix is no namespace."""
    prefix, colon, rest = title.partition(":")
    if colon:
        number = site.namespace_by_name.get(prefix.strip(" _").replace("_", " ").casefold())
        if number is not None:
            return number, rest.strip(" _")
    return 0, title


def _with_prefix(namespace: int, rest: str, site: Site) -> str:
    prefix = site.namespaces.get(namespace)
    if prefix is None:
        prefix = next((name for name, number in site.aliases if number == namespace), None)
    if prefix is None:
        prefix = CANONICAL_NAMESPACES.get(namespace, (str(namespace),))[0]
    if site.case == "first-letter":
        rest = upper_first(rest, site.lang)
    return f"{prefix}:{rest}"


class TargetParser:
    """Parses link targets of one site; remembers the most frequent ones.

    A class rather than a function because the cache belongs to a site.
    """

    def __init__(self, site: Site, *, cache_size: int = 1 << 16) -> None:
        self._site = site
        self.parse = lru_cache(maxsize=cache_size)(self._parse)

    def _parse(self, written: str) -> Target:
        """Gives what the part of a link before ``|`` names; entities and percent escapes are decoded first."""
        text = written
        if "&" in text:
            text = html.unescape(text)
        if "%" in text:
            text = _unquote(text)
        title, hash_sign, fragment = text.partition("#")
        found_fragment = clean_title(fragment) if hash_sign else None
        title = clean_title(title)
        is_escaped = title.startswith(":")
        if is_escaped:
            title = title[1:].lstrip(" :")
        if not title:
            if found_fragment and not is_escaped:
                return Target("page", 0, "", found_fragment, False)
            return Target("invalid", 0, "", None, is_escaped)
        if ":" in title:
            namespace, rest = split_namespace(title, self._site)
            if namespace:
                full = _with_prefix(namespace, rest, self._site)
                kind = "page"
                if not is_escaped and namespace == FILE:
                    kind = "file"
                elif not is_escaped and namespace == CATEGORY:
                    kind = "category"
                return Target(kind, namespace, full, found_fragment, is_escaped)
            prefix = title.partition(":")[0].strip().lower()
            if prefix in language_codes():
                if is_escaped:
                    return Target("interwiki", 0, title, found_fragment, True)
                return Target("interlanguage", 0, title, found_fragment, False)
            if prefix in interwiki_prefixes():
                return Target("interwiki", 0, title, found_fragment, is_escaped)
        if any(character in title for character in "[]{}|<>\n"):
            return Target("invalid", 0, title, None, is_escaped)
        if self._site.case == "first-letter":
            title = upper_first(title, self._site.lang)
        return Target("page", 0, title, found_fragment, is_escaped)


def _unquote(text: str) -> str:
    try:
        return urllib.parse.unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def permanent_url(site: Site, title: str, revision_id: int) -> str:
    """Gives the address of one revision: ``https://en.wikipedia.org/w/index.php?title=A&oldid=907008348``."""
    scheme = site.base_url.split("://", 1)[0] if "://" in site.base_url else "https"
    quoted = urllib.parse.quote(title.replace(" ", "_"), safe="/:(),!*'@;$~-._")
    return f"{scheme}://{site.host}/w/index.php?title={quoted}&oldid={revision_id}"
