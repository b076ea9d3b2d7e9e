"""Evaluates the predictions of systems for datasets. Writes the score of each question, means with intervals, and a
table with the papers' figures next to the means.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import compress, groupby, islice, product, repeat
from math import fsum, isnan
from typing import Any, NamedTuple

import numpy as np

from kbsource.files import Folder, base_name, glob, join
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry
from kbsource.release.sql import add_tables, connected
from mapping.amber.kind import AMBER_SETS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.metrics.amber import AmberMetrics
from mapping.metrics.answers import READER_METRICS
from mapping.metrics.evaluation import (
    AmberEvaluation,
    KiltEvaluation,
    KiltFiles,
    QampariEvaluation,
    QampariFiles,
)
from mapping.metrics.evaluator import Reject, evaluate
from mapping.metrics.kilt import DOWNSTREAM, KILT, KiltMetrics, metric_of
from mapping.metrics.qampari import EXACT, KEYS, QampariMetrics
from mapping.metrics.significance import intervals
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import SUBSETS
from mapping.retrieval.benchmark_kind import BENCHMARK, EVERY_VALUE, MENTIONS, QUESTIONS, Score
from mapping.retrieval.queries import Benchmark, benchmark_of_file, first_query
from mapping.sources import all_sources
from mapping.sources.raw_records import iter_lines, readable_records
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

AMBER_KS = (1, 20)
QAMPARI_KS = (10, 25, 50, 100, 200)
_PLACES = ("Rprec", "recall@1", "recall@5", "recall@20", "answer_in_context@5", "answer_in_context@20")
_DOWNSTREAM, _KILT_DOWNSTREAM = "downstream", "KILT-downstream"
_GOLD: Mapping[Kind[Any], str] = {
    **dict.fromkeys((ALIGNMENTS, ALIGNMENT), r".*-[^-_]+-kilt\.jsonl"),
    QAMPARI_RELEASE: r"(dev|test)_data\.jsonl",
    AMBER_SETS: r"amber_sets\.jsonl",
    ENTITY_LINKING: r"blink-dev.*\.jsonl",
}
"""Names of files with gold records that have answers."""


class Dataset(NamedTuple):
    """A file of gold records."""

    name: str  # name of the dataset's folder of predictions, a path without dots
    path: str
    form: Benchmark
    key: str  # name of the dataset in the published figures; empty if they do not include it
    pool: str  # summary row that includes the dataset: all questions or all mentions; else empty
    task: str = ""  # metric that KILT reports for the dataset; empty if unknown


def datasets_of(path: str, name: str = "") -> Iterator[Dataset]:
    """Finds the gold files with answers or evidence in a release or another folder. A single file is returned under the
    given name, if any.

    Raises:
        SetupError: the path is neither a release or folder with such files, nor an existing file.
    """
    if not Folder.of(join(path, MANIFEST)).exists():
        inside = glob(join(path, "*.jsonl*"))
        if not inside:
            yield _dataset(path, name or _stem(path))
        for file in filter(_has_gold, inside):
            yield _dataset(file, "/".join((name, _stem(file)) if name else (_stem(file),)))
        return
    kind = kind_of(read_content(path), path, tuple(_GOLD))
    manifest = kind.read(path)
    inner = [(part.folder, ALIGNMENT.read(join(path, part.folder))) for part in manifest.parts]
    files = (join(folder, entry.file) for folder, own in inner or [("", manifest)] for entry in own.files if entry.rows)
    for file in (gold_path for gold_path in files if re.fullmatch(_GOLD[kind], base_name(gold_path))):
        stem = file.rpartition("/")[0] if kind in (ALIGNMENTS, AMBER_SETS) else _stem(file)
        if kind in (AMBER_SETS, QAMPARI_RELEASE):
            stem = f"{'amber' if kind is AMBER_SETS else 'qampari'}/{stem}"
        own = _dataset(join(path, file), "/".join((name, stem) if name else (stem,)))
        # The alias table counts the links of this dataset itself, so they are not part of the mean over all mentions.
        yield own._replace(pool="") if kind is ENTITY_LINKING else own


def _has_gold(path: str) -> bool:
    """Returns whether the first record of a file contains the correct answer."""
    return any(
        not {"output", "qids", "answer_list", "answers"}.isdisjoint(record)
        for record in islice(readable_records(path), 1)
    )


def _stem(path: str) -> str:
    """Returns the name of a file as the name of a folder of predictions; other characters are dropped or become
    underscores.

    >>> _stem("aligned/nq-dev-kilt.jsonl.gz"), _stem("qampari_data/dev_data.jsonl"), _stem("_my (old) set.jsonl")
    ('nq-dev', 'dev', 'my _old_ set')
    """
    stem = base_name(path).partition(".")[0].removesuffix("-kilt").removesuffix("_data")
    return re.sub(r"[^\w,:+ -]", "_", stem).lstrip("_,:+ -") or "dataset"


def _dataset(path: str, name: str) -> Dataset:
    form = benchmark_of_file(path)
    if form != "kilt":
        return Dataset(name, path, form, "qampari" if form == "qampari" else "/".join(name.split("/")[-2:]), pool="")
    key = next((part for part in name.replace("-", "/").split("/") if part in all_sources()), "")
    first = first_query(path)
    is_linking = first is not None and first.is_mention
    task = "accuracy" if is_linking else metric_of(f"{key}-") or ""
    return Dataset(name, path, form, key, MENTIONS if is_linking else QUESTIONS, task)


def metric_values(dataset: Dataset, predictions: str, *, most: int, reject: Reject) -> dict[str, Sequence[float]]:
    """Returns the values that the means of a dataset's metrics are computed from, by metric.

    Args:
        most: number of locations that a system returns; metrics at higher ranks are skipped.
    """
    if not Folder.of(predictions).size():  # the dataset has no queries
        return {}
    if dataset.form == "kilt":
        files = KiltFiles(dataset.path, predictions)
        scores = evaluate(KiltMetrics(files, KiltEvaluation(), None, predictions), reject=reject)
        return {
            name: [*compress(column.values, scores.has_pages)] if name in _PLACES else column.values
            for name, column in scores.columns.items()
            if name in (*DOWNSTREAM, *KILT) or (name in _PLACES and int(name.partition("@")[2] or 0) <= most)
        }
    if dataset.form == "amber":
        ks = tuple(k for k in AMBER_KS if k <= most) or (1,)
        columns = evaluate(AmberMetrics(dataset.path, AmberEvaluation(ks), predictions), reject=reject).columns
        return {name: column.values for name, column in columns.items() if column.n}
    record = next(iter_lines(predictions)).parse()
    given = {role: predictions for role in ("predictions", "retrieved") if record.keys() & {*KEYS[role]}}
    ks = tuple(k for k in QAMPARI_KS if k <= most) or (most,)
    metrics = QampariMetrics(QampariFiles(dataset.path), QampariEvaluation(ks=ks), given, predictions)
    found = evaluate(metrics, reject=reject)
    by_kind = (f"{label} {kind}" for kind in found.parts() for label in _BY_KIND)
    names = (name for name in (*found.labels(), EXACT, *by_kind) if name in found.columns)
    return {name: found.columns[name].values for name in names}


_COLUMNS = f"""
select dataset, system, list(metric order by place), list(own order by place) from (
    select dataset, system, metric, min(_row) as place, list(value order by _row) as own, min(is_pool) as is_pool
    from {EVERY_VALUE} group by dataset, system, metric
) group by dataset, system, len(own) order by min(is_pool), min(place)"""


def scores_of(folder: str, values: FileEntry, *, resamples: int) -> Iterator[Score]:
    """Computes the scores from the table ``values`` in a folder. Scores over several datasets come last.

    Args:
        resamples: number of bootstrap resamples; 0 for no intervals.
    """
    with connected(reads=[folder]) as db:
        add_tables(db, BENCHMARK.declared, {"values": [values.file]}, folder, places=True)
        for dataset, system, metrics, columns in iter(db.execute(_COLUMNS).fetchone, None):
            ends = intervals(np.array(columns).T, resamples) if resamples else repeat((None, None), len(metrics))
            for metric, own, (low, high) in zip(metrics, columns, ends, strict=True):
                yield Score(dataset, system, metric, fsum(own) / len(own), low, high, len(own))


class PublishedScore(NamedTuple):
    """A figure reported in a paper: the system, the value as a percentage, and the table."""

    system: str
    value: float
    source: str
    is_further: bool = False  # true if it is shown only when there is no other figure
    row: int = 0  # number of the system in the table, from 0


@cache
def published_scores() -> Mapping[tuple[str, str], Sequence[PublishedScore]]:
    """Returns the figures of ``published.toml`` by dataset and metric."""
    text = (resources.files("mapping.retrieval") / "published.toml").read_text("utf-8")
    found: defaultdict[tuple[str, str], list[PublishedScore]] = defaultdict(list)
    for table in tomllib.loads(text)["table"]:
        for row, (system, figures) in enumerate(table["systems"].items()):
            places = product(table["metrics"], table["datasets"])
            for (metric, dataset), figure in zip(places, figures, strict=True):
                if not isnan(figure):
                    score = PublishedScore(system, figure, table["source"], table.get("further", False), row)
                    found[dataset, metric].append(score)
    return dict(found)


_BY_KIND = ("recall", "precision", "F1")
_PARTS = ("", " head", " tail")
_SHOWN = {
    "kilt": ("Rprec", "recall@5", _DOWNSTREAM, _KILT_DOWNSTREAM),
    "qampari": (
        *(f"{name}@{k}" for name in ("ARECALL", "ERECALL") for k in QAMPARI_KS),
        *(*(name for name, _ in READER_METRICS.values()), "exact match"),
        *(f"{name} {kind}" for kind in SUBSETS for name in _BY_KIND),
    ),
    "amber": (
        *(f"accuracy@{k}{part}" for k in AMBER_KS for part in _PARTS),
        *(f"consistency@{k}" for k in AMBER_KS),
        *(f"{name}{part}" for name in ("entity_confusion", "entity_confusion_of_retrieved") for part in _PARTS),
        *(f"{name}{part}" for name in ("answer_f1", "answer_accuracy") for part in _PARTS),
    ),
}
"""Metrics of the table by format, in order."""


class ScoreRow(NamedTuple):
    """A row of the table."""

    dataset: str
    metric: str
    n: str  # number of values in each mean
    scores: tuple[Score | None, ...]  # scores of the systems, in order
    published: Sequence[PublishedScore]

    def texts(self) -> tuple[str, ...]:
        """Returns the row as text, with percentages."""
        return (self.dataset, self.metric, self.n, *map(score_text, self.scores), self.figures)

    @property
    def figures(self) -> str:
        """The figures of papers as text; empty if there are none."""
        return published_text([figure for figure in self.published if not figure.is_further] or self.published)


def score_rows(datasets: Sequence[Dataset], systems: Sequence[str], scores: Iterable[Score]) -> Iterator[ScoreRow]:
    """Returns a row for each dataset and metric that papers report, with the scores of all systems. Rows for several
    datasets together come last.
    """
    by_place = {(score.dataset, score.metric, score.system): score for score in scores}
    pools = (Dataset(QUESTIONS, "", "kilt", "", ""), Dataset(MENTIONS, "", "kilt", "", "", "accuracy"))
    for dataset in (*datasets, *pools):
        tasks = (dataset.task,) if dataset.task else DOWNSTREAM
        beside = (name for name in (*DOWNSTREAM, *KILT) if (dataset.key, name) in published_scores())
        for shown in (*_SHOWN[dataset.form], *(beside if dataset.form == "kilt" else ())):
            for metric in dict.fromkeys(shown.replace(_DOWNSTREAM, task) for task in tasks):
                found = tuple(by_place.get((dataset.name, metric, system)) for system in systems)
                sizes = sorted({score.n for score in found if score is not None})
                if sizes:
                    n = ", ".join(f"{size:,}" for size in sizes)
                    yield ScoreRow(dataset.name, metric, n, found, published_scores().get((dataset.key, shown), ()))


def score_text(score: Score | None) -> str:
    """Returns a score as a percentage, with its interval."""
    if score is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
    return f"{100 * score.value:.1f}{ends}"


def published_text(figures: Sequence[PublishedScore]) -> str:
    """Returns figures of papers as percentages, with their tables."""
    return "; ".join(
        f"{', '.join(f'{figure.system} {figure.value:g}' for figure in own)} ({source})"
        for source, own in groupby(figures, key=lambda figure: figure.source)
    )
