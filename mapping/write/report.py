"""Reports about an alignment, and about a folder of alignments, with the figures of the KILT paper for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from kbsource.errors import counted
from kbsource.files import join
from kbsource.release.manifest import Manifest
from kbsource.release.sql import add_release, connected, identifier
from mapping.decide import REASONS
from mapping.entail.verification import verification_text
from mapping.records import OUTCOMES
from mapping.sources import all_sources
from mapping.sources.source import EXCLUDED, REJECTED, Averages, Split, Tally
from mapping.write.kind import ALIGNMENT, N_BINS

MEANINGS: Mapping[str, Mapping[str, str]] = {"dropped": REASONS, "excluded": EXCLUDED, "rejected": REJECTED}
"""For each outcome of a record, its possible reasons with their meanings."""
_FOUND_BY = {
    "title": "the title that the dataset gives",
    "redirect": "a redirect in the snapshot, of a page that was moved",
    "url": "its address",
    "page_id": "its page id",
    "qid": "its Wikidata item",
    "title_map": "a table of titles that was given",
    "fuzzy": "the most similar title (by option)",
}
_SEVERAL = {
    "several_sets": "with several evidence sets",
    "several_spans": "with several spans in each set",
    "several_pages": "with several pages in each set",
}


def score_bins(scores: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns every bin of the histogram in order, with its number of spans."""
    return [(name, scores.get(name, 0)) for name in (f"{number / N_BINS:.2f}" for number in range(N_BINS + 1))]


def evidence_faults(n_read: int, counts: Mapping[str, Any]) -> list[str]:
    """Returns a description of each difference between the numbers of pieces of evidence that were read and that have
    an outcome; there should be none.
    """
    evidences, found = counts["evidences"], []
    if n_read != (n_known := sum(evidences.values())):
        found.append(f"{n_read} pieces of evidence read, {n_known} have an outcome")
    if unknown := sorted(set(evidences) - set(OUTCOMES)):
        found.append(f"unknown outcomes {unknown}")
    return found


def threshold_share(counts: Mapping[str, Any]) -> float | None:
    """Returns the share of records that the threshold drops, among the written records and those that it drops; None if
    there are neither.
    """
    n_dropped = counts["dropped"].get("below_threshold", 0)
    total = counts["written"] + n_dropped
    return n_dropped / total if total else None


def report_values(tally: Tally, facts: Mapping[str, Any], *, dataset: str, split: Split) -> dict[str, Any]:
    """Returns the report as JSON values.

    Args:
        facts: facts of the manifest, with its ``records`` and ``counts``.
    """
    share = threshold_share(facts["counts"])
    published = all_sources()[dataset].published
    paper = published.dropped.get(split)
    return {
        "dataset": dataset,
        "split": split,
        "records": facts["records"],
        "references": {"read": tally.references, "rejected": dict(sorted(tally.rejected_references.items()))},
        "lost_evidences": dict(sorted(tally.lost_evidences.items())),
        "statistics": dict(tally.statistics),
        "statistics_in_the_paper": dict(published.statistics),
        "counts": facts["counts"],
        "dropped_by_threshold": None if share is None else round(share, 6),
        "dropped_in_the_paper": None if paper is None else {"records": paper[0], "share": round(paper[1] / 100, 4)},
        "shares_in_the_paper": None if published.shares is None else published.shares._asdict(),
    }


class ReportRow(NamedTuple):
    """A line of a report: a number of records or of pieces of evidence, with its meaning."""

    depth: int  # depth of nesting in the report, from 0
    name: str
    n: int
    total: int | None = None  # the total that the share refers to
    meaning: str = ""
    query: Mapping[str, str] = {}  # columns of ``records`` that select the counted rows
    paper: float | None = None  # share that the KILT paper reports, or the number if there is no total

    @property
    def paper_text(self) -> str:
        """Returns the figures of the KILT paper, as text; an empty string if it reports none."""
        if self.paper is None:
            return ""
        return f"in the KILT paper {self.paper:,}" if self.total is None else f"in the KILT paper {self.paper:.0%}"


def report_rows(report: Mapping[str, Any]) -> Iterator[ReportRow]:
    """Lists the rows of a report: outcomes of records and of evidence."""
    records, counts = report["records"], report["counts"]
    read, examples, written = records["read"], records["examples"], counts["written"]

    def became(outcome: str, reasons: Mapping[str, int], total: int) -> Iterator[ReportRow]:
        for reason, n in reasons.items():
            meaning, query = MEANINGS[outcome].get(reason, ""), {"outcome": outcome, "reason": reason}
            yield ReportRow(1, f"{outcome}: {reason}", n, total, meaning, query)

    yield ReportRow(0, "records read", read)
    paper = report.get("statistics_in_the_paper") or {}
    for name, n in report.get("statistics", {}).items():
        yield ReportRow(1, name.replace("_", " "), n, paper=paper.get(name))
    yield from became("excluded", records["excluded"], read)
    yield from became("rejected", records["rejected"], read)
    if merged := records["merged"]:
        yield ReportRow(1, "merged with another record", merged, read, query={"outcome": "merged"})
    yield ReportRow(0, "examples", examples)
    yield ReportRow(1, "written", written, examples, query={"outcome": "written"})
    if without := written - counts.get("with_sets", written):
        yield ReportRow(2, "of them without provenance", without, written)
    shares = report.get("shares_in_the_paper") or {}
    for name, said in _SEVERAL.items():
        if n := counts.get(name, 0):
            meaning = "of the records with provenance"
            yield ReportRow(2, said, n, counts["with_sets"], meaning, paper=shares.get(name))
    yield from became("dropped", counts["dropped"], examples)
    if "pages_there" in counts:
        yield ReportRow(1, "with all pages of an evidence set", counts["pages_there"], examples)
        yield ReportRow(2, "and all spans at the threshold", counts["mapped"], counts["pages_there"])
    evidences = counts["evidences"]
    total = sum(evidences.values())
    yield ReportRow(0, "pieces of evidence", total)
    yield from (ReportRow(1, name, n, total, OUTCOMES[name]) for name in OUTCOMES if (n := evidences.get(name)))
    for name, n in counts["found_by"].items():
        yield ReportRow(1, f"found by {name}", n, total, _FOUND_BY.get(name, ""))
    for name, n in counts.get("hops", {}).items():
        yield ReportRow(1, f"over {counted(int(name), 'redirects')}", n, total)
    yield from (ReportRow(0, f"lost evidence: {name}", n) for name, n in report.get("lost_evidences", {}).items())


def report_text(report: Mapping[str, Any]) -> str:
    """Returns the report as text."""
    records, counts = report["records"], report["counts"]
    lines = [
        _row("  " * row.depth + row.name, row.n, row.total) + (row.paper_text and f"; {row.paper_text}")
        for row in report_rows(report)
    ]
    if (share := report["dropped_by_threshold"]) is not None:
        paper = report["dropped_in_the_paper"]
        beside = f"; in the KILT paper {paper['share']:.2%} ({counted(paper['records'], 'records')})" if paper else ""
        lines.append(
            f"{'dropped by the threshold':<44}{counts['dropped'].get('below_threshold', 0):>10,}{share:>9.2%}{beside}"
        )
    if (rule := report.get("accept")) is not None:
        lines.append(f"{_row('dropped by the rule', rule['dropped'], records['examples'])}  ({rule['rule']})")
    if scores := counts["scores"]:
        most = max(scores.values())
        shown = (f"  {name}  {n:>10,}  {'#' * round(40 * n / most)}".rstrip() for name, n in score_bins(scores))
        lines += ["", "BLEU of the spans", *shown]
    if (verification := report.get("verification")) is not None:
        lines += ["", verification_text(verification)]
    return "\n".join(lines)


def _row(name: str, count: int | None, total: int | None) -> str:
    share = f"{count / total:>9.2%}" if count is not None and total else ""
    return f"{name:<44}{count:>10,}{share}"


PAPER_PAGES, PAPER_PAGES_SHARE = 1_642_311, 0.28
"""Pages that are evidence in at least one dataset, and their share of all pages. Source: the KILT paper, figure 2."""


class FinishedAlignment(NamedTuple):
    """A finished alignment."""

    name: str  # name of the dataset in the configuration
    folder: str  # folder of the alignment, relative to the folder of all alignments
    report: Mapping[str, Any]  # the report as written
    files: tuple[str, ...] = ()  # names of its record files


def averages(counts: Mapping[str, Any]) -> Averages:
    """Returns the averages of an alignment. An average is None if there is nothing to average over.

    >>> averages({"written": 4, "with_sets": 2, "sets_written": 3, "set_spans": 6, "set_pages": 4, "answers": 4})
    Averages(spans=2.0, sets=1.5, pages=2.0, answers=1.0)
    """
    return Averages(
        _ratio(counts["set_spans"], counts["sets_written"]),
        _ratio(counts["sets_written"], counts["with_sets"]),
        _ratio(counts["set_pages"], counts["with_sets"]),
        _ratio(counts["answers"], counts["written"]) if counts["answers"] else None,
    )


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def page_values(aligned: Sequence[FinishedAlignment], *, output: str, n_pages: int) -> dict[str, Any]:
    """Returns the number of pages with written evidence, per dataset and by number of datasets, as JSON values.

    Alignments with the same name count as one dataset.
    """
    by_dataset = dict.fromkeys((dataset.name for dataset in aligned), 0)
    with connected(reads=[output]) as db:
        db.execute("create table evidence (dataset text, page_id bigint)")
        for number, dataset in enumerate(aligned):
            add_release(db, ALIGNMENT, join(output, dataset.folder), schema=f"of_{number}")
            written = f"select distinct ?, page_id from {identifier(f'of_{number}')}.alignments where is_written"
            db.execute(f"insert into evidence {written}", [dataset.name])
        by_dataset |= db.sql("select dataset, count(distinct page_id) from evidence group by all").fetchall()
        of_pages = "select count(distinct dataset) as n from evidence group by page_id"
        counts = dict(db.sql(f"select n, count(*) from ({of_pages}) group by all").fetchall())
    total = sum(counts.values())
    return {
        "in_the_release": n_pages,
        "with_evidence": total,
        "share": _ratio(total, n_pages),
        "in_the_paper": {"with_evidence": PAPER_PAGES, "share": PAPER_PAGES_SHARE},
        "by_number_of_datasets": {str(n): counts.get(n, 0) for n in range(1, max(counts, default=0) + 1)},
        "by_dataset": by_dataset,
    }


def overview_values(aligned: Iterable[FinishedAlignment], pages: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report of all alignments as JSON values."""
    return {"datasets": [_dataset_values(dataset) for dataset in aligned], "pages": dict(pages)}


def _dataset_values(aligned: FinishedAlignment) -> dict[str, Any]:
    report = aligned.report
    counts = report["counts"]
    source, split = all_sources()[report["dataset"]], report["split"]
    policy, published = source.policies[split], source.published
    is_filtered = policy.has_threshold and policy.needs_provenance
    return {
        "name": aligned.name,
        "split": split,
        "folder": aligned.folder,
        "files": list(aligned.files),
        "records": counts["written"],
        "published_records": published.records.get(split),
        "averages": averages(counts)._asdict(),
        "averages_in_the_paper": None if published.averages is None else published.averages._asdict(),
        "dropped_by_threshold": report["dropped_by_threshold"] if is_filtered else None,
        "dropped_in_the_paper": report["dropped_in_the_paper"],
        "read": report["records"]["read"],
        "excluded": sum(report["records"]["excluded"].values()),
        "rejected": sum(report["records"]["rejected"].values()),
        "dropped": sum(counts["dropped"].values()),
    }


_HEADS = ("records", "spans a set", "sets a record", "pages a record", "answers a record", "below threshold")


def overview_text(values: Mapping[str, Any]) -> str:
    """Returns the report as text: sizes and averages as in table 6, dropped shares as in figure 5, and pages."""
    under = ("dataset", "split", *("here", "KILT") * len(_HEADS))
    rows = [under, *(_cells(value) for value in values["datasets"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for at, head in enumerate(_HEADS):
        # Each heading covers two columns.
        widths[2 + 2 * at] = max(widths[2 + 2 * at], len(head) - widths[3 + 2 * at] - 1)
    first = " ".join(" " * width for width in widths[:2])
    heads = (head.rjust(widths[2 + 2 * at] + 1 + widths[3 + 2 * at]) for at, head in enumerate(_HEADS))
    lines = ["   ".join((first, *heads)), *(_line(row, widths) for row in rows), ""]
    pages = values["pages"]
    here = f"{pages['with_evidence']:,} of {pages['in_the_release']:,} pages hold evidence"
    lines.append(f"{here} ({_formatted(pages['share'], '.1%')}); in KILT {PAPER_PAGES:,} ({PAPER_PAGES_SHARE:.0%})")
    lines += [
        f"  of {number} {'dataset' if number == '1' else 'datasets'}: {count:,}"
        for number, count in pages["by_number_of_datasets"].items()
    ]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    here, there = row["averages"], row["averages_in_the_paper"] or {}
    dropped = row["dropped_in_the_paper"]
    cells = [row["name"], row["split"], _formatted(row["records"], ","), _formatted(row["published_records"], ",")]
    for name in Averages._fields:
        cells += [_formatted(here[name], ".2f"), _formatted(there.get(name), ".2f")]
    return (
        *cells,
        _formatted(row["dropped_by_threshold"], ".1%"),
        _formatted(dropped["share"] if dropped else None, ".1%"),
    )


def _formatted(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    names = f"{row[0]:<{widths[0]}} {row[1]:<{widths[1]}}"
    pairs = (f"{row[at]:>{widths[at]}} {row[at + 1]:>{widths[at + 1]}}" for at in range(2, len(row), 2))
    return "   ".join((names, *pairs))


STAGES = {"rejected": "source", "excluded": "", "merged": ""}
"""For each outcome of a record, the stage of the rows of ``rejected`` that contain details about the record. For other
outcomes, the rows of its evidence contain the details.
"""
_PLACE = itemgetter("output", "evidence")


def record_fates(folder: str, manifest: Manifest, record_id: str) -> Iterator[dict[str, Any]]:
    """Reads what happened to a record: the rows of ``records`` with its id, usually one, with their evidence.

    ``meaning`` is the meaning of the reason. ``details`` are the details stored in ``rejected``. ``evidences`` are the
    rows of ``alignments`` and ``misses`` in order, each with its row of ``crosswalk`` as ``crossing``.
    """

    def rows(table: str, column: str = "example_id") -> Iterator[dict[str, Any]]:
        return ALIGNMENT.rows_with(folder, manifest, table, column, record_id)

    crossings = {_PLACE(row): row for row in rows("crosswalk")}
    evidences = [
        {**row, "crossing": crossings.get(_PLACE(row))} for table in ("alignments", "misses") for row in rows(table)
    ]
    faults = list(rows("rejected", "key"))
    for row in rows("records"):
        yield {
            **row,
            "meaning": MEANINGS.get(row["outcome"], {}).get(row["reason"] or ""),
            "details": [
                fault["detail"] for fault in faults if fault["stage"] == STAGES.get(row["outcome"], "evidence")
            ],
            "evidences": sorted(
                (evidence for evidence in evidences if evidence["ordinal"] == row["ordinal"]), key=_PLACE
            ),
        }
