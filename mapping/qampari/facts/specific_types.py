"""Typed queries of one property and value that have the same answers: which of them has the most specific type.

"Which film was directed by A?" and "Which creative work was directed by A?" are one question asked twice where every
work that A directed is a film.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mapping.qampari.facts.classes import ClassTypes, Numbers


def type_breadths(types: ClassTypes) -> dict[str, int]:
    """Gives how many classes fall under each type, by its label.

    A type that is below another, and not above it too, has fewer: all of its classes are the other's, and the other's
    own class is none of them.
    """
    return {label: int(types.has_type(types.masks, label).sum()) for label in types.labels}


def wider_twins(queries: Sequence[tuple[str, Numbers]], breadths: Mapping[str, int]) -> list[bool]:
    """Says which queries have the same answers as another one of a more specific type.

    Of several with the same answers the one whose type has fewest classes stays: it is below every other that it can be
    compared with. Where two have as many, as types have that are neither above nor below one another or of which each
    is above the other, it is the one whose label comes first by code points.

    Args:
        queries: typed ones of one property and value: label of the type, and numbers of the answers, ascending.
        breadths: of ``type_breadths``, for each of their types.
    """
    narrowest: dict[bytes, str] = {}
    for label, answers in queries:
        one = narrowest.setdefault(answers.tobytes(), label)
        narrowest[answers.tobytes()] = min(one, label, key=lambda name: (breadths[name], name))
    return [narrowest[answers.tobytes()] != label for label, answers in queries]
