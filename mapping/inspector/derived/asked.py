"""What an address asks for, of the forms that choose rows of a list."""

from __future__ import annotations

import math

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mapping.inspector.marking import shown


def asked_text(request: Request, name: str) -> str:
    """Gives a text out of the query, empty where it is not there."""
    return request.query_params.get(name, "")


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
