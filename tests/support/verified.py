"""Releases of any kind as ``kbsource verify`` sees them, and their manifests after a change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbsource.release.manifest import ListingManifest
from kbsource.release.verify import VerifyReport, verify
from mapping.kinds import KINDS


def verified(
    folder: Path, *, on_progress: Callable[[int, int], None] | None = None, **sources: Path | None
) -> VerifyReport:
    """Gives what the verification of a release finds; ``sources`` as the command's options."""
    given = {name: str(path) for name, path in sources.items() if path is not None}
    return verify(str(folder), KINDS, sources=given, on_progress=on_progress)


def manifest_bytes(values: dict[str, Any], *, form: str) -> bytes:
    """Gives the manifest of a format that has these values."""
    return ListingManifest.from_json({**values, "format": form}, "").to_bytes()
