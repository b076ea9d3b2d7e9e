"""What becomes of an evidence set whose evidences a model sends to one and the same sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mapping.decide.policy import Decision
from mapping.records import PARTIAL, EvidenceKey
from mapping.search.numbering import Placed


def write_places_once(
    decision: Decision, placed: Mapping[EvidenceKey, Placed], rescued: Collection[EvidenceKey]
) -> Decision:
    """Gives a decision by which no place comes twice into a set because of a rescue.

    Evidences of a set are mostly judged by one hypothesis, so that the likeliest sentence of a page is that of all that
    are weak. Where several stand there, the first that was found stays, else the first that was rescued; what the
    search found twice without a model is written twice, as the dataset has it.

    Args:
        decision: what becomes of a record.
        placed: where each of its evidences stands.
        rescued: those whose span is a sentence that the model chose.
    """
    if not rescued:
        return decision

    def once(index: int, kept: Iterable[int]) -> tuple[int, ...]:
        keys = [(index, place) for place in kept]
        seen = {_where(key, placed, decision) for key in keys if key not in rescued}
        result = []
        for key in keys:
            if key in rescued:
                where = _where(key, placed, decision)
                if where in seen:
                    continue
                seen.add(where)
            result.append(key[1])
        return tuple(result)

    outputs = tuple(fate._replace(kept=once(index, fate.kept)) for index, fate in enumerate(decision.outputs))
    return decision._replace(outputs=outputs, partial=once(PARTIAL, decision.partial))


def _where(
    key: EvidenceKey, placed: Mapping[EvidenceKey, Placed], decision: Decision
) -> tuple[int | None, tuple[int, ...] | None]:
    """Gives the place that is written of an evidence."""
    one = placed[key]
    if one.place is not None and key in decision.by_paragraph:
        return one.page_id, (one.place.start_paragraph, one.place.end_paragraph)
    return one.page_id, one.place
