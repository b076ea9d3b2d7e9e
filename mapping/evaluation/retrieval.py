"""Ranked passages beside gold answers and gold evidence: at which rank each of them first comes."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import NamedTuple

from mapping.evaluation.answer_lists import GoldNames, answer_form


class Passage(NamedTuple):
    """A retrieved passage, or a passage that is evidence for an answer.

    Attributes:
        passage_id: names it within its corpus; empty where it has no id.
        title: of its page.
        text: the passage.
    """

    passage_id: str
    title: str
    text: str


def answer_ranks(
    answers: Sequence[GoldNames], passages: Sequence[Passage], *, substring: bool = False
) -> list[int | None]:
    """Gives for each answer the 1-based rank of the first passage with one of its names in title or text.

    Names are found as whole words of the normal form (``answer_form``); a name without a form is found nowhere.

    Args:
        answers: with display text and aliases.
        passages: best first.
        substring: as released: a name is found wherever its lower-cased characters stand, inside words too.
    """
    texts = [tuple(_searched(text, substring) for text in (one.title, one.text)) for one in passages]
    ranks = []
    for answer in answers:
        names = {_searched(name, substring) for name in (answer.text, *answer.aliases)}
        names = {name for name in names if name.strip()}
        found = (
            rank
            for rank, (title, text) in enumerate(texts, start=1)
            if any(name in text or name in title for name in names)
        )
        ranks.append(next(found, None))
    return ranks


def _searched(text: str, substring: bool) -> str:
    return text.lower() if substring else f" {answer_form(text)} "


def ranks_by_id(evidence: Sequence[Passage], passages: Sequence[Passage]) -> list[int | None]:
    """Gives for each evidence passage the 1-based rank of the passage with its id."""
    first: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        first.setdefault(passage.passage_id, rank)
    return [first.get(one.passage_id) for one in evidence]


def ranks_by_text(evidence: Sequence[Passage], passages: Sequence[Passage]) -> list[int | None]:
    """Gives for each evidence passage the 1-based rank of the passage that holds most of it.

    For passages cut in other ways than the evidence. Two passages fit when their titles are equal but for case and
    they share a run of characters longer than 0.7 times the shorter text, but for case. Each retrieved passage, best
    first, is matched with the first piece of evidence that fits and is still open, and with no further one.

    Source: the released evaluation script of QAMPARI.
    """
    ranks: list[int | None] = [None] * len(evidence)
    wanted = [(title_form(one.title), one.text.lower()) for one in evidence]
    for rank, passage in enumerate(passages, start=1):
        title, text = title_form(passage.title), passage.text.lower()
        for number, (wanted_title, wanted_text) in enumerate(wanted):
            if ranks[number] is None and wanted_title == title and shares_most(wanted_text, text):
                ranks[number] = rank
                break
    return ranks


def title_form(title: str) -> str:
    """Gives a title, or the title in the address of a page, in the form in which titles are compared.

    >>> title_form("https://en.wikipedia.org/wiki/River_Ullane"), title_form("River ullane")
    ('river ullane', 'river ullane')
    """
    _, is_address, path = title.partition("/wiki/")
    name = urllib.parse.unquote(path) if is_address else title
    return " ".join(name.replace("_", " ").lower().split())


def shares_most(one: str, other: str) -> bool:
    """Says whether two texts share a run of characters longer than 0.7 times the shorter of them."""
    shorter, longer = sorted((one, other), key=len)
    if not shorter:
        return False
    n_needed = 7 * len(shorter) // 10 + 1
    n_spare = len(shorter) - n_needed
    # Every run of that length holds the same middle, since it is more than half of the text.
    middle = shorter[n_spare:n_needed]
    at = longer.find(middle)
    while at != -1:
        n_before = _shared_end(shorter[:n_spare], longer[max(0, at - n_spare) : at])
        behind = at + len(middle)
        n_behind = _shared_start(shorter[n_needed:], longer[behind : behind + n_spare])
        if n_before + len(middle) + n_behind >= n_needed:
            return True
        at = longer.find(middle, at + 1)
    return False


def _shared_start(one: str, other: str) -> int:
    unlike = (number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))


def _shared_end(one: str, other: str) -> int:
    return _shared_start(one[::-1], other[::-1])
