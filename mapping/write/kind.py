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

import msgspec
import orjson

from kbsource.release.kind import ListingKind, MadeFrom
from kbsource.release.laws import Law, counts_law
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Count, FileEntry, ListingManifest, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.writer import write_lines
from mapping.schema import TABLES, VERIFICATION

REPORT, TEXT_REPORT = "report.json", "report.txt"

_BY_REASON = dict[str, Count]
_RECORDS = shape("records", read=Count, merged=Count, examples=Count, excluded=_BY_REASON, rejected=_BY_REASON)
_SEVERAL = ("several_pages", "several_sets", "several_spans")
_COUNTED = (
    *("written", "pages_there", "mapped", "spans_written", "with_sets", "sets_written", "set_spans", "set_pages"),
    *(*_SEVERAL, "answers"),
)
_BY_NAME = ("dropped", "outputs", "output_reasons", "evidences", "found_by", "hops", "matches", "scores")


class _Dropped(msgspec.Struct):
    """Records that the threshold drops, and their share."""

    records: Count
    share: float


class _Averages(msgspec.Struct):
    """Averages of a dataset, as table 6 of the KILT paper has them."""

    spans: float | None
    sets: float | None
    pages: float | None
    answers: float | None


class _DatasetReport(msgspec.Struct):
    """What the report on all alignments has of one dataset."""

    name: str
    split: str
    records: Count
    published_records: Count | None
    averages: _Averages
    averages_in_the_paper: _Averages | None
    dropped_by_threshold: float | None
    dropped_in_the_paper: _Dropped | None


_ALIGNMENT_REPORT = shape(
    "report",
    dataset=str,
    split=str,
    records=_RECORDS,
    counts=shape("counts", **dict.fromkeys(_COUNTED, Count), **dict.fromkeys(_BY_NAME, _BY_REASON)),
    lost_evidences=_BY_REASON,
    statistics=dict[str, float],
    statistics_in_the_paper=dict[str, float] | None,
    dropped_by_threshold=float | None,
    dropped_in_the_paper=_Dropped | None,
    shares_in_the_paper=shape("shares_in_the_paper", **dict.fromkeys(_SEVERAL, float | None)) | None,
    verification=shape("verification", refusals=_BY_REASON | None, rescued=Count) | None,
    accept=shape("accept", rule=str, dropped=Count) | None,
)
_ALIGNMENTS_REPORT = shape(
    "report",
    datasets=list[_DatasetReport],
    pages=shape(
        "pages",
        in_the_release=Count,
        with_evidence=Count,
        share=float | None,
        by_number_of_datasets=_BY_REASON,
    )
    | None,
)

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
        records=_RECORDS,
        counts=shape("counts", written=Count, dropped=dict[str, Count]),
    ),
    made_by="kbsource map",
    queries=(
        (
            "evidence by outcome",
            "select outcome, count(*) as n, avg(score) as score from alignments group by all order by n desc",
        ),
        (
            "evidence that changed most",
            "select example_id, title, score, evidence_text, text from alignments where text is not null order "
            "by score limit 10",
        ),
        (
            "records that were dropped",
            "select example_id, outcome, reason from records where outcome <> 'written' limit 20",
        ),
    ),
    shown_by=(("records", "example_id"), ("alignments", "page_id"), ("alignments", "title"), ("rejected", "key")),
    tables=TABLES,
    further={"alignments": VERIFICATION},
    files=(REPORT,),
    documents={REPORT: _ALIGNMENT_REPORT},
    laws=LAWS,
    claims=_claims,
    counted={"records": "select count(*) from records"},
)
ALIGNMENTS = ListingKind(
    name="folder of alignments",
    format="kbsource-alignments-1",
    made_by="kbsource map all",
    shown_by=ALIGNMENT.shown_by,
    queries=ALIGNMENT.queries,
    tables={},
    files=(REPORT, TEXT_REPORT),
    documents={REPORT: _ALIGNMENTS_REPORT},
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
