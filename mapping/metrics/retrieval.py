"""Ranked passages beside gold answers and gold evidence: at which rank each of them first comes."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mapping.metrics.answer_lists import GoldNames, answer_form
from mapping.search.caseless import find_whole, fold_case


class RetrievedPassage(NamedTuple):
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
    answers: Sequence[GoldNames], passages: Sequence[RetrievedPassage], *, substring: bool = False
) -> list[int | None]:
    """Gives for each answer the 1-based rank of the first passage with one of its names in title or text.

    Names are found as whole words in any case: as they are written (Halvane in "Halvane's"), or where both are in the
    form of answers (U.S. in "the US"). A name without such a form is found nowhere.

    Args:
        answers: with display text and aliases.
        passages: best first.
        substring: as released: a name is found wherever its lower-cased characters stand, inside words too.
    """
    searched = [_searched(passage, substring=substring) for passage in passages]
    ranks = []
    for answer in answers:
        names = {form for name in (answer.text, *answer.aliases) for form in _sought(name, substring=substring)}
        found = (rank for rank, text in enumerate(searched, start=1) if _has_any(names, text, inside_words=substring))
        ranks.append(next(found, None))
    return ranks


def _searched(passage: RetrievedPassage, *, substring: bool) -> str:
    """Gives title and text in the forms in which names are found, a line each: no name runs from one into another."""
    if substring:
        return f"{passage.title}\n{passage.text}".lower()
    both = (passage.title, passage.text)
    return "\n".join((*map(_plain_form, both), *map(answer_form, both)))


def _sought(name: str, *, substring: bool) -> tuple[str, ...]:
    if substring:
        return (name.lower(),) if name.strip() else ()
    form = answer_form(name)
    return (_plain_form(name), form) if form else ()


def _plain_form(text: str) -> str:
    return fold_case(" ".join(text.split()))


def _has_any(names: Iterable[str], text: str, *, inside_words: bool) -> bool:
    return any(name in text and (inside_words or any(True for _ in find_whole(name, text, text))) for name in names)


def ranks_by_id(evidence: Sequence[RetrievedPassage], passages: Sequence[RetrievedPassage]) -> list[int | None]:
    """Gives for each evidence passage the 1-based rank of the passage with its id."""
    first: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        first.setdefault(passage.passage_id, rank)
    return [first.get(piece.passage_id) for piece in evidence]


def ranks_by_text(
    evidence: Sequence[RetrievedPassage], passages: Sequence[RetrievedPassage], *, partial_runs: bool = False
) -> list[int | None]:
    """Gives for each evidence passage the 1-based rank of the passage that holds most of it.

    For passages cut in other ways than the evidence. Two passages fit when their titles are equal but for case and
    they share a run of characters longer than 0.7 times the shorter text, but for case. Each retrieved passage, best
    first, is matched with the first piece of evidence that fits and is still open, and with no further one.

    Args:
        evidence: passages that are evidence.
        passages: best first.
        partial_runs: as released, see ``shares_most``.

    Source: the released evaluation script of QAMPARI.
    """
    ranks: list[int | None] = [None] * len(evidence)
    wanted = [(title_form(piece.title), piece.text.lower()) for piece in evidence]
    for rank, passage in enumerate(passages, start=1):
        title, text = title_form(passage.title), passage.text.lower()
        for number, (wanted_title, wanted_text) in enumerate(wanted):
            if ranks[number] is not None or wanted_title != title:
                continue
            if shares_most(wanted_text, text, partial_runs=partial_runs):
                ranks[number] = rank
                break
    return ranks


def title_form(title: str) -> str:
    """Gives a title, or the title in the address of a page, in the form in which titles are compared.

    >>> title_form("https://en.wikipedia.org/wiki/River_Ullane"), title_form("River ullane")
    ('river ullane', 'river ullane')
    """
    _, is_address, path = title.partition("/wiki/")
    # No title has a number sign: what follows one is a place in the page.
    name = urllib.parse.unquote(path.partition("#")[0]) if is_address else title
    return " ".join(name.replace("_", " ").lower().split())


def shares_most(one: str, other: str, *, partial_runs: bool = False) -> bool:
    """Says whether two texts share a run of characters longer than 0.7 times the shorter of them.

    Args:
        one: the evidence.
        other: the passage.
        partial_runs: as released, where the second half of the search has its two indexes the wrong way round: runs are
            seen only where ``_is_seen`` says so.
    """
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
            starts = n_spare - n_before, at - n_before
            in_one, in_other = starts if shorter is one else starts[::-1]
            if not partial_runs or _is_seen(in_one, in_other, len(one), len(other)):
                return True
        at = longer.find(middle, at + 1)
    return False


def _is_seen(in_one: int, in_other: int, n_one: int, n_other: int) -> bool:
    """Says whether the released script sees a run that begins there in evidence and passage of these lengths."""
    ahead = in_other - in_one
    return ahead <= n_other - n_one or (ahead <= n_one - n_other and in_one < n_other)


def _shared_start(one: str, other: str) -> int:
    unlike = (number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))


def _shared_end(one: str, other: str) -> int:
    return _shared_start(one[::-1], other[::-1])
