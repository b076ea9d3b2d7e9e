"""Stable hashes: the same name gives the same number on every machine and in every run."""

from __future__ import annotations

import hashlib


def title_hash(title: str) -> int:
    """Gives the unsigned 64-bit key of a normalised title: the first 8 bytes (big endian) of its blake2b-8 digest."""
    return int.from_bytes(hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def stable_sha256(*parts: str) -> str:
    """Gives the hex sha256 of the parts joined by U+001F, for ids, seeds and samples."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8")).hexdigest()
