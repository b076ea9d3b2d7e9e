"""mwparserfromhell's view of prepared text as a flat list of events, by its tokenizer or by its public parser.

The C tokenizer is a private name of the library; 83 % of the library's time is spent above it. The public parser
gives the same events about four times slower and takes over where the private name is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Text, Wikilink
from mwparserfromhell.parser import tokens as kinds

try:
    from mwparserfromhell.parser._tokenizer import CTokenizer
except ImportError:  # a build without the extension, or a later version that moved it
    CTokenizer = None

# An event is text, or one of these.
LINK_OPEN, LINK_BAR, LINK_CLOSE, EXTERNAL_OPEN, EXTERNAL_BAR, EXTERNAL_CLOSE, BARE_OPEN = range(1, 8)

Events = Callable[[str], "list[str | int]"]


def tokenizer_events(text: str) -> list[str | int]:
    """Gives the events of prepared text by the C tokenizer."""
    text_token = kinds.Text
    number_of = _NUMBER_OF
    return [
        token["text"] if (kind := type(token)) is text_token else number_of.get(kind) or _external(token)
        for token in CTokenizer().tokenize(text, 0, True)
    ]


def _external(token: Any) -> int:
    if type(token) is not kinds.ExternalLinkOpen:
        raise ValueError(f"unexpected token {token!r} in prepared text")
    return EXTERNAL_OPEN if token["brackets"] else BARE_OPEN


_NUMBER_OF: dict[Any, int] = {
    kinds.WikilinkOpen: LINK_OPEN,
    kinds.WikilinkSeparator: LINK_BAR,
    kinds.WikilinkClose: LINK_CLOSE,
    kinds.ExternalLinkSeparator: EXTERNAL_BAR,
    kinds.ExternalLinkClose: EXTERNAL_CLOSE,
}


def parser_events(text: str) -> list[str | int]:
    """Gives the events of prepared text by mwparserfromhell's public parser."""
    return list(_of_nodes(mwparserfromhell.parse(text, skip_style_tags=True).nodes))


def _of_nodes(nodes: list[Any]) -> Iterator[str | int]:
    for node in nodes:
        if isinstance(node, Text):
            yield str(node.value)
        elif isinstance(node, Wikilink):
            yield LINK_OPEN
            yield from _of_nodes(node.title.nodes)
            if node.text is not None:
                yield LINK_BAR
                yield from _of_nodes(node.text.nodes)
            yield LINK_CLOSE
        elif isinstance(node, ExternalLink):
            yield EXTERNAL_OPEN if node.brackets else BARE_OPEN
            yield from _of_nodes(node.url.nodes)
            if node.title is not None:
                yield EXTERNAL_BAR
                yield from _of_nodes(node.title.nodes)
            yield EXTERNAL_CLOSE
        else:
            raise ValueError(f"unexpected node {type(node).__name__} in prepared text")


default_events: Events = parser_events if CTokenizer is None else tokenizer_events
