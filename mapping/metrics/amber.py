"""The metrics of AmbER sets: queries whose name several entities share.

Source: Chen et al., Evaluating Entity Disambiguation and the Role of Popularity in Retrieval-Based NLP (2021), section
4, and the released script, which ends where a prediction is missing; here such a query scores 0 and is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from kbsource.errors import RecordError
from mapping.document import Chart, Table
from mapping.metrics.answers import answer_form
from mapping.metrics.evaluation import AmberFiles, AmberOptions, Lines, Mean, Reject, rejected_json
from mapping.metrics.plausible import check_ids
from mapping.sources.raw_records import Json, RawRecord, digits_or_text, object_at, objects_at, text_at

BIN_PERCENT, N_BINS = 20, 5
"""The last bin takes in every gap above 100 %."""
_NO_RANK = 1 << 62


class Query(NamedTuple):
    """A query: ids of its gold pages and of the other entities' pages that are none of these, and what answers it, a
    label where ``is_claim``."""

    query_id: str
    pages: frozenset[str]
    others: frozenset[str]
    answers: tuple[str, ...]
    is_claim: bool


class Entity(NamedTuple):
    """An entity of a set with its queries; ``popularity`` is the logarithm of its views to base 10."""

    is_head: bool
    popularity: float
    queries: tuple[Query, ...]


class Prediction(NamedTuple):
    """What was predicted for a query: ids of pages, best first, each once, and an answer."""

    pages: tuple[str, ...]
    answer: str | None


@dataclass(slots=True)
class AmberScores:
    """Scores of sets with queries; a query without a prediction scores 0."""

    ks: tuple[int, ...]
    sets: int = 0
    without_predictions: int = 0
    #: By metric (``accuracy@K``, ``consistency@K``, ``entity_confusion``, ``answer_f1``, …), then over which queries:
    #: ``all``, ``head``, ``tail``.
    means: defaultdict[str, defaultdict[str, Mean]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Mean))
    )
    #: By k and query: 1 where a gold page is among the first k, else 0.
    hits: defaultdict[int, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    #: By gap in popularity of a head and a tail: accuracy at 1 of the heads' queries, and of the tails'.
    bins: tuple[tuple[Mean, Mean], ...] = field(default_factory=lambda: tuple((Mean(), Mean()) for _ in range(N_BINS)))
    rejected: Mapping[str, Counter[str]] = field(default_factory=dict)

    def metrics(self, k: int) -> dict[str, Any]:
        """Accuracy and consistency in per cent, as the released script writes ``metrics@k.json``, to the last digit:
        it takes means a hundred times, and of heads and tails the sums."""
        hits, sets = self.means[f"accuracy@{k}"], self.means[f"consistency@{k}"]
        accuracy, consistency = (100 * (one["all"].total / one["all"].n) if one else None for one in (hits, sets))
        parts: dict[str, Any] = {name: {"accuracy": _percent(hits[name])} for name in ("head", "tail") if name in hits}
        return {"accuracy": accuracy, **parts, "consistency": consistency}

    def to_json(self) -> dict[str, Any]:
        """All scores, in per cent, to four decimals."""
        accuracy = self._percents("accuracy@1")
        others = [name for name in self.means if "@" not in name]
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
                        "head_queries": head.n,
                        "tail_queries": tail.n,
                        "difference": _percent(head) - _percent(tail) if head.n else None,
                    }
                    for number, (head, tail) in enumerate(self.bins)
                ],
                "all": accuracy["head"] - accuracy["tail"] if len(accuracy) == 3 else None,
            },
            "rejected": rejected_json(self.rejected),
        }
        rounded: dict[str, Any] = _rounded(scores)
        return rounded

    def gap_chart(self) -> Chart:
        """A column for each bin: by how many points the heads' queries have the higher accuracy; a line for all
        sets."""
        gap = self.to_json()["popularity_gap"]
        ends = [f"{one['from']}–{one['from'] + BIN_PERCENT} %" for one in gap["bins"][:-1]]
        columns = ("gap in popularity", "points")
        labels = (*ends, f"≥ {gap['bins'][-1]['from']} %")
        rows = tuple((label, one["difference"]) for label, one in zip(labels, gap["bins"], strict=True))
        return Chart(
            table=Table("accuracy@1 of head less tail, in points, by gap in popularity", columns, rows),
            about="By how many points the queries about heads are answered better than those about tails, by how much "
            "more popular the head is.",
            level=None if gap["all"] is None else (gap["all"], f"all {gap['all']:.1f}"),
        )

    def _percents(self, metric: str) -> dict[str, float]:
        means = self.means[metric]
        return {part: _percent(means[part]) for part in ("all", "head", "tail") if part in means}


def _percent(mean: Mean) -> float:
    return 100 * mean.total / mean.n


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_rounded, value))
    return round(value, 4) if isinstance(value, float) else value


def evaluate_amber(files: AmberFiles, options: AmberOptions, *, reject: Reject) -> AmberScores:
    """The scores of a file of predictions. Memory holds the predictions and the sets.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold.
    """
    lines = Lines(reject)
    scores = AmberScores(options.ks, rejected=lines.rejected)

    def records(path: str, role: str, *keys: str) -> Iterator[tuple[RawRecord, Json]]:
        expected = f"JSON Lines or an array with {' and '.join(keys)}"
        return lines.read(path, role, lambda record: record.keys() >= set(keys), expected=expected)

    given: dict[str, tuple[RawRecord, Prediction]] = {}
    for raw, record in records(files.predictions, "predictions", "id", "output"):
        try:
            query_id = digits_or_text(record, "id")
            if query_id in given:
                raise RecordError("duplicate_question", query_id)
            given[query_id] = raw._replace(data=b""), parse_prediction(record)
        except RecordError as error:
            lines.reject(raw, error, "predictions")
    sets: list[Sequence[Entity]] = []
    known: set[str] = set()
    for raw, record in records(files.gold, "gold", "name", "qids"):
        try:
            entities = parse_set(record)
            for query_id in (query.query_id for entity in entities for query in entity.queries):
                if query_id in known:
                    raise RecordError("duplicate_question", query_id)
                known.add(query_id)
            sets.append(entities)
        except RecordError as error:
            lines.reject(raw, error, "gold")
    unknown_ids = (query_id for query_id in given if query_id not in known)
    n_common = len(known & given.keys())
    check_ids(files.gold, files.predictions, n_common=n_common, gold_ids=iter(sorted(known)), unknown=unknown_ids)
    for query_id, (raw, _) in given.items():
        if query_id not in known:
            unknown = RecordError("unknown_question", f"{query_id!r} is not in {files.gold}")
            lines.reject(raw, unknown, "predictions")
    score_sets(sets, {query_id: one for query_id, (_, one) in given.items()}, options, scores)
    return scores


def parse_set(record: Json) -> tuple[Entity, ...]:
    """The entities of a set as it is released; in its first form ``output`` is a list of one.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    named = object_at(record, "qids")
    pages = {qid: _page_ids(object_at(named, qid), "wikipedia") for qid in named}
    found = []
    for qid, one in named.items():
        others = {page for other, own in pages.items() if other != qid for page in own}
        queries = []
        for query in objects_at(one, "queries"):
            output = (_outputs(query) or [{}])[0]
            gold, answer = _page_ids(output, "provenance"), output.get("answer")
            answers = (answer,) if isinstance(answer, str) else tuple(answer or ())
            if not answers or not all(isinstance(text, str) for text in answers):
                raise RecordError("wrong_type", "'answer': expected a label or a list of strings")
            rest = frozenset(others.difference(gold))
            queries.append(Query(text_at(query, "id"), frozenset(gold), rest, answers, isinstance(answer, str)))
        is_head, popularity = one.get("is_head"), one.get("popularity")
        if not isinstance(popularity, int | float) or not isinstance(is_head, bool):
            raise RecordError("wrong_type", "expected true or false as 'is_head', a number as 'popularity'")
        found.append(Entity(is_head, float(popularity), tuple(queries)))
    return tuple(found)


def parse_prediction(record: Json) -> Prediction:
    """The pages and the answer of a prediction; raises RecordError: ``missing_field`` or ``wrong_type``."""
    outputs = _outputs(record)
    answers = [text_at(output, "answer") for output in outputs if "answer" in output]
    ranked = [page for output in outputs if "provenance" in output for page in _page_ids(output, "provenance")]
    if not answers and not any("provenance" in output for output in outputs):
        raise RecordError("missing_field", "'output' has neither provenance nor answer")
    pages = dict.fromkeys(page for page in ranked if page != "None")
    return Prediction(tuple(pages), answers[0] if answers else None)


def _outputs(record: Json) -> list[Json]:
    # Records of KILT have a list; an empty one says nothing.
    return objects_at(record, "output") if isinstance(record.get("output"), list) else [object_at(record, "output")]


def _page_ids(record: Json, key: str) -> list[str]:
    return [str(one.get("wikipedia_id")) for one in objects_at(record, key)]


def score_sets(
    sets: Sequence[Sequence[Entity]], given: Mapping[str, Prediction], options: AmberOptions, scores: AmberScores
) -> None:
    """Adds the scores of sets to ``scores``; ``given`` are the predictions by id of the query."""
    has_answers = any(one.answer is not None for one in given.values())
    for entities in sets:
        queries = [(query, entity.is_head) for entity in entities for query in entity.queries]
        for query, is_head in queries:
            prediction = given.get(query.query_id)
            scores.without_predictions += prediction is None
            for metric, value in _scored(query, prediction, {1, *options.ks}, has_answers=has_answers):
                for part in ("all", "head" if is_head else "tail"):
                    scores.means[metric][part].add(value)
                if metric.startswith("accuracy@"):
                    scores.hits[int(metric.partition("@")[2])][query.query_id] = int(value)
        if not queries:
            continue
        scores.sets += 1
        for k, hits in scores.hits.items():
            scores.means[f"consistency@{k}"]["all"].add(all(hits[query.query_id] for query, _ in queries))
        for head, tail in product(entities, entities):
            if head.is_head and not tail.is_head and head.queries and tail.queries:
                pair = scores.bins[gap_bin(head.popularity, tail.popularity, on_views=options.gap_on == "views")]
                for mean, entity in zip(pair, (head, tail), strict=True):
                    for query in entity.queries:
                        mean.add(scores.hits[1][query.query_id])


def _scored(query: Query, given: Prediction | None, ks: set[int], *, has_answers: bool) -> Iterator[tuple[str, float]]:
    """The metrics that a query counts for, and its values."""
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
    """The place, from 0, of the first page that is sought."""
    return next((rank for rank, page in enumerate(pages) if page in sought), _NO_RANK)


def answer_f1(answer: str, gold: str) -> float:
    """The F1 of the words of two answers in their normal form; 0 where they share none.

    >>> answer_f1("the Vietnam-War", "Vietnam War of 1955")
    0.6666666666666666
    """
    words, wanted = (answer_form(text.replace("-", " ")).split() for text in (answer, gold))
    n_shared = (Counter(words) & Counter(wanted)).total()
    return 2 * n_shared / (len(words) + len(wanted)) if n_shared else 0.0


def gap_bin(head: float, tail: float, *, on_views: bool) -> int:
    """The bin of the gap between two popularities, (head - tail) / tail.

    >>> gap_bin(4.0, 4.0, on_views=False), gap_bin(3.2, 2.0, on_views=False), gap_bin(5.0, 4.5, on_views=True)
    (0, 3, 4)
    """
    if on_views:
        head, tail = 10 ** (head - tail), 1.0
    percent = round(100 * (head - tail) / tail, 6) if tail > 0 and head < 2 * tail else 100
    return min(int(max(percent, 0) / BIN_PERCENT), N_BINS - 1)
