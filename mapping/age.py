"""Measures how fast a benchmark ages: what happens to its evidence in each of several releases, and its half-life.

::

    fates/          every piece of evidence in every release, Parquet
    rejected/       records that could not be used
    report.json     shares by release, for all evidence and by group, and half-lives
    manifest.json   written last

Evidence is *present* in a release if its text is there, exactly or nearly, with the same numbers, dates and names, in
its page or in the page that the text was moved to. Evidence that was present in the previous release and is not
present now is *newly lost*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa

from kbsource.columns import rebatched, schema_of
from kbsource.records import BadRecord
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, ListingKind
from kbsource.release.manifest import Count, SourceFacts, shape
from kbsource.release.measures import Measure, ToRows, meanings_table
from kbsource.release.output import commit
from kbsource.release.sql import add_tables, connected, with_counts
from kbsource.release.writer import write_batches, write_rejected
from kbsource.rows import Columns, Int32, Row
from mapping.records import Alignment, PageKey, Span
from mapping.write.kind import REPORT, write_report

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FATES: Mapping[str, str] = {
    "exact": "the text is in the page and section where it was first, apart from case and punctuation",
    "moved": "the text is now, exactly or nearly, in another page or section",
    "near": "the most similar text there reaches the threshold",
    "near_changed": "the most similar text reaches the threshold, but has different numbers, dates or names",
    "page_only": "the dataset names only a page, and the page exists",
    "weak": "the most similar text stays below the threshold",
    "page_gone": "the page is not in the release, or is a disambiguation page now",
    "not_searched": "there is no text to look for, or the search failed",
}
"""Every fate of a piece of evidence in a release, with its meaning."""
PRESENT = ("exact", "moved", "near", "page_only")
_FATE_OF = {"exact": "exact", "near": "near", "page_only": "page_only", "weak": "weak"}
_FATE_OF |= {"page_missing": "page_gone", "page_ambiguous": "page_gone"}
LOST = ("weak", "page_gone")
"""Fates after which the text is searched for in other pages too."""
SIZES = ("below 1,000 characters", "1,000–5,000 characters", "5,000–20,000 characters", "20,000 characters and more")


class Fate(Row):
    """One row per piece of evidence and release, sorted by dataset, record, output, evidence and release."""

    dataset: Annotated[str, "file of the evidence, without its ending"]
    ordinal: Annotated[int, "number of the record among the readable records, from 0"]
    example_id: Annotated[str, "id of the record"]
    question: Annotated[str | None, "the question of the record; null for a record without input"]
    output: Annotated[Int32, "number of the output in the record, from 0; -1 for partial evidence"]
    evidence: Annotated[Int32, "number of the evidence in its output, from 0"]
    release: Annotated[Int32, "number of the release, by date, from 0"]
    dump_date: Annotated[str, "date of the release's dump, yyyymmdd"]
    fate: Annotated[str, " | ".join(FATES) + "; see docs/age.md"]
    newly_lost: Annotated[
        bool,
        "true if the evidence was present in the previous release and is not present in this one; see docs/age.md",
    ]
    page: Annotated[PageKey, Columns("page_")]
    evidence_text: Annotated[str | None, "text that was searched for; null if the dataset names only a page"]
    page_id: Annotated[int | None, "page id; null if the page is missing"]
    title: Annotated[str | None, "title of the page"]
    last_title: Annotated[
        str | None,
        "title of the page in this release, or else in the latest earlier release that has it; null if none has it",
    ]
    section: Annotated[str | None, "KILT's name for the section"]
    span: Annotated[Span | None, Columns()]
    text: Annotated[str | None, "the text of the span"]
    infobox: Annotated[str | None, "first infobox of the page in the first release that has it; null without infobox"]
    size: Annotated[str | None, "size class of the page in the first release that has it; null if no release has it"]
    is_searched: Annotated[bool, "false if the page is missing, or is the same as in an earlier release"]


_PRESENT_TEXT = f"Evidence counts as present if its outcome is {', '.join(name.replace('_', ' ') for name in PRESENT)}."
_HOW_MUCH = "Evidence still present"
MEASURES = (
    Measure(
        "Evidence still present, by release",
        f"""select dump_date as release, count_if(fate in {PRESENT}) / count(*) as present from fates
        group by fates.release, dump_date order by fates.release""",
        section=_HOW_MUCH,
        chart="columns",
        about=_PRESENT_TEXT,
        shares=("present",),
        needs=("fates",),
    ),
    Measure(
        "Fates of the evidence",
        f"""with releases as (
            select fates.release as number, dump_date as release, count_if(fate in {PRESENT}) / count(*) as present
            from fates group by all)
        select releases.release, present, replace(fate, '_', ' ') as said, coalesce(n, 0) as n, fate as _fate
        from releases cross join (select distinct fate from fates)
            left join (select fates.release as number, fate, count(*) as n from fates group by all)
                using (number, fate)
        order by number, list_position({[*FATES]}, fate), fate""",
        section=_HOW_MUCH,
        spread="said",
        shares=("present",),
        links={"n": ToRows("fates", {"dump_date": "release", "fate": "_fate"})},
        needs=("fates",),
    ),
    Measure(
        "Fates",
        f"select name as fate, meaning from {meanings_table(FATES)} order by place",
        section=_HOW_MUCH,
    ),
)
"""Contents of the overview, besides half-lives, which are not sums."""


class KnownPage(NamedTuple):
    """The values of a page that are known without searching it."""

    version: int  #: hash of everything that the search reads; the same for identical pages
    n_chars: int  #: number of characters in the elements after the title
    infobox: str | None  #: name of the first infobox; None without infobox


class EvidenceResult(NamedTuple):
    """The search result for a piece of evidence in a release."""

    aligned: Alignment  #: the alignment of the evidence, with its outcome at the threshold
    has_other_details: bool = False  #: the text that was found differs from the evidence in numbers, dates or names

    @property
    def fate(self) -> str:
        """Returns the fate of the evidence in this release alone, without regard to earlier releases."""
        fate = _FATE_OF.get(self.aligned.outcome, "not_searched")
        return "near_changed" if self.has_other_details and fate in ("exact", "near") else fate


def fates_of(
    dataset: str,
    results: Sequence[EvidenceResult],
    pages: Sequence[KnownPage | None],
    dates: Sequence[str],
    *,
    question: str | None = None,
    elsewhere: Mapping[int, EvidenceResult] | None = None,
) -> Iterator[Fate]:
    """Determines the fate of a piece of evidence in every release.

    Args:
        results: its outcome in each release, in order.
        pages: its page in each release; None if the page is missing.
        dates: dates of the releases.
        question: the question of its record.
        elsewhere: by release, its outcome in the page that its text was moved to.
    """
    first = next((outcome.aligned for outcome in results if outcome.fate in ("exact", "near")), None)
    known = next((page for page in pages if page is not None), None)
    was_present, last_title = False, None
    for number, (own, page) in enumerate(zip(results, pages, strict=True)):
        moved = (elsewhere or {}).get(number)
        is_followed = own.fate in LOST and moved is not None and moved.fate in ("exact", "near", "near_changed")
        found_here = moved if is_followed and moved is not None else own
        aligned, fate = found_here.aligned, found_here.fate
        if (
            first is not None
            and fate in ("exact", "near")
            and (aligned.page_id, aligned.section) != (first.page_id, first.section)
        ):
            fate = "moved"
        is_present = fate in PRESENT
        last_title = aligned.title or last_title
        yield Fate(
            dataset,
            aligned.ordinal,
            aligned.example_id,
            question,
            aligned.output,
            aligned.evidence,
            number,
            dates[number],
            fate,
            was_present and not is_present,
            aligned.page,
            aligned.evidence_text,
            aligned.page_id,
            aligned.title,
            last_title,
            aligned.section,
            aligned.span,
            aligned.text,
            None if known is None else known.infobox,
            None if known is None else size_class(known.n_chars),
            page is not None and first_with(pages, number) == number,
        )
        was_present = is_present


def first_with(pages: Sequence[KnownPage | None], number: int) -> int:
    """Returns the number of the first release that contains the same version of a page as release ``number``. The
    search reads this version only there.
    """
    page = pages[number]
    return next(
        at for at, other in enumerate(pages) if other is not None and page is not None and other.version == page.version
    )


def size_class(n_chars: int) -> str:
    """Returns the range of sizes that a page belongs to, as text.

    >>> size_class(4999)
    '1,000–5,000 characters'
    """
    return SIZES[sum(n_chars >= edge for edge in (1_000, 5_000, 20_000))]


class HalfLife(NamedTuple):
    """Years until half of the initially present evidence is lost, under exponential decay, with 95 % bounds."""

    years: float | None  #: estimated half-life; None if no evidence was lost
    low: float
    high: float | None  #: upper bound; None if it cannot be determined


_LIKELY = 3.841458820694124 / 2
"""Half of the 95 % quantile of the chi-squared distribution with one degree of freedom."""
_LEAST, _MOST = 1e-9, 1e3
"""Range of the rates per year that are searched."""


def half_life(lost: Mapping[tuple[float, float], int], present: Mapping[float, int]) -> HalfLife | None:
    """Returns the half-life of evidence that was lost between two dates, or was still present at the last one.

    The rate is the maximum-likelihood estimate; its bounds come from the likelihood ratio. Pieces of evidence
    count as independent, so the bounds are too narrow if many are in one page. The result is None if nothing was
    observed, and 0 if everything was lost between the first two dates.

    Args:
        lost: number of pieces of evidence that were lost between two times, in years since the first release.
        present: number of pieces of evidence that were still present at a time.

    >>> found = half_life({(0.0, 1.0): 50}, {1.0: 50})
    >>> round(found.years, 6), round(found.low, 2), round(found.high, 2)
    (1.0, 0.76, 1.34)
    """
    exposed = sum(time * n for time, n in present.items()) + sum(end * n for (_, end), n in lost.items())
    if not exposed:
        return None

    def likelihood(rate: float) -> float:
        kept = -rate * sum(time * n for time, n in present.items())
        gone = sum(
            n * (-rate * start + math.log(-math.expm1(-rate * (end - start)))) for (start, end), n in lost.items()
        )
        return kept + gone

    if not sum(lost.values()):
        return HalfLife(None, math.log(2) * exposed / _LIKELY, None)
    is_at_once = not sum(present.values()) and all(start == 0 for (start, _), n in lost.items() if n)
    best = _MOST if is_at_once else _maximum(likelihood)
    least = likelihood(best) - _LIKELY
    slow = _crossing(likelihood, least, _LEAST, best)
    if is_at_once:
        return HalfLife(0.0, 0.0, math.log(2) / slow)
    fast = _crossing(likelihood, least, _MOST, best)
    return HalfLife(math.log(2) / best, math.log(2) / fast, math.log(2) / slow)


def _maximum(function: Callable[[float], float]) -> float:
    """Returns the positive number at which a function has its only maximum, by golden-section search on the
    logarithm."""
    low, high = math.log(_LEAST), math.log(_MOST)
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        if function(math.exp(first)) < function(math.exp(second)):
            low = first
        else:
            high = second
    return math.exp((low + high) / 2)


def _crossing(function: Callable[[float], float], level: float, outside: float, inside: float) -> float:
    """Returns the point where a function crosses a level: it is below the level at ``outside``, and not at
    ``inside``."""
    if function(outside) >= level:
        return outside
    for _ in range(200):
        middle = math.sqrt(outside * inside)
        outside, inside = (outside, middle) if function(middle) >= level else (middle, inside)
    return inside


_GROUPS = {
    "all": "'all'",
    "dataset": "dataset",
    "infobox": "coalesce(infobox, 'none')",
    "size": "coalesce(size, 'never there')",
}
"""Groups of evidence, as SQL over the table of fates."""
_MOST_GROUPS, _GROUP_ROWS = 40, 1 << 16


def age_report_values(db: DuckDBPyConnection, dates: Sequence[str]) -> dict[str, Any]:
    """Returns shares by release and half-lives, for all evidence and by group, as JSON values. The largest groups come
    first.

    Args:
        db: has a view ``fates``.
        dates: dates of the releases, yyyymmdd.
    """
    days = [as_date(text) for text in dates]
    years = [(day - days[0]).days / 365.25 for day in days]
    return {
        "releases": [{"dump_date": text, "years": time} for text, time in zip(dates, years, strict=True)],
        "groups": {name: list(_groups(db, sql, years)) for name, sql in _GROUPS.items()},
    }


def as_date(text: str) -> date:
    """Parses a date written as yyyymmdd. Raises ValueError for anything else."""
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))


def _groups(db: DuckDBPyConnection, sql: str, years: Sequence[float]) -> Iterator[dict[str, Any]]:
    rows = db.execute(f"select {sql}, release, fate, count(*) from fates group by all").fetchall()
    counts: dict[str, list[dict[str, int]]] = {}
    for name, release, fate, n in rows:
        counts.setdefault(name, [dict.fromkeys(FATES, 0) for _ in years])[release][fate] = n
    ends = db.execute(
        f"""select name, lost_in, count(*) from (
            select {sql} as name, min(release) filter (where newly_lost) as lost_in,
                bool_or(release = 0 and fate in {PRESENT}) as began
            from fates group by name, dataset, ordinal, output, evidence
        ) where began group by all"""
    ).fetchall()
    lost: dict[str, dict[tuple[float, float], int]] = {}
    present: dict[str, dict[float, int]] = {}
    for name, lost_in, n in ends:
        if lost_in is None:
            present.setdefault(name, {})[years[-1]] = n
        else:
            lost.setdefault(name, {})[years[lost_in - 1], years[lost_in]] = n
    ordered = sorted(counts.items(), key=lambda group: (-sum(group[1][0].values()), group[0]))
    for name, by_release in ordered[:_MOST_GROUPS]:
        found = half_life(lost.get(name, {}), present.get(name, {}))
        yield {
            "name": name,
            "evidence": sum(by_release[0].values()),
            "fates": by_release,
            "present": [sum(own[fate] for fate in PRESENT) for own in by_release],
            "half_life_years": None if found is None else dict(found._asdict()),
        }


def half_life_text(values: Mapping[str, Any] | None) -> str:
    """Returns a half-life with its bounds, as text.

    >>> half_life_text({"years": 7.4, "low": 6.0, "high": 9.31})
    '7.4 years (6.0–9.3)'
    >>> half_life_text({"years": None, "low": 3, "high": None})
    'more than 3.0 years'
    """
    if values is None:
        return "unknown"
    if values["years"] is None:
        return f"more than {values['low']:.1f} years"
    return f"{values['years']:.1f} years ({values['low']:.1f}–{values['high']:.1f})"


INVARIANTS = (
    Invariant(
        "invalid_fate",
        "the columns of a row contradict each other, or a row is out of order",
        f"""case when fate not in {(*FATES,)} or (newly_lost and (fate in {PRESENT} or release = 0))
            or (is_searched and page_id is null) or (fate = 'page_only' and evidence_text is not null)
            or title is distinct from coalesce(case when page_id is not null then last_title end, title)
            then [format('record {{}}, release {{}}: the fate {{}} does not fit the other columns',
                example_id, release, fate)] end""",
        table="fates",
    ),
    Invariant(
        "invalid_fate",
        "",
        f"""select _file, format('record {{}}, release {{}}: out of order, or a wrong newly_lost', example_id, release)
        from (
            select *, (dataset, ordinal, output, evidence, release) as place, lag(place) over own as before,
                lag(fate in {PRESENT}) over own as was_present from fates window own as (order by _file, _row)
        ) where place <= before
            or newly_lost <> coalesce(was_present and release > 0 and not fate in {PRESENT}, false)""",
    ),
    Invariant(
        "evidence_row_count",
        "a piece of evidence does not have exactly one row for every release",
        """select min(_file), format('record {}, evidence {}, {}', example_id, output, evidence) from fates
        group by dataset, ordinal, example_id, output, evidence
        having count(*) <> (select n from settings where name = 'releases') or count(distinct release) <> count(*)""",
    ),
)


class _HalfLifeFacts(msgspec.Struct):
    """A half-life in the report, without an upper bound if that cannot be determined."""

    years: float | None
    low: float
    high: float | None

    def __post_init__(self) -> None:
        if self.years is not None and self.high is None:
            raise ValueError("a half-life has no upper bound")


class _Release(msgspec.Struct):
    """A release that was searched for evidence."""

    dump_date: str


class _Group(msgspec.Struct):
    """The evidence of a group, by release."""

    name: str
    evidence: Count
    fates: list[dict[str, Count]]
    present: list[Count]
    half_life_years: _HalfLifeFacts | None


class _Report(msgspec.Struct):
    """The report of an age."""

    releases: Annotated[list[_Release], msgspec.Meta(min_length=1)]
    groups: dict[str, list[_Group]]

    def __post_init__(self) -> None:
        for name, groups in self.groups.items():
            if any({len(group.fates), len(group.present)} != {len(self.releases)} for group in groups):
                raise ValueError(f"a group of {name!r} does not have as many numbers as there are releases")


AGE = ListingKind(
    name="age of a benchmark",
    format="kbsource-age-2",
    facts=shape("facts", releases=list[SourceFacts], counts=dict[str, Count]),
    made_by="kbsource age",
    card=CardText(
        title="Age of a benchmark",
        summary="The outcome of every piece of evidence of a benchmark in several releases of Wikipedia.",
        main="fates",
        holds=("wikipedia", "dataset"),
        tags=("wikipedia", "provenance"),
        limits=("Evidence is found by its text, so evidence that was reworded counts as changed.",),
    ),
    queries=(
        (
            "fates of the evidence by release",
            "select release, dump_date, fate, count(*) as n from fates group by all order by release, n desc",
        ),
    ),
    tables={"fates": schema_of(Fate), "rejected": schema_of(BadRecord)},
    required=("fates", "rejected"),
    files=(REPORT,),
    documents={REPORT: _Report},
    counts=(
        TableCount("counts", "select fate, count(*) from fates group by all", names=(*FATES,)),
        TableCount("counts.rejected", "select count(*) from rejected"),
        TableCount(None, "select count(*) from fates where release = 0", summary="pieces of evidence"),
    ),
    invariants=INVARIANTS,
    settings=lambda manifest: {"releases": len(manifest.facts["releases"])},
    shown_by=(("fates", "example_id"), ("fates", "page_id"), ("fates", "last_title"), ("rejected", "key")),
    measures=MEASURES,
)


def commit_age(
    batches: Iterable[pa.RecordBatch],
    rejected: Sequence[BadRecord],
    *,
    output: str,
    dates: Sequence[str],
    facts: Mapping[str, Any],
) -> None:
    """Writes rows of ``Fate`` in order, the rejected records, the report and finally the manifest.

    Args:
        output: folder, marked as unfinished.
        dates: dates of the releases, yyyymmdd.
        facts: for the manifest, including ``releases``.
    """
    entry = write_batches(rebatched(batches, _GROUP_ROWS), "fates", schema_of(Fate), output=output)
    with connected(reads=[output]) as db:
        add_tables(db, AGE.declared, {"fates": [entry.file]}, output)
        report = age_report_values(db, dates)
    entries = [entry, write_rejected(rejected, output=output), write_report(report, output=output)]
    commit(AGE, AGE.listing(entries, with_counts(AGE, entries, facts, output)), output)
