"""Which texts from outside may become a link."""

from __future__ import annotations

import re

_WEB_ADDRESS = re.compile(r"https?://[^\s/<>\"\\^`{|}\x00-\x20\x7f][^\s<>\"\\^`{|}\x00-\x20\x7f]*", re.IGNORECASE)
_LONGEST_ADDRESS = 8192


def web_address(text: object) -> str | None:
    """An address of the web, from a dump, a release or a manifest; None for anything else, which a browser might run.

    Everything that writes such an address into HTML, Markdown or JSON-LD asks here.

    >>> web_address("https://example.org/wiki/A"), web_address("javascript:alert(1)"), web_address("https://a/><script>")
    ('https://example.org/wiki/A', None, None)
    """
    is_one = isinstance(text, str) and len(text) <= _LONGEST_ADDRESS and _WEB_ADDRESS.fullmatch(text)
    return str(text) if is_one else None
