"""Values of runs as scores, and the figures of the papers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kbsource.columns import schema_of
from kbsource.release.writer import write_rows
from mapping.metrics.kilt import metric_of
from mapping.metrics.significance import intervals
from mapping.qampari.questions import SUBSETS
from mapping.retrieval.benchmark import (
    QAMPARI_KS,
    Dataset,
    datasets_of,
    published_scores,
    published_text,
    score_rows,
    score_text,
    scores_of,
)
from mapping.retrieval.benchmark_kind import MENTIONS, QUESTIONS, Score, ScoreValue
from mapping.retrieval.layouts import layouts, paper_tables, tables_markdown
from mapping.retrieval.queries import Benchmark, read_queries
from mapping.sources import all_sources


def _dataset(name: str, key: str = "", pool: str = QUESTIONS, task: str = "") -> Dataset:
    return Dataset(name, f"{name}.jsonl", "kilt", key, pool, task)


def _scores(folder: Path, resamples: int, *runs: tuple[str, str, dict[str, list[float]]]) -> list[Score]:
    rows = (
        ScoreValue(pool, dataset, "s", metric, number, value)
        for pool, dataset, metrics in runs
        for metric, own in metrics.items()
        for number, value in enumerate(own)
    )
    return list(
        scores_of(
            str(folder), write_rows(rows, "values", schema_of(ScoreValue), output=str(folder)), resamples=resamples
        )
    )


def test_scores_are_means_and_datasets_of_a_pool_count_together_by_their_records(tmp_path: Path) -> None:
    runs: list[tuple[str, str, dict[str, list[float]]]] = [
        (QUESTIONS, "a", {"Rprec": [1.0, 0.0, 0.5], "em": [1.0]}),
        (QUESTIONS, "b", {"Rprec": [1.0]}),
        ("", "c", {"Rprec": [0.0], "nothing": []}),
    ]
    found = _scores(tmp_path, 200, *runs)
    assert [(score.dataset, score.metric, score.value, score.n) for score in found] == [
        ("a", "Rprec", 0.5, 3),
        ("a", "em", 1.0, 1),
        ("b", "Rprec", 1.0, 1),
        ("c", "Rprec", 0.0, 1),
        (QUESTIONS, "Rprec", 0.625, 4),
        (QUESTIONS, "em", 1.0, 1),
    ]
    scores = {(score.dataset, score.metric): score for score in found}
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
    assert [(row.dataset, row.metric, row.n) for row in rows] == [
        ("nq/dev", "Rprec", "8"),
        ("nq/dev", "KILT-em", "9"),
        (MENTIONS, "accuracy", "2"),
    ]
    assert [score_text(score) for score in rows[0].scores] == ["50.0 [25.0, 75.0]", "–"]
    assert published_text(rows[0].published).startswith("DPR + BERT 60.66, DPR 54.29")
    assert rows[1].texts()[-1].endswith("RAG 32.69 (KILT (2021), table 5)")
    assert published_text(rows[1].published).endswith("RAG 36.31 (KILT (2021), table 13, dev)")
    assert rows[2].published == ()


def test_published_figures_are_of_datasets_and_metrics_that_there_are() -> None:
    datasets, metrics = ({key[place] for key in published_scores()} for place in (0, 1))
    of_kilt = {name for name, source in all_sources().items() if source.metric is not None}
    assert datasets - of_kilt == {"qampari", "human/qa", "nonhuman/qa"}
    assert of_kilt - datasets == set()
    assert metrics == {
        *("Rprec", "recall@5", "downstream", "KILT-downstream", "f1", "KILT-f1", "rougel", "KILT-rougel"),
        *(f"{name}@{k}" for name in ("ARECALL", "ERECALL") for k in (10, 25, 50, 100, 200)),
        *("F1", "recall", "precision", "recall >= 0.8", "F1 >= 0.5", "exact match"),
        *(f"{name} {kind}" for name in ("recall", "precision", "F1") for kind in SUBSETS),
        *("accuracy@1", "accuracy@1 head", "accuracy@1 tail", "consistency@1"),
    }
    assert all(0 <= figure.value <= 100 and figure.source for own in published_scores().values() for figure in own)
    linked = [figure[:2] for figure in published_scores()["aidayago2", "Rprec"] if not figure.is_further]
    assert linked[-1] == ("BLINK + flair", pytest.approx(81.54))


def test_every_figure_stands_in_a_row() -> None:
    """A table has every metric that a paper reports figures of for a dataset."""
    forms: dict[str, Benchmark] = {"qampari": "qampari", "human/qa": "amber", "nonhuman/qa": "amber"}
    for key, metric in published_scores():
        task = "" if key in forms else metric_of(f"{key}-") or ""
        dataset = Dataset(key, "", forms.get(key, "kilt"), key, "", task)
        measured = metric.replace("downstream", task)
        (row,) = score_rows([dataset], ["s"], [Score(key, "s", measured, 0.5, None, None, 1)])
        assert (row.metric, row.published) == (measured, published_scores()[key, metric])


def test_tables_that_repeat_a_figure_agree() -> None:
    """Tables 7 to 17 of KILT have those of tables 3 and 5 again, but for what the paper itself rounds otherwise."""
    figures = {
        (dataset, metric, figure.system): figure.value
        for (dataset, metric), own in published_scores().items()
        for figure in own
        if figure.source in ("KILT (2021), table 3", "KILT (2021), table 5")
    }
    again = {
        (dataset, metric, figure.system): figure.value
        for (dataset, metric), own in published_scores().items()
        for figure in own
        if figure.source.startswith("KILT (2021), table") and figure.is_further and not figure.source.endswith("dev")
    }
    assert {key: again[key] for key in figures} == figures


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        *((f"KILT-{name}", name) for name in ("downstream", "f1", "rougel")),
        *((f"KILT-{name}", "Rprec") for name in ("downstream", "f1", "rougel")),
        *((f"{name}@{k}", f"{name}@{above}") for name in ("ARECALL", "ERECALL") for k, above in pairwise(QAMPARI_KS)),
        *((f"ERECALL@{k}", f"ARECALL@{k}") for k in QAMPARI_KS),
        *pairwise(("consistency@1", "accuracy@1 tail", "accuracy@1", "accuracy@1 head")),
    ],
)
def test_figures_have_the_order_of_their_metrics(lower: str, higher: str) -> None:
    """One metric is at most another in every row that has both, by definition or in all rows of the papers."""

    def rows(metric: str) -> dict[tuple[str, str, str], float]:
        own = (
            (dataset, figure)
            for (dataset, name), found in published_scores().items()
            if name == metric
            for figure in found
        )
        return {(figure.source, dataset, figure.system): figure.value for dataset, figure in own}

    below, above = rows(lower), rows(higher)
    both = below.keys() & above.keys()
    assert both
    assert [row for row in both if below[row] > above[row]] == []


def test_the_same_questions_in_two_editions() -> None:
    by_source = {
        source: {
            figure.system: figure.value for figure in published_scores()["qampari", "F1"] if figure.source == source
        }
        for source in ("QAMPARI (2022), table 3", "QAMPARI (2023), table 4")
    }
    assert by_source["QAMPARI (2022), table 3"]["FiD-DPR, QO"] == pytest.approx(5.7)
    assert by_source["QAMPARI (2023), table 4"]["FiD-DPR, QO"] == pytest.approx(12.5)
    assert by_source["QAMPARI (2022), table 3"]["PIG-DPR, QO"] == pytest.approx(3.0)


def test_lists_of_questions_are_datasets_whatever_their_form(tmp_path: Path) -> None:
    record = {
        "id": 7.5,
        "input": "x",
        "output": [{"answer": 4, "provenance": [{"wikipedia_id": None}, {"title": "T"}]}],
    }
    (tmp_path / "one (old).jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "all.jsonl").write_text(f"[{json.dumps(record)}, {json.dumps(record)}]")
    (tmp_path / "two-test_without_answers-kilt.jsonl").write_text(json.dumps({"id": "a", "input": "x"}) + "\n")
    assert [dataset.name for dataset in datasets_of(str(tmp_path))] == ["all", "one _old_"]
    assert [dataset.name for dataset in datasets_of(str(tmp_path), "mine")] == ["mine/all", "mine/one _old_"]
    assert [query.answers for query in read_queries(str(tmp_path / "all.jsonl"))] == [("4",), ("4",)]
    assert [query.query_id for query in read_queries(str(tmp_path / "one (old).jsonl"))] == ["7.5"]


def test_scores_have_the_layout_of_the_papers() -> None:
    datasets = [
        _dataset("nq/nq-dev", "nq", task="em"),
        _dataset("nq/nq-train", "nq", task="em"),
        Dataset("qampari/dev", "", "qampari", "qampari", ""),
        Dataset("amber/human/qa", "", "amber", "human/qa", ""),
    ]
    scores = [
        Score("nq/nq-dev", "bm25", "Rprec", 0.5, None, None, 8),
        Score("nq/nq-train", "bm25", "Rprec", 0.25, None, None, 8),
        Score("nq/nq-dev", "t5", "em", 0.125, None, None, 8),
        Score("qampari/dev", "bm25", "ARECALL@25", 0.4, None, None, 3),
        Score("qampari/dev", "t5", "recall", 0.3, None, None, 3),
        Score("nq/nq-train", "t5", "em", 0.75, None, None, 8),
        Score("amber/human/qa", "bm25", "entity_confusion tail", 0.1, None, None, 3),
        Score("amber/human/qa", "bm25", "accuracy@1 head", 0.2, None, None, 3),
    ]
    tables = {paper_table.title: paper_table for paper_table in paper_tables(datasets, ["bm25", "t5"], scores)}

    assert list(tables) == [
        *("KILT, table 3: answers", "KILT, table 4: pages", "KILT, table 5: both"),
        "QAMPARI, table 3: answers",
        "QAMPARI, table 4: retrieval",
        "QAMPARI, table 5: answers by kind of question",
        *("AmbER-H: retrieval at 1", "AmbER-H: entity confusion"),
        *("AmbER-H: answers, end to end", "AmbER-H: retrieval at 20"),
    ]
    assert [row[0] for row in tables["QAMPARI, table 5: answers by kind of question"].rows] == ["FiD-BM25, MT (paper)"]
    assert tables["AmbER-H: retrieval at 20"].rows == (("bm25", *[None] * 12), ("t5", *[None] * 12))
    answers, pages = tables["KILT, table 3: answers"], tables["KILT, table 4: pages"]
    assert pages.columns == (
        *("system", "FEV", "AY2", "WnWi", "WnCw", "T-REx", "zsRE", "NQ", "HoPo", "TQA", "ELI5", "WoW"),
    )
    assert pages.rows[:2] == (
        ("bm25, dev", *[None] * 6, 50.0, *[None] * 4),
        ("bm25, train", *[None] * 6, 25.0, *[None] * 4),
    )
    assert [row[0] for row in pages.rows[2:]] == [
        f"{name} (paper)" for name in ("DPR + BERT", "DPR", "Multi-task DPR", "Tf-idf", "RAG", "BLINK + flair")
    ]
    assert pages.rows[-1][7] == 24.52
    assert [row[0] for row in answers.rows if "(paper)" in str(row[0])] == [
        f"{name} (paper)"
        for name in ("NSMN", "BERT + DPR", "BLINK", "Trans MemNet", "BART (large)", "T5 (base)", "BART + DPR", "RAG")
    ]
    assert answers.rows[0][:8] == ("t5, dev", *[None] * 6, 12.5)
    lists = tables["QAMPARI, table 3: answers"]
    assert lists.columns == ("system", "recall", "precision", "F1", "recall >= 0.8", "F1 >= 0.5", "NQ EM")
    assert lists.rows[:2] == (
        ("t5, dev", 30.0, *[None] * 4, 12.5),  # train has answers to Natural Questions only
        ("FiD-BM25, QO (paper)", 25.1, 36.8, 28.3, 6.8, 24.2, 30.4),
    )
    assert tables["QAMPARI, table 4: retrieval"].rows[1][:3] == ("BM25 (paper)", 24.6, 37.4)
    assert tables["AmbER-H: retrieval at 1"].columns[9:] == ("QA all", "QA head", "QA tail", "QA ∀")
    assert tables["AmbER-H: retrieval at 1"].rows[0][9:] == (None, 20.0, None, None)
    assert tables["AmbER-H: entity confusion"].rows == (("bm25", *[None] * 8, 10.0),)


def test_tables_of_papers_have_every_figure_of_theirs() -> None:
    """What stands in a paper's table is in the table of its layout."""
    for layout in layouts():
        own = {
            (dataset, metric)
            for (dataset, metric), figures in published_scores().items()
            for figure in figures
            if figure.source == layout.source and dataset in {column.dataset for column in layout.columns}
        }
        assert own <= {(column.dataset, column.metric) for column in layout.columns}
        assert bool(own) == bool(layout.source)


def test_without_a_dataset_of_a_paper_there_is_no_table() -> None:
    assert paper_tables([_dataset("own", "")], ["s"], [Score("own", "s", "Rprec", 0.5, None, None, 1)]) == []
    assert "No paper has a table" in tables_markdown([])
