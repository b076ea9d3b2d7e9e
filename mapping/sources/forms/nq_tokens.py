"""Tokens of a page of Natural Questions, in its full and in its simplified form.

Source: text_utils.py of the dataset: the simplified text is the tokens with one blank between them; blanks inside of
a token are underscores. Only U+0020 parts tokens: other white space occurs in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kbsource.errors import RecordError
from mapping.sources.reading.fields import Json, integer_at, list_at, text_at

# The simplified form does not mark tags. They are <P>, </P>, <Td_colspan="2">; names begin with a capital.
_TAG = re.compile(r"</?[A-Z][A-Za-z0-9]*(?:_.*)?/?>", re.DOTALL)


class NqToken(NamedTuple):
    """A word, or an HTML tag of headings, paragraphs, tables and lists."""

    text: str
    is_html: bool


class NqDocument:
    """The tokens of a record's page.

    Args:
        record: in the full form (``document_tokens``) or the simplified one (``document_text``).
        splits_anywhere: white space of any kind parts tokens, and a token of nothing else is none, as in the authors'
            code: what the record counts is then not what is taken, and what lies behind the last token is nothing.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """

    def __init__(self, record: Json, *, splits_anywhere: bool = False) -> None:
        self._splits_anywhere = splits_anywhere
        self._pieces: list[NqToken] | None = None
        self._is_full = "document_tokens" in record
        if self._is_full:
            self._tokens = list_at(record, "document_tokens")
        else:
            self._tokens = text_at(record, "document_text").split(" ")

    def tokens(self, place: Json) -> list[NqToken]:
        """Gives the tokens from ``start_token`` up to ``end_token``, which does not belong to them.

        Raises:
            RecordError: ``token_range`` (there are no such tokens), ``missing_field``, ``wrong_type``.
        """
        start, end = integer_at(place, "start_token"), integer_at(place, "end_token")
        if not 0 <= start < end <= len(self._tokens):
            raise RecordError("token_range", f"tokens {start} to {end} of {len(self._tokens)}")
        if self._splits_anywhere:
            if self._pieces is None:
                self._pieces = list(self._split_anywhere())
            return self._pieces[start:end]
        span = self._tokens[start:end]
        return [_full_token(token) for token in span] if self._is_full else [_simplified_token(one) for one in span]

    def _split_anywhere(self) -> Iterator[NqToken]:
        for written in self._tokens:
            if self._is_full:
                text, is_html = _full_token(written)
                yield from (NqToken(piece, is_html) for piece in text.split())
            else:
                yield from map(_simplified_token, written.split())


def joined(tokens: Iterable[NqToken], *, strips_html: bool) -> str:
    """Gives tokens as text with one blank between them, tags left out where asked for.

    >>> joined([Token("<Li>", True), Token("Lake", False), Token("Miravel", False)], strips_html=True)
    'Lake Miravel'
    """
    return " ".join(token.text for token in tokens if not (strips_html and token.is_html)).strip()


def _full_token(written: object) -> NqToken:
    if not isinstance(written, dict):
        raise RecordError("wrong_type", f"a token is an object, found {repr(written)[:80]}")
    is_html = written.get("html_token")
    if not isinstance(is_html, bool):
        raise RecordError("wrong_type", f"'html_token': expected true or false, found {repr(written)[:80]}")
    return NqToken(text_at(written, "token").replace(" ", "_"), is_html)


def _simplified_token(written: str) -> NqToken:
    return NqToken(written, _TAG.fullmatch(written) is not None)
