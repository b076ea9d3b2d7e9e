"""Arrays and objects of the JSON dump as PHP writes them: an empty object as ``[]``, an array with gaps as an object.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import repr as brief
from typing import Any

from kbsource.errors import RecordError


def object_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Gives an object of an entity; missing, null and ``[]`` are empty ones.

    Raises:
        RecordError: ``invalid_field``: it is something else.
    """
    found = value.get(name)
    if type(found) is dict:
        return found
    if found is None or found == []:
        return {}
    raise RecordError("invalid_field", f"{name} is a {type(found).__name__}")


def members(value: Any) -> Iterable[Any]:
    """Gives the members of an array.

    Raises:
        TypeError: it is none.
    """
    if type(value) is list:
        return value
    if type(value) is dict:
        return value.values()
    raise TypeError(f"{brief(value)} is no array")
