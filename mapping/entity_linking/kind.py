"""The kind of release that entity-linking data are.

::

    blink-train-kilt.jsonl  blink-dev-kilt.jsonl    the records, as KILT publishes them
    links/                                          where each of them stands, in the order of the release
    aliases/                                        what every mention means, by mention
    rejected/                                       lines of the exclusion list that name no page
    manifest.json                                   written last
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbsource.release.kind import ListingKind
from kbsource.release.manifest import ListingManifest, row_faults
from mapping.entity_linking.records import SKIPPED, SPLITS, lines_path
from mapping.entity_linking.schema import ALL_TABLES

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

RULES = {
    "alias_law": "a mention is out of order, or its probabilities are not those of its counts",
    "record_law": "a line is not the record of its link",
    "record_differs": "a record is not what its page says",
    "duplicate_record": "two records say the same",
    "split_law": "a page has records in train and in dev",
}
"""Every law and what it means that it is broken."""


def count_faults(manifest: ListingManifest) -> list[str]:
    """Gives every way in which the counts of a manifest contradict each other, or its files."""
    try:
        counts, wanted = manifest.facts["counts"], manifest.facts["options"]
        skipped, distinct = counts["skipped"], counts["distinct"]
        sums = {
            "links": (counts["links"], sum(skipped[name] for name in SKIPPED) + counts["taken"]),
            "taken": (counts["taken"], counts["duplicates"] + sum(distinct[split] for split in SPLITS)),
            **{split: (counts[split], min(distinct[split], wanted[split])) for split in SPLITS},
            "aliases": (counts["aliases"], manifest.n_rows("aliases")),
            "lines": (sum(counts[split] for split in SPLITS), sum(entry.rows or 0 for entry in manifest.files)),
        }
    except (KeyError, TypeError) as error:
        return [f"options and counts are not those of entity-linking data ({error!r})"]
    faults = [
        f"{name}: {given}, {found} by what it consists of" for name, (given, found) in sums.items() if given != found
    ]
    return faults + row_faults(manifest, {"links": counts["train"] + counts["dev"]})


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.entity_linking.check_release import check_linking  # needs numpy, which reading does not

    return check_linking(checking)


ENTITY_LINKING = ListingKind(
    name="release of entity-linking data",
    format="kbsource-entity-linking-1",
    made_by="kbsource entity-linking",
    tables=ALL_TABLES,
    required=tuple(ALL_TABLES),
    files=tuple(map(lines_path, SPLITS)),
    count_faults=count_faults,
    rules=RULES,
    check=_check,
    made_from=("kb",),
)
