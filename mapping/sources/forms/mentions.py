"""What the three entity-linking datasets have in common: a mention in its document -> an example.

Source: section 4.2 of the KILT paper (the mention in tags, at most 256 tokens) and the authors' converter, whose two
quirks have names here: it keeps too little of the right context, and blank lines put second spaces into contexts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kbsource.identity import stable_sha256
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import SourceOptions, Split
from mapping.sources.reading.files_in import RawRecord

START_TAG = "[START_ENT]"
END_TAG = "[END_ENT]"
_N_TAGS = 2


@dataclass(frozen=True, slots=True)
class LinkingOptions(SourceOptions):
    """Choices of the three datasets; what is ``released`` is as in the authors' code and the published files."""

    window: Literal["right", "released", "whole"] = option(
        "right",
        "how the context is cut: right balances both sides, released keeps too little of the right one, whole cuts "
        "nothing, as in the published AIDA file",
    )
    max_tokens: int = option(
        256, "tokens of the input, tags included", lowest=2, remedy="the two tags alone are 2 tokens"
    )
    blank_lines: Literal["skip", "released"] = option(
        "skip", "blank lines of the TSV in the context; released makes second spaces of them"
    )


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention with its page.

    Attributes:
        doc_id: id of the document.
        number: running number in the document, from 0, over mentions that have a page.
        text: the mention.
        page: as the dataset names it.
        left, right: tokens of the whole document before and after the mention; a blank line is an empty token.
    """

    doc_id: str
    number: int
    text: str
    page: PageKey
    left: Sequence[str]
    right: Sequence[str]


def mention_example(mention: Mention, raw: RawRecord, *, dataset: str, options: LinkingOptions) -> Example:
    """Gives the example of a mention; its answer is the page's title, which alignment fills in.

    The id is ``<UUID>_<document>:<number>`` as in the released files, the UUID made from dataset, document and number.
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
    """Gives the nearest tokens on both sides, so that they, the mention and the tags are at most ``max_tokens``.

    Each side gets half of what is left, and what the other side does not need. A mention longer than all keeps no
    context. Empty tokens do not count and are kept only between others.

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
    """Gives how many tokens ``window`` keeps on both sides."""
    budget = max(0, max_tokens - _N_TAGS - n_mention)
    for_left = min(n_left, max(budget - n_right, -(-budget // 2)))
    return for_left, min(n_right, budget - for_left)


def _first(tokens: Iterable[str], count: int) -> list[str]:
    """Gives tokens from the front until they have ``count`` words; a token of several words is not cut."""
    taken: list[str] = []
    for token in tokens:
        count -= len(token.split())
        if count < 0:
            break
        taken.append(token)
    return taken


def released_window(left: Sequence[str], mention: str, right: Sequence[str], *, max_tokens: int) -> str:
    """Gives the input as the authors' converter cuts it.

    It means to drop tokens from both ends, but of a longer right side it keeps as many as it means to drop. Where it
    would go on for ever, because the mention itself is too long, it stops here.
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
    """Gives the half, dev or test, that a document of WNED belongs to, whatever other documents there are.

    Source: the KILT paper splits at random; its sizes, two halves that are not quite equal, speak for whole documents.
    """
    return "dev" if int(stable_sha256(seed, dataset, doc_id)[:8], 16) % 2 == 0 else "test"


def aida_split(doc_id: str) -> Split:
    """Gives the split of a document of AIDA CoNLL-YAGO, which its id names."""
    if "testa" in doc_id:
        return "dev"
    return "test" if "testb" in doc_id else "train"


def _joined(tokens: Sequence[str]) -> str:
    return " ".join(tokens).strip()
