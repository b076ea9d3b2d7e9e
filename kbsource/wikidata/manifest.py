"""The manifest of a release of Wikidata; in form and guarantees like ``release.manifest``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, join
from kbsource.release.layout import MANIFEST, no_release
from kbsource.release.manifest import Code, FileEntry, IndexFile, InputFile, canonical_json, typed_value
from kbsource.schema import SCHEMA_VERSION, WIKIDATA_TABLES

FORMAT = "kbsource-wikidata-1"
_DAMAGED = "the manifest is damaged or foreign, get or build the release again"


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """What became of the lines read; law: lines_read = items + properties + other_entities + rejected."""

    lines_read: int = 0
    items: int = 0
    properties: int = 0
    other_entities: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    @property
    def n_rejected(self) -> int:
        """Lines rejected, for any reason."""
        return sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class WikidataManifest:
    """Everything that is known about a release of Wikidata.

    Attributes:
        format, schema_version: versions of the layout and of the tables.
        date: of the dump, as in the files' names; None when they have none.
        options: options that decide the bytes, as JSON values.
        tables: files of each table in order.
        index: none; every release has the key.
        counts, totals: per input file by base name, and their sum.
        findings: statements by ``rank_…``, ``snak_…`` and ``value_…``, ``qualifiers``, entities ``without_label`` and
            of other types (``type_…``).
    """

    code: Code
    inputs: tuple[InputFile, ...]
    date: str | None
    options: dict[str, Any]
    tables: dict[str, tuple[FileEntry, ...]]
    counts: dict[str, EntityCounts]
    totals: EntityCounts
    findings: dict[str, int]
    index: tuple[IndexFile, ...] = ()
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION

    def to_bytes(self) -> bytes:
        """Gives the file's content; ``manifest_sha256`` in it is the sha256 of the same without that key."""
        value = dataclasses.asdict(self)
        return canonical_json({**value, "manifest_sha256": hashlib.sha256(canonical_json(value)).hexdigest()})


def sum_entity_counts(counts: Iterable[EntityCounts]) -> EntityCounts:
    """Gives the sum."""
    total = EntityCounts()
    for one in counts:
        reasons = sorted({*total.rejected, *one.rejected})
        total = EntityCounts(
            total.lines_read + one.lines_read,
            total.items + one.items,
            total.properties + one.properties,
            total.other_entities + one.other_entities,
            {reason: total.rejected.get(reason, 0) + one.rejected.get(reason, 0) for reason in reasons},
        )
    return total


def entity_count_faults(manifest: WikidataManifest) -> list[str]:
    """Gives every way in which the counts disagree with each other or with the tables' rows."""
    faults = []
    for name, one in [*sorted(manifest.counts.items()), ("all inputs", manifest.totals)]:
        total = one.items + one.properties + one.other_entities + one.n_rejected
        if one.lines_read != total:
            faults.append(
                f"{name}: {one.lines_read} lines read, not {one.items} items + {one.properties} properties"
                f" + {one.other_entities} other entities + {one.n_rejected} rejected = {total}"
            )
    if sum_entity_counts(manifest.counts.values()) != sum_entity_counts([manifest.totals]):
        faults.append("the totals are not the sum of the input files' counts")
    totals, findings = manifest.totals, manifest.findings
    expected = {
        "items": totals.items,
        "properties": totals.properties,
        "statements": sum(n for name, n in findings.items() if name.startswith("rank_")),
        "rejected": totals.n_rejected,
    }
    for table, n_wanted in expected.items():
        n_rows = sum(entry.rows for entry in manifest.tables.get(table, ()))
        if n_rows != n_wanted:
            faults.append(f"table {table} has {n_rows} rows, the counts say {n_wanted}")
    return faults


def is_wikidata_release(path: str, storage: Storage) -> bool:
    """Says whether a folder's manifest, if it has any, is one of a release of Wikidata."""
    if not storage.exists(join(path, MANIFEST)):
        return False
    with storage.open_read(join(path, MANIFEST)) as file:
        return f'"format": "{FORMAT}"'.encode() in file.read()


def read_wikidata_manifest(path: str, storage: Storage) -> WikidataManifest:
    """Gives the manifest of a finished release of Wikidata.

    Raises:
        SetupError: there is none, it is no such manifest, or it is of another version.
    """
    file_path = join(path, MANIFEST)
    if not storage.exists(file_path):
        raise SetupError(f"{path}: {no_release(path, storage)}")
    with storage.open_read(file_path) as file:
        content = file.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise DataError(f"{file_path}: not JSON ({error}); {_DAMAGED}") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT or value.get("schema_version") != SCHEMA_VERSION:
        found = value if isinstance(value, dict) else {}
        raise SetupError(
            f"{file_path}: format {found.get('format')!r}, schema version {found.get('schema_version')!r}, not "
            f"{FORMAT!r}, {SCHEMA_VERSION}, so no release of Wikidata that this version reads; name the folder of one, "
            "or make it with kbsource wikidata"
        )
    fields = {name: one for name, one in value.items() if name != "manifest_sha256"}
    manifest: WikidataManifest = typed_value(fields, WikidataManifest, file_path)
    if missing := sorted(set(WIKIDATA_TABLES) - set(manifest.tables)):
        raise DataError(f"{file_path}: table {missing[0]} is missing; {_DAMAGED}")
    if manifest.to_bytes() != content:
        raise DataError(f"{file_path}: changed since it was written; {_DAMAGED}")
    return manifest
