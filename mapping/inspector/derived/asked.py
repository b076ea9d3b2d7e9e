"""What an address asks for: rows of a list, their order, and one of them among the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request

from mapping.inspector.derived.row_index import Numbers
from mapping.inspector.marking import shown


def asked_text(request: Request, name: str) -> str:
    """Gives a text out of the query, empty where it is not there."""
    return request.query_params.get(name, "")


def given(asked: Mapping[str, str]) -> dict[str, str]:
    """Gives what is asked for, without what is not: what stands in the address of what is chosen so."""
    return {name: value for name, value in asked.items() if value}


def asked_number(request: Request, name: str) -> float | None:
    """Gives a number out of the query, None where it is not there or empty.

    Raises:
        HTTPException: it is none.
    """
    text = asked_text(request, name)
    try:
        number = float(text) if text else None
    except ValueError:
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise HTTPException(400, f"{name}={shown(text[:80])} is no number.")
    return number


def asked_sort(request: Request, sorts: Mapping[str, str]) -> str:
    """Gives the order that is asked for, a key of ``sorts``.

    Raises:
        HTTPException: it is none.
    """
    sort = asked_text(request, "sort")
    if sort not in sorts:
        raise HTTPException(400, f"sort is none of {', '.join(filter(None, sorts))}.")
    return sort


class Neighbours(NamedTuple):
    """Where a row stands among those that are chosen.

    Attributes:
        at: its place, from 0; None where it is not among them.
        n_chosen: how many there are.
        before, behind: numbers of the rows beside it; None where there is none.
    """

    at: int | None
    n_chosen: int
    before: int | None
    behind: int | None


def neighbours(chosen: Numbers, number: int) -> Neighbours:
    """Gives where a row stands among the chosen ones, in their order."""
    places = np.flatnonzero(chosen == number)
    if not len(places):
        return Neighbours(None, len(chosen), None, None)
    at = int(places[0])
    return Neighbours(
        at,
        len(chosen),
        int(chosen[at - 1]) if at else None,
        int(chosen[at + 1]) if at + 1 < len(chosen) else None,
    )
