"""The release of Wikidata: what its manifest says, and its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbsource.release.kind import Kind
from kbsource.release.manifest import TypedManifest, row_faults, sum_faults
from kbsource.schema import SCHEMA_VERSION, WIKIDATA_TABLES

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

FORMAT = "kbsource-wikidata-1"
RULES = {
    "entity_law": "a row of Wikidata is not built as such rows are",
    "duplicate_entity": "two rows have one entity",
    "classes_disagree": "the class closure is not that of the statements",
}
"""Every law and what it means that it is broken."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WikidataManifest(TypedManifest):
    """Everything that is known about a release of Wikidata, which has tables alone.

    Attributes:
        date: of the dump, as in the files' names; None when they have none.
        counts, totals: per input file by base name, and their sum.
        findings: statements by ``rank_…``, ``snak_…`` and ``value_…``, ``qualifiers``, entities ``without_label`` and
            of other types (``type_…``); with damage of the dump ``damaged_bytes`` and ``estimated_lost``.
    """

    date: str | None
    counts: dict[str, EntityCounts]
    totals: EntityCounts
    findings: dict[str, int]
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION


def count_faults(manifest: WikidataManifest) -> list[str]:
    """Gives every way in which the counts disagree with each other or with the tables' rows."""
    totals, findings = manifest.totals, manifest.findings
    expected = {
        "items": totals.items,
        "properties": totals.properties,
        "statements": sum(n for name, n in findings.items() if name.startswith("rank_")),
        "rejected": totals.n_rejected,
    }
    return sum_faults(manifest.counts, totals, EntityCounts()) + row_faults(manifest, expected)


def _check(checking: Checking[WikidataManifest]) -> Mapping[str, int]:
    from kbsource.wikidata.checks import check_tables  # needs numpy, which reading does not

    return check_tables(checking)


WIKIDATA_RELEASE: Kind[WikidataManifest] = Kind(
    name="release of Wikidata",
    format=FORMAT,
    made_by="kbsource wikidata",
    manifest=WikidataManifest,
    tables=WIKIDATA_TABLES,
    required=tuple(WIKIDATA_TABLES),
    schema_version=SCHEMA_VERSION,
    count_faults=count_faults,
    rules=RULES,
    check=_check,
)
