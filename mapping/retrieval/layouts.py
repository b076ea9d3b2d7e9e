"""Scores in the layout of the papers: one row per system, one column per dataset or metric, followed by the papers'
rows.

These are KILT's tables 3 to 5, QAMPARI's tables 3 to 5, and AmbER's tables of retrieval at 1 and 20, of entity
confusion and of answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mapping.document import Block, Document, Paragraph, Section, TableSection, to_markdown
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.retrieval.benchmark import Dataset, PublishedScore, published_scores
from mapping.retrieval.benchmark_kind import Score

_SPLIT = re.compile(r"(?:^|[/_-])(train|dev|test)(?:[/_-]|$)")
_KILT = {
    "fever": "FEV",
    "aidayago2": "AY2",
    "wned": "WnWi",
    "cweb": "WnCw",
    "trex": "T-REx",
    "structured_zeroshot": "zsRE",
    "nq": "NQ",
    "hotpotqa": "HoPo",
    "triviaqa": "TQA",
    "eli5": "ELI5",
    "wow": "WoW",
}
"""The names of KILT's columns in the paper, by our names of the datasets, in the order of the paper."""
_KINDS = {
    SIMPLE: "WD simple",
    INTERSECTION: "WD intersection",
    COMPOSITION: "WD composition",
    TABLE_SIMPLE: "table simple",
    TABLE_COMPOSITION: "table composition",
}
_READER = {"recall": "R", "precision": "P", "F1": "F1"}
_TASKS = ("fc", "sf", "qa")


class MetricColumn(NamedTuple):
    """A column: a metric of a dataset."""

    label: str
    dataset: str  # key of the dataset
    metric: str  # named as in the figures of the papers
    figures: tuple[str, str, str] | None = None  # dataset, metric and source of the papers' figures, if they differ


class Layout(NamedTuple):
    """The layout of a table in a paper."""

    title: str
    source: str  # source of the paper's figures that are shown below; empty without such figures
    columns: tuple[MetricColumn, ...]


class PaperTable(NamedTuple):
    """A layout with rows: the name of a system, then a percentage, or None, for each column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Returns title, columns and rows."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def layouts() -> Iterator[Layout]:
    """Iterates over the layouts, paper by paper."""
    for number, metric, what in ((3, "downstream", "answers"), (4, "Rprec", "pages"), (5, "KILT-downstream", "both")):
        columns = tuple(MetricColumn(label, key, metric) for key, label in _KILT.items())
        yield Layout(f"KILT, table {number}: {what}", f"KILT (2021), table {number}", columns)
    names = ("recall", "precision", "F1", "recall >= 0.8", "F1 >= 0.5")
    columns = tuple(MetricColumn(name, "qampari", name) for name in names)
    source = "QAMPARI (2022), table 3"
    beside = MetricColumn("NQ EM", "nq", "downstream", ("qampari", "exact match", f"{source}, Natural Questions"))
    yield Layout("QAMPARI, table 3: answers", source, (*columns, beside))
    columns = tuple(
        MetricColumn(f"{name}@{k}", "qampari", f"{name}@{k}")
        for name in ("ARECALL", "ERECALL")
        for k in (10, 25, 50, 100, 200)
    )
    yield Layout("QAMPARI, table 4: retrieval", "QAMPARI (2022), table 4", columns)
    columns = tuple(
        MetricColumn(f"{label} {short}", "qampari", f"{name} {kind}")
        for kind, label in _KINDS.items()
        for name, short in _READER.items()
    )
    yield Layout("QAMPARI, table 5: answers by kind of question", "QAMPARI (2022), table 5, dev", columns)
    for what, source, parts in _AMBER:
        for collection, name in (("human", "AmbER-H"), ("nonhuman", "AmbER-N")):
            columns = tuple(
                MetricColumn(
                    f"{task.upper()} {label}", f"{collection}/{task}", metric.replace("ANSWER", _answer_metric(task))
                )
                for task in _TASKS
                for label, metric in parts.items()
            )
            yield Layout(f"{name}: {what}", source, columns)


def _retrieval(k: int) -> dict[str, str]:
    parts = {"all": "", "head": " head", "tail": " tail"}
    return {**{name: f"accuracy@{k}{part}" for name, part in parts.items()}, "∀": f"consistency@{k}"}


def _answer_metric(task: str) -> str:
    return "answer_accuracy" if task == "fc" else "answer_f1"


_AMBER = (
    ("retrieval at 1", "AmbER sets (2021), top-1 retrieval", _retrieval(1)),
    (
        "entity confusion",
        "",
        {"all": "entity_confusion", "head": "entity_confusion head", "tail": "entity_confusion tail"},
    ),
    ("answers, end to end", "", {"all": "ANSWER", "head": "ANSWER head", "tail": "ANSWER tail"}),
    ("retrieval at 20", "", _retrieval(20)),
)


def paper_tables(datasets: Sequence[Dataset], systems: Sequence[str], scores: Iterable[Score]) -> list[PaperTable]:
    """Returns the papers' tables that include one of the datasets.

    A system has a row for each split in which it has a value. QAMPARI's table has a further column for Natural
    Questions; values in this column alone produce neither a row nor a table. If several datasets have the same key and
    split, the first one is used. A table in which no system has a value, such as a table of answers without a reader,
    contains only the paper's rows; if there are none, it contains an empty row for each system.
    """
    values = {(score.dataset, score.metric, score.system): score.value for score in scores}
    by_key: dict[tuple[str, str], Dataset] = {}
    for dataset in datasets:
        if dataset.key:
            by_key.setdefault((dataset.key, _split(dataset.name)), dataset)
    splits = list(dict.fromkeys(split for _, split in by_key))
    made = []
    for layout in layouts():
        rows: list[tuple[str | float | None, ...]] = []
        main = [column for column in layout.columns if column.figures is None]
        for system in systems:
            for split in splits:
                cells = [
                    _own_value(column, by_key.get((column.dataset, split)), system, values) for column in layout.columns
                ]
                if any(cell is not None for cell, column in zip(cells, layout.columns, strict=True) if column in main):
                    rows.append((f"{system}, {split}" if split else system, *cells))
        if not any((column.dataset, split) in by_key for column in main for split in splits):
            continue
        rows += _published_rows(layout)
        rows = rows or [(system, *(None for _ in layout.columns)) for system in systems]
        made.append(PaperTable(layout.title, ("system", *(column.label for column in layout.columns)), tuple(rows)))
    return made


def _split(name: str) -> str:
    found = _SPLIT.findall(name)
    return found[-1] if found else ""


def _own_value(
    column: MetricColumn, dataset: Dataset | None, system: str, values: Mapping[tuple[str, str, str], float]
) -> float | None:
    if dataset is None:
        return None
    metric = column.metric
    if "downstream" in metric:
        if not dataset.task:
            return None
        metric = metric.replace("downstream", dataset.task)
    value = values.get((dataset.name, metric, system))
    return None if value is None else round(100 * value, 1)


def _published_rows(layout: Layout) -> Iterator[tuple[str | float | None, ...]]:
    """Lists the rows of the paper's table, in its order."""
    figures: dict[tuple[int, str], dict[int, PublishedScore]] = {}
    for place, column in enumerate(layout.columns):
        dataset, metric, source = column.figures or (column.dataset, column.metric, layout.source)
        for figure in published_scores().get((dataset, metric), ()):
            if figure.source == source:
                figures.setdefault((figure.row, figure.system), {})[place] = figure
    for (_, system), own in sorted(figures.items()):
        cells = (own[place].value if place in own else None for place in range(len(layout.columns)))
        yield (f"{system} (paper)", *cells)


def tables_markdown(tables: Sequence[PaperTable]) -> str:
    """Returns the tables as a page of Markdown."""
    blocks: tuple[Block, ...] = tuple(TableSection(table.title, table.columns, table.rows) for table in tables)
    if not blocks:
        blocks = (Paragraph("No paper has a table for these datasets."),)
    about = Paragraph(
        "Per cent. A row is a system on a split of the datasets. The rows of a paper were measured on its own snapshot."
    )
    return to_markdown(Document("Scores in the layout of the papers", (Section("Tables", (about, *blocks)),)))
