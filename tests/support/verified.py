"""Releases of any kind as ``kbsource verify`` sees them, and their manifests after a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import Folder
from kbsource.release.manifest import ListingManifest, canonical_json
from kbsource.release.verify import VerifyReport, verify
from mapping.kinds import KINDS


def verified(
    folder: Path, *, on_progress: Callable[[int, int], None] = lambda done, total: None, **sources: Path | None
) -> VerifyReport:
    """Gives what the verification of a release finds; ``sources`` as the command's options."""
    given = {name: str(path) for name, path in sources.items() if path is not None}
    return verify(str(folder), KINDS, sources=given, on_progress=on_progress)


def broken(folder: Path, **sources: Path | None) -> set[tuple[str, str]]:
    """The files and rules of what the verification finds."""
    report = verified(folder, **sources)
    assert report.is_sound == (not report.findings)
    return {(finding.file, finding.rule) for finding in report.findings}


def manifest_bytes(values: dict[str, Any], *, form: str) -> bytes:
    """Gives the manifest of a format that has these values."""
    return ListingManifest.from_json({**values, "format": form}, "").to_bytes()


def seal(folder: Path, **changed: Any) -> None:
    """Makes a manifest fit the files as they are now, so that only the invariants are broken."""
    values = json.loads((folder / "manifest.json").read_text()) | changed
    del values["manifest_sha256"]
    is_listing = "files" in values
    for entry in values["files"] if is_listing else chain.from_iterable(values["tables"].values()):
        path = folder / entry["file"]
        if path.exists():
            entry["bytes"], entry["sha256"] = path.stat().st_size, Folder.of(str(path)).sha256()
            if path.suffix == ".jsonl":
                entry["rows"] = path.read_bytes().count(b"\n")
            elif path.suffix == ".parquet" and "files" not in changed:
                with suppress(pa.ArrowInvalid):  # a file that is no table any more
                    entry["rows"] = pq.read_metadata(path).num_rows
    if not is_listing:
        values["manifest_sha256"] = hashlib.sha256(canonical_json(values)).hexdigest()
    content = manifest_bytes(values, form=values["format"]) if is_listing else canonical_json(values)
    (folder / "manifest.json").write_bytes(content)
