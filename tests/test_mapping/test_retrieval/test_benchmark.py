"""Values of runs as scores, and the figures of the papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kbsource.columns import schema_of
from kbsource.release.writer import write_rows
from mapping.metrics.kilt import intervals
from mapping.retrieval.benchmark import Dataset, published, published_text, score_rows, score_text, scores_of
from mapping.retrieval.benchmark_kind import MENTIONS, QUESTIONS, Score, Value
from mapping.sources import all_sources


def _dataset(name: str, key: str = "", pool: str = QUESTIONS, task: str = "") -> Dataset:
    return Dataset(name, f"{name}.jsonl", "kilt", key, pool, task)


def _scores(folder: Path, resamples: int, *runs: tuple[str, str, dict[str, list[float]]]) -> list[Score]:
    rows = (
        Value(pool, dataset, "s", metric, number, value)
        for pool, dataset, metrics in runs
        for metric, own in metrics.items()
        for number, value in enumerate(own)
    )
    return list(
        scores_of(str(folder), write_rows(rows, "values", schema_of(Value), output=str(folder)), resamples=resamples)
    )


def test_scores_are_means_and_datasets_of_a_pool_count_together_by_their_records(tmp_path: Path) -> None:
    runs: list[tuple[str, str, dict[str, list[float]]]] = [
        (QUESTIONS, "a", {"Rprec": [1.0, 0.0, 0.5], "em": [1.0]}),
        (QUESTIONS, "b", {"Rprec": [1.0]}),
        ("", "c", {"Rprec": [0.0], "nothing": []}),
    ]
    found = _scores(tmp_path, 200, *runs)
    assert [(one.dataset, one.metric, one.value, one.n) for one in found] == [
        ("a", "Rprec", 0.5, 3),
        ("a", "em", 1.0, 1),
        ("b", "Rprec", 1.0, 1),
        ("c", "Rprec", 0.0, 1),
        (QUESTIONS, "Rprec", 0.625, 4),
        (QUESTIONS, "em", 1.0, 1),
    ]
    scores = {(one.dataset, one.metric): one for one in found}
    low, high = intervals(np.array([[1.0], [0.0], [0.5], [1.0]]), 200)[0]
    assert (scores[QUESTIONS, "Rprec"].low, scores[QUESTIONS, "Rprec"].high) == (low, high)
    assert low < 0.625 < high
    assert _scores(tmp_path / "without", 0, ("", "a", {"Rprec": [1.0], "em": [0.0]})) == [
        Score("a", "s", name, value, None, None, 1) for name, value in (("Rprec", 1.0), ("em", 0.0))
    ]


def test_a_row_has_every_system_and_the_papers_beside_them() -> None:
    scores = [
        Score("nq/dev", "bm25", "Rprec", 0.5, 0.25, 0.75, 8),
        Score("nq/dev", "bm25", "KILT-em", 0.1, None, None, 9),
        Score(MENTIONS, "linker", "accuracy", 1.0, 1.0, 1.0, 2),
    ]
    rows = list(score_rows([_dataset("nq/dev", "nq", task="em")], ["bm25", "linker"], scores))
    assert [(one.dataset, one.metric, one.n) for one in rows] == [
        ("nq/dev", "Rprec", "8"),
        ("nq/dev", "KILT-em", "9"),
        (MENTIONS, "accuracy", "2"),
    ]
    assert [score_text(one) for one in rows[0].scores] == ["50.0 [25.0, 75.0]", "–"]
    assert published_text(rows[0].published).startswith("DPR + BERT 60.66, DPR 54.29")
    assert published_text(rows[1].published).endswith("RAG 32.69 (KILT (2021), table 5)")
    assert rows[2].published == ()


def test_published_figures_are_of_datasets_and_metrics_that_there_are() -> None:
    datasets, metrics = ({key[place] for key in published()} for place in (0, 1))
    of_kilt = {name for name, source in all_sources().items() if source.metric is not None}
    assert datasets - of_kilt == {"qampari", "human/qa", "nonhuman/qa"}
    assert of_kilt - datasets == set()
    assert metrics == {
        *("Rprec", "downstream", "KILT-downstream", "F1", "recall", "precision"),
        *("ARECALL@10", "ARECALL@100", "ERECALL@10", "ERECALL@100"),
        *("accuracy@1", "accuracy@1 head", "accuracy@1 tail", "consistency@1"),
    }
    assert all(0 <= figure.value <= 100 and figure.source for own in published().values() for figure in own)
    assert published()["aidayago2", "Rprec"][-1][:2] == ("BLINK + flair", pytest.approx(81.54))
