"""Shows benchmarks: scores of systems on datasets with the figures of the papers, and the cost of each run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mapping.document import Paragraph, Section, Share, Table, bars, sql_table
from mapping.inspector.about import about_sections, other_values
from mapping.inspector.frame import KindViews
from mapping.inspector.listing import Listing
from mapping.inspector.opened import Opened
from mapping.retrieval.benchmark_kind import BENCHMARK, MENTIONS, QUESTIONS, Score

_SAID = (
    "Per cent, with 95 % intervals by the bootstrap. The figures of the papers are of their systems on their snapshots "
    "and test data."
)
_COSTS = """
select system, count(*) as datasets, sum(queries)::bigint as queries, round(sum(seconds), 1) as seconds,
    round(sum(queries) / greatest(sum(seconds), 0.001), 1) as "queries a second",
    max(peak_bytes) as "most memory, bytes"
from costs group by system order by min(_row)"""


def measured_benchmark(opened: Opened) -> Iterator[Section]:
    """Yields R-precision over all questions and mentions, the table of scores, and the cost of the runs."""
    from mapping.retrieval.benchmark import Dataset, score_rows  # needs the packages of the metrics

    scores = [msgspec.convert(row, Score) for row in BENCHMARK.rows(opened.path, opened.manifest, "scores")]
    datasets = [
        Dataset(**{name: one[name] for name in Dataset._fields}) for one in opened.manifest.to_json()["datasets"]
    ]
    systems = [one["name"] for one in opened.manifest.to_json()["systems"]]
    rows = tuple(one.texts() for one in score_rows(datasets, systems, scores))
    columns = ("dataset", "metric", "n", *systems, "figures of the papers")
    for pool in (QUESTIONS, MENTIONS):
        own = [(one.system, Share(one.value)) for one in scores if (one.dataset, one.metric) == (pool, "Rprec")]
        if own:
            about = "The mean over the records with a gold page."
            yield Section(f"{pool.capitalize()}", (bars("Page R-precision", ("system", "R-precision"), own, about),))
    yield Section("Systems on datasets", (Paragraph(_SAID), Table("Scores", columns, rows)))
    said = Paragraph("Measured on one machine, beside whatever else it did.")
    yield Section("What it took", (said, sql_table(opened.db, "Runs by system", _COSTS)))


BENCHMARK_VIEWS = KindViews(
    about=lambda opened: (*about_sections(opened), other_values(opened)),
    measured=measured_benchmark,
    listings={
        "scores": Listing(label="Scores", facets=("dataset", "system", "metric")),
        "values": Listing(label="Values", facets=("dataset", "system", "metric")),
        "costs": Listing(label="Runs", facets=("dataset", "system")),
    },
)
