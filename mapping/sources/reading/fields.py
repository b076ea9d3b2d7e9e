"""Typed access to parsed JSON, where what is missing or of another type rejects the record."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, TypeGuard

from kbsource.errors import RecordError

Json = dict[str, Any]

_HALF_OF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def parse_object(text: str) -> Json:
    """Gives a JSON object with its key order; integers keep all their digits.

    Raises:
        RecordError: ``bad_encoding`` (half a surrogate pair), ``malformed_json``, ``wrong_type`` (not
            an object).
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError("malformed_json", f"{error} in {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"expected an object, found {text[:80]!r}")
    if _HALF_OF_PAIR.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise RecordError("bad_encoding", f"half a surrogate pair: {error}") from error
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def text_at(record: Json, key: str) -> str:
    """Gives a string.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    value = _at(record, key)
    return value if isinstance(value, str) else _wrong(key, "a string", value)


def integer_at(record: Json, key: str) -> int:
    """Gives an integer; raises as ``text_at``."""
    value = _at(record, key)
    return value if is_integer(value) else _wrong(key, "an integer", value)


def digits_or_text(record: Json, key: str) -> str:
    """Gives a string, or an integer as its digits, as ids are written; raises as ``text_at``."""
    value = record.get(key)
    return str(value) if is_integer(value) else text_at(record, key)


def list_at(record: Json, key: str) -> list[Any]:
    """Gives a list; raises as ``text_at``."""
    value = _at(record, key)
    return value if isinstance(value, list) else _wrong(key, "a list", value)


def object_at(record: Json, key: str) -> Json:
    """Gives an object; raises as ``text_at``."""
    value = _at(record, key)
    return value if isinstance(value, dict) else _wrong(key, "an object", value)


def objects_at(record: Json, key: str) -> list[Json]:
    """Gives a list of objects; raises as ``text_at``."""
    for value in (values := list_at(record, key)):
        if not isinstance(value, dict):
            _wrong(key, "a list of objects", value)
    return values


def optional_text(record: Json, key: str) -> str | None:
    """Gives a string, None where the key is absent; raises ``wrong_type``."""
    return text_at(record, key) if key in record else None


def optional_object(record: Json, key: str) -> Json | None:
    """Gives an object, None where the key is absent; raises ``wrong_type``."""
    value = record.get(key)
    if key not in record or isinstance(value, dict):
        return value
    return _wrong(key, "an object", value)


def is_integer(value: object) -> TypeGuard[int]:
    """Says whether a JSON value is an integer (``true`` is none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def only_known(record: Json, known: frozenset[str]) -> None:
    """Raises ``unknown_field`` for a key that means nothing here, such as a misspelt one."""
    for key in record:
        if key not in known:
            raise RecordError("unknown_field", f"{key!r}; known are {', '.join(sorted(known))}")


def _at(record: Json, key: str) -> Any:
    if key not in record:
        raise RecordError("missing_field", f"{key!r}; there are {', '.join(map(repr, record)) or 'none'}")
    return record[key]


def _wrong(key: str, expected: str, value: object) -> NoReturn:
    raise RecordError("wrong_type", f"{key!r}: expected {expected}, found {repr(value)[:80]}")
