"""Counts of an alignment, the laws that they obey, and how they are shown beside those of the KILT paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mapping.decide.policy import Decision
from mapping.entail.verification import verification_text
from mapping.outcomes import OUTCOMES
from mapping.records import Alignment
from mapping.sources.reading.base import Split, Tally

N_BINS = 20
"""Bins of the histogram of scores: [0, 0.05) … [0.95, 1), and 1 itself in a bin of its own."""

PAPER: dict[tuple[str, Split], tuple[int, float]] = {
    ("fever", "dev"): (3675, 26.03),
    ("fever", "test"): (3869, 27.7),
    ("nq", "dev"): (595, 16.12),
    ("nq", "test"): (287, 15.59),
    ("hotpotqa", "dev"): (1650, 22.76),
    ("hotpotqa", "test"): (1704, 23.43),
    ("triviaqa", "dev"): (950, 15.06),
    ("triviaqa", "test"): (1109, 14.41),
    ("structured_zeroshot", "dev"): (679, 15.42),
    ("structured_zeroshot", "test"): (767, 13.38),
    ("wow", "dev"): (469, 12.06),
    ("wow", "test"): (427, 11.39),
}
"""Records dropped and per cent of records, by dataset and split. Source: figure 5 of the KILT paper (2021)."""


@dataclass(slots=True)
class AlignmentCounts:
    """What became of examples and their evidences.

    Attributes:
        written: records in the KILT file.
        dropped: records that are not, by reason.
        pages_there: records of which one evidence set has all its pages.
        mapped: those of them where all spans of such a set reach the threshold, or only its pages are wanted.
        outputs: outputs by what became of them (``whole``, ``answer_only``, ``dropped``).
        output_reasons: why outputs are not whole.
        evidences: pieces of evidence, by outcome.
        spans_written: spans in the KILT file.
        with_sets: records written with at least one evidence set.
        sets_written: their evidence sets.
        set_spans: spans of these sets.
        set_pages: distinct pages of each record's sets, summed over records.
        answers: distinct answers of each record written, summed over records.
        found_by: evidences whose page was found, by how.
        hops: evidences by redirects followed, above 0.
        matches: spans by how the text was matched.
        scores: spans by bin of their score, see ``N_BINS``.
    """

    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    pages_there: int = 0
    mapped: int = 0
    outputs: Counter[str] = field(default_factory=Counter)
    output_reasons: Counter[str] = field(default_factory=Counter)
    evidences: Counter[str] = field(default_factory=Counter)
    spans_written: int = 0
    with_sets: int = 0
    sets_written: int = 0
    set_spans: int = 0
    set_pages: int = 0
    answers: int = 0
    found_by: Counter[str] = field(default_factory=Counter)
    hops: Counter[str] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)

    def add_evidence(self, alignment: Alignment) -> None:
        """Counts one evidence."""
        self.evidences[alignment.outcome] += 1
        if alignment.found_by is not None:
            self.found_by[alignment.found_by] += 1
        if alignment.hops:
            self.hops[str(alignment.hops)] += 1
        if alignment.span is not None:
            self.matches[alignment.span.match] += 1
            self.scores[score_bin(alignment.span.score)] += 1

    def add_record(self, decision: Decision, sets: Iterable[list[Alignment]], *, threshold: float) -> None:
        """Counts one record and its outputs.

        Args:
            decision: what became of it.
            sets: its evidence sets that are not empty.
            threshold: lowest score that is kept.
        """
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
        """Counts sets, pages and answers of a record in KILT's form, its answers not yet taken away."""
        outputs = record.get("output", [])
        sets = [output["provenance"] for output in outputs if output.get("provenance")]
        self.with_sets += bool(sets)
        self.sets_written += len(sets)
        self.set_spans += sum(map(len, sets))
        self.set_pages += len({span["wikipedia_id"] for evidence_set in sets for span in evidence_set})
        self.answers += len({output["answer"] for output in outputs if "answer" in output})

    def add(self, other: AlignmentCounts) -> None:
        """Adds another's counts."""
        for own in fields(self):
            setattr(self, own.name, getattr(self, own.name) + getattr(other, own.name))

    def to_json(self) -> dict[str, Any]:
        """Gives the counts as JSON values, keys sorted."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value for name, value in values.items()
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AlignmentCounts:
        """Gives back what ``to_json`` gave."""
        counts = cls()
        for name, one in value.items():
            setattr(counts, name, Counter(one) if isinstance(one, dict) else one)
        return counts


def _has_page(alignment: Alignment) -> bool:
    return alignment.page_id is not None and alignment.outcome != "page_ambiguous"


def _is_mapped(alignment: Alignment, threshold: float) -> bool:
    if alignment.outcome == "page_only":
        return True
    return alignment.span is not None and alignment.span.score >= threshold


def score_bin(score: float) -> str:
    """Gives the lower bound of the score's bin as text.

    >>> score_bin(0.0), score_bin(0.5), score_bin(0.999), score_bin(1.0)
    ('0.00', '0.50', '0.95', '1.00')
    """
    return f"{min(int(score * N_BINS + 1e-9), N_BINS) / N_BINS if score < 1 else 1.0:.2f}"


def score_bins(scores: Mapping[str, int]) -> list[tuple[str, int]]:
    """Gives every bin of the histogram in order, with its spans."""
    return [(name, scores.get(name, 0)) for name in (f"{number / N_BINS:.2f}" for number in range(N_BINS + 1))]


def faults(tally: Tally, counts: AlignmentCounts) -> list[str]:
    """Gives every law that the counts break: what went in came out, once."""
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
    """Gives the share of records that the threshold alone drops, of those it was applied to; None without any."""
    n_dropped = counts.dropped["below_threshold"]
    total = counts.written + n_dropped
    return n_dropped / total if total else None


def report_values(tally: Tally, counts: AlignmentCounts, *, dataset: str, split: Split) -> dict[str, Any]:
    """Gives the report as JSON values."""
    share = threshold_share(counts)
    paper = PAPER.get((dataset, split))
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
        "references": {
            "read": tally.references,
            "rejected": dict(sorted(tally.rejected_references.items())),
        },
        "lost_evidences": dict(sorted(tally.lost_evidences.items())),
        "counts": counts.to_json(),
        "dropped_by_threshold": None if share is None else round(share, 6),
        "dropped_in_the_paper": None if paper is None else {"records": paper[0], "share": round(paper[1] / 100, 4)},
    }


def report_rows(report: Mapping[str, Any]) -> list[tuple[str, int, int | None]]:
    """Gives what became of records and evidences: a name, set in below that of what it is part of, a count, and the
    count that it is a share of."""
    records, counts = report["records"], report["counts"]
    rows: list[tuple[str, int, int | None]] = [("records read", records["read"], None)]
    rows += [(f"  excluded: {name}", n, records["read"]) for name, n in records["excluded"].items()]
    rows += [(f"  rejected: {name}", n, records["read"]) for name, n in records["rejected"].items()]
    if records["merged"]:
        rows.append(("  merged with another record", records["merged"], records["read"]))
    rows.append(("examples", records["examples"], None))
    rows.append(("  written", counts["written"], records["examples"]))
    if without := counts["written"] - counts["with_sets"]:
        rows.append(("    of them without provenance", without, counts["written"]))
    rows += [(f"  dropped: {name}", n, records["examples"]) for name, n in counts["dropped"].items()]
    rows.append(("  with all pages of an evidence set", counts["pages_there"], records["examples"]))
    rows.append(("    and all spans at the threshold", counts["mapped"], counts["pages_there"]))
    total = sum(counts["evidences"].values())
    rows.append(("pieces of evidence", total, None))
    rows += [(f"  {name}", counts["evidences"][name], total) for name in OUTCOMES if name in counts["evidences"]]
    rows += [(f"  found by {name}", n, total) for name, n in counts["found_by"].items()]
    rows += [(f"  over {name} redirects", n, total) for name, n in counts["hops"].items()]
    rows += [(f"lost evidence: {name}", n, None) for name, n in report["lost_evidences"].items()]
    return rows


def report_text(report: Mapping[str, Any]) -> str:
    """Gives the report for reading."""
    records, counts = report["records"], report["counts"]
    lines = [_row(*row) for row in report_rows(report)]
    if (share := report["dropped_by_threshold"]) is not None:
        paper = report["dropped_in_the_paper"]
        beside = f"; in the KILT paper {paper['share']:.2%} ({paper['records']:,} records)" if paper else ""
        lines.append(
            f"{'dropped by the threshold':<44}{counts['dropped'].get('below_threshold', 0):>10,}{share:>9.2%}{beside}"
        )
    if (rule := report.get("accept")) is not None:
        lines.append(f"{_row('dropped by the rule', rule['dropped'], records['examples'])}  ({rule['rule']})")
    if scores := counts["scores"]:
        lines += ["", "BLEU of the spans", *_bars(scores)]
    if (verification := report.get("verification")) is not None:
        lines += ["", verification_text(verification)]
    return "\n".join(lines)


def _row(name: str, count: int | None, total: int | None) -> str:
    share = f"{count / total:>9.2%}" if count is not None and total else ""
    return f"{name:<44}{count:>10,}{share}"


def _bars(scores: Mapping[str, int]) -> list[str]:
    most = max(scores.values())
    return [f"  {name}  {n:>10,}  {'#' * round(40 * n / most)}".rstrip() for name, n in score_bins(scores)]
