"""Decides which texts from outside may become a link."""

from __future__ import annotations

import re

_WEB_ADDRESS = re.compile(r"https?://[^\s/<>\"\\^`{|}\x00-\x20\x7f][^\s<>\"\\^`{|}\x00-\x20\x7f]*", re.IGNORECASE)
_LONGEST_ADDRESS = 8192


def web_address(text: object) -> str | None:
    """Returns a web address from a dump, a release or a manifest. Returns None for anything else, such as
    ``javascript:``, because a browser might execute it.

    Every place that writes such an address into HTML, Markdown or JSON-LD uses this function.

    >>> web_address("https://example.org/wiki/A"), web_address("javascript:alert(1)"), web_address("https://a/><script>")
    ('https://example.org/wiki/A', None, None)
    """
    is_one = isinstance(text, str) and len(text) <= _LONGEST_ADDRESS and _WEB_ADDRESS.fullmatch(text)
    return str(text) if is_one else None


def base_address(text: object) -> str:
    """Returns the address of a wiki's main page from siteinfo, which may leave out the scheme; empty if it is not a web
    address.

    >>> base_address("//de.wiktionary.org/wiki/A"), base_address("javascript:alert(1)")
    ('//de.wiktionary.org/wiki/A', '')
    """
    return str(text) if web_address(with_scheme(text)) else ""


def with_scheme(text: object) -> object:
    """Adds ``https`` to an address without a scheme; returns anything else unchanged."""
    return f"https:{text}" if isinstance(text, str) and text.startswith("//") else text
