"""Converts mentions to examples, and splits running text into tokens as in the Penn Treebank, with offsets.

Punctuation and clitics (``n't``, ``'s``) are separate tokens. Commas and colons in numbers, hyphens, the periods of
abbreviations and the ampersand of ``R&D`` are not.

Source: section 4.2 of the KILT paper (the mention in tags, at most 256 tokens) and the authors' converter, whose two
quirks are available as options: it keeps too little of the right context, and empty lines insert second spaces into
contexts. The tokenisation follows the Penn Treebank's tokenizer.sed by R. MacIntyre (1995). That script expects one
sentence per line; here a period ends a sentence if white space follows and the word is not an abbreviation.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kbsource.identity import stable_sha256
from mapping.options import Tokens
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.raw_records import RawRecord
from mapping.sources.source import SourceOptions, Split

_CHUNK = re.compile(r"\S+")
_SINGLE = r""";@#$%?!"\u201c\u201d\u201e\u00ab\u00bb\u2026\[\](){}<>"""
_WHOLE = ("...", "--", "''", "``")
_DOUBLE = "|".join(map(re.escape, _WHOLE))
_IN_WORD = rf"[^{_SINGLE}:,&]|[:,](?=\d)|(?<=\w)&(?=\w)"
_PIECE = re.compile(rf"{_DOUBLE}|(?:(?!{_DOUBLE})(?:{_IN_WORD}))+|.")
_CLOSERS = re.compile(r"""[\])}>"'\u201d\u2019\u00bb]*""")
_CLITIC = re.compile(r"(?:'[sS]|'[mM]|'[dD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T)$")
_AS_ASCII = str.maketrans("\u2018\u2019", "''")
_PAIRS = "can not,gim me,gon na,got ta,lem me,wan na,d 'ye,more 'n,'t is,'t was"
_JOINED = {pair.replace(" ", ""): pair.index(" ") for pair in _PAIRS.split(",")}
"""Two words written as one -> length of the first word."""
_ABBREVIATIONS = frozenset(
    "adm al approx apr aug ave blvd bros ca capt cf cmdr co col corp cos dec dept dr est etc feb fig ft gen gov hon inc"
    " jan jr jul jun lt ltd maj mar messrs mr mrs ms mt no nos nov oct op pp pres prof rd rep rev sen sep sept sgt sr"
    " st ste univ vol vs".split()
)
_INITIALS = re.compile(r"(?:\w\.)*\w")

START_TAG = "[START_ENT]"
END_TAG = "[END_ENT]"
_N_TAGS = 2


def token_spans(text: str) -> Iterator[tuple[int, int]]:
    """Finds the half-open code-point offsets of the tokens of a text, in order.

    >>> text = "He can't pay Mr. Hale's $1,000 (or won't)."
    >>> " ".join(text[start:end] for start, end in token_spans(text))
    "He ca n't pay Mr. Hale 's $ 1,000 ( or wo n't ) ."
    """
    end_of_text = len(text.rstrip())
    for chunk in _CHUNK.finditer(text):
        for piece in _PIECE.finditer(text, chunk.start(), chunk.end()):
            yield from _split(text, piece.start(), piece.end(), end_of_chunk=chunk.end(), end_of_text=end_of_text)


def _split(text: str, start: int, end: int, *, end_of_chunk: int, end_of_text: int) -> Iterator[tuple[int, int]]:
    """Tokenises a segment without any punctuation that is always a separate token."""
    word = text[start:end].translate(_AS_ASCII)
    if len(word) == 1 or word in _WHOLE:
        yield start, end
        return
    if word.endswith(".") and not word.endswith(".."):
        closed = _CLOSERS.match(text, end, end_of_chunk)
        assert closed is not None  # the pattern also matches the empty string
        if closed.end() == end_of_text or (closed.end() == end_of_chunk and not _is_abbreviation(word[:-1])):
            yield from _split(text, start, end - 1, end_of_chunk=end - 1, end_of_text=-1)
            yield end - 1, end
            return
    if word[0] == "'" and word[1].isalpha() and not _CLITIC.fullmatch(word) and word.lower() not in _JOINED:
        yield start, start + 1
        start, word = start + 1, word[1:]
    if word.endswith("'") and len(word) > 1:
        yield from _parts(word[:-1], start)
        yield end - 1, end
    else:
        yield from _parts(word, start)


def _parts(word: str, start: int) -> Iterator[tuple[int, int]]:
    clitic = _CLITIC.search(word)
    cut = _JOINED.get(word.lower()) or (clitic.start() if clitic else 0)
    if cut:
        yield start, start + cut
    yield start + cut, start + len(word)


def _is_abbreviation(word: str) -> bool:
    """Returns whether a word keeps its period: ``Mr``, ``J``, ``U.S``."""
    bare = word.lstrip("'")
    return bare.lower() in _ABBREVIATIONS or (bare[-1:].isalpha() and _INITIALS.fullmatch(bare) is not None)


@dataclass(frozen=True, slots=True)
class LinkingOptions(SourceOptions):
    """Options of the three datasets. ``released`` follows the authors' code and the published files."""

    window: Literal["right", "released", "whole"] = "right"
    """How the context is cut. right: both sides are balanced; released: too little of the right side is kept; whole:
    nothing is cut, as in the published AIDA file.
    """
    max_tokens: Tokens = 256
    """Maximum tokens of the input, including 2 for the tags."""
    blank_lines: Literal["skip", "released"] = "skip"
    """Empty lines of the TSV in the context; released turns them into second spaces."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention with its page."""

    doc_id: str
    number: int  # in the document, from 0, counting mentions that have a page
    text: str
    page: PageKey
    left: Sequence[str]  # tokens of the whole document before it; an empty line is an empty token
    right: Sequence[str]  # tokens after it, in the same form


def mention_example(mention: Mention, raw: RawRecord, *, dataset: str, options: LinkingOptions) -> Example:
    """Returns the example for a mention. Its answer is the page's title, which alignment fills in.

    The id is ``<UUID>_<document>:<number>`` as in the released files; the UUID is derived from dataset, document and
    number.
    """
    has_blanks = options.blank_lines == "released"
    left = list(mention.left) if has_blanks else [token for token in mention.left if token]
    right = list(mention.right) if has_blanks else [token for token in mention.right if token]
    text = mention.text.strip()
    meta = {"left_context": _joined(left), "mention": text, "right_context": _joined(right)}
    if options.window == "released":
        shown = released_window(left, text, right, max_tokens=options.max_tokens)
    else:
        if options.window == "right":
            left, right = window(left, text, right, max_tokens=options.max_tokens)
        parts = (_joined(left), START_TAG, text, END_TAG, _joined(right))
        shown = " ".join(part for part in parts if part)
    name = f"{mention.doc_id}:{mention.number}"
    return Example(
        f"{uuid.uuid5(uuid.NAMESPACE_URL, f'kilt:{dataset}:{name}')}_{name}",
        shown,
        (Output(None, (Evidence(mention.page, None),)),),
        meta,
        file=raw.file,
        line=raw.line,
    )


def window(left: Sequence[str], mention: str, right: Sequence[str], *, max_tokens: int) -> tuple[list[str], list[str]]:
    """Returns the nearest tokens on both sides. Together with the mention and the tags, they are at most
    ``max_tokens``.

    Each side gets half of the remaining tokens, and the tokens that the other side does not need. A mention that
    exceeds the limit has no context. Empty tokens do not count, and are kept only between other tokens.

    >>> window(list("abcdef"), "M", list("uvwxyz"), max_tokens=8)
    (['d', 'e', 'f'], ['u', 'v'])
    >>> window(list("abcdef"), "M", list("u"), max_tokens=8)
    (['c', 'd', 'e', 'f'], ['u'])
    """
    n_left = sum(len(token.split()) for token in left)
    n_right = sum(len(token.split()) for token in right)
    for_left, for_right = window_sizes(n_left, len(mention.split()), n_right, max_tokens=max_tokens)
    return list(reversed(_first(reversed(left), for_left))), _first(right, for_right)


def window_sizes(n_left: int, n_mention: int, n_right: int, *, max_tokens: int) -> tuple[int, int]:
    """Returns how many tokens ``window`` keeps on each side."""
    budget = max(0, max_tokens - _N_TAGS - n_mention)
    for_left = min(n_left, max(budget - n_right, -(-budget // 2)))
    return for_left, min(n_right, budget - for_left)


def _first(tokens: Iterable[str], count: int) -> list[str]:
    """Returns the first tokens with up to ``count`` words in total; a token of several words is not cut."""
    taken: list[str] = []
    for token in tokens:
        count -= len(token.split())
        if count < 0:
            break
        taken.append(token)
    return taken


def released_window(left: Sequence[str], mention: str, right: Sequence[str], *, max_tokens: int) -> str:
    """Returns the input as the authors' converter cuts it.

    The converter intends to drop tokens from both ends. If the right side is longer, however, it keeps as many tokens
    as it intends to drop. The converter loops forever if the mention is too long; this function stops.
    """
    left, right = list(left), list(right)
    while True:
        before, after = _joined(left), _joined(right)
        shown = f"{before} {START_TAG} {mention} {END_TAG} {after}"
        n_tokens = len(shown.split())
        if n_tokens < max_tokens - _N_TAGS:
            return shown
        offset = max(1, int((n_tokens - max_tokens) / 2))
        kept = len(left) + len(right)
        if len(before.split()) > len(after.split()):
            left = left[offset:]
        else:
            right = right[:offset]
        if len(left) + len(right) == kept:
            return shown


def wned_split(doc_id: str, *, dataset: str, seed: str) -> Split:
    """Returns the half, dev or test, that a document of WNED belongs to, independent of the other documents.

    Source: the KILT paper splits at random; its sizes, two slightly unequal halves, suggest that whole documents were
    drawn.
    """
    return "dev" if int(stable_sha256(seed, dataset, doc_id)[:8], 16) % 2 == 0 else "test"


def aida_split(doc_id: str) -> Split:
    """Returns the split of a document of AIDA CoNLL-YAGO, which is part of its id."""
    if "testa" in doc_id:
        return "dev"
    return "test" if "testb" in doc_id else "train"


def _joined(tokens: Sequence[str]) -> str:
    return " ".join(tokens).strip()
