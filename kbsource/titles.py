"""Titles and link targets in MediaWiki's normal form, and the kind of page that a target names.

Source: MediaWikiTitleCodec::splitTitleString and Parser::handleInternalLinks2 of MediaWiki 1.39;
https://www.mediawiki.org/wiki/Manual:Page_title.
"""

from __future__ import annotations

import re
import unicodedata
import urllib.parse
from functools import lru_cache
from typing import NamedTuple

from kbsource.languages import edition_code, interwiki_prefixes, language_codes
from kbsource.numerals import unescape
from kbsource.site import CANONICAL_NAMESPACES, CATEGORY, FILE, SPECIAL, TALK, Site

_SPACES = re.compile(r"[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE = re.compile(r"[\u200e\u200f\u202a-\u202e]+")

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # may result from decoded escapes
# ASCII titles that are already in normal form except for the first letter: no prefix, no fragment, no escape.
_WORD = r"[A-Za-z0-9'(),.!*;$@+\-]"
_PLAIN = re.compile(rf"[A-Za-z0-9]{_WORD}*+(?:(?: |/(?!\.)){_WORD}++)*+")

# Not allowed in titles: these characters, percent escapes, character references, relative paths (./ and ../) and
# signatures (~~~).
_INVALID = re.compile(
    r"[\x00-\x1f\x7f#<>\[\]{|}\ufffd\ud800-\udfff]|%[0-9A-Fa-f]{2}|&[A-Za-z0-9\x80-\U0010ffff]+;|~~~"
    r"|\A\.\.?(?:/|\Z)|/\.\.?(?:/|\Z)"
)
_REFERENCE = re.compile(r"&(?:[A-Za-z0-9]+|#[0-9]+|#[xX][0-9A-Fa-f]+);")
# Links to such targets are external links in the wrong brackets. Source: $wgUrlProtocols of MediaWiki 1.39.
_PROTOCOL = re.compile(
    r" *(?:(?:ftps?|git|gopher|https?|ircs?|mms|nntp|redis|sftp|ssh|svn|telnet|worldwind):)?//"
    r"| *(?:bitcoin|geo|magnet|mailto|matrix|news|sips?|sms|tel|urn|xmpp):",
    re.IGNORECASE,
)
_LONGEST_COMPOSED = 4096  # in characters; a longer text is no title, and long runs of combining marks are sorted slowly
_MAX_BYTES = 255
_MAX_BYTES_SPECIAL = 512

# Languages in which the capital of i has a dot. Source: LanguageTr, LanguageAz, LanguageKaa of MediaWiki 1.39, and the
# languages that use their class as a fallback.
_DOTTED_I_LANGS = frozenset({"tr", "az", "kaa", "gag", "lez"})
# Namespaces whose titles begin with a capital even on case-sensitive wikis, as do the titles of their talk pages.
# Source: NamespaceInfo::ALWAYS_CAPITALIZED_NAMESPACES of MediaWiki.
_ALWAYS_CAPITALISED = frozenset({-1, 2, 3, 8, 9})


class Target(NamedTuple):
    """The target of a link, parsed."""

    #: ``page`` (any page of this wiki that is shown as a link, in any namespace), ``file``, ``category``,
    #: ``interlanguage``, ``interwiki`` or ``invalid``
    kind: str
    namespace: int  #: number; 0 for the main namespace and for targets outside this wiki
    #: title in normal form with prefix; empty for a fragment only (``[[#History]]``), which means the page itself.
    #: Targets outside this wiki keep their letter case and begin with the interwiki prefix as written
    title: str
    fragment: str | None  #: section; None if absent or empty
    #: true if the target begins with a colon (``[[:Category:X]]``) or with this wiki's own prefix
    #: (``[[en:Category:X]]`` on the English Wikipedia). Such a link is shown and has no other effect
    is_escaped: bool


def upper_first(title: str, lang: str) -> str:
    """Returns the title with its first code point in title case, by MediaWiki's rules for the language.

    Letters whose capital is longer than one code point (ß, ŉ, և) are unchanged, as are Georgian letters, which have no
    separate title case. The result is in NFC if the title was.

    Source: Language::ucfirst; UcfirstOverrides.php of Wikimedia's configuration.
    """
    if not title:
        return title
    first = title[0]
    if first == "i" and lang in _DOTTED_I_LANGS:
        upper = "İ"
    else:
        upper = first.title()
        if upper == first or len(upper) != 1:
            return title
    if 1 < len(title) <= _LONGEST_COMPOSED and title[1] > "\u02ff" and unicodedata.combining(title[1]):
        return unicodedata.normalize("NFC", upper + title[1:])
    return upper + title[1:]


def clean_title(written: str) -> str:
    """Returns a title in NFC, with single spaces in place of underscores and runs of spaces, and without invisible
    marks.
    """
    if not written.isascii():
        written = _INVISIBLE.sub("", written)
        if len(written) <= _LONGEST_COMPOSED:
            written = unicodedata.normalize("NFC", written)
        return _SPACES.sub(" ", written).strip(" ")
    if "_" in written:
        written = written.replace("_", " ")
    if "  " in written:
        written = _SPACES.sub(" ", written)
    return written.strip(" ")


def normalise_title(written: str, site: Site) -> str:
    """Returns the title in normal form, by which pages are looked up: cleaned, with the local name of the namespace,
    and with the first letter in the case that the site requires.
    """
    title = clean_title(written).lstrip(": ")
    namespace = 0
    if ":" in title:
        namespace, rest = split_namespace(title, site)
        if namespace:
            return _with_prefix(namespace, rest, site)
    return _capitalise(title, namespace, site)


def split_namespace(title: str, site: Site) -> tuple[int, str]:
    """Returns the namespace number of the title's prefix, and the rest; (0, title) if it has no namespace prefix."""
    prefix, colon, rest = title.partition(":")
    if colon:
        number = site.namespace_by_name.get(prefix.strip(" _").replace("_", " ").casefold())
        if number is not None:
            return number, rest.strip(" _")
    return 0, title


def is_valid_title(title: str, *, namespace: int = 0) -> bool:
    """Returns whether MediaWiki allows a page with that title, passed in normal form without its prefix."""
    if not title or title[0] == ":" or _INVALID.search(title):
        return False
    limit = _MAX_BYTES_SPECIAL if namespace == SPECIAL else _MAX_BYTES
    return len(title) * 4 <= limit or len(title.encode()) <= limit


def _capitalise(title: str, namespace: int, site: Site) -> str:
    if site.case == "first-letter" or namespace in _ALWAYS_CAPITALISED:
        return upper_first(title, site.lang)
    return title


def _with_prefix(namespace: int, rest: str, site: Site) -> str:
    prefix = site.namespaces.get(namespace)
    if prefix is None:
        prefix = CANONICAL_NAMESPACES.get(namespace, (str(namespace),))[0]
    return f"{prefix}:{_capitalise(rest, namespace, site)}"


class TargetParser:
    """Parses a site's link targets, and caches the most frequent ones."""

    def __init__(self, site: Site, *, cache_size: int = 1 << 16) -> None:
        self._site = site
        self._capitalises = site.case == "first-letter"
        self._dotted_i = site.lang in _DOTTED_I_LANGS
        self.parse = lru_cache(maxsize=cache_size)(self._parse)

    def _parse(self, written: str) -> Target:
        """Returns the target of a link, from the part before ``|``. Percent escapes are decoded first, then character
        references.

        Own interwiki prefixes (``en:`` and ``w:`` on the English Wikipedia, ``w:fr:`` on the French) point to a page of
        this wiki. A leading slash is part of the title, as in all namespaces without subpages.
        """
        if _PLAIN.fullmatch(written) and len(written) <= _MAX_BYTES:
            if self._capitalises:
                first = written[0]
                if first > "Z":
                    written = ("İ" if first == "i" and self._dotted_i else first.upper()) + written[1:]
            return Target("page", 0, written, None, False)
        text = written
        if "%" in text:
            text = urllib.parse.unquote(text, errors="replace")
        if _PROTOCOL.match(text):
            return Target("invalid", 0, clean_title(text), None, False)
        if "&" in text:
            text = _REFERENCE.sub(lambda reference: unescape(reference[0]), text)
        before, hash_sign, after = text.partition("#")
        fragment = (clean_title(_CONTROLS.sub("", after)) or None) if hash_sign else None
        title = clean_title(before)
        is_escaped = title.startswith(":")
        if is_escaped:
            # MediaWiki removes two colons: one in its parser, and one when it splits the title.
            title = title[1:].lstrip(" ")
            title = title[1:].lstrip(" ") if title.startswith(":") else title
        if not title:
            if fragment:
                return Target("page", 0, "", fragment, is_escaped)
            return Target("invalid", 0, "", None, is_escaped)
        return self._target(title, fragment=fragment, is_escaped=is_escaped)

    def _target(self, title: str, *, fragment: str | None, is_escaped: bool) -> Target:
        site = self._site
        namespace = 0
        rest = title
        while ":" in rest:
            namespace, name = split_namespace(rest, site)
            if namespace:
                rest = name
                break
            prefix, _, behind = rest.partition(":")
            prefix = prefix.strip(" ").lower()
            behind = behind.lstrip(" ")
            if prefix in site.own_prefixes:
                if not behind:  # an empty title means the main page, whose title is unknown
                    return Target("interwiki", 0, rest, fragment, True)
                rest = behind
                is_escaped = True
                continue
            own, _, own_title = behind.partition(":")
            if prefix == "w" and own.strip(" ").lower() in site.own_prefixes and own_title.lstrip(" "):
                rest = own_title.lstrip(" ")
                is_escaped = True
                continue
            kind = "interwiki"
            if prefix in language_codes():
                kind = "interwiki" if is_escaped else "interlanguage"
            elif prefix not in interwiki_prefixes():
                break
            return Target("invalid" if _INVALID.search(rest) else kind, 0, rest, fragment, is_escaped)
        if not is_valid_title(rest, namespace=namespace) or (namespace == TALK and self._has_prefix(rest)):
            return Target("invalid", 0, title, None, is_escaped)
        if not namespace:
            return Target("page", 0, _capitalise(rest, 0, site), fragment, is_escaped)
        kind = "page"
        if not is_escaped and namespace in (FILE, CATEGORY):
            kind = "file" if namespace == FILE else "category"
        return Target(kind, namespace, _with_prefix(namespace, rest, site), fragment, is_escaped)

    def _has_prefix(self, title: str) -> bool:
        """Returns whether a title after ``Talk:`` has a further prefix, which is not allowed."""
        if ":" not in title:
            return False
        prefix = title.partition(":")[0].strip(" ").lower()
        known = prefix in language_codes() or prefix in interwiki_prefixes()
        return known or bool(split_namespace(title, self._site)[0])


def permanent_url(site: Site, title: str, revision_id: int) -> str:
    """Returns the URL of a revision: ``https://en.wikipedia.org/w/index.php?title=A&oldid=907008348``."""
    scheme = site.base_url.split("://", 1)[0] if "://" in site.base_url else "https"
    quoted = urllib.parse.quote(title.replace(" ", "_"), safe="/:(),!*'@;$~-._")
    return f"{scheme}://{site.host}/w/index.php?title={quoted}&oldid={revision_id}"


_WIKIPEDIA = "wikipedia.org"
# Parts of the host names of mobile versions: en.m.wikipedia.org, en.zero.wikipedia.org.
_MOBILE = frozenset({"m", "zero", "mobile", "wap"})
_ADDRESS = re.compile(
    r"\s*(?:[Hh][Tt][Tt][Pp][Ss]?:)?(?://)?(?=[^/?#])(?:[^/?#@]*@)?([^/?#:\s]+)(?::\d+)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?"
)
_SECURE = re.compile(r"/wikipedia/([a-z-]+)(/.*)")
_TITLE_PATH = re.compile(r"/(?:(?:w/|wiki/)?index\.php|wiki)/(?!index\.php\Z)(.+)", re.DOTALL)
_VARIANT_PATH = re.compile(r"/([a-z]+)-[a-z]+/(.+)", re.DOTALL)
_ID = re.compile(r"[0-9]{1,18}")
_CACHED_TARGETS = 1 << 12
_BY_ID = re.compile(r"(?:permalink|permanentlink|redirect/(page|revision))/([0-9]{1,18})", re.IGNORECASE)


class PageAddress(NamedTuple):
    """The page that a URL of a wiki names. At least one of title, page id and revision id is set."""

    title: str | None  #: normal form with prefix; None if the address has an id instead
    fragment: str | None  #: section as readers see it (spaces, no escapes); None if absent
    page_id: int | None  #: from ``curid=``; takes precedence over the title, as in MediaWiki
    revision_id: int | None  #: from ``oldid=``, ``diff=`` or a permanent link


class UrlParser:
    """Parses the URLs of a site's pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._parse_target = TargetParser(site, cache_size=_CACHED_TARGETS).parse
        self._host = _plain_host(site.host)

    def parse(self, url: str) -> PageAddress | None:
        """Returns the page that a URL names; None for a URL of another host, one that does not name a page of this
        wiki, or one with bytes that are not UTF-8.

        Supported are ``/wiki/Title``, ``index.php/Title``, ``index.php?title=``, ``?curid=``, ``?oldid=``, ``?diff=``,
        ``Special:PermanentLink/1``, ``Special:Redirect/page/1``, paths of language variants (``/zh-tw/Title``), mobile
        hosts, former hosts of an edition, addresses without a scheme, and ``&amp;`` for ``&``.

        Source: https://www.mediawiki.org/wiki/Manual:Parameters_to_index.php.
        """
        found = _ADDRESS.match(url)
        if found is None:
            return None
        host, path, query, fragment = found.groups()
        path = path.strip()
        if host.lower() == "secure.wikimedia.org" and (secure := _SECURE.fullmatch(path)):
            host, path = f"{secure[1]}.{_WIKIPEDIA}", secure[2]
        if _plain_host(host) != self._host:
            return None
        try:
            return self._parse_parts(path.replace("&amp;", "&"), (query or "").replace("&amp;", "&"), fragment)
        except UnicodeDecodeError:
            return None

    def _parse_parts(self, path: str, query: str, fragment: str | None) -> PageAddress | None:
        values = dict(urllib.parse.parse_qsl(query.strip(), errors="strict"))
        section = None
        if fragment:
            section = urllib.parse.unquote(fragment, errors="replace").replace("_", " ").strip() or None
        page_id = _number(values.get("curid", ""))
        revision_id = _number(values.get("diff", "")) or _number(values.get("oldid", ""))
        title = None
        written = values.get("title") or self._title_in_path(path)
        if written:
            # With a colon, a file or category is treated as a page. The escapes are already decoded, and must not be
            # decoded
            # again.
            escaped = written.replace("%", "%25").replace("&", "&amp;")
            target = self._parse_target(f":{escaped}")
            if target.kind == "page" and target.title:
                title = target.title
                section = section or target.fragment
            elif page_id is None and revision_id is None:
                return None
            if target.namespace == SPECIAL and (by_id := _BY_ID.fullmatch(target.title.partition(":")[2])):
                title = None
                if by_id[1] and by_id[1].lower() == "page":
                    page_id = int(by_id[2])
                else:
                    revision_id = int(by_id[2])
        if title is None and page_id is None and revision_id is None:
            return None
        return PageAddress(title, section, page_id, revision_id)

    def _title_in_path(self, path: str) -> str:
        if found := _TITLE_PATH.fullmatch(path):
            return urllib.parse.unquote(found[1], errors="strict")
        found = _VARIANT_PATH.fullmatch(path)
        is_own = found is not None and found[1] == self._site.lang
        return urllib.parse.unquote(found[2], errors="strict") if found and is_own else ""


def _plain_host(host: str) -> str:
    """Returns the host in lower case, without the parts for mobile versions. The host of a Wikipedia has the edition's
    current code.
    """
    labels = [label for label in host.lower().rstrip(".").split(".") if label not in _MOBILE]
    if labels[:1] == ["www"]:
        labels = labels[1:]
    plain = ".".join(labels)
    if plain == _WIKIPEDIA:  # points to the English edition
        return f"en.{_WIKIPEDIA}"
    if plain.endswith(f".{_WIKIPEDIA}"):
        return f"{edition_code(plain.removesuffix(f'.{_WIKIPEDIA}'))}.{_WIKIPEDIA}"
    return plain


def _number(text: str) -> int | None:
    return int(text) or None if _ID.fullmatch(text) else None
