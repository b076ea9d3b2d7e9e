"""A link in its text -> the record of entity-linking data, as KILT publishes BLINK's.

Source: KILT's ``blink-train-kilt.jsonl`` and ``blink-dev-kilt.jsonl``: keys in their order, ``json.dumps`` with its
defaults, the mention in tags. BLINK keeps up to 128 tokens on either side; the input is cut to 256 as that of the other
entity-linking datasets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate, takewhile
from typing import NamedTuple

from mapping.entity_linking.options import ContextOptions
from mapping.sources.forms.mentions import END_TAG, START_TAG, window_sizes

SPLITS = ("train", "dev")
SKIPPED = {
    "in_heading": "it stands in a heading or title",
    "unresolved": "the dump has no page that it leads to, redirects followed",
    "not_released": "the page that it leads to was rejected",
    "disambiguation": "it leads to a disambiguation page",
    "self_link": "it leads to the page that it stands in",
    "empty_mention": "it has no text",
    "tag_in_text": "its text has one of the tags that mark mentions",
}
"""Why a link is not taken, the first reason that holds."""


class Context(NamedTuple):
    """A mention with the text on both sides, single blanks between tokens."""

    left: str
    mention: str
    right: str


def cut_context(text: str, start: int, end: int, options: ContextOptions) -> Context:
    """Gives the mention at a span of a text and its nearest tokens; a token that the span cuts is cut.

    >>> cut_context("The Big Blue is a tributary of it.", 18, 27, ContextOptions(context_tokens=2))
    Context(left='is a', mention='tributary', right='of it.')
    """
    n_tokens = options.context_tokens
    left, right = text[:start].rsplit(None, n_tokens)[-n_tokens:], text[end:].split(None, n_tokens)[:n_tokens]
    if options.context_chars is not None:
        left = left[len(left) - _n_fitting(reversed(left), options.context_chars) :]
        right = right[: _n_fitting(right, options.context_chars)]
    return Context(" ".join(left), " ".join(text[start:end].split()), " ".join(right))


class ContextCutter:
    """``cut_context`` for many links, those of a text one after the other: what no limit cuts is not taken apart."""

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._text = ""
        self._is_whole = False

    def cut(self, text: str, start: int, end: int) -> Context:
        """Gives what ``cut_context`` gives."""
        if text is not self._text:
            tokens = text.split()
            is_short = self._options.context_chars is None and len(tokens) <= self._options.context_tokens
            self._text, self._is_whole = text, is_short and " ".join(tokens) == text
        if self._is_whole:
            return Context(text[:start].rstrip(), text[start:end].strip(), text[end:].lstrip())
        return cut_context(text, start, end, self._options)


def _n_fitting(tokens: Iterable[str], n_chars: int) -> int:
    """Gives how many of the tokens, from the first on, have so many characters with the blanks between them."""
    ends = accumulate((len(token) + 1 for token in tokens), initial=-1)
    return sum(1 for _ in takewhile(lambda end: end <= n_chars, ends)) - 1


def record_line(record_id: str, context: Context, *, page_id: int, title: str, max_tokens: int) -> bytes:
    """Gives the line of a record, with its end."""
    left, right = context.left.split(), context.right.split()
    n_left, n_right = window_sizes(len(left), len(context.mention.split()), len(right), max_tokens=max_tokens)
    record = {
        "id": record_id,
        "input": " ".join([*left[len(left) - n_left :], START_TAG, context.mention, END_TAG, *right[:n_right]]),
        "output": [{"answer": title, "provenance": [{"wikipedia_id": str(page_id), "title": title}]}],
        "meta": {"left_context": context.left, "mention": context.mention, "right_context": context.right},
    }
    return json.dumps(record).encode("ascii") + b"\n"


def record_id(split: str, number: int) -> str:
    """Gives the id of a record.

    >>> record_id("train", 0)
    'blink-train-0'
    """
    return f"blink-{split}-{number}"


def lines_path(split: str) -> str:
    """Gives the file of a split.

    >>> lines_path("dev")
    'blink-dev-kilt.jsonl'
    """
    return f"blink-{split}-kilt.jsonl"
