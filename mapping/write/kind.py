"""The kinds of release ``alignment`` (one dataset) and ``folder of alignments`` (several datasets).

::

    fever-dev-kilt.jsonl                        the records, as KILT publishes them
    records/                                    the outcome of every record that was read, Parquet
    alignments/  misses/  rejected/             the outcome of every piece of evidence, and rejected records
    crosswalk/                                  for KILT files: old spans and new ones
    report.json                                 counts
    manifest.json                               written last: a folder without it is incomplete
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import orjson

from kbsource.release.counts import Sum, TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Count, FileEntry, ListingManifest, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.writer import write_lines
from mapping.schema import TABLES, VERIFICATION
from mapping.write.measures import ALIGNMENTS_MEASURES, MEASURES

REPORT, TEXT_REPORT = "report.json", "report.txt"
N_BINS = 20
"""Bins of the histogram of scores: [0, 0.05) … [0.95, 1), and a separate bin for 1."""

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
    """Averages of a dataset, as in table 6 of the KILT paper."""

    spans: float | None
    sets: float | None
    pages: float | None
    answers: float | None


class _DatasetReport(msgspec.Struct):
    """A dataset in the report on all alignments."""

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
    verification=shape("verification", unjudged_reasons=_BY_REASON | None, chosen_by_model=Count) | None,
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

INVARIANTS = (
    Invariant(
        "records_out_of_order",
        "the examples are not numbered consecutively in the order of the records",
        """select _file, 'from number ' || number from (
            select _file, ordinal, row_number() over (partition by _part order by _file, _row) - 1 as number
            from records where ordinal is not null
        ) where ordinal <> number""",
    ),
    Invariant(
        "record_differs",
        "the table records contradicts the evidence or the files",
        f"""select concat_ws('/', nullif(_part, ''), '{MANIFEST}'),
            format('records counts {{}} pieces of evidence, but alignments and misses have {{}}',
                coalesce(told.n, 0), coalesce(own.n, 0))
        from (select _part, sum(n_evidences) as n from records group by all) as told
        full join (
            select _part, count(*) as n from (select _part from alignments union all select _part from misses)
            group by all
        ) as own using (_part) where coalesce(own.n, 0) <> coalesce(told.n, 0)""",
        needs=(*TABLES,),
    ),
    Invariant(
        "record_differs",
        "",
        f"""select concat_ws('/', nullif(_part, ''), '{MANIFEST}'),
            format('alignments has {{}} written pieces of evidence, but records counts {{}}',
                coalesce(own.n, 0), coalesce(told.n, 0))
        from (select _part, sum(n_evidences_written) as n from records group by all) as told
        full join (select _part, count_if(is_written) as n from alignments group by all) as own using (_part)
        where coalesce(own.n, 0) <> coalesce(told.n, 0)""",
        needs=(*TABLES,),
    ),
    Invariant(
        "record_differs",
        "",
        f"""select concat_ws('/', nullif(_part, ''), '{MANIFEST}'),
            format('{{}} has {{}} records, not {{}}', lines.name, lines.n::bigint, coalesce(written.n, 0)::bigint)
        from settings as lines left join (from settings where name = 'records written') as written using (_part)
        where lines.name like '%-kilt.jsonl' and lines.n <> coalesce(written.n, 0)""",
    ),
)


def _settings(manifest: ListingManifest) -> dict[str, float]:
    return {
        "threshold": manifest.facts["options"]["threshold"],
        "records written": manifest.facts.get("counts", {}).get("written", 0),
        **{entry.file: entry.rows or 0 for entry in manifest.files if entry.file.endswith("-kilt.jsonl")},
    }


_FOUND = "(from alignments union all by name from misses)"
_SETS = f"""(
    select ordinal, output, bool_and(page_id is not null and outcome <> 'page_ambiguous') as has_pages,
        bool_and(outcome = 'page_only' or coalesce(score >= (select n from settings where name = 'threshold'), false))
            as is_at_threshold
    from {_FOUND} where output >= 0 group by all)"""
"""Evidence sets as read, by record and output."""
_OUTPUTS = "(select ordinal, unnest(outputs) as one from records)"
_RECORDS_WITH_SETS = f"""(
    select ordinal, count(*) as n_sets, min(one.n_spans) as least_spans, sum(one.n_spans) as n_spans
    from {_OUTPUTS} where one.n_spans > 0 group by all)"""


def _by_name(path: str, column: str, table: str, where: str = "true") -> TableCount:
    """Returns the number of rows of a table by the values of a column, without null."""
    query = f"select {column} as name, count(*) from {table} where {where} and {column} is not null group by all"
    return TableCount(path, query, names=())


COUNTS = (
    TableCount(None, "select count(*) from records", summary="records"),
    TableCount("records.examples", "select count(ordinal) from records"),
    TableCount("records.merged", "select count(*) from records where outcome = 'merged'"),
    _by_name("records.excluded", "reason", "records", "outcome = 'excluded'"),
    _by_name("records.rejected", "reason", "records", "outcome = 'rejected'"),
    TableCount("counts.written", "select count(*) from records where outcome = 'written'"),
    _by_name("counts.dropped", "reason", "records", "outcome = 'dropped'"),
    TableCount("counts.pages_there", f"select count(distinct ordinal) from {_SETS} where has_pages"),
    TableCount("counts.mapped", f"select count(distinct ordinal) from {_SETS} where has_pages and is_at_threshold"),
    _by_name("counts.outputs", "one.form", _OUTPUTS),
    _by_name("counts.output_reasons", "one.reason", _OUTPUTS),
    _by_name("counts.evidences", "outcome", _FOUND),
    TableCount("counts.spans_written", "select sum(n_spans) from records"),
    TableCount("counts.with_sets", f"select count(*) from {_RECORDS_WITH_SETS}"),
    TableCount("counts.sets_written", f"select sum(n_sets) from {_RECORDS_WITH_SETS}"),
    TableCount("counts.set_spans", f"select sum(n_spans) from {_RECORDS_WITH_SETS}"),
    TableCount(
        "counts.set_pages",
        "select count(distinct (ordinal, page_id)) from alignments where is_written and output >= 0",
    ),
    TableCount("counts.several_sets", f"select count(*) from {_RECORDS_WITH_SETS} where n_sets > 1"),
    TableCount("counts.several_spans", f"select count(*) from {_RECORDS_WITH_SETS} where least_spans > 1"),
    TableCount(
        "counts.several_pages",
        """select count(*) from (
            select min(n_pages) as least from (
                select ordinal, output, count(distinct page_id) as n_pages
                from alignments where is_written and output >= 0 group by all
            ) group by ordinal
        ) where least > 1""",
    ),
    TableCount("counts.answers", "select sum(n_answers) from records"),
    _by_name("counts.found_by", "found_by", _FOUND),
    _by_name("counts.hops", "hops", _FOUND, "hops > 0"),
    _by_name("counts.matches", "match", "alignments"),
    _by_name(
        "counts.scores",
        f"format('{{:.2f}}', case when score < 1 then least(floor(score * {N_BINS} + 1e-9), {N_BINS}) / {N_BINS} "
        "else 1.0 end)",
        "alignments",
        "score is not null",
    ),
)
"""The counts of the manifest: records and pieces of evidence by outcome, and spans by score. The bins of the scores are
0.05 wide and named by their lower bound; 1 has a separate bin.
"""


_CARD = CardText(
    title="Alignment to Wikipedia",
    summary=(
        "Records of a benchmark in KILT's format whose evidence was found in a newer Wikipedia, with the outcome of "
        "each record and of each piece of evidence."
    ),
    main="kilt",
    holds=("wikipedia", "dataset"),
    tasks=("question-answering", "text-retrieval"),
    tags=("wikipedia", "KILT", "provenance"),
    limits=(
        (
            "Evidence is found by its text. If a page was rewritten, the best span may have another meaning. `score` "
            "is the similarity of the two texts."
        ),
        "Records without evidence in this snapshot are dropped. The table `records` lists them with the reason.",
    ),
)
ALIGNMENT = ListingKind(
    name="alignment",
    format="kbsource-alignment-4",
    facts=shape("facts", records=shape("records", read=Count), options=shape("options", threshold=float)),
    made_by="kbsource map",
    card=_CARD,
    queries=(
        (
            "evidence by outcome",
            "select outcome, count(*) as n, avg(score) as score from alignments group by all order by n desc",
        ),
        (
            "evidence that changed most",
            "select example_id, title, score, evidence_text, text from alignments where text is not null order "
            "by score, example_id limit 10",
        ),
        (
            "records that were dropped",
            """select example_id, input, outcome, reason from records where outcome <> 'written'
            order by example_id limit 20""",
        ),
    ),
    shown_by=(("records", "example_id"), ("alignments", "page_id"), ("alignments", "title"), ("rejected", "key")),
    tables=TABLES,
    further={"alignments": VERIFICATION},
    files=(REPORT,),
    documents={REPORT: _ALIGNMENT_REPORT},
    counts=COUNTS,
    sums=(
        Sum("records.read", ("records.examples", "records.merged", "records.excluded", "records.rejected")),
        Sum("records.examples", ("counts.written", "counts.dropped")),
    ),
    invariants=INVARIANTS,
    settings=_settings,
    measures=MEASURES,
)
ALIGNMENTS = ListingKind(
    name="folder of alignments",
    format="kbsource-alignments-1",
    made_by="kbsource map all",
    card=replace(
        _CARD,
        title="Alignments to Wikipedia",
        summary=(
            "Records of several benchmarks in KILT's format whose evidence was found in a newer Wikipedia, with the "
            "outcome of each record and of each piece of evidence."
        ),
        limits=(
            _CARD.limits[0],
            "Records without evidence in this snapshot are dropped. The tables `records` list them with the reason.",
        ),
    ),
    shown_by=ALIGNMENT.shown_by,
    queries=ALIGNMENT.queries,
    measures=ALIGNMENTS_MEASURES,
    tables={},
    files=(REPORT, TEXT_REPORT),
    documents={REPORT: _ALIGNMENTS_REPORT},
    parts=ALIGNMENT,
    invariants=INVARIANTS,
)
FROM_PAGES = {"kb": MadeFrom(PAGES_RELEASE, "release")}
"""The release of pages that an alignment is made from. ``verify`` reads its pages one by one to compare them."""


def write_report(report: Mapping[str, Any], *, output: str) -> FileEntry:
    """Writes ``report.json``, and returns its entry for the manifest."""
    content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    return write_lines([content], REPORT, output=output)
