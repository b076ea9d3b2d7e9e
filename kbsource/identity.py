"""Stable hashes: a name has the same hash on every machine and in every run."""

from __future__ import annotations

import hashlib
import uuid


def title_hash(title: str) -> int:
    """Returns the unsigned 64-bit key of a normalised title: the first 8 bytes (big endian) of its blake2b-8 digest."""
    return int.from_bytes(hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def stable_sha256(*parts: str) -> str:
    """Returns the hex sha256 of the parts joined by U+001F, for ids, seeds and samples."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8")).hexdigest()


def stable_uuid(*parts: str) -> str:
    """Returns a name-based UUID (version 5 in form) of the parts: the first 16 bytes of ``stable_sha256``.

    >>> stable_uuid("trex", "Q42", "P31")
    '9477cade-6db7-5498-a378-fad27766e655'
    """
    return str(uuid.UUID(stable_sha256(*parts)[:32], version=5))
