"""The kind of release for entity-linking data.

::

    blink-train-kilt.jsonl  blink-dev-kilt.jsonl    the records, as KILT publishes them
    links/                                          the position of each record, in the order of the release
    aliases/                                        the meanings of each mention, by mention
    rejected/                                       lines of the exclusion list that name no page
    manifest.json                                   written last
"""

from __future__ import annotations

from collections.abc import Mapping

from kbsource.release.counts import Sum, TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.manifest import Count, ListingManifest, counts_shape, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.entity_linking.records import ALL_TABLES, SKIPPED, SPLITS, lines_path

_ALIAS = "a row of mentions is out of order, or its probabilities do not follow from its counts"
INVARIANTS = (
    Invariant(
        "invalid_alias",
        _ALIAS,
        """select _file, mention || ' is out of order' from (
            select *, lag((mention, -"count", page_id)) over (order by _file, _row) as before from aliases
        ) where (mention, -"count", page_id) <= before""",
    ),
    Invariant(
        "invalid_alias",
        _ALIAS,
        """select _file, mention || ': priors are not the shares of its links' from (
            select *, sum("count") over own as total, min(link_probability) over own as least,
                max(link_probability) over own as most from aliases window own as (partition by mention)
        ) where prior <> "count"::double / total::double or least <> most or least <= 0 or most > 1""",
        needs=("aliases",),
    ),
    Invariant("invalid_record", "a line of a file is not the record made from its link"),
    Invariant("record_differs", "the text of a record does not match its page"),
    Invariant("duplicate_record", "two records have the same content"),
    Invariant(
        "split_overlap",
        "a page has records in train and in dev",
        """select min(_file), 'page ' || page_id from links group by page_id
        having count_if(starts_with(record_id, 'blink-dev-')) not in (0, count(*))""",
    ),
)


def _size_faults(manifest: ListingManifest) -> list[str]:
    """Returns an error for every split whose size is not the smaller of the numbers of found and requested records."""
    counts, wanted = manifest.facts["counts"], manifest.facts["options"]
    return [
        f"counts.{split} is {counts[split]}, of {counts['distinct'][split]} found and {wanted[split]} wanted"
        for split in SPLITS
        if counts[split] != min(counts["distinct"][split], wanted[split])
    ]


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.entity_linking.check_release import check_linking  # needs numpy, which reading does not

    if ENTITY_LINKING.count_faults(checking.manifest):
        return None
    return check_linking(checking)


ENTITY_LINKING = ListingKind(
    name="release of entity-linking data",
    format="kbsource-entity-linking-1",
    facts=shape(
        "facts",
        options=shape(
            "options",
            context_tokens=Count,
            context_chars=Count | None,
            max_tokens=Count,
            **dict.fromkeys(SPLITS, int),
        ),
        counts=shape(
            "counts",
            skipped=counts_shape(*SKIPPED),
            distinct=counts_shape(*SPLITS),
            **dict.fromkeys(("links", "duplicates"), Count),
        ),
    ),
    made_by="kbsource entity-linking",
    card=CardText(
        title="Mentions of Wikipedia with their pages",
        summary=(
            "Links of Wikipedia as records for entity linking, and the number of links from each text to each page."
        ),
        main="blink-kilt",
        holds=("wikipedia",),
        tasks=("token-classification",),
        tags=("wikipedia", "entity-linking"),
        limits=("Mentions are links that editors wrote. Editors usually link only the first mention of a page.",),
    ),
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
    counts=(
        *(
            TableCount(f"counts.{split}", f"select count_if(starts_with(record_id, 'blink-{split}-')) from links")
            for split in SPLITS
        ),
        TableCount("counts.taken", 'select sum("count") from aliases'),
        TableCount("counts.aliases", "select count(*) from aliases"),
        TableCount("counts.mentions", "select count(distinct mention) from aliases"),
        TableCount(None, "select count(*) from links", summary="records"),
    ),
    sums=(
        Sum("counts.links", ("counts.skipped", "counts.taken")),
        Sum("counts.taken", ("counts.duplicates", "counts.distinct")),
    ),
    further_faults=_size_faults,
    invariants=INVARIANTS,
    check=_check,
    made_from={"kb": MadeFrom(PAGES_RELEASE, "release", ("pages",))},
)
