"""The kind of release for a benchmark: the scores of systems on datasets, question by question, and the costs.

::

    predictions/DATASET/SYSTEM.jsonl    results or answers of each system, for kbsource evaluate
    scores/                             means with their intervals
    values/                             the values that are averaged
    costs/                              seconds and memory of each run, as measured; they differ from run to run
    rejected/                           lines that could not be used
    papers.md                           the scores in the layout of the papers' tables
    manifest.json                       passages, datasets and systems; written last
"""

from __future__ import annotations

from typing import Annotated, TypedDict

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.manifest import SourceFacts, shape
from kbsource.release.measures import Measure
from kbsource.rows import Row
from mapping.passages.kind import PASSAGES_CORPUS

PREDICTIONS, PAPERS = "predictions", "papers.md"
QUESTIONS, MENTIONS = "all questions", "all mentions"
"""Summary rows for all datasets in KILT's form: records with questions, and records with a mention to link."""


class Score(Row):
    """One row per dataset, system and metric."""

    dataset: Annotated[str, "name of the dataset, or of several datasets together: all questions, all mentions"]
    system: Annotated[str, "name of the system"]
    metric: Annotated[str, "name of the metric in kbsource evaluate; for AmbER sets, followed by head or tail"]
    value: Annotated[float, "mean, 0 to 1"]
    low: Annotated[float | None, "lower end of the 95 % confidence interval by the bootstrap; null without resamples"]
    high: Annotated[float | None, "upper end of the confidence interval"]
    n: Annotated[
        int,
        "number of values in the mean: records with a gold page for retrieval, else records, questions or sets",
    ]


class ScoreValue(Row):
    """One row per single value; `scores` has their means."""

    pool: Annotated[str, "all questions or all mentions, if the value counts there too; else empty"]
    dataset: Annotated[str, "name of the dataset"]
    system: Annotated[str, "name of the system"]
    metric: Annotated[str, "as in `scores`"]
    number: Annotated[int, "position among the records that count, in the order of the dataset, from 0"]
    value: Annotated[float, "0 to 1"]


class Cost(Row):
    """One row per dataset and system: time and memory of its run, as measured; they differ from run to run."""

    dataset: Annotated[str, "name of the dataset"]
    system: Annotated[str, "name of the system"]
    queries: Annotated[int, "number of queries that were answered"]
    seconds: Annotated[float, "wall time, including opening the system"]
    peak_bytes: Annotated[
        int | None,
        "maximum memory of the process during the run; null if the operating system does not report it",
    ]


EVERY_VALUE = """(
    select dataset, system, metric, value, _row, false as is_pool from "values" union all
    select pool, system, metric, value, _row, true from "values" where pool <> '')"""
"""SQL for the values. A value that belongs to a pool occurs twice: once under its dataset, and once under the name of
the pool, all questions or all mentions.
"""


def _pool(name: str) -> Measure:
    return Measure(
        f"Page R-precision, {name}",
        f"""select system, value as "R-precision" from scores where dataset = '{name}' and metric = 'Rprec'
        order by _row""",
        section="All datasets together",
        chart="bars",
        about="The mean over the records with a gold page.",
        shares=("R-precision",),
        needs=("scores",),
    )


MEASURES = (
    *map(_pool, (QUESTIONS, MENTIONS)),
    Measure(
        "Runs",
        "select (select count(*) from costs) as runs, (select count(*) from rejected) as rejected",
        section="What it took",
        page="measures",
        form="facts",
        needs=("costs", "rejected"),
    ),
    Measure(
        "Runs by system",
        """select system, count(*) as datasets, sum(queries)::bigint as queries, round(sum(seconds), 1) as seconds,
            round(sum(queries) / greatest(sum(seconds), 0.001), 1) as "queries a second",
            max(peak_bytes) as "most memory, bytes"
        from costs group by system order by min(_row)""",
        section="What it took",
        page="measures",
        about="Measured on one machine. Other programs may have run on it at the same time.",
        needs=("costs",),
    ),
)
"""Contents of the overview of a benchmark, besides the table of scores with the papers' figures."""


class _DatasetFacts(TypedDict, total=False):
    """A dataset in a manifest."""

    name: str
    path: str
    form: str
    key: str
    pool: str
    task: str


class _SystemFacts(TypedDict, total=False):
    """A system in a manifest."""

    name: str


BENCHMARK = ListingKind(
    name="benchmark",
    format="kbsource-benchmark-1",
    facts=shape("facts", passages=SourceFacts, datasets=list[_DatasetFacts], systems=list[_SystemFacts]),
    made_by="kbsource benchmark",
    card=CardText(
        title="Retrieval systems on datasets",
        summary=(
            "Predictions of systems for the questions of datasets, the values of every metric, and their means with "
            "intervals."
        ),
        main="scores",
        holds=("wikipedia", "dataset"),
        tasks=("text-retrieval",),
        tags=("wikipedia", "KILT", "retrieval", "evaluation"),
        limits=(
            "Seconds and memory were measured on one machine. Other programs may have run on it at the same time.",
        ),
    ),
    queries=(
        (
            "systems by dataset and metric",
            "select dataset, metric, system, value, low, high from scores order by dataset, metric, value desc",
        ),
        ("time and memory", "select dataset, system, queries, seconds, peak_bytes from costs order by seconds desc"),
    ),
    tables={
        "scores": schema_of(Score),
        "values": schema_of(ScoreValue),
        "costs": schema_of(Cost),
        "rejected": schema_of(BadRecord),
    },
    required=("scores", "values", "costs"),
    files=(PREDICTIONS, PAPERS),
    invariants=(
        Invariant(
            "invalid_score",
            "a score is not the mean of its values or has an invalid interval, or values have no score",
            f"""select coalesce(_file, 'scores'), concat_ws(', ', dataset, system, metric)
                from scores full join (
                    select dataset, system, metric, avg(value) as mean, count(*) as n from {EVERY_VALUE} group by all
                ) as means using (dataset, system, metric)
                where scores.n is distinct from means.n or abs(value - mean) > 1e-9
                or value not between 0 and 1 or not (low between 0 and high)""",
            needs=("scores", "values"),
        ),
        Invariant(
            "missing_cost",
            "a run has no row in the table costs",
            """select _file, concat_ws(', ', dataset, system) from (
                select distinct _file, dataset, system from "values" anti join costs using (dataset, system))""",
            needs=("values", "costs"),
        ),
    ),
    counts=(
        TableCount("counts.runs", "select count(*) from costs"),
        TableCount("counts.rejected", "select count(*) from rejected"),
        TableCount(None, "select count(*) from scores", summary="scores"),
    ),
    made_from={"passages": MadeFrom(PASSAGES_CORPUS, "passages", ("passages",))},
    shown_by=(("scores", "dataset"), ("costs", "dataset"), ("scores", "system"), ("rejected", "key")),
    measures=MEASURES,
)
