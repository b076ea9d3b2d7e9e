"""What a report says of a QAMPARI release."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.files import Storage
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import row_groups
from mapping.charts import Chart, Series
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import SUBSETS
from mapping.qampari.statistics import AnswerStatistics
from mapping.reports.any_report import about_section, flat_values, release_name, report_of, table_files
from mapping.reports.crossing import ENTAILMENT_BINS, entailment_bins
from mapping.reports.document import Block, Charts, Document, Paragraph, Section, Table
from mapping.write.kind import REPORT

_STEPS = {"n_answers": "answers", "n_with_page": "with a page", "n_aligned": "with a sentence", "n_validated": "proved"}
_READ = ("subset", "split", "property_ids", "answers.list.element.proofs.list.element.entailment")
_SAID = {"questions", "funnel", "types", "types_without_class"}
"""Of the report that lies in the release, what is counted here or is long."""


def qampari_document(path: str, manifest: ListingManifest, storage: Storage) -> Document:
    """Gives the report on a QAMPARI release. Memory: one row group, and a few numbers a property."""
    statistics, proofs = AnswerStatistics(), defaultdict[str, Any](lambda: np.zeros(len(ENTAILMENT_BINS), np.int64))
    for file in table_files(path, manifest, "questions"):
        for group in row_groups(file, storage, _READ):
            for row in group.to_pylist():
                statistics.add(row["subset"], row["split"], len(row["answers"]))
                values = [proof["entailment"] for answer in row["answers"] for proof in answer["proofs"]]
                bins = np.bincount(
                    entailment_bins(pa.chunked_array([values], pa.float64())), minlength=len(ENTAILMENT_BINS)
                )
                for property_id in row["property_ids"] or ["tables"]:
                    proofs[property_id] += bins
    sections = [
        about_section(QAMPARI_RELEASE, manifest),
        Section("Funnel", tuple(_funnel(table_files(path, manifest, "queries"), storage))),
        Section("Questions and answers", tuple(_questions(statistics.values()))),
        Section("Entailment of proofs by property", tuple(_proofs(proofs))),
    ]
    if any(entry.file == REPORT for entry in manifest.files):
        others = {name: value for name, value in report_of(path, storage).items() if name not in _SAID}
        table = Table("Counts of the job", ("name", "value"), tuple(flat_values(others)))
        sections.append(Section("Other counts", (table,)))
    return Document(release_name(QAMPARI_RELEASE, manifest.to_json()), tuple(sections))


def _funnel(files: Sequence[str], storage: Storage) -> Iterator[Block]:
    outcomes: Counter[tuple[str, str]] = Counter()
    answers: Counter[tuple[str, str]] = Counter()
    for file in files:
        for group in row_groups(file, storage, ("subset", "outcome", *_STEPS)):
            sums = group.group_by(["subset", "outcome"]).aggregate(
                [([], "count_all"), *((name, "sum") for name in _STEPS)]
            )
            for row in sums.to_pylist():
                outcomes[row["subset"], row["outcome"]] += row["count_all"]
                answers.update({(row["subset"], name): row[f"{name}_sum"] or 0 for name in _STEPS})
    subsets = [subset for subset in SUBSETS if any(subset == known for known, _ in outcomes)]
    names = sorted({name for _, name in outcomes}, key=lambda name: (name != "kept", name))
    yield Table(
        "What became of the queries",
        ("kind of question", "queries", *(name.replace("_", " ") for name in names)),
        tuple(
            (subset, sum(outcomes[subset, name] for name in names), *(outcomes[subset, name] for name in names))
            for subset in subsets
        ),
    )
    yield Charts(
        (
            Chart(
                title="How far answers came",
                about="Answers of all queries considered; those of intersections were proved before.",
                label_name="step",
                labels=tuple(_STEPS.values()),
                series=(Series("answers", tuple(sum(answers[subset, name] for subset in subsets) for name in _STEPS)),),
                style="bars",
            ),
        )
    )
    yield Table(
        "How far answers came, by kind of question",
        ("kind of question", *_STEPS.values()),
        tuple((subset, *(answers[subset, name] for name in _STEPS)) for subset in subsets),
    )


def _questions(questions: Mapping[str, Any]) -> Iterator[Block]:
    answers = questions["answers"]
    yield Charts(
        (
            Chart(
                title="Answers a question",
                about="Mean number of answers, beside that of the published set.",
                label_name="questions",
                labels=tuple(answers),
                series=(
                    Series("here", tuple(row["mean"] for row in answers.values())),
                    Series("QAMPARI paper", tuple(row["published_mean"] for row in answers.values())),
                ),
                style="bars",
            ),
        )
    )
    names = ("questions", "mean", "published_mean", "median", "published_median")
    columns = ("questions", "number", "mean", "mean (paper)", "median", "median (paper)")
    rows = tuple((name, *(row[key] for key in names)) for name, row in answers.items())
    yield Table("Answers a question beside the paper", columns, rows)
    drawn, kept = questions["drawn"], questions["kept"]
    rows = tuple((kind, n, *(drawn[split].get(kind, 0) for split in drawn)) for kind, n in kept.items())
    yield Table("Questions kept, and drawn by split", ("kind of question", "kept", *drawn), rows)


def _proofs(proofs: Mapping[str, Any]) -> Iterator[Block]:
    yield Paragraph("Proofs of answers; of a question that rests on two properties, each counts them all.")
    rows = tuple((name, *map(int, proofs[name])) for name in sorted(proofs))
    yield Table("Proofs by property and entailment", ("property", *ENTAILMENT_BINS), rows, is_shaded=True)
