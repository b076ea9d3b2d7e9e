"""Counts of an alignment, their invariants, and an overview of datasets with the figures of the KILT paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any, NamedTuple

from kbsource.files import join
from kbsource.release.manifest import Manifest
from kbsource.release.sql import add_release, connected, identifier
from mapping.decide import REASONS, Decision
from mapping.entail.verification import verification_text
from mapping.records import OUTCOMES, Alignment
from mapping.sources import all_sources
from mapping.sources.source import EXCLUDED, REJECTED, Averages, Split, Tally
from mapping.write.kind import ALIGNMENT

MEANINGS: Mapping[str, Mapping[str, str]] = {"dropped": REASONS, "excluded": EXCLUDED, "rejected": REJECTED}
"""Meanings of the reasons of each outcome of a record."""
_FOUND_BY = {
    "title": "the title that the dataset gives",
    "redirect": "a redirect in the snapshot, of a page that was moved",
    "url": "its address",
    "page_id": "its page id",
    "qid": "its Wikidata item",
    "title_map": "a table of titles that was given",
    "fuzzy": "the title that is most like it (by option)",
}
_SEVERAL = {
    "several_sets": "with several evidence sets",
    "several_spans": "with several spans in each set",
    "several_pages": "with several pages in each set",
}
N_BINS = 20
"""Bins of the histogram of scores: [0, 0.05) … [0.95, 1), and a separate bin for 1."""


@dataclass(slots=True)
class AlignmentCounts:
    """Counts of the outcomes of examples and of their evidence."""

    written: int = 0  # records in the KILT file
    dropped: Counter[str] = field(default_factory=Counter)  # records not in the KILT file, by reason
    pages_there: int = 0  # records with an evidence set whose pages were all found
    mapped: int = (
        0  # of these, records where all spans of such a set reach the threshold, or where only its pages are required
    )
    outputs: Counter[str] = field(default_factory=Counter)
    """Outputs by fate (``whole``, ``answer_only``, ``dropped``)."""
    output_reasons: Counter[str] = field(default_factory=Counter)  # reasons why outputs are not whole
    evidences: Counter[str] = field(default_factory=Counter)  # pieces of evidence, by outcome
    spans_written: int = 0  # spans in the KILT file
    with_sets: int = 0  # written records with at least one evidence set
    sets_written: int = 0  # evidence sets of these records
    set_spans: int = 0  # spans of these sets
    set_pages: int = 0  # distinct pages of each record's sets, summed over records
    several_sets: int = 0  # written records with several evidence sets
    several_spans: int = 0  # records whose sets all have several spans
    several_pages: int = 0  # records whose sets all have several pages
    answers: int = 0  # distinct answers of each written record, summed over records
    found_by: Counter[str] = field(default_factory=Counter)  # pieces of evidence whose page was found, by lookup
    hops: Counter[str] = field(default_factory=Counter)  # pieces of evidence by redirects followed, if above 0
    matches: Counter[str] = field(default_factory=Counter)  # spans by kind of text match
    scores: Counter[str] = field(default_factory=Counter)  # spans by bin of their score, see ``N_BINS``

    def add_evidence(self, alignment: Alignment) -> None:
        """Counts one piece of evidence."""
        self.evidences[alignment.outcome] += 1
        if alignment.found_by is not None:
            self.found_by[alignment.found_by] += 1
        if alignment.hops:
            self.hops[str(alignment.hops)] += 1
        if alignment.span is not None:
            self.matches[alignment.span.match] += 1
            self.scores[score_bin(alignment.span.score)] += 1

    def add_record(self, decision: Decision, sets: Iterable[list[Alignment]], *, threshold: float) -> None:
        """Counts one record and its outputs."""
        there = [evidence_set for evidence_set in sets if all(_has_page(piece) for piece in evidence_set)]
        self.pages_there += bool(there)
        self.mapped += any(all(_is_mapped(piece, threshold) for piece in evidence_set) for evidence_set in there)
        if decision.reason is not None:
            self.dropped[decision.reason] += 1
            return
        self.written += 1
        for fate in decision.outputs:
            self.outputs[fate.form] += 1
            if fate.reason is not None:
                self.output_reasons[fate.reason] += 1
            self.spans_written += len(fate.kept)
        self.spans_written += len(decision.partial)

    def add_written(self, record: Mapping[str, Any]) -> None:
        """Counts sets, pages and answers of a record in KILT's form, before its answers are removed."""
        outputs = record.get("output", [])
        sets = [output["provenance"] for output in outputs if output.get("provenance")]
        self.with_sets += bool(sets)
        self.sets_written += len(sets)
        self.set_spans += sum(map(len, sets))
        pages = [{span["wikipedia_id"] for span in evidence_set} for evidence_set in sets]
        self.set_pages += len(set().union(*pages))
        self.several_sets += len(sets) > 1
        self.several_spans += min(map(len, sets), default=0) > 1
        self.several_pages += min(map(len, pages), default=0) > 1
        self.answers += len({output["answer"] for output in outputs if "answer" in output})

    def add(self, other: AlignmentCounts) -> None:
        """Adds the counts of another instance."""
        for own in fields(self):
            setattr(self, own.name, getattr(self, own.name) + getattr(other, own.name))

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as JSON values with sorted keys."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value for name, value in values.items()
        }


def _has_page(alignment: Alignment) -> bool:
    return alignment.page_id is not None and alignment.outcome != "page_ambiguous"


def _is_mapped(alignment: Alignment, threshold: float) -> bool:
    if alignment.outcome == "page_only":
        return True
    return alignment.span is not None and alignment.span.score >= threshold


def score_bin(score: float) -> str:
    """Returns the lower bound of a score's bin as text.

    >>> score_bin(0.0), score_bin(0.5), score_bin(0.999), score_bin(1.0)
    ('0.00', '0.50', '0.95', '1.00')
    """
    return f"{min(int(score * N_BINS + 1e-9), N_BINS) / N_BINS if score < 1 else 1.0:.2f}"


def score_bins(scores: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns every bin of the histogram in order, with its number of spans."""
    return [(name, scores.get(name, 0)) for name in (f"{number / N_BINS:.2f}" for number in range(N_BINS + 1))]


def faults(tally: Tally, counts: AlignmentCounts) -> list[str]:
    """Returns every invariant that the counts violate. All that was read must be counted exactly once as a result."""
    found = []
    n_dropped, n_excluded, n_rejected = counts.dropped.total(), tally.excluded.total(), tally.rejected.total()
    n_out = counts.written + n_dropped + tally.merged + n_excluded + n_rejected
    if tally.records != n_out:
        found.append(
            f"{tally.records} records read, not {counts.written} written + {n_dropped} dropped + {tally.merged} merged"
            f" + {n_excluded} excluded + {n_rejected} rejected = {n_out}"
        )
    if tally.evidences != counts.evidences.total():
        found.append(f"{tally.evidences} pieces of evidence read, {counts.evidences.total()} have an outcome")
    if unknown := sorted(set(counts.evidences) - set(OUTCOMES)):
        found.append(f"unknown outcomes {unknown}")
    return found


def threshold_share(counts: AlignmentCounts) -> float | None:
    """Returns the share of records dropped by the threshold alone, among records to which the threshold was applied;
    None if there are none."""
    n_dropped = counts.dropped["below_threshold"]
    total = counts.written + n_dropped
    return n_dropped / total if total else None


def report_values(tally: Tally, counts: AlignmentCounts, *, dataset: str, split: Split) -> dict[str, Any]:
    """Returns the report as JSON values."""
    share = threshold_share(counts)
    published = all_sources()[dataset].published
    paper = published.dropped.get(split)
    return {
        "dataset": dataset,
        "split": split,
        "records": {
            "read": tally.records,
            "excluded": dict(sorted(tally.excluded.items())),
            "rejected": dict(sorted(tally.rejected.items())),
            "merged": tally.merged,
            "examples": tally.examples,
        },
        "references": {"read": tally.references, "rejected": dict(sorted(tally.rejected_references.items()))},
        "lost_evidences": dict(sorted(tally.lost_evidences.items())),
        "statistics": dict(tally.statistics),
        "statistics_in_the_paper": dict(published.statistics),
        "counts": counts.to_json(),
        "dropped_by_threshold": None if share is None else round(share, 6),
        "dropped_in_the_paper": None if paper is None else {"records": paper[0], "share": round(paper[1] / 100, 4)},
        "shares_in_the_paper": None if published.shares is None else published.shares._asdict(),
    }


class ReportRow(NamedTuple):
    """A number of records or of pieces of evidence, with its meaning."""

    depth: int  # depth of nesting in the report, from 0
    name: str
    n: int
    total: int | None = None  # the total that it is a share of
    meaning: str = ""
    query: Mapping[str, str] = {}  # columns of ``records`` that select the counted rows
    paper: float | None = None  # share that the KILT paper reports, or the number if there is no total

    @property
    def beside(self) -> str:
        """Returns what the KILT paper reports, as text; empty if it reports nothing."""
        if self.paper is None:
            return ""
        return f"in the KILT paper {self.paper:,}" if self.total is None else f"in the KILT paper {self.paper:.0%}"


def report_rows(report: Mapping[str, Any]) -> Iterator[ReportRow]:
    """Yields the rows of a report: outcomes of records and of evidence."""
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
    yield from (ReportRow(1, f"over {name} redirects", n, total) for name, n in counts.get("hops", {}).items())
    yield from (ReportRow(0, f"lost evidence: {name}", n) for name, n in report.get("lost_evidences", {}).items())


def report_text(report: Mapping[str, Any]) -> str:
    """Returns the report as text."""
    records, counts = report["records"], report["counts"]
    lines = [
        _row("  " * row.depth + row.name, row.n, row.total) + (row.beside and f"; {row.beside}")
        for row in report_rows(report)
    ]
    if (share := report["dropped_by_threshold"]) is not None:
        paper = report["dropped_in_the_paper"]
        beside = f"; in the KILT paper {paper['share']:.2%} ({paper['records']:,} records)" if paper else ""
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


class Aligned(NamedTuple):
    """A finished alignment."""

    name: str  # name of the dataset in the configuration
    folder: str  # folder of the alignment, relative to the folder of all alignments
    report: Mapping[str, Any]  # the report as written
    files: tuple[str, ...] = ()  # names of its record files


def averages(counts: Mapping[str, Any]) -> Averages:
    """Returns the averages of an alignment. An average is None if there is nothing to average.

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


def page_values(aligned: Sequence[Aligned], *, output: str, n_pages: int) -> dict[str, Any]:
    """Returns, as JSON values, how many pages hold written evidence, per dataset and by number of datasets.

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


def overview_values(aligned: Iterable[Aligned], pages: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report of all alignments as JSON values."""
    return {"datasets": [_dataset_values(dataset) for dataset in aligned], "pages": dict(pages)}


def _dataset_values(aligned: Aligned) -> dict[str, Any]:
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
    lines.append(f"{here} ({_shown(pages['share'], '.1%')}); in KILT {PAPER_PAGES:,} ({PAPER_PAGES_SHARE:.0%})")
    lines += [
        f"  of {number} {'dataset' if number == '1' else 'datasets'}: {count:,}"
        for number, count in pages["by_number_of_datasets"].items()
    ]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    here, there = row["averages"], row["averages_in_the_paper"] or {}
    dropped = row["dropped_in_the_paper"]
    cells = [row["name"], row["split"], _shown(row["records"], ","), _shown(row["published_records"], ",")]
    for name in Averages._fields:
        cells += [_shown(here[name], ".2f"), _shown(there.get(name), ".2f")]
    return (*cells, _shown(row["dropped_by_threshold"], ".1%"), _shown(dropped["share"] if dropped else None, ".1%"))


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    names = f"{row[0]:<{widths[0]}} {row[1]:<{widths[1]}}"
    pairs = (f"{row[at]:>{widths[at]}} {row[at + 1]:>{widths[at + 1]}}" for at in range(2, len(row), 2))
    return "   ".join((names, *pairs))


STAGES = {"rejected": "source", "excluded": "", "merged": ""}
"""Source of the ``rejected`` rows with details about a record, by its outcome. For other outcomes, details come from
its evidence."""
_PLACE = itemgetter("output", "evidence")


def record_fates(folder: str, manifest: Manifest, record_id: str) -> Iterator[dict[str, Any]]:
    """Yields the ``records`` rows of an alignment with a given id, usually one.

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
