"""Datasets and what systems predict for them: every value that counts, means with intervals, and a table beside the
figures of the papers.
"""

from __future__ import annotations

import tomllib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from math import fsum, isnan
from typing import Any, NamedTuple

import numpy as np

from kbsource.errors import SetupError
from kbsource.files import Folder, base_name, join
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.layout import MANIFEST
from mapping.amber.kind import AMBER_SETS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.metrics.amber import evaluate_amber
from mapping.metrics.evaluation import (
    AmberFiles,
    AmberOptions,
    KiltEvaluation,
    KiltFiles,
    QampariEvaluation,
    QampariFiles,
    Reject,
)
from mapping.metrics.kilt import DOWNSTREAM, KILT, evaluate_kilt, intervals, metric_of
from mapping.metrics.qampari import evaluate_qampari
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.benchmark_kind import MENTIONS, QUESTIONS, Score, Value
from mapping.retrieval.queries import Benchmark, benchmark_of_file, read_queries
from mapping.sources import all_sources
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

AMBER_KS = (1, 20)
QAMPARI_KS = (10, 25, 50, 100)
_PLACES = ("Rprec", "recall@1", "recall@5", "recall@20", "answer_in_context@5", "answer_in_context@20")
_DOWNSTREAM, _KILT_DOWNSTREAM = "downstream", "KILT-downstream"
_KINDS: tuple[Kind[Any], ...] = (ALIGNMENT, ALIGNMENTS, QAMPARI_RELEASE, AMBER_SETS, ENTITY_LINKING)


class Dataset(NamedTuple):
    """A file of gold records."""

    name: str  # its folder among the predictions, so a path without dots
    path: str
    form: Benchmark
    key: str  # what the published figures call it; empty where they have none
    pool: str  # all questions, or all mentions; empty for other forms than KILT's
    task: str = ""  # the metric that KILT reports for it; empty where that is not known


def datasets_of(path: str, name: str = "") -> Iterator[Dataset]:
    """The gold files with answers or evidence of a release, or a file; by name where one is given.

    Raises:
        SetupError: it is no release that has any, or no file of queries.
    """
    if not Folder.of(join(path, MANIFEST)).exists():
        yield _dataset(path, name or _stem(path))
        return
    kind = kind_of(read_content(path), path, _KINDS)
    for file in _gold_files(kind, kind.read(path), path):
        stem = file.rpartition("/")[0] if kind in (ALIGNMENTS, AMBER_SETS) else _stem(file)
        if kind in (AMBER_SETS, QAMPARI_RELEASE):
            stem = f"{'amber' if kind is AMBER_SETS else 'qampari'}/{stem}"
        own = _dataset(join(path, file), "/".join((name, stem) if name else (stem,)))
        # Its links are those that the alias table counts.
        yield own._replace(pool="") if kind is ENTITY_LINKING else own


def _stem(path: str) -> str:
    """
    >>> _stem("aligned/nq-dev-kilt.jsonl.gz"), _stem("qampari_data/dev_data.jsonl")
    ('nq-dev', 'dev')
    """
    return base_name(path).partition(".")[0].removesuffix("-kilt").removesuffix("_data")


def _gold_files(kind: Kind[Any], manifest: Any, path: str) -> Iterator[str]:
    if kind is ALIGNMENTS:
        for part in manifest.parts:
            inner = ALIGNMENT.read(join(path, part.folder))
            yield from (join(part.folder, file) for file in _gold_files(ALIGNMENT, inner, ""))
        return
    files = [entry.file for entry in manifest.files if entry.rows and entry.file.endswith(".jsonl")]
    if kind is ALIGNMENT:
        files = [file for file in files if "_" not in file.rpartition("-kilt")[0].rpartition("-")[2]]
    elif kind is QAMPARI_RELEASE:
        files = [file for file in files if base_name(file) in ("dev_data.jsonl", "test_data.jsonl")]
    elif kind is AMBER_SETS:
        files = [file for file in files if base_name(file) == "amber_sets.jsonl"]
    else:
        files = [file for file in files if base_name(file).startswith("blink-dev")]
    yield from files


def _dataset(path: str, name: str) -> Dataset:
    form = benchmark_of_file(path)
    if form == "qampari":
        return Dataset(name, path, form, "qampari", "")
    if form == "amber":
        return Dataset(name, path, form, "/".join(name.split("/")[-2:]), "")
    key = next((part for part in name.replace("-", "/").split("/") if part in all_sources()), "")
    is_linking = next(read_queries(path)).is_mention
    task = "accuracy" if is_linking else metric_of(f"{key}-") or ""
    return Dataset(name, path, form, key, MENTIONS if is_linking else QUESTIONS, task)


def measured(dataset: Dataset, predictions: str, *, most: int, reject: Reject) -> dict[str, Sequence[float]]:
    """Every value that the metrics of a dataset are means of, by metric.

    Args:
        most: places that a system gives, above which no rank is asked about.
    """
    if dataset.form == "kilt":
        scores = evaluate_kilt(KiltFiles(dataset.path, predictions), KiltEvaluation(), reject=reject).first
        with_page = np.array(scores.has_pages, bool)
        return {
            name: scores.values[with_page if name in _PLACES else slice(None), place].tolist()
            for place, name in enumerate(scores.names)
            if name in (*DOWNSTREAM, *KILT) or (name in _PLACES and int(name.partition("@")[2] or 0) <= most)
        }
    if dataset.form == "amber":
        ks = tuple(k for k in AMBER_KS if k <= most) or (1,)
        files = AmberFiles(dataset.path, predictions)
        means = evaluate_amber(files, AmberOptions(ks), reject=reject).means
        return {
            metric if part == "all" else f"{metric} {part}": mean.values
            for metric, parts in means.items()
            for part, mean in parts.items()
        }
    record = next(iter(_first(predictions)), {})
    given = [key for key in ("predictions", "ctxs") if key in record]
    qampari = QampariFiles(
        dataset.path,
        predictions=predictions if "predictions" in given else None,
        retrieved=predictions if "ctxs" in given or not given else None,
    )
    ks = tuple(k for k in QAMPARI_KS if k <= most) or (most,)
    found = evaluate_qampari(qampari, QampariEvaluation(ks=ks), reject=reject)
    single = {} if found.em is None else {"exact match": found.em}
    return {name: mean.values for name, mean in (*found.every.columns(), *single.items()) if mean.n}


def _first(path: str) -> Iterator[Mapping[str, Any]]:
    from mapping.sources.raw_records import iter_lines

    for raw in iter_lines(path):
        yield raw.parse()
        return


class Tally:
    """Values of runs on their way to scores.

    Args:
        resamples: of the bootstrap; 0 for no intervals.
    """

    def __init__(self, resamples: int) -> None:
        self._resamples = resamples
        self._scores: list[Score] = []
        self._pooled: defaultdict[tuple[str, str], defaultdict[str, array[float]]] = defaultdict(
            lambda: defaultdict(lambda: array("d"))
        )

    def add(self, dataset: Dataset, system: str, values: Mapping[str, Sequence[float]]) -> Iterator[Value]:
        """Takes what a system's predictions for a dataset are worth, and gives its rows."""
        self._score(dataset.name, system, values)
        for metric, own in values.items():
            if dataset.pool:
                self._pooled[dataset.pool, system][metric].extend(own)
            for number, value in enumerate(own):
                yield Value(dataset.pool, dataset.name, system, metric, number, value)

    def scores(self) -> list[Score]:
        """The scores, those of several datasets together last."""
        for (pool, system), values in self._pooled.items():
            self._score(pool, system, values)
        self._pooled.clear()
        return self._scores

    def _score(self, dataset: str, system: str, values: Mapping[str, Sequence[float]]) -> None:
        by_length: defaultdict[int, list[str]] = defaultdict(list)
        for metric, own in values.items():
            by_length[len(own)].append(metric)
        for n, metrics in by_length.items():
            if not n:
                continue
            columns = np.column_stack([np.asarray(values[metric], float) for metric in metrics])
            ends: Sequence[Any] = (
                intervals(columns, self._resamples) if self._resamples else [(None, None)] * len(metrics)
            )
            for metric, (low, high) in zip(metrics, ends, strict=True):
                self._scores.append(Score(dataset, system, metric, fsum(values[metric]) / n, low, high, n))


class Published(NamedTuple):
    """What a paper reports of a system: per cent, and where it stands."""

    system: str
    value: float
    source: str


@cache
def published() -> Mapping[tuple[str, str], tuple[Published, ...]]:
    """The figures of ``published.toml`` by dataset and metric.

    Raises:
        SetupError: a system has another number of figures than there are datasets.
    """
    text = (resources.files("mapping.retrieval") / "published.toml").read_text("utf-8")
    found: defaultdict[tuple[str, str], list[Published]] = defaultdict(list)
    for table in tomllib.loads(text)["table"]:
        for system, figures in table["systems"].items():
            if len(figures) != len(table["datasets"]):
                raise SetupError(f"published.toml: {system} of {table['source']} has {len(figures)} figures.")
            for dataset, figure in zip(table["datasets"], figures, strict=True):
                if not isnan(figure):
                    found[dataset, table["metric"]].append(Published(system, figure, table["source"]))
    return {key: tuple(own) for key, own in found.items()}


_SHOWN = {
    "kilt": ("Rprec", "recall@5", _DOWNSTREAM, _KILT_DOWNSTREAM),
    "qampari": ("ARECALL@10", "ARECALL@100", "ERECALL@10", "ERECALL@100", "recall", "precision", "F1", "exact match"),
    "amber": (
        "accuracy@1",
        "accuracy@1 head",
        "accuracy@1 tail",
        "accuracy@20",
        "consistency@1",
        "entity_confusion",
        "answer_f1",
        "answer_accuracy",
    ),
}
"""Metrics of the table by form, in its order."""


class ScoreRow(NamedTuple):
    """A row of the table."""

    dataset: str
    metric: str
    n: str  # what they are means of
    scores: tuple[Score | None, ...]  # of the systems, in their order
    published: tuple[Published, ...]


def score_rows(datasets: Sequence[Dataset], systems: Sequence[str], scores: Iterable[Score]) -> Iterator[ScoreRow]:
    """The metrics that papers report, each with the scores of all systems; datasets together come last."""
    by_place = {(one.dataset, one.metric, one.system): one for one in scores}
    pools = (Dataset(QUESTIONS, "", "kilt", "", ""), Dataset(MENTIONS, "", "kilt", "", "", "accuracy"))
    for dataset in (*datasets, *pools):
        tasks = (dataset.task,) if dataset.task else DOWNSTREAM
        for shown in _SHOWN[dataset.form]:
            for metric in dict.fromkeys(shown.replace(_DOWNSTREAM, task) for task in tasks):
                found = tuple(by_place.get((dataset.name, metric, system)) for system in systems)
                sizes = sorted({one.n for one in found if one is not None})
                if sizes:
                    n = ", ".join(f"{size:,}" for size in sizes)
                    yield ScoreRow(dataset.name, metric, n, found, published().get((dataset.key, shown), ()))


def score_text(score: Score | None) -> str:
    """A score in per cent, with its interval."""
    if score is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
    return f"{100 * score.value:.1f}{ends}"


def published_text(figures: Sequence[Published]) -> str:
    """What papers report, in per cent, with their tables."""
    return "; ".join(
        f"{', '.join(f'{one.system} {one.value:g}' for one in own)} ({source})"
        for source, own in groupby(figures, key=lambda one: one.source)
    )
