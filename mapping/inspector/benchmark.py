"""Views of benchmarks: the scores of systems on datasets, next to the figures of the papers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mapping.document import Paragraph, Section, TableSection
from mapping.inspector.listing import KindViews, Listing
from mapping.inspector.opened import OpenRelease
from mapping.retrieval.benchmark_kind import BENCHMARK, Score

_SCORES_TEXT = "From 0 to 100, with 95 % intervals by the bootstrap; n is the number of records that are scored."
_PAPERS_TEXT = "The papers measured their figures with their own systems, snapshots and test data."


def about_benchmark(opened: OpenRelease) -> Iterator[Section]:
    """Shows the scores of all systems, next to the figures of the papers."""
    from mapping.retrieval.benchmark import Dataset, score_rows  # needs what metrics need

    scores = [msgspec.convert(row, Score) for row in BENCHMARK.rows(opened.path, opened.manifest, "scores")]
    datasets = [
        Dataset(**{name: dataset[name] for name in Dataset._fields})
        for dataset in opened.manifest.to_json()["datasets"]
    ]
    systems = [system["name"] for system in opened.manifest.to_json()["systems"]]
    found = list(score_rows(datasets, systems, scores))
    rows = tuple(score_row.texts()[:-1] for score_row in found)
    yield Section(
        "Systems on datasets",
        (Paragraph(_SCORES_TEXT), TableSection("Scores", ("dataset", "metric", "n", *systems), rows)),
    )
    if figures := tuple((row.dataset, row.metric, row.figures) for row in found if row.figures):
        table = TableSection("Figures of the papers", ("dataset", "metric", "figures"), figures)
        yield Section("Beside the papers", (Paragraph(_PAPERS_TEXT), table), is_folded=True)


BENCHMARK_VIEWS = KindViews(
    about=about_benchmark,
    listings={
        "scores": Listing(label="Scores", facets=("dataset", "system", "metric")),
        "values": Listing(label="Values", facets=("dataset", "system", "metric")),
        "costs": Listing(label="Runs", facets=("dataset", "system")),
    },
)
