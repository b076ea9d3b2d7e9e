"""The kind of release that entity-linking data are.

::

    blink-train-kilt.jsonl  blink-dev-kilt.jsonl    the records, as KILT publishes them
    links/                                          where each of them stands, in the order of the release
    aliases/                                        what every mention means, by mention
    rejected/                                       lines of the exclusion list that name no page
    manifest.json                                   written last
"""

from __future__ import annotations

from kbsource.release.kind import ListingKind
from mapping.entity_linking.check_release import RULES, check_linking, count_faults
from mapping.entity_linking.records import SPLITS, lines_path
from mapping.entity_linking.schema import ALL_TABLES

ENTITY_LINKING = ListingKind(
    name="release of entity-linking data",
    format="kbsource-entity-linking-1",
    made_by="kbsource entity-linking",
    tables=ALL_TABLES,
    required=tuple(ALL_TABLES),
    files=tuple(map(lines_path, SPLITS)),
    count_faults=count_faults,
    rules=RULES,
    check=check_linking,
    made_from=("kb",),
)
