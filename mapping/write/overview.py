"""The datasets of one release side by side, beside the figures of the KILT paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kbsource.files import Storage, join
from kbsource.release.reader import row_groups
from mapping.decide.policy import POLICIES

PUBLISHED_RECORDS: dict[tuple[str, str], int] = {
    ("fever", "train"): 104_966,
    ("fever", "dev"): 10_444,
    ("fever", "test"): 10_100,
    ("aidayago2", "train"): 18_395,
    ("aidayago2", "dev"): 4_784,
    ("aidayago2", "test"): 4_463,
    ("wned", "dev"): 3_396,
    ("wned", "test"): 3_376,
    ("cweb", "dev"): 5_599,
    ("cweb", "test"): 5_543,
    ("trex", "train"): 2_284_168,
    ("trex", "dev"): 5_000,
    ("trex", "test"): 5_000,
    ("structured_zeroshot", "train"): 147_909,
    ("structured_zeroshot", "dev"): 3_724,
    ("structured_zeroshot", "test"): 4_966,
    ("nq", "train"): 87_372,
    ("nq", "dev"): 2_837,
    ("nq", "test"): 1_444,
    ("hotpotqa", "train"): 88_869,
    ("hotpotqa", "dev"): 5_600,
    ("hotpotqa", "test"): 5_569,
    ("triviaqa", "train"): 61_844,
    ("triviaqa", "dev"): 5_359,
    ("triviaqa", "test"): 6_586,
    ("eli5", "train"): 272_634,
    ("eli5", "dev"): 1_507,
    ("eli5", "test"): 600,
    ("wow", "train"): 63_734,
    ("wow", "dev"): 3_054,
    ("wow", "test"): 2_944,
}
"""Lines of the published files, by dataset and split (2021; T-REx, ELI5 and Wizard of Wikipedia as released last)."""


class Averages(NamedTuple):
    """Averages over a dataset: spans a set, sets and distinct pages a record that has any set, answers a record."""

    spans: float | None
    sets: float | None
    pages: float | None
    answers: float | None


PAPER_AVERAGES: dict[str, Averages] = {
    "fever": Averages(1.12, 1.35, 1.13, 1),
    "aidayago2": Averages(1, 1, 1, 1),
    "wned": Averages(1, 1, 1, 1),
    "cweb": Averages(1, 1, 1, 1),
    "trex": Averages(1, 1.68, 1.26, 5.29),
    "structured_zeroshot": Averages(1, 1, 1, 1),
    "nq": Averages(1, 3.22, 1.57, 2.08),
    "hotpotqa": Averages(2.4, 1, 2, 1),
    "triviaqa": Averages(1, 3.39, 1.68, 28.67),
    "eli5": Averages(1, 1.21, 1.18, 4.69),
    "wow": Averages(1, 1, 1, 1),
}
"""The same of the KILT paper (2021), table 6."""

PAPER_PAGES, PAPER_PAGES_SHARE = 1_642_311, 0.28
"""Pages that are evidence of at least one dataset, and their share of all. Source: the KILT paper, figure 2."""


class Aligned(NamedTuple):
    """One finished alignment.

    Attributes:
        name: of the dataset, as the configuration has it.
        folder: of the alignment, relative to that of all.
        report: as it was written.
        files: names of its files of records.
    """

    name: str
    folder: str
    report: Mapping[str, Any]
    files: tuple[str, ...] = ()


def averages(counts: Mapping[str, Any]) -> Averages:
    """Gives the averages of an alignment; None where there is nothing to average.

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


def pages_of(folder: str, storage: Storage) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Gives the ids of the pages that hold evidence which an alignment wrote, each once, ascending."""
    pages = np.empty(0, dtype=np.int64)
    for path in storage.glob(join(folder, "alignments", "*.parquet")):
        for rows in row_groups(path, storage, ["page_id", "is_written"]):
            pages = np.union1d(pages, rows["page_id"].filter(rows["is_written"]).to_numpy())
    return pages.astype(np.int64)


def page_values(aligned: Sequence[Aligned], *, output: str, n_pages: int, storage: Storage) -> dict[str, Any]:
    """Gives how many pages hold evidence, of each dataset and by the number of datasets, as JSON values.

    Args:
        aligned: the alignments; those of one name are one dataset.
        output: folder of all.
        n_pages: of the release.
        storage: reads their tables.
    """
    by_name: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {}
    for dataset in aligned:
        pages = pages_of(join(output, dataset.folder), storage)
        by_name[dataset.name] = np.union1d(by_name[dataset.name], pages) if dataset.name in by_name else pages
    together = np.concatenate([np.empty(0, dtype=np.int64), *by_name.values()])
    _, n_datasets = np.unique(together, return_counts=True)
    counts = np.bincount(n_datasets, minlength=1)[1:]
    total = int(counts.sum())
    return {
        "in_the_release": n_pages,
        "with_evidence": total,
        "share": _ratio(total, n_pages),
        "in_the_paper": {"with_evidence": PAPER_PAGES, "share": PAPER_PAGES_SHARE},
        "by_number_of_datasets": {str(number): int(count) for number, count in enumerate(counts, 1)},
        "by_dataset": {name: len(pages) for name, pages in by_name.items()},
    }


def overview_values(aligned: Iterable[Aligned], pages: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the report of all alignments as JSON values."""
    return {"datasets": [_dataset_values(dataset) for dataset in aligned], "pages": dict(pages)}


def _dataset_values(aligned: Aligned) -> dict[str, Any]:
    report = aligned.report
    counts = report["counts"]
    policy = POLICIES[report["dataset"]][report["split"]]
    is_filtered = policy.has_threshold and policy.needs_provenance
    paper = PAPER_AVERAGES.get(report["dataset"])
    return {
        "name": aligned.name,
        "split": report["split"],
        "folder": aligned.folder,
        "files": list(aligned.files),
        "records": counts["written"],
        "published_records": PUBLISHED_RECORDS.get((report["dataset"], report["split"])),
        "averages": averages(counts)._asdict(),
        "averages_in_the_paper": None if paper is None else paper._asdict(),
        "dropped_by_threshold": report["dropped_by_threshold"] if is_filtered else None,
        "dropped_in_the_paper": report["dropped_in_the_paper"],
        "read": report["records"]["read"],
        "excluded": sum(report["records"]["excluded"].values()),
        "rejected": sum(report["records"]["rejected"].values()),
        "dropped": sum(counts["dropped"].values()),
    }


_HEADS = ("records", "spans a set", "sets a record", "pages a record", "answers a record", "below threshold")


def overview_text(values: Mapping[str, Any]) -> str:
    """Gives the report for reading: sizes and averages as in table 6, dropped shares as in figure 5, pages."""
    under = ("dataset", "split", *("here", "KILT") * len(_HEADS))
    rows = [under, *(_cells(value) for value in values["datasets"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for at, head in enumerate(_HEADS):
        # Each heading stands over two columns.
        widths[2 + 2 * at] = max(widths[2 + 2 * at], len(head) - widths[3 + 2 * at] - 1)
    first = " ".join(" " * width for width in widths[:2])
    heads = (head.rjust(widths[2 + 2 * at] + 1 + widths[3 + 2 * at]) for at, head in enumerate(_HEADS))
    lines = ["   ".join((first, *heads)), *(_line(row, widths) for row in rows), ""]
    pages = values["pages"]
    here = f"{pages['with_evidence']:,} of {pages['in_the_release']:,} pages hold evidence"
    lines.append(f"{here} ({_percent(pages['share'])}); in KILT {PAPER_PAGES:,} ({PAPER_PAGES_SHARE:.0%})")
    lines += [
        f"  of {number} {'dataset' if number == '1' else 'datasets'}: {count:,}"
        for number, count in pages["by_number_of_datasets"].items()
    ]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    here, there = row["averages"], row["averages_in_the_paper"] or {}
    dropped = row["dropped_in_the_paper"]
    cells = [row["name"], row["split"], _count(row["records"]), _count(row["published_records"])]
    for name in Averages._fields:
        cells += [_average(here[name]), _average(there.get(name))]
    return (*cells, _percent(row["dropped_by_threshold"]), _percent(dropped["share"] if dropped else None))


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _average(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    names = f"{row[0]:<{widths[0]}} {row[1]:<{widths[1]}}"
    pairs = (f"{row[at]:>{widths[at]}} {row[at + 1]:>{widths[at + 1]}}" for at in range(2, len(row), 2))
    return "   ".join((names, *pairs))
