"""The metrics of AmbER sets: queries with a name that several entities share.

Source: Chen et al., Evaluating Entity Disambiguation and the Role of Popularity in Retrieval-Based NLP (2021), section
4, and the released script. That script aborts if a prediction is missing; here such a query scores 0 and is counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from math import fsum
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

from kbsource.errors import RecordError
from mapping.document import Chart, TableSection
from mapping.metrics.answers import answer_form
from mapping.metrics.evaluation import AmberEvaluation, AmberFiles
from mapping.metrics.evaluator import GOLD, EvaluationResult, Metrics, Reject, Scores, SystemOutput, evaluated
from mapping.sources.raw_records import Json, digits_or_text, object_at, objects_at, text_at

PARTS = ("head", "tail")
_KEYS = {GOLD: ("name", "qids"), "predictions": ("id", "output")}
_RANK = re.compile(r"@(\d+)")
BIN_PERCENT, N_BINS = 20, 5
"""Width and number of the bins of gaps in popularity. The last bin includes every gap above 100 %."""
_NO_RANK = 1 << 62


class GoldQuery(NamedTuple):
    """A query: ids of its gold pages, ids of the other entities' pages (without gold pages), and its answers. If
    ``is_claim``, ``answers`` is a label."""

    query_id: str
    pages: frozenset[str]
    others: frozenset[str]
    answers: tuple[str, ...]
    is_claim: bool


class GoldEntity(NamedTuple):
    """An entity of a set with its queries; ``popularity`` is the decimal logarithm of its views."""

    is_head: bool
    popularity: float
    queries: tuple[GoldQuery, ...]


class AmberPrediction(NamedTuple):
    """The prediction for a query: distinct page ids, best first, and an answer."""

    pages: tuple[str, ...]
    answer: str | None


@dataclass(slots=True)
class AmberScores(Scores):
    """Scores of sets with queries; a query without a prediction scores 0.

    Items are queries, and sets by name. A metric over all queries has its own name; a metric over the queries about
    heads or tails has ``head`` or ``tail`` after its name: ``accuracy@1``, ``accuracy@1 head``, ``consistency@1``,
    ``entity_confusion``, ``answer_f1``.
    """

    ks: tuple[int, ...] = (1,)
    sets: int = 0
    without_predictions: int = 0
    #: By k and query: 1 if a gold page is among the first k, else 0.
    hits: defaultdict[int, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    #: By gap in popularity between a head and a tail: hits at 1 of the heads' queries, and of the tails' queries.
    bins: tuple[tuple[list[int], list[int]], ...] = field(
        default_factory=lambda: tuple(([], []) for _ in range(N_BINS))
    )

    scale: ClassVar[int] = 100

    def metrics(self, k: int) -> dict[str, Any]:
        """Returns accuracy and consistency as percentages, in the form of the released script's ``metrics@k.json``."""
        parts = self._percents(f"accuracy@{k}")
        accuracy = parts.pop("all", None)
        of_parts = {name: {"accuracy": value} for name, value in parts.items()}
        return {"accuracy": accuracy, **of_parts, "consistency": self._percents(f"consistency@{k}").get("all")}

    def to_json(self) -> dict[str, Any]:
        """Returns all scores as percentages, to four decimals."""
        accuracy = self._percents("accuracy@1")
        others = dict.fromkeys(name.partition(" ")[0] for name in self.columns if "@" not in name)
        scores = {
            "sets": self.sets,
            "queries": len(self.hits[1]),
            "without_predictions": self.without_predictions,
            **{f"metrics@{k}": self.metrics(k) for k in self.ks},
            **{name: self._percents(name) for name in others},
            "popularity_gap": {
                "bins": [
                    {
                        "from": number * BIN_PERCENT,
                        "head_queries": len(head),
                        "tail_queries": len(tail),
                        "difference": 100 * (fmean(head) - fmean(tail)) if head else None,
                    }
                    for number, (head, tail) in enumerate(self.bins)
                ],
                "all": accuracy["head"] - accuracy["tail"] if len(accuracy) == 3 else None,
            },
        }
        rounded: dict[str, Any] = _rounded(scores)
        return rounded

    def counts(self) -> Iterator[tuple[str, int]]:
        """Lists the numbers of sets, of queries, and of queries without a prediction."""
        yield "sets", self.sets
        yield "queries", len(self.hits[1])
        yield "without predictions", self.without_predictions

    def remarks(self) -> Iterator[str]:
        """Lists the differences between the scores of heads and of tails."""
        labels, rows = self.gap_chart().table.columns, self.gap_chart().table.rows
        shown = ((label, points) for label, points in rows if points is not None)
        yield from (f"{f'{labels[0]} {label}':<28}{points:>+8.2f} {labels[1]}" for label, points in shown)

    def groups(self) -> Iterator[Sequence[str]]:
        """Lists the metrics at the requested ranks, each with its parts."""
        there = (name for name, column in self.columns.items() if column.n)
        shown = [name for name in there if "@" not in name or int(_RANK.findall(name)[0]) in self.ks]
        for _, names in groupby(shown, key=lambda name: name.partition(" ")[0].partition("@")[0]):
            yield tuple(names)

    def gap_chart(self) -> Chart:
        """Returns a chart with a column for each bin: the difference in accuracy between heads and tails, in points. A
        line shows it for all sets."""
        gap = self.to_json()["popularity_gap"]
        ends = [f"{percent_bin['from']}–{percent_bin['from'] + BIN_PERCENT} %" for percent_bin in gap["bins"][:-1]]
        columns = ("gap in popularity", "points")
        labels = (*ends, f"≥ {gap['bins'][-1]['from']} %")
        rows = tuple((label, percent_bin["difference"]) for label, percent_bin in zip(labels, gap["bins"], strict=True))
        return Chart(
            table=TableSection(
                "accuracy@1 of heads minus that of tails, in points, by gap in popularity", columns, rows
            ),
            about="Difference in accuracy between queries about heads and about tails, in points, for each gap in "
            "popularity between head and tail.",
            level=None if gap["all"] is None else (gap["all"], f"all {gap['all']:.1f}"),
        )

    def _percents(self, metric: str) -> dict[str, float]:
        """Returns means as percentages, rounded like the released script: for parts it multiplies the sum by 100, for
        all queries the mean."""
        found = {} if (mean := self.mean(metric)) is None else {"all": 100 * mean}
        of_parts = {part: self.columns[name] for part in PARTS if (name := f"{metric} {part}") in self.columns}
        return found | {part: 100 * fsum(column.values) / column.n for part, column in of_parts.items() if column.n}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_rounded, value))
    return round(value, 4) if isinstance(value, float) else value


def evaluate_amber(files: AmberFiles, options: AmberEvaluation, *, reject: Reject) -> EvaluationResult[AmberScores]:
    """Returns the scores of a file of predictions, or of two compared with each other.

    Raises:
        SetupError: as ``evaluate``.
    """
    first = AmberMetrics(files.gold, options, files.predictions)
    second = None if files.compare is None else AmberMetrics(files.gold, options, files.compare)
    return evaluated(first, second, resamples=options.resamples, reject=reject)


class AmberMetrics(Metrics[tuple[str, Sequence[GoldEntity]], AmberScores]):
    """Pages and answers for queries with a name that several entities share."""

    family = "amber"

    def __init__(self, gold: str, options: AmberEvaluation, predictions: str) -> None:
        super().__init__(gold, {"predictions": predictions}, AmberScores(predictions, ks=options.ks))
        self._options, self._has_answers = options, False

    def expected(self, role: str) -> str:
        return f"JSON Lines or an array with {' and '.join(_KEYS[role])}"

    def fits(self, role: str, record: Json) -> bool:
        return record.keys() >= {*_KEYS[role]}

    def id_of(self, record: Json) -> str:
        return digits_or_text(record, "id")

    def stored_values(self, role: str, record: Json) -> Any:
        return tuple(parse_amber_prediction(record))

    def check_stored(self, role: str, stored: Any, reject: Callable[[RecordError], None]) -> None:
        self._has_answers |= AmberPrediction(*stored).answer is not None

    def questions(self, record: Json) -> Iterator[str]:
        for entity in object_at(record, "qids").values():
            if isinstance(entity, dict):
                yield from (text_at(query, "id") for query in objects_at(entity, "queries"))

    def parse(self, record: Json) -> tuple[str, Sequence[GoldEntity]]:
        return text_at(record, "name"), parse_set(record)

    def score(self, ids: Sequence[str], question: tuple[str, Sequence[GoldEntity]], given: SystemOutput) -> None:
        (name, entities), scores, hits = question, self.scores, self.scores.hits
        for entity in entities:
            for query in entity.queries:
                kept = given.get("predictions", query.query_id)
                scores.without_predictions += kept is None
                item = scores.new_item(query.query_id)
                prediction = None if kept is None else AmberPrediction(tuple(kept[0]), kept[1])
                for metric, value in _scored(query, prediction, {1, *self._options.ks}, has_answers=self._has_answers):
                    every, heads, tails = (scores.columns[f"{metric} {part}".rstrip()] for part in ("", *PARTS))
                    for own in (every, heads if entity.is_head else tails):
                        own.add(item, value)
                    if metric.startswith("accuracy@"):
                        hits[int(metric.partition("@")[2])][query.query_id] = int(value)
        if not ids:
            return
        scores.sets += 1
        item = scores.new_item(name)
        for k, of_queries in hits.items():
            scores.columns[f"consistency@{k}"].add(item, float(all(of_queries[query_id] for query_id in ids)))
        for head, tail in product(entities, entities):
            if head.is_head and not tail.is_head and head.queries and tail.queries:
                number = gap_bin(head.popularity, tail.popularity, on_views=self._options.gap_on == "views")
                for of_bin, entity in zip(scores.bins[number], (head, tail), strict=True):
                    of_bin += (hits[1][query.query_id] for query in entity.queries)


def parse_set(record: Json) -> tuple[GoldEntity, ...]:
    """Returns the entities of a published AmbER set. In the first published version, ``output`` is a list with one
    element.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    named = object_at(record, "qids")
    pages = {qid: _page_ids(object_at(named, qid), "wikipedia") for qid in named}
    found = []
    for qid, entity in named.items():
        others = {page for other, own in pages.items() if other != qid for page in own}
        queries = []
        for query in objects_at(entity, "queries"):
            output = (_outputs(query) or [{}])[0]
            gold, answer = _page_ids(output, "provenance"), output.get("answer")
            answers = (answer,) if isinstance(answer, str) else tuple(answer or ())
            if not answers or not all(isinstance(text, str) for text in answers):
                raise RecordError("wrong_type", "'answer': expected a label or a list of strings")
            rest = frozenset(others.difference(gold))
            queries.append(GoldQuery(text_at(query, "id"), frozenset(gold), rest, answers, isinstance(answer, str)))
        is_head, popularity = entity.get("is_head"), entity.get("popularity")
        if not isinstance(popularity, int | float) or not isinstance(is_head, bool):
            raise RecordError("wrong_type", "expected true or false as 'is_head', a number as 'popularity'")
        found.append(GoldEntity(is_head, float(popularity), tuple(queries)))
    return tuple(found)


def parse_amber_prediction(record: Json) -> AmberPrediction:
    """Returns the pages and the answer of a prediction; raises RecordError: ``missing_field`` or ``wrong_type``."""
    outputs = _outputs(record)
    answers = [text_at(output, "answer") for output in outputs if "answer" in output]
    ranked = [page for output in outputs if "provenance" in output for page in _page_ids(output, "provenance")]
    if not answers and not any("provenance" in output for output in outputs):
        raise RecordError("missing_field", "'output' has neither provenance nor answer")
    pages = dict.fromkeys(page for page in ranked if page != "None")
    return AmberPrediction(tuple(pages), answers[0] if answers else None)


def _outputs(record: Json) -> list[Json]:
    # KILT records have a list; an empty one has no content.
    return objects_at(record, "output") if isinstance(record.get("output"), list) else [object_at(record, "output")]


def _page_ids(record: Json, key: str) -> list[str]:
    return [str(page.get("wikipedia_id")) for page in objects_at(record, key)]


def _scored(
    query: GoldQuery, given: AmberPrediction | None, ks: set[int], *, has_answers: bool
) -> Iterator[tuple[str, float]]:
    """Computes the metrics that a query counts for."""
    pages, answer = (given.pages, given.answer) if given else ((), None)
    gold, other = _rank(query.pages, pages), _rank(query.others, pages)
    for k in sorted(ks):
        yield f"accuracy@{k}", float(gold < k)
    if query.others:
        yield "entity_confusion", float(other < gold)
        if min(gold, other) < _NO_RANK:
            yield "entity_confusion_of_retrieved", float(other < gold)
    if has_answers and query.is_claim:
        yield "answer_accuracy", float(answer == query.answers[0])
    elif has_answers:
        yield "answer_f1", max(answer_f1(answer or "", gold) for gold in query.answers)


def _rank(sought: frozenset[str], pages: Sequence[str]) -> int:
    """Returns the rank, from 0, of the first page that is in a set."""
    return next((rank for rank, page in enumerate(pages) if page in sought), _NO_RANK)


def answer_f1(answer: str, gold: str) -> float:
    """Returns the F1 over the words of two answers in normal form; 0 if they share none.

    >>> answer_f1("the Vietnam-War", "Vietnam War of 1955")
    0.6666666666666666
    """
    words, wanted = (answer_form(text.replace("-", " ")).split() for text in (answer, gold))
    n_shared = (Counter(words) & Counter(wanted)).total()
    return 2 * n_shared / (len(words) + len(wanted)) if n_shared else 0.0


def gap_bin(head: float, tail: float, *, on_views: bool) -> int:
    """Returns the bin of the gap between two popularities, (head - tail) / tail.

    >>> gap_bin(4.0, 4.0, on_views=False), gap_bin(3.2, 2.0, on_views=False), gap_bin(5.0, 4.5, on_views=True)
    (0, 3, 4)
    """
    if on_views:
        head, tail = 10 ** (head - tail), 1.0
    percent = round(100 * (head - tail) / tail, 6) if tail > 0 and head < 2 * tail else 100
    return min(int(max(percent, 0) / BIN_PERCENT), N_BINS - 1)
