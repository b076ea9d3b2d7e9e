"""Predicted places beside the gold provenance of one record: R-precision, evidence sets in the rank, contexts.

Source: Petroni et al., KILT (2021), section 4, and the released retrieval tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mapping.metrics.answer_lists import answer_form

Span = Mapping[str, Any]
Provenance = Sequence[Span]


def place_ids(provenance: Provenance, keys: Sequence[str], *, null_ids: bool = False) -> list[str]:
    """Gives the places of spans, each once, in their order; spans that lack a key are passed over.

    Args:
        provenance: spans as KILT writes them.
        keys: that tell places apart.
        null_ids: as released: null is a value, the text None.

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
    """Gives the distinct sets of places that each hold all evidence for an answer; none is empty.

    Args:
        outputs: provenance of each gold output that has one.
        keys: as for ``place_ids``.
        quirks: of ``mapping.metrics.kilt.options.QUIRKS``.
    """
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
    """Gives R-precision: of as many places as a gold output has, the share that is among them; the best output counts.

    >>> r_precision(["x", "a", "b"], [{"a", "b"}, {"c"}])
    0.5
    """
    return max(
        (len(places & {*predicted[: len(places)]}) / len(places) for places in map(set, gold) if places), default=0.0
    )


def complete_sets(predicted: Iterable[str], sets: Iterable[frozenset[str]]) -> list[bool]:
    """Gives the rank in which every evidence set stands once, where the last of its places was predicted.

    Args:
        predicted: places, best first, each once.
        sets: distinct evidence sets.

    Returns:
        For each entry whether a set is complete there; False is a place of no set, or a set that is not complete yet
        and stands where its latest place was. One place may complete several sets, each an entry.

    >>> complete_sets(["x", "a", "b"], [frozenset("ab"), frozenset("c")])
    [False, True]
    """
    missing = [set(places) for places in sets]
    # A number is the set that is incomplete there.
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
    """Gives precision@k, and for k above 1 recall@k and success_rate@k; 0 without places or sets."""
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
    """Gives whether answers and titles stand in the texts of the first k spans, as characters in the form of answers.

    Args:
        provenance: as predicted; a span without ``text`` takes its place and holds nothing.
        answers, titles: of the gold record.
        ks: ranks.
        empty: as released: what has no form stands in every text.
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
    """Says whether a title of the gold provenance stands in the input, as characters in the form of answers."""
    form = answer_form(text)
    return any(title in form for title in _forms(titles, empty))


def _forms(texts: Iterable[str], empty: bool) -> list[str]:
    return [form for form in map(answer_form, texts) if form or empty]
