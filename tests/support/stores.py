"""Small files in a store that is reached through Beam."""

from __future__ import annotations

from pipelines.storage import BeamStorage


def put(store: BeamStorage, path: str, content: bytes) -> None:
    """Writes a file."""
    with store.open_write(path) as file:
        file.write(content)


def get(store: BeamStorage, path: str) -> bytes:
    """Gives a file's content."""
    with store.open_read(path) as file:
        return file.read()
