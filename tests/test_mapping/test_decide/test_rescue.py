"""Evidences of a set that a model sends to one sentence."""

from __future__ import annotations

import pytest

from mapping.decide.policy import Decision, OutputFate
from mapping.decide.rescue import write_places_once
from mapping.records import PARTIAL, EvidenceKey
from mapping.search.numbering import Place, Placed


def at(start: int, *, page_id: int = 1, score: float = 0.1, paragraph: int = 3) -> Placed:
    """Gives an evidence of ten characters."""
    return Placed("weak", page_id, "A", "Abstract.", Place(paragraph, start, paragraph, start + 10), score)


def kept_of(evidences: list[Placed], rescued: set[int], *, by_paragraph: bool = False) -> tuple[int, ...]:
    """Gives what is written of a set, and of the same evidences as partial ones."""
    placed = {(index, place): one for index in (0, PARTIAL) for place, one in enumerate(evidences)}
    places = tuple(range(len(evidences)))
    paragraphs: frozenset[EvidenceKey] = frozenset(placed) if by_paragraph else frozenset()
    decision = Decision(None, (OutputFate("whole", None, places),), places, paragraphs)

    written = write_places_once(decision, placed, {(index, place) for index in (0, PARTIAL) for place in rescued})

    assert written == decision._replace(outputs=(OutputFate("whole", None, written.partial),), partial=written.partial)
    return written.partial


@pytest.mark.parametrize(
    ("evidences", "rescued", "kept"),
    [
        ([at(0), at(0)], {0, 1}, (0,)),
        ([at(0), at(20), at(0)], {0, 1, 2}, (0, 1)),
        # what was found stays, wherever it stands in the set
        ([at(0), at(0, score=1.0)], {0}, (1,)),
        ([at(0, score=1.0), at(0)], {1}, (0,)),
        ([at(0), at(0, score=1.0), at(0, score=0.9)], {0}, (1, 2)),
        # other places
        ([at(0), at(1)], {0, 1}, (0, 1)),
        ([at(0), at(0, page_id=2)], {0, 1}, (0, 1)),
        # what no model chose is left as it is
        ([at(0, score=1.0), at(0, score=1.0)], set(), (0, 1)),
        ([at(0, score=1.0), at(0, score=1.0), at(20)], {2}, (0, 1, 2)),
        ([Placed("page_only", 1, "A"), Placed("page_only", 1, "A"), at(0)], {2}, (0, 1, 2)),
    ],
)
def test_a_place_comes_once_into_a_set_because_of_a_rescue(
    evidences: list[Placed], rescued: set[int], kept: tuple[int, ...]
) -> None:
    assert kept_of(evidences, rescued) == kept


def test_of_evidence_by_paragraph_the_paragraph_is_the_place() -> None:
    sentences = [at(0), at(20), at(0, paragraph=4)]

    assert kept_of(sentences, {0, 1, 2}, by_paragraph=True) == (0, 2)
    assert kept_of(sentences, {0, 1, 2}) == (0, 1, 2)


def test_sets_do_not_look_at_each_other() -> None:
    placed = {(0, 0): at(0), (1, 0): at(0)}
    fates = (OutputFate("whole", None, (0,)), OutputFate("whole", None, (0,)), OutputFate("dropped", "no_match", ()))

    assert write_places_once(Decision(None, fates), placed, set(placed)).outputs == fates
