"""What a report says of alignments: of one dataset, and of a folder of many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, join
from kbsource.release.manifest import ListingManifest
from mapping.charts import Chart, Series
from mapping.outcomes import OUTCOMES
from mapping.reports.alignment_rows import AlignmentRows, Move, read_alignments, read_moves
from mapping.reports.any_report import about_section, release_name, report_of, table_files
from mapping.reports.document import (
    Block,
    Cell,
    Charts,
    Document,
    Facts,
    Paragraph,
    Section,
    Share,
    Table,
    changes,
    counts_table,
    share,
)
from mapping.write.kind import ALIGNMENT, ALIGNMENTS
from mapping.write.overview import PAPER_PAGES, PAPER_PAGES_SHARE, Averages
from mapping.write.report import report_rows, score_bins

EVIDENCE_DATES = {"fever": "2017-06-01", "hotpotqa": "2017-10-01"}
"""Snapshots of Wikipedia that datasets took their evidence from, where all of it is from one. Source: their papers
(Thorne et al. 2018, Yang et al. 2018)."""
KILT_DATE = "2019-08-01"
"""Snapshot of KILT's knowledge source, which the evidence of its files stands in."""
_LONGEST = 600
_DATE = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")


def alignment_document(path: str, manifest: ListingManifest, storage: Storage) -> Document:
    """Gives the report on an alignment. Memory: one row group, and the worst rows."""
    report = report_of(path, storage)
    title = release_name(ALIGNMENT, manifest.to_json())
    return Document(title, (about_section(ALIGNMENT, manifest), *_dataset(path, manifest, report, storage)))


def alignments_document(path: str, manifest: ListingManifest, storage: Storage) -> Document:
    """Gives the report on a folder of alignments: all side by side, then each."""
    overall = report_of(path, storage)
    parts, ages = [], []
    for part in manifest.parts:
        folder = join(path, part.folder)
        own = ALIGNMENT.read(folder, storage)
        if own.sha256 != part.manifest_sha256:
            raise DataError(
                f"{folder}: another alignment than the one of the folder's manifest; kbsource verify says more."
            )
        report = report_of(folder, storage)
        parts.append(Section(part.folder.replace("/", ", "), _dataset(folder, own, report, storage)))
        if (age := _age(own)) is not None:
            ages.append((f"{report['dataset']}, {report['split']}", *age, *_found(report["counts"]["evidences"])))
    blocks: list[Block] = [*_side_by_side(overall)]
    if ages:
        columns = ("dataset", "evidence of", "years to the snapshot", "exact", "near", "weak", "no page")
        blocks.append(Table("Drift by age of the evidence", columns, tuple(sorted(ages, key=lambda row: str(row[1])))))
    return Document(
        release_name(ALIGNMENTS, manifest.to_json()),
        (about_section(ALIGNMENTS, manifest), Section("Side by side", tuple(blocks)), *parts),
    )


def _side_by_side(overall: Mapping[str, Any]) -> Iterator[Block]:
    datasets, pages = overall["datasets"], overall["pages"]
    compared = [row for row in datasets if row["dropped_by_threshold"] is not None]
    if compared:
        yield Charts(
            (
                Chart(
                    title="Records dropped by the threshold of BLEU",
                    about="Share of the records, by dataset; beside it that of the KILT paper (figure 5), where it "
                    "has one.",
                    label_name="dataset",
                    labels=tuple(f"{row['name']}, {row['split']}" for row in compared),
                    series=(
                        Series("here", tuple(row["dropped_by_threshold"] for row in compared)),
                        Series(
                            "KILT paper", tuple((row["dropped_in_the_paper"] or {}).get("share") for row in compared)
                        ),
                    ),
                    style="bars",
                    is_share=True,
                ),
            )
        )
    columns = ("dataset", "records", "records in KILT", *(f"{name} {where}" for name in _AVERAGES for where in _WHERE))
    rows = tuple(
        (
            f"{row['name']}, {row['split']}",
            row["records"],
            row["published_records"],
            *((row[where] or {}).get(name) for name in Averages._fields for where in _AVERAGES_OF),
        )
        for row in datasets
    )
    yield Table("Datasets beside the KILT paper (table 6)", columns, rows)
    yield Facts(
        (
            ("pages of the release", pages["in_the_release"]),
            ("pages with evidence", pages["with_evidence"]),
            ("share of them", None if pages["share"] is None else Share(pages["share"])),
            ("pages with evidence in KILT", PAPER_PAGES),
            ("share of them in KILT", Share(PAPER_PAGES_SHARE)),
        )
    )
    by_number = pages["by_number_of_datasets"]
    if by_number:
        yield counts_table("Pages by the number of datasets whose evidence they hold", "datasets", "pages",
                           list(by_number.items()), pages["with_evidence"])  # fmt: skip


_AVERAGES = ("spans a set", "sets a record", "pages a record", "answers a record")
_WHERE = ("", "(KILT)")
_AVERAGES_OF = ("averages", "averages_in_the_paper")


def _dataset(path: str, manifest: ListingManifest, report: Mapping[str, Any], storage: Storage) -> tuple[Section, ...]:
    moves = read_moves(table_files(path, manifest, "crosswalk"), storage)
    rows = read_alignments(table_files(path, manifest, "alignments"), storage)
    became = tuple(
        (name.replace("  ", "\u2003"), n, None if of is None else share(n, of)) for name, n, of in report_rows(report)
    )
    signals = rows.crossing.is_judged
    return (
        Section("Outcomes", (_facts(manifest, report), Charts(tuple(_charts(report["counts"], moves))))),
        *([Section("Drift", (_drift(moves),))] if moves else []),
        Section("Records and evidence", (Table("What became of them", ("what", "number", "share"), became),)),
        *([Section("Both signals", tuple(_signals(rows, report)))] if signals else []),
        Section("Worst spans", (_worst(rows),)),
    )


def _facts(manifest: ListingManifest, report: Mapping[str, Any]) -> Facts:
    paper = report["dropped_in_the_paper"]
    facts: list[tuple[str, Cell]] = [("threshold of BLEU", (manifest.facts.get("options") or {}).get("threshold"))]
    if report["dropped_by_threshold"] is not None:
        facts.append(("dropped by the threshold", Share(report["dropped_by_threshold"])))
    if paper is not None:
        facts.append(("in the KILT paper (figure 5)", Share(paper["share"])))
    if (rule := report.get("accept")) is not None:
        facts += [("rule", rule["rule"]), ("dropped by the rule", rule["dropped"])]
    if (age := _age(manifest)) is not None:
        facts += [("evidence of", age[0]), ("years to the snapshot", age[1])]
    return Facts(tuple(facts))


def _charts(counts: Mapping[str, Any], moves: Sequence[Move]) -> Iterator[Chart]:
    if counts["scores"]:
        bins = score_bins(counts["scores"])
        yield Chart(
            title="BLEU of the spans",
            about="Spans by the lower bound of their bin; 1.00 is a bin of its own.",
            label_name="BLEU",
            labels=tuple(name for name, _ in bins),
            series=(Series("spans", tuple(n for _, n in bins)),),
        )
    outcomes = [(name, counts["evidences"][name]) for name in OUTCOMES if name in counts["evidences"]]
    yield Chart(
        title="Evidence by outcome",
        about="What became of each piece of evidence.",
        label_name="outcome",
        labels=tuple(name.replace("_", " ") for name, _ in outcomes),
        series=(Series("pieces of evidence", tuple(n for _, n in outcomes)),),
        style="bars",
    )
    if moves:
        yield Chart(
            title="How far evidence moved",
            about="Where the new span stands, seen from the old one.",
            label_name="new place",
            labels=tuple(move.name for move in moves),
            series=(Series("spans", tuple(move.n_spans for move in moves)),),
            style="bars",
        )


def _drift(moves: Sequence[Move]) -> Table:
    total = sum(move.n_spans for move in moves)
    rows = tuple((move.name, move.n_spans, share(move.n_spans, total), move.mean_score) for move in moves)
    return Table("How far evidence moved, and how like it stayed", ("new place", "spans", "share", "mean BLEU"), rows)


def _signals(rows: AlignmentRows, report: Mapping[str, Any]) -> Iterator[Block]:
    yield rows.crossing.table("BLEU and the probability that the text says what the dataset says")
    verification = report.get("verification") or {}
    not_judged = [(f"not judged: {name}", n) for name, n in (verification.get("refusals") or {}).items()]
    yield Facts((("spans that the model chose", verification.get("rescued", 0)), *not_judged))


def _worst(rows: AlignmentRows) -> Block:
    if not rows.worst:
        return Paragraph("No span differs from the text that was looked for.")
    columns = ("record", "page", "BLEU", "entailment", "written", "old text", "new text")
    return Table(
        "Spans of the lowest BLEU; the words that changed are marked",
        columns if rows.crossing.is_judged else columns[:3] + columns[4:],
        tuple(_worst_row(row, is_judged=rows.crossing.is_judged) for row in rows.worst),
    )


def _worst_row(row: Mapping[str, Any], *, is_judged: bool) -> tuple[Cell, ...]:
    old, new = changes(_cut(row["evidence_text"]), _cut(row["text"]))
    judged = (row["support"],) if is_judged else ()
    return row["example_id"], row["title"], row["score"], *judged, "yes" if row["is_written"] else "no", old, new


def _cut(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _age(manifest: ListingManifest) -> tuple[str, float] | None:
    """Gives the date of the snapshot that evidence was taken from, and the years from it to that of the release."""
    old = KILT_DATE if manifest.n_rows("crosswalk") else EVIDENCE_DATES.get(str(manifest.facts.get("dataset")))
    found = _DATE.fullmatch((manifest.facts.get("release") or {}).get("dump_date") or "")
    if old is None or found is None:
        return None
    try:
        new = date(*map(int, found.groups()))
    except ValueError as error:
        raise SetupError(f"dump_date {found[0]!r} of the manifest is no date; get the release again.") from error
    return old[:7], round((new - date.fromisoformat(old)).days / 365.25, 1)


def _found(evidences: Mapping[str, int]) -> Sequence[Share | None]:
    total = sum(evidences.values())
    return [share(evidences.get(name, 0), total) for name in ("exact", "near", "weak", "page_missing")]
