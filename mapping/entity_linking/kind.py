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

from kbsource.release.kind import ListingKind, MadeFrom
from kbsource.release.laws import Checking, Law, counts_law
from kbsource.release.manifest import Count, ListingManifest, counts_shape, row_faults, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.entity_linking.records import ALL_TABLES, SKIPPED, SPLITS, lines_path

_ALIAS = "a mention is out of order, or its probabilities are not those of its counts"
LAWS = (
    Law(
        "alias_law",
        _ALIAS,
        """select _file, mention || ' is out of order' from (
            select *, lag((mention, -"count", page_id)) over (order by _file, _row) as before from aliases
        ) where (mention, -"count", page_id) <= before""",
    ),
    Law(
        "alias_law",
        _ALIAS,
        """select _file, mention || ': priors are not the shares of its links' from (
            select *, sum("count") over own as total, min(link_probability) over own as least,
                max(link_probability) over own as most from aliases window own as (partition by mention)
        ) where prior <> "count"::double / total::double or least <> most or least <= 0 or most > 1""",
        needs=("aliases",),
    ),
    counts_law(
        """select '', 'mentions', count(distinct mention) from aliases
        union all select '', 'taken', sum("count") from aliases""",
        "%",
        ("aliases",),
    ),
    Law("record_law", "a line is not the record of its link"),
    Law("record_differs", "a record is not what its page says"),
    Law("duplicate_record", "two records say the same"),
    Law(
        "split_law",
        "a page has records in train and in dev",
        """select min(_file), 'page ' || page_id from links group by page_id
        having count_if(starts_with(record_id, 'blink-dev-')) not in (0, count(*))""",
    ),
)


def count_faults(manifest: ListingManifest) -> list[str]:
    """Every way in which the counts of a manifest contradict each other, or its files."""
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
    facts=shape(
        "facts",
        options=shape("options", **dict.fromkeys(SPLITS, int)),
        counts=shape(
            "counts",
            skipped=counts_shape(*SKIPPED),
            distinct=counts_shape(*SPLITS),
            **dict.fromkeys((*SPLITS, "links", "taken", "duplicates", "aliases", "mentions"), Count),
        ),
    ),
    made_by="kbsource entity-linking",
    queries=(
        (
            "mentions that mean several pages",
            "select mention, count(*) as pages, sum(count) as links from aliases group by all having pages > 1 "
            "order by links desc, mention limit 10",
        ),
    ),
    made_from_pages=True,
    shown_by=(
        ("aliases", "mention"),
        ("aliases", "page_id"),
        ("aliases", "title"),
        ("links", "record_id"),
        ("links", "page_id"),
        ("rejected", "key"),
    ),
    tables=ALL_TABLES,
    required=tuple(ALL_TABLES),
    files=tuple(map(lines_path, SPLITS)),
    count_faults=count_faults,
    laws=LAWS,
    claims=lambda manifest: {name: manifest.facts["counts"][name] for name in ("mentions", "taken")},
    counted={"records": "select count(*) from links"},
    check=_check,
    made_from={"kb": MadeFrom(PAGES_RELEASE, "release", ("pages",))},
)
