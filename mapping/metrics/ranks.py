"""Ranks at which gold answers, gold evidence and gold provenance occur among ranked passages and locations.

Source: the released evaluation script of QAMPARI; Petroni et al., KILT (2021), section 4, and the released retrieval
tool.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mapping.metrics.answers import GoldNames, answer_form
from mapping.search.text import find_whole, fold_case

Span = Mapping[str, Any]
Provenance = Sequence[Span]


class RetrievedPassage(NamedTuple):
    """A retrieved passage, or a passage that is evidence for an answer."""

    passage_id: str  # id of the passage within its corpus; empty without id
    title: str  # title of the page that contains the passage
    text: str  # text of the passage


def answer_ranks(
    answers: Sequence[GoldNames], passages: Sequence[RetrievedPassage], *, substring: bool = False
) -> list[int | None]:
    """Returns, for each answer, the 1-based rank of the first passage with one of its names in title or text.

    Names are matched as whole words, regardless of case: as written (Halvane in "Halvane's"), or both in normal form
    (U.S. in "the US"). A name without a normal form is never found. With ``substring``, as in the released script, a
    name is found wherever its lower-cased characters occur, even inside words.
    """
    searched = [_searched(passage, substring=substring) for passage in passages]
    ranks = []
    for answer in answers:
        names = {form for name in (answer.text, *answer.aliases) for form in _search_forms(name, substring=substring)}
        found = (rank for rank, text in enumerate(searched, start=1) if _has_any(names, text, inside_words=substring))
        ranks.append(next(found, None))
    return ranks


def _searched(passage: RetrievedPassage, *, substring: bool) -> str:
    """Returns title and text, normalised for searching names, on separate lines, so that no name matches across
    them."""
    if substring:
        return f"{passage.title}\n{passage.text}".lower()
    both = (passage.title, passage.text)
    return "\n".join((*map(_plain_form, both), *map(answer_form, both)))


def _search_forms(name: str, *, substring: bool) -> tuple[str, ...]:
    if substring:
        return (name.lower(),) if name.strip() else ()
    form = answer_form(name)
    return (_plain_form(name), form) if form else ()


def _plain_form(text: str) -> str:
    return fold_case(" ".join(text.split()))


def _has_any(names: Iterable[str], text: str, *, inside_words: bool) -> bool:
    return any(name in text and (inside_words or any(True for _ in find_whole(name, text, text))) for name in names)


def ranks_by_id(evidence: Sequence[RetrievedPassage], passages: Sequence[RetrievedPassage]) -> list[int | None]:
    """Returns, for each evidence passage, the 1-based rank of the passage with its id."""
    first: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        first.setdefault(passage.passage_id, rank)
    return [first.get(piece.passage_id) for piece in evidence]


def ranks_by_text(
    evidence: Sequence[RetrievedPassage], passages: Sequence[RetrievedPassage], *, partial_runs: bool = False
) -> list[int | None]:
    """Returns, for each evidence passage, the 1-based rank of the passage that contains most of it.

    Use this for passages that were cut differently from the evidence. Two passages match if, ignoring case, their
    titles are equal and they share a run of characters longer than 0.7 times the shorter text. Each retrieved passage,
    best first, is matched only with the first piece of evidence that fits and is not matched yet.

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
    """Returns a title, or the title in a page URL, normalised for comparison.

    >>> title_form("https://en.wikipedia.org/wiki/River_Ullane"), title_form("River ullane")
    ('river ullane', 'river ullane')
    """
    _, is_address, path = title.partition("/wiki/")
    # Titles contain no number sign: the part after it is a position in the page.
    name = urllib.parse.unquote(path.partition("#")[0]) if is_address else title
    return " ".join(name.replace("_", " ").lower().split())


def shares_most(one: str, other: str, *, partial_runs: bool = False) -> bool:
    """Returns whether two texts share a run of characters longer than 0.7 times the shorter of them.

    ``partial_runs`` reproduces the released script, which swaps two indexes in the second half of its search: it only
    detects a run if ``_is_seen`` is true.
    """
    shorter, longer = sorted((one, other), key=len)
    if not shorter:
        return False
    n_needed = 7 * len(shorter) // 10 + 1
    n_spare = len(shorter) - n_needed
    # A run of that length is more than half of the text, so it always contains the same middle.
    middle = shorter[n_spare:n_needed]
    at = longer.find(middle)
    while at != -1:
        n_before = _shared_start(shorter[:n_spare][::-1], longer[max(0, at - n_spare) : at][::-1])
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
    """Returns whether the released script detects a run that starts there, in evidence and passage of these lengths."""
    ahead = in_other - in_one
    return ahead <= n_other - n_one or (ahead <= n_one - n_other and in_one < n_other)


def _shared_start(text: str, other: str) -> int:
    unlike = (number for number, (a, b) in enumerate(zip(text, other, strict=False)) if a != b)
    return next(unlike, min(len(text), len(other)))


def place_ids(provenance: Provenance, keys: Sequence[str], *, null_ids: bool = False) -> list[str]:
    """Returns the distinct locations of spans, in order. Spans without a key, or with a null key unless ``null_ids``,
    are skipped.

    >>> place_ids([{"wikipedia_id": 7, "section": "Lead"}, {"wikipedia_id": "7"}], ["wikipedia_id", "section"])
    ['7+Lead']
    """
    return list(
        dict.fromkeys(
            _joined(span, keys)
            for span in provenance
            if all(key in span and (null_ids or span[key] is not None) for key in keys)
        )
    )


def _joined(span: Span, keys: Iterable[str]) -> str:
    return "+".join(str(span[key]).strip() for key in keys)


def evidence_sets(
    outputs: Iterable[Provenance], keys: Sequence[str], quirks: Collection[str] = ()
) -> list[frozenset[str]]:
    """Returns the distinct sets of locations that each contain all evidence for an answer; no set is empty."""
    null_ids = "null_ids" in quirks
    found: dict[frozenset[str], None] = {}
    for provenance in outputs:
        if "partial_ids" in quirks:
            held = [[key for key in keys if key in span and (null_ids or span[key] is not None)] for span in provenance]
            places = frozenset(_joined(span, names) for span, names in zip(provenance, held, strict=True))
        else:
            places = frozenset(place_ids(provenance, keys, null_ids=null_ids))
        if places or ("empty_sets" in quirks and not provenance):
            found[places] = None
    return list(found)


def r_precision(predicted: Sequence[str], gold: Iterable[Collection[str]]) -> float:
    """Returns the R-precision: if a gold output has R locations, the share of correct ones among the first R; the best
    output counts.

    >>> r_precision(["x", "a", "b"], [{"a", "b"}, {"c"}])
    0.5
    """
    return max(
        (len(places & {*predicted[: len(places)]}) / len(places) for places in map(set, gold) if places), default=0.0
    )


def complete_sets(predicted: Iterable[str], sets: Iterable[frozenset[str]]) -> list[bool]:
    """Returns a ranking that contains every evidence set once, at the position where its last location was predicted.

    Returns:
        For each entry, whether a set is complete there. False means a location of no set, or an incomplete set, at the
            position of its last predicted location. One location may complete several sets; these are separate entries.

    >>> complete_sets(["x", "a", "b"], [frozenset("ab"), frozenset("c")])
    [False, True]
    """
    missing = [set(places) for places in sets]
    # A number is the set that is incomplete at this position.
    rank: list[int | None] = []
    complete: list[bool] = []
    for place in predicted:
        holders = [number for number, places in enumerate(missing) if place in places]
        for number in holders:
            if number in rank:
                at = rank.index(number)
                del rank[at], complete[at]
            missing[number].remove(place)
            complete.append(not missing[number])
            rank.append(number if missing[number] else None)
        if not holders:
            rank.append(None)
            complete.append(False)
    return complete


def rank_scores(predicted: Sequence[str], sets: Sequence[frozenset[str]], ks: Iterable[int]) -> dict[str, float]:
    """Returns precision@k, and for k above 1 also recall@k and success_rate@k; 0 without locations or sets."""
    rank = complete_sets(predicted, sets)
    scores = {}
    for k in ks:
        n_complete = sum(rank[:k])
        scores[f"precision@{k}"] = n_complete / k
        if k > 1:
            scores[f"recall@{k}"] = n_complete / len(sets) if sets else 0.0
            scores[f"success_rate@{k}"] = float(n_complete > 0)
    return scores


def context_scores(
    provenance: Provenance, answers: Iterable[str], titles: Iterable[str], ks: Iterable[int], *, empty: bool = False
) -> dict[str, float]:
    """Returns, for each k, 1 or 0: whether an answer, a title, or both occur in the texts of the first k spans.

    All of them are compared in the normal form of answers, and may occur inside words.
    A span without ``text`` occupies its rank and contains nothing. With ``empty``, as in the released scripts, a text
    without a normal form occurs everywhere.
    """
    answer_forms, title_forms = _forms(answers, empty), _forms(titles, empty)
    best: dict[str, int] = {}
    for rank, span in enumerate(provenance, start=1):
        if isinstance(span.get("text"), str):
            text = answer_form(span["text"])
            has_answer, has_title = (any(form in text for form in forms) for forms in (answer_forms, title_forms))
            for name, holds in (
                ("answer_in_context", has_answer),
                ("answer_and_ent_in_context", has_answer and has_title),
                ("entity_in_context", has_title),
            ):
                if holds:
                    best.setdefault(name, rank)
    names = ("answer_in_context", "answer_and_ent_in_context", "entity_in_context")
    return {f"{name}@{k}": float(name in best and best[name] <= k) for name in names for k in ks}


def is_in_input(titles: Iterable[str], text: str, *, empty: bool = False) -> bool:
    """Returns whether a title of the gold provenance occurs in the input, compared as in ``context_scores``."""
    form = answer_form(text)
    return any(title in form for title in _forms(titles, empty))


def _forms(texts: Iterable[str], empty: bool) -> list[str]:
    return [form for form in map(answer_form, texts) if form or empty]
