"""What a report says of a QAMPARI release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.files import Storage
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import row_groups
from mapping.charts import Chart, Series
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.reports.any_report import about_section, flat_values, release_name, report_of, table_files
from mapping.reports.crossing import ENTAILMENT_BINS, entailment_bins
from mapping.reports.document import Block, Charts, Document, Paragraph, Section, Table

_STEPS = ("answers", "answers_with_page", "answers_aligned", "answers_validated")


def qampari_document(path: str, manifest: ListingManifest, storage: Storage) -> Document:
    """Gives the report on a QAMPARI release. Memory: one row group, and a few numbers a property."""
    report = report_of(path, storage)
    sections = [about_section(QAMPARI_RELEASE, manifest)]
    sections.append(Section("Funnel", tuple(_funnel(report["funnel"]))))
    sections.append(Section("Questions and answers", tuple(_questions(report["questions"]))))
    sections.append(Section("Entailment of proofs by property", tuple(_proofs(path, manifest, storage))))
    others: dict[str, Any] = {name: report[name] for name in ("facts", "lists", "skipped") if name in report}
    others["types without a class"] = len(report.get("types_without_class", ()))
    sections.append(Section("Other counts", (Table("Counts", ("name", "value"), tuple(flat_values(others))),)))
    return Document(release_name(QAMPARI_RELEASE, manifest.to_json()), tuple(sections))


def _funnel(funnel: Mapping[str, Mapping[str, int]]) -> Iterator[Block]:
    outcomes = sorted({name for counts in funnel.values() for name in counts} - {"queries", *_STEPS} - {"kept"})
    columns = ("kind of question", "queries", "kept", *(name.replace("_", " ") for name in outcomes))
    rows = (
        (kind, *(counts.get(name, 0) for name in ("queries", "kept", *outcomes))) for kind, counts in funnel.items()
    )
    yield Table("What became of the queries", columns, tuple(rows))
    totals = [sum(counts.get(step, 0) for counts in funnel.values()) for step in _STEPS]
    steps = ("answers", "with a page", "with a sentence", "proved")
    yield Charts(
        (
            Chart(
                title="How far answers came",
                about="Answers of all queries considered; intersections are made of answers that were proved before.",
                label_name="step",
                labels=steps,
                series=(Series("answers", tuple(totals)),),
                style="bars",
            ),
        )
    )
    answers = tuple((kind, *(counts.get(step, 0) for step in _STEPS)) for kind, counts in funnel.items())
    yield Table("How far answers came, by kind of question", ("kind of question", *steps), answers)


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


def _proofs(path: str, manifest: ListingManifest, storage: Storage) -> Iterator[Block]:
    counts: defaultdict[str, Any] = defaultdict(lambda: np.zeros(len(ENTAILMENT_BINS), np.int64))
    columns = ("property_ids", "answers.list.element.proofs.list.element.entailment")
    for file in table_files(path, manifest, "questions"):
        for group in row_groups(file, storage, columns):
            for row in group.to_pylist():
                values = [proof["entailment"] for answer in row["answers"] for proof in answer["proofs"]]
                bins = np.bincount(
                    entailment_bins(pa.chunked_array([values], pa.float64())), minlength=len(ENTAILMENT_BINS)
                )
                for property_id in row["property_ids"] or ["tables"]:
                    counts[property_id] += bins
    yield Paragraph("Proofs of answers; of a question that rests on two properties, each counts them all.")
    yield Table("Proofs by property and entailment", ("property", *ENTAILMENT_BINS),
                tuple((name, *map(int, counts[name])) for name in sorted(counts)), is_shaded=True)  # fmt: skip
