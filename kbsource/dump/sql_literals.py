"""Literals of MySQL -> what they stand for.

Source: https://dev.mysql.com/doc/refman/8.0/en/string-literals.html
"""

from __future__ import annotations

import re

SqlValue = int | float | bytes | None

_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
# Source: table "Special Character Escape Sequences" of the page above.
_ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}


def literal_text(written: bytes) -> str | None:
    """Gives the text of a string as written, None when it is no string."""
    if written[0] == 39 and b"\\" not in written:  # by far the most
        return written[1:-1].decode("utf-8", "surrogateescape").replace("''", "'")
    value = literal_value(written)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else None


def literal_value(written: bytes) -> SqlValue:
    """Gives what a literal as written stands for: a number as int or float, NULL as None, a string as its bytes."""
    first = written[0]
    if first == 39:  # '
        text = written[1:-1]
        return text if b"\\" not in text and b"''" not in text else _ESCAPE.sub(_unescaped, text)
    if first == 78:  # NULL
        return None
    if first == 95:  # _binary '…'
        return literal_value(written[written.index(b"'") :])
    if written[:2] == b"0x":
        digits = written[2:].decode("ascii")
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    try:
        return int(written)
    except ValueError:
        return float(written)


def _unescaped(found: re.Match[bytes]) -> bytes:
    character: bytes | None = found[1]
    return b"'" if character is None else _ESCAPES.get(character, character)
