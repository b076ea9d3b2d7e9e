"""Addresses of a wiki's pages as datasets write them -> title, section, page id, revision id."""

from __future__ import annotations

import re
import urllib.parse
from typing import NamedTuple

from kbsource.languages import edition_code
from kbsource.site import SPECIAL, Site
from kbsource.titles import TargetParser

_WIKIPEDIA = "wikipedia.org"
# Hosts of the versions for telephones: en.m.wikipedia.org, en.zero.wikipedia.org.
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
    """What an address of a wiki names; at least one of title, page id and revision id is there.

    Attributes:
        title: normal form with prefix; None where the address gives an id instead.
        fragment: section as readers see it (spaces, no escapes), None when absent.
        page_id: from ``curid=``; wins over the title, as in MediaWiki.
        revision_id: from ``oldid=``, ``diff=`` or a permanent link.
    """

    title: str | None
    fragment: str | None
    page_id: int | None
    revision_id: int | None


class UrlParser:
    """Parses addresses of one site's pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._parse_target = TargetParser(site, cache_size=_CACHED_TARGETS).parse
        self._host = _plain_host(site.host)

    def parse(self, url: str) -> PageAddress | None:
        """Gives what an address names; None for another host, no page of this wiki, or bytes not in UTF-8.

        Understood are ``/wiki/Title``, ``index.php/Title``, ``index.php?title=``, ``?curid=``, ``?oldid=``,
        ``?diff=``, ``Special:PermanentLink/1``, ``Special:Redirect/page/1``, paths of variants
        (``/zh-tw/Title``), telephone hosts, the hosts an edition had before, addresses without a scheme,
        and ``&amp;`` for ``&``.

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
            # The colon keeps files and categories from being acted on.
            target = self._parse_target(f":{_escape(written)}")
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
        found = _TITLE_PATH.fullmatch(path)
        if found is None:
            variant = _VARIANT_PATH.fullmatch(path)
            if variant is None or variant[1] != self._site.lang:
                return ""
            return urllib.parse.unquote(variant[2], errors="strict")
        return urllib.parse.unquote(found[1], errors="strict")


def _plain_host(host: str) -> str:
    """Gives the host in lower case without marks of versions, Wikipedia's with the edition's present code."""
    labels = [label for label in host.lower().rstrip(".").split(".") if label not in _MOBILE]
    if labels[:1] == ["www"]:
        labels = labels[1:]
    plain = ".".join(labels)
    if plain == _WIKIPEDIA:  # leads to the English edition
        return f"en.{_WIKIPEDIA}"
    if plain.endswith(f".{_WIKIPEDIA}"):
        return f"{edition_code(plain.removesuffix(f'.{_WIKIPEDIA}'))}.{_WIKIPEDIA}"
    return plain


def _escape(title: str) -> str:
    """Gives a decoded title in a form that decoding as a link's target leaves as it is."""
    return title.replace("%", "%25").replace("&", "&amp;") if "%" in title or "&" in title else title


def _number(text: str) -> int | None:
    return int(text) or None if _ID.fullmatch(text) else None
