"""Writes a link in its text as a record of entity-linking data, in the form of BLINK's data as published by KILT.

Source: KILT's ``blink-train-kilt.jsonl`` and ``blink-dev-kilt.jsonl``: order of keys, ``json.dumps`` with its defaults,
the mention in tags. BLINK keeps up to 128 tokens on either side. The input is cut to 256 tokens, as in the other
entity-linking datasets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Annotated, NamedTuple

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.rows import Int32, Row
from mapping.options import AtLeast1, Checked, Probability, Tokens
from mapping.sources.mentions import END_TAG, START_TAG, window_sizes


@dataclass(frozen=True, slots=True)
class ContextOptions(Checked):
    """Options of the context of a mention."""

    context_tokens: AtLeast1 = 128
    """Maximum number of context tokens on either side of a mention."""
    context_chars: AtLeast1 | None = None
    """Limit the context on either side to N characters too, and keep only whole tokens. In the published data, N is
    250.
    """
    max_tokens: Tokens = 256
    """Maximum number of tokens of the input, including the tags [START_ENT] and [END_ENT]."""


@dataclass(frozen=True, slots=True)
class LinkerOptions(Checked):
    """Options of entity linking with the alias table."""

    min_link_probability: Probability = 0.1
    """Minimum P(link given mention) of a mention."""
    min_prior: Probability = 0.0
    """Minimum P(page given mention) of the page of a mention."""
    min_count: AtLeast1 = 1
    """Minimum number of links from a mention to its page."""

    def counts(self, alias: Alias) -> bool:
        """Returns whether the mention of a row is linked to its page."""
        is_likely = alias.link_probability >= self.min_link_probability and alias.prior >= self.min_prior
        return is_likely and alias.count >= self.min_count


class Alias(Row):
    """One row per mention and page to which links with this text resolve. Rows are sorted by mention in code-point
    order, then by frequency with the most frequent page first, then by page id."""

    mention: Annotated[str, "text of links as written, with normalised white space"]
    page_id: Annotated[int, "page to which these links resolve"]
    title: Annotated[str, "title of the page"]
    count: Annotated[int, "number of links with this text to this page"]
    prior: Annotated[float, "P(page given mention): share of the links with this text that resolve to this page"]
    link_probability: Annotated[
        float,
        "P(link given mention): share of the mention's occurrences that are links, in the running text of pages where "
        "it is a link; the same in every row of a mention",
    ]


class StoredLink(Row):
    """One row per record, in the order of the release: the location of its link."""

    record_id: Annotated[str, "id of the record: blink-train-0, blink-dev-0, …"]
    page_id: Annotated[int, "page that contains the link"]
    element: Annotated[Int32, "number of the element in the page"]
    start_char: Annotated[Int32, "first code point of the mention in the element's text"]
    end_char: Annotated[Int32, "end of the mention in the element's text, one past its last code point"]
    target_page_id: Annotated[int, "page to which the link resolves"]


ALIASES, LINKS = schema_of(Alias), schema_of(StoredLink)
TABLES = {"aliases": ALIASES, "links": LINKS}
"""Every table that only entity-linking data have, by folder name."""
ALL_TABLES = {**TABLES, "rejected": schema_of(BadRecord)}

KEYS = pa.schema(
    {"hash": pa.int64(), "more_hash": pa.int64(), "place": pa.int64(), "link": pa.int32(), "bucket": pa.int16()}
)
"""A link as it is sampled: the hash of its record, its location, and the bucket of its page."""
CHOSEN = pa.schema({"place": pa.int64(), "link": pa.int32(), "is_dev": pa.bool_(), "number": pa.int64()})
"""A link that was drawn: its location, its split, and the number of its record in the split."""
MENTIONS = pa.schema(
    {
        "mention": pa.string(),
        "page_id": pa.int64(),
        "title": pa.string(),
        "count": pa.int64(),
        "occurrences": pa.int64(),
    }
)
"""Links with the same text to the same page. ``occurrences`` counts how often the text occurs at all. Only one of
the text's rows contains this count; it is 0 in the others, so that a sum counts each occurrence once."""
LINES = pa.schema([*LINKS, ("is_dev", pa.bool_()), ("line", pa.binary())])
"""Links with their records as lines."""


SPLITS = ("train", "dev")
SKIPPED = {
    "in_heading": "the link is in a heading or title",
    "unresolved": "the link's target is not in the dump, even after redirects are followed",
    "not_released": "the link's target was rejected",
    "disambiguation": "the link points to a disambiguation page",
    "self_link": "the link points to its own page",
    "empty_mention": "it has no text",
    "tag_in_text": "the text contains one of the tags that mark mentions",
}
"""Reasons why a link is not selected. The first that applies is counted."""


class MentionContext(NamedTuple):
    """A mention with the text on both sides, with single spaces between tokens."""

    left: str
    mention: str
    right: str


def cut_context(text: str, start: int, end: int, options: ContextOptions) -> MentionContext:
    """Returns the mention at a span of a text with its nearest tokens. A token that crosses the border of the span is
    split.

    >>> cut_context("The Big Blue is a tributary of it.", 18, 27, ContextOptions(context_tokens=2))
    MentionContext(left='is a', mention='tributary', right='of it.')
    """
    n_tokens = options.context_tokens
    left, right = text[:start].rsplit(None, n_tokens)[-n_tokens:], text[end:].split(None, n_tokens)[:n_tokens]
    if options.context_chars is not None:
        left = left[len(left) - _n_fitting(reversed(left), options.context_chars) :]
        right = right[: _n_fitting(right, options.context_chars)]
    return MentionContext(" ".join(left), " ".join(text[start:end].split()), " ".join(right))


class ContextCutter:
    """Cuts the contexts of many links, as ``cut_context`` does, with links grouped by text. A text that is not cut is
    not split into tokens.
    """

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._text = ""
        self._is_whole = False

    def cut(self, text: str, start: int, end: int) -> MentionContext:
        """Returns the same as ``cut_context``."""
        if text is not self._text:
            tokens = text.split()
            is_short = self._options.context_chars is None and len(tokens) <= self._options.context_tokens
            self._text, self._is_whole = text, is_short and " ".join(tokens) == text
        if self._is_whole:
            return MentionContext(text[:start].rstrip(), text[start:end].strip(), text[end:].lstrip())
        return cut_context(text, start, end, self._options)


def _n_fitting(tokens: Iterable[str], n_chars: int) -> int:
    """Returns how many tokens, from the first one on, fit into a number of characters, including the spaces between
    them."""
    ends = accumulate((len(token) + 1 for token in tokens), initial=-1)
    return sum(1 for _ in takewhile(lambda end: end <= n_chars, ends)) - 1


def link_line(record_id: str, context: MentionContext, *, page_id: int, title: str, max_tokens: int) -> bytes:
    """Returns the line of a record, with its newline."""
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
    """Returns the id of a record.

    >>> record_id("train", 0)
    'blink-train-0'
    """
    return f"blink-{split}-{number}"


def lines_path(split: str) -> str:
    """Returns the file of a split.

    >>> lines_path("dev")
    'blink-dev-kilt.jsonl'
    """
    return f"blink-{split}-kilt.jsonl"
