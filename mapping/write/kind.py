"""The kinds of release that alignments are, and what kinds that are made from pages have in common.

::

    fever-dev-kilt.jsonl                        the records, as KILT publishes them
    records/                                    what became of every record that was read, Parquet
    alignments/  misses/  rejected/             the same of every evidence, and what was wrong with rejected records
    crosswalk/                                  for KILT files: old spans and new ones
    report.json                                 counts
    manifest.json                               written last: without it the folder is not finished
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from kbsource.release.kind import ListingKind, MadeFrom
from kbsource.release.laws import Law, counts_law
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Count, FileEntry, ListingManifest, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.writer import write_lines
from mapping.schema import TABLES, VERIFICATION

REPORT, TEXT_REPORT = "report.json", "report.txt"

LAWS = (
    Law(
        "record_order",
        "the examples among the records are not numbered in order",
        """select _file, 'from number ' || number from (
            select _file, ordinal, row_number() over (partition by _part order by _file, _row) - 1 as number
            from records where ordinal is not null
        ) where ordinal <> number""",
    ),
    counts_law(
        """select _part, concat_ws(': ', 'records ' || outcome, reason), count(*) from records group by all
        union all select _part, 'records numbered', count(ordinal) from records group by all
        union all select _part, 'records with evidences', sum(n_evidences) from records group by all""",
        "records %",
        (*TABLES,),
        slug="record_differs",
        meaning="what became of the records is not what counts and tables say",
    ),
    Law(
        "record_differs",
        "",
        f"""select concat_ws('/', nullif(_part, ''), '{MANIFEST}'),
            format('evidences written: {{}} in alignments, not {{}}', coalesce(own.n, 0), coalesce(told.n, 0))
        from (select _part, sum(n_evidences_written) as n from records group by all) as told
        full join (select _part, count_if(is_written) as n from alignments group by all) as own using (_part)
        where coalesce(own.n, 0) <> coalesce(told.n, 0)""",
        needs=(*TABLES,),
    ),
    Law(
        "record_differs",
        "",
        f"""select concat_ws('/', nullif(_part, ''), '{MANIFEST}'),
            format('{{}} has {{}} records, not {{}}', lines.name, lines.n, coalesce(written.n, 0))
        from claimed as lines left join (from claimed where name = 'records written') as written using (_part)
        where lines.name like '%-kilt.jsonl' and lines.n <> coalesce(written.n, 0)""",
    ),
)


def _claims(manifest: ListingManifest) -> dict[str, int]:
    records, counts = manifest.facts["records"], manifest.facts["counts"]
    became = {"dropped": counts["dropped"], "excluded": records["excluded"], "rejected": records["rejected"]}
    return {
        "records written": counts["written"],
        "records merged": records["merged"],
        "records numbered": records["examples"],
        "records with evidences": manifest.n_rows("alignments") + manifest.n_rows("misses"),
        **{
            f"records {outcome}: {reason}": n
            for outcome, by_reason in became.items()
            for reason, n in by_reason.items()
        },
        **{entry.file: entry.rows or 0 for entry in manifest.files if entry.file.endswith("-kilt.jsonl")},
    }


ALIGNMENT = ListingKind(
    name="alignment",
    format="kbsource-alignment-1",
    facts=shape(
        "facts",
        records=shape(
            "records", read=Count, merged=Count, examples=Count, excluded=dict[str, Count], rejected=dict[str, Count]
        ),
        counts=shape("counts", written=Count, dropped=dict[str, Count]),
    ),
    made_by="kbsource map",
    shown_by=(("records", "example_id"), ("alignments", "page_id"), ("alignments", "title"), ("rejected", "key")),
    tables=TABLES,
    further={"alignments": VERIFICATION},
    files=(REPORT,),
    laws=LAWS,
    claims=_claims,
    counted={"records": "select count(*) from records"},
)
ALIGNMENTS = ListingKind(
    name="folder of alignments",
    format="kbsource-alignments-1",
    made_by="kbsource map all",
    shown_by=ALIGNMENT.shown_by,
    tables={},
    files=(REPORT, TEXT_REPORT),
    parts=ALIGNMENT,
    laws=LAWS,
    counted=ALIGNMENT.counted,
)
FROM_PAGES = {"kb": MadeFrom(PAGES_RELEASE, "release")}
"""What is made from a release of pages, of which single pages are looked up to compare it."""


def write_report(report: Mapping[str, Any], *, output: str) -> FileEntry:
    """Writes the counts of what was made, and gives the entry of the file."""
    content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    return write_lines([content], REPORT, output=output)
