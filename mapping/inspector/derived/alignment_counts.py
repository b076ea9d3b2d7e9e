"""Counts of alignments, out of their manifests: what became of records and evidence, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mapping.decide.policy import POLICIES
from mapping.inspector.derived.alignment_evidence import EVIDENCE_OUTCOMES
from mapping.inspector.derived.alignment_records import MEANINGS
from mapping.inspector.derived.count_steps import Step
from mapping.outcomes import OUTCOMES
from mapping.write.report import N_BINS, PAPER


class DatasetRow(NamedTuple):
    """What became of the records of a dataset.

    Attributes:
        read: records.
        by_outcome: how many are written, dropped, excluded, rejected and merged.
        below_threshold: share of its records that the threshold drops, as the KILT paper counts; None where it drops
            none by rule.
        in_the_paper: the same of the paper; None where it does not say.
    """

    read: int
    by_outcome: Mapping[str, int]
    below_threshold: float | None
    in_the_paper: float | None


_FOUND_BY = {
    "title": "the title that the dataset gives",
    "redirect": "a redirect in the snapshot, of a page that was moved",
    "url": "its address",
    "page_id": "its page id",
    "qid": "its Wikidata item",
    "title_map": "a table of titles that was given",
    "fuzzy": "the title that is most like it (by option)",
}
RECORD_OUTCOMES = ("written", "dropped", "excluded", "rejected", "merged")


def dataset_row(facts: Mapping[str, Any]) -> DatasetRow:
    """Gives what became of the records of an alignment with these facts in its manifest."""
    records, counts = facts["records"], facts["counts"]
    dropped = counts["dropped"]
    n_below = dropped.get("below_threshold", 0)
    dataset, split = str(facts.get("dataset")), facts.get("split")
    paper = PAPER.get((dataset, split))  # type: ignore[arg-type]  # any text may be looked up
    policy = POLICIES.get(dataset, {}).get(split)  # type: ignore[arg-type]  # likewise
    n_judged = counts["written"] + n_below
    return DatasetRow(
        records["read"],
        {
            "written": counts["written"],
            "dropped": sum(dropped.values()),
            "excluded": sum(records["excluded"].values()),
            "rejected": sum(records["rejected"].values()),
            "merged": records["merged"],
        },
        n_below / n_judged
        if n_judged and policy is not None and policy.has_threshold and policy.needs_provenance
        else None,
        None if paper is None else paper[1] / 100,
    )


def record_steps(facts: Mapping[str, Any]) -> Iterator[Step]:
    """Gives what became of the records of an alignment, by outcome and reason."""
    row = dataset_row(facts)
    reasons = {
        "dropped": facts["counts"]["dropped"],
        **{name: facts["records"][name] for name in MEANINGS if name != "dropped"},
    }
    yield Step("records read", row.read, row.read, query={})
    for outcome in RECORD_OUTCOMES:
        if (n := row.by_outcome[outcome]) or outcome == "written":
            yield Step(outcome, n, row.read, 1, query={"outcome": outcome})
        for reason, n_reason in sorted(reasons.get(outcome, {}).items(), key=lambda pair: (-pair[1], pair[0])):
            meaning = MEANINGS[outcome].get(reason, "")
            yield Step(reason, n_reason, row.read, 2, meaning, {"outcome": outcome, "reason": reason})


def evidence_steps(facts: Mapping[str, Any]) -> Iterator[Step]:
    """Gives what became of the evidence of an alignment, and how its pages were found."""
    counts = facts["counts"]
    n_all, n_found = sum(counts["evidences"].values()), sum(counts["found_by"].values())
    yield Step("pieces of evidence", n_all, n_all)
    for name in OUTCOMES:
        if n := counts["evidences"].get(name):
            yield Step(name, n, n_all, 1, EVIDENCE_OUTCOMES[name])
    yield Step("pages found", n_found, n_all)
    for name, n in sorted(counts["found_by"].items(), key=lambda pair: -pair[1]):
        yield Step(f"by {name}", n, n_all, 1, _FOUND_BY.get(name, ""))


def score_bins(facts: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Gives how many spans have a score from each bound up to the next one; the last bin is 1 itself."""
    scores = facts["counts"]["scores"]
    return [(at / N_BINS, scores.get(f"{at / N_BINS:.2f}", 0)) for at in range(N_BINS + 1)]
