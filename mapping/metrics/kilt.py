"""The metrics of KILT: answers and their provenance, one system or two, a task or all of them.

Source: Petroni et al., KILT (2021), section 4. Where the released scripts go wrong, their behaviour has a name in
``KILT_QUIRKS`` and is off.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name, glob, join
from kbsource.lookup import KnowledgeSource
from mapping.metrics.answers import NOTHING, AnswerScores, score_answer, stripped
from mapping.metrics.evaluation import PAGE, KiltEvaluation, KiltFiles, Lines, Reject, rejected_json, rejected_text
from mapping.metrics.plausible import check_ids, check_plausible
from mapping.metrics.ranks import (
    Provenance,
    Span,
    context_scores,
    evidence_sets,
    is_in_input,
    place_ids,
    r_precision,
    rank_scores,
)
from mapping.sources import all_sources
from mapping.sources.raw_records import FAULTS, Json, RawRecord, objects_at
from mapping.sources.scratch import Joined
from mapping.write.kind import ALIGNMENT

REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_id": "the id was given before in this file",
    "no_answer": "a prediction without an answer, or with several outputs, in a file that gives answers",
    "no_output": "a gold record whose output is empty",
    "several_provenances": "a prediction with provenance in several outputs: no place is taken from it",
    "unknown_id": "a prediction for a record that is not among the gold ones",
}
"""Why a line, or a part of it, is left out: reason -> meaning."""

DOWNSTREAM = AnswerScores._fields
KILT = tuple(f"KILT-{name}" for name in DOWNSTREAM)

Values = NDArray[np.float64]
_AT_ONCE = 64
_TOLERANCE = 1e-12

_RETRIEVAL_ONLY = "no prediction has an answer: provenance alone is evaluated"

_PAGE = "wikipedia_id"
_PARAGRAPHS = ("start_paragraph_id", "end_paragraph_id")
_CHARACTERS = ("start_character", "end_character")


class GoldRecord(NamedTuple):
    """What a record is evaluated by."""

    text: str  # its input; empty where it has none
    answers: tuple[str, ...]  # stripped, none empty, each once
    titles: tuple[str, ...]  # of its provenance, likewise
    outputs: tuple[Provenance, ...]  # provenance of each output that has one


class Prediction(NamedTuple):
    """What a system gives for a record."""

    answer: str | None  # of its only output; None where that has none, or there are several
    provenance: Provenance | None  # places, best first; None where several outputs have some


NO_PREDICTION = Prediction("", ())


def id_of(record: Json) -> str:
    """The id as ids are compared: as text, without blanks around it.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    if not isinstance(record.get("id"), str | int | float):
        raise RecordError("wrong_type" if "id" in record else "missing_field", "id is no string or number")
    return str(record["id"]).strip()


def parse_gold(record: Json) -> GoldRecord:
    """What a gold record is evaluated by; raises RecordError: ``missing_field``, ``wrong_type``, ``no_output``."""
    outputs = objects_at(record, "output")
    if not outputs:
        raise RecordError("no_output", "output is empty")
    answers = stripped(_answer(output) for output in outputs)
    provenances = tuple(objects_at(output, "provenance") for output in outputs if "provenance" in output)
    titles = [span.get("title") for provenance in provenances for span in provenance]
    text = record.get("input")
    return GoldRecord(
        text if isinstance(text, str) else "",
        answers,
        stripped(title for title in titles if isinstance(title, str)),
        provenances,
    )


def parse_prediction(record: Json) -> Prediction:
    """The answer and the places that a line predicts; a retriever may add the gold answers.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    outputs = objects_at(record, "output")
    with_places = [objects_at(output, "provenance") for output in outputs if "provenance" in output]
    answer = _answer(outputs[0]) if len(outputs) == 1 else None
    return Prediction(answer, None if len(with_places) > 1 else next(iter(with_places), ()))


def _answer(output: Json) -> str | None:
    """The answer of an output as text, as the released script reads it; None where there is none."""
    answer = output.get("answer")
    if isinstance(answer, list | dict):
        raise RecordError("wrong_type", f"'answer': expected a string, found {repr(answer)[:80]}")
    return None if answer is None else str(answer)


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """The second system's mean minus the first's."""

    mean: float  # of the records
    interval: Interval  # of the mean, by the bootstrap
    #: Two-sided, of a randomisation test: how often the difference is as large when the systems' values of each
    #: record are exchanged at random.
    p: float


def intervals(values: Values, resamples: int) -> list[Interval]:
    """The percentile bootstrap interval of the mean of each column.

    The draws come from a fixed seed, so that the same values have the same interval.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    draw = _generator("bootstrap")
    n = len(values)
    means = np.concatenate(
        [
            draw.multinomial(n, np.full(n, 1 / n), size=min(_AT_ONCE, resamples - start)) @ values / n
            for start in range(0, resamples, _AT_ONCE)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def differences(first: Values, second: Values, resamples: int) -> list[Difference]:
    """For each column what the second system is better by, with interval and test, as ``intervals``.

    Source: Noreen, Computer-Intensive Methods for Testing Hypotheses (1989); p counts the observed exchange too.
    """
    delta = second - first
    means = delta.mean(axis=0)
    draw = _generator("randomisation")
    n_as_large = np.zeros(delta.shape[1], dtype=np.int64)
    for start in range(0, resamples, _AT_ONCE):
        signs = draw.integers(0, 2, size=(min(_AT_ONCE, resamples - start), len(delta))) * 2.0 - 1.0
        n_as_large += (np.abs(signs @ delta / len(delta)) >= np.abs(means) - _TOLERANCE).sum(axis=0)
    p = (n_as_large + 1) / (resamples + 1)
    return [
        Difference(float(mean), interval, float(chance))
        for mean, interval, chance in zip(means, intervals(delta, resamples), p, strict=True)
    ]


def _generator(purpose: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big"))


def metric_of(name: str) -> str | None:
    """The metric that is reported for a file.

    >>> metric_of("nq-dev-kilt.jsonl"), metric_of("quiz.jsonl")
    ('em', None)
    """
    source = all_sources().get(name.partition("-")[0])
    return None if source is None else source.metric


@dataclass(slots=True)
class SystemScores:
    """The scores of one system, by gold record; one without a prediction, or without a gold answer, scores 0."""

    path: str  # of its predictions
    ids: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()  # of the metrics
    values: Values = field(default_factory=lambda: np.zeros((0, 0)))  # a row a record, a column a metric, 0 to 1
    has_pages: list[bool] = field(default_factory=list)  # whether a record has a gold page
    intervals: dict[str, Interval] = field(default_factory=dict)
    without_prediction: int = 0
    without_answers: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)
    moved: Counter[str] = field(default_factory=Counter)  # predicted places by what became of them, with a crosswalk

    @property
    def records(self) -> int:
        """Gold records."""
        return len(self.ids)

    def mean(self, name: str) -> float | None:
        """The mean of a metric, correctly rounded; None where it was not evaluated."""
        if name not in self.names:
            return None
        return math.fsum(self.values[:, self.names.index(name)]) / self.records

    def columns(self, names: Sequence[str]) -> Values:
        """The values of some metrics."""
        return self.values[:, [self.names.index(name) for name in names]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Id and values of every record."""
        for record_id, row in zip(self.ids, self.values.tolist(), strict=True):
            yield {"id": record_id, **dict(zip(self.names, row, strict=True))}

    def to_json(self) -> dict[str, Any]:
        """The means in the published form, and what they leave out."""
        result: dict[str, Any] = {"records": self.records}
        for group, names in grouped(self.names).items():
            result[group] = {name: self.mean(name) for name in names}
        if self.intervals:
            result["intervals"] = {name: list(interval) for name, interval in self.intervals.items()}
        result["without_prediction"] = self.without_prediction
        result["without_answers"] = self.without_answers
        if self.moved:
            result["crosswalk"] = dict(sorted(self.moved.items()))
        result["rejected"] = rejected_json(self.rejected)
        return result


@dataclass(slots=True)
class KiltScores:
    """The scores of a system, and those of a second one with what it is better by, where there is one."""

    first: SystemScores
    second: SystemScores | None = None
    differences: dict[str, Difference] = field(default_factory=dict)

    @property
    def has_rejects(self) -> bool:
        """Whether something could not be used."""
        return bool(self.first.rejected or (self.second is not None and self.second.rejected))

    def to_json(self) -> dict[str, Any]:
        """The scores as JSON."""
        value = self.first.to_json()
        if self.second is not None:
            value["compared"] = self.second.to_json()
            value["differences"] = {
                name: {"mean": one.mean, "interval": list(one.interval), "p": one.p}
                for name, one in self.differences.items()
            }
        return value


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """The metrics by the part of the published result that they stand in."""
    groups: dict[str, list[str]] = {}
    for name in names:
        group = "kilt" if name in KILT else "downstream" if name in DOWNSTREAM else "retrieval"
        groups.setdefault(group, []).append(name)
    return groups


def scores_text(scores: KiltScores) -> str:
    """The scores for reading, in per cent."""
    first, second = scores.first, scores.second
    lines = [f"records              {first.records:>9,}"]
    for system in (first,) if second is None else (first, second):
        of = "" if second is None else f" ({system.path})"
        if system.without_prediction:
            lines.append(f"without prediction   {system.without_prediction:>9,}{of}")
        lines += [f"{line}{of}" for line in rejected_text(system.rejected)]
        lines += [
            f"places {outcome.replace('_', ' ')}: {count:,}{of}" for outcome, count in sorted(system.moved.items())
        ]
    if first.without_answers:
        lines.append(f"without gold answers {first.without_answers:>9,}")
    if first.records and "accuracy" not in first.names:
        lines.append(_RETRIEVAL_ONLY)
    for names in grouped(first.names).values():
        lines.append("")
        for name in names:
            line = f"{name:<28}{_percent(first.mean(name))}{_interval(first.intervals.get(name))}"
            if second is not None and name in second.names:
                line += f"{_percent(second.mean(name))}{_interval(second.intervals.get(name))}"
            if name in scores.differences:
                difference = scores.differences[name]
                line += f"  {100 * difference.mean:+.2f}{_interval(difference.interval)} p = {difference.p:.4f}"
            lines.append(line)
    return "\n".join(lines)


def _percent(mean: float | None) -> str:
    return f"{'–':>8}" if mean is None else f"{100 * mean:>8.2f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


def leaderboard_text(rows: Mapping[str, SystemScores]) -> str:
    """The leaderboard's table: for each gold file the metric of its task, alone and with provenance."""
    width = max(map(len, rows), default=0)
    lines = [f"{'':<{width}}  {'records':>9}  {'metric':<8}{'score':>8}{'KILT':>8}{'Rprec':>8}{'rec@5':>8}"]
    for name, scores in rows.items():
        metric = metric_of(name) or ""
        shown = "".join(_percent(scores.mean(part)) for part in (metric, f"KILT-{metric}", "Rprec", "recall@5"))
        lines.append(f"{name:<{width}}  {scores.records:>9,}  {metric:<8}{shown}")
    return "\n".join(lines)


class Crosswalk:
    """Where the places of published records went.

    A page goes where evidence in it went, whatever record that was of; a page that no record has evidence in keeps
    its id, which Wikipedia does not give twice. Paragraphs, or a section where it alone is asked for, go where evidence
    in exactly these went, that of the same record before others. What cannot be moved keeps its rank and is right
    nowhere.
    """

    def __init__(self, release: str) -> None:
        """Reads the crosswalk of an alignment; raises SetupError: there is none."""
        manifest = ALIGNMENT.read(release)
        if "crosswalk" not in manifest.tables:
            raise SetupError(f"{release} has no crosswalk; name what kbsource map kilt made of the gold file.")
        #: Spans by what became of them: ``moved``, ``page_kept``, ``page_gone``, ``place_unknown``.
        self.moved: Counter[str] = Counter()
        self._pages: dict[str, str | None] = {}
        self._places: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in ALIGNMENT.rows(release, manifest, "crosswalk"):
            old, new = row["old_wikipedia_id"], row["new_wikipedia_id"]
            if old is None:
                continue
            if self._pages.get(old) is None:
                self._pages[old] = new
            if new is not None:
                values = {name: row[f"new_{name}"] for name in ("section", *_PARAGRAPHS, *_CHARACTERS)}
                place = (old, *(str(row[f"old_{name}"]) for name in _PARAGRAPHS))
                moved = {_PAGE: new, "title": row["new_title"], **values}
                section = (old, _section(row["old_section"]))
                for known in (place, section):
                    self._places.setdefault(known, moved)
                    self._places.setdefault((*known, row["example_id"]), moved)

    def move(self, record_id: str, provenance: Provenance, keys: Sequence[str]) -> list[Span]:
        """The places in the new snapshot."""
        return [self._moved(record_id, span, keys) for span in provenance]

    def _moved(self, record_id: str, span: Span, keys: Sequence[str]) -> Span:
        old = str(span.get(_PAGE, "")).strip()
        if old not in self._pages:
            outcome, new = "page_kept", dict(span)
        elif (page := self._pages[old]) is None:
            outcome, new = "page_gone", {**span, _PAGE: f"{old} (gone)"}
        else:
            outcome, new = "moved", {**span, _PAGE: page}
        within = [key for key in keys if key != _PAGE and key in span]
        if within and outcome != "page_gone":
            names = ("section",) if within == ["section"] else _PARAGRAPHS
            place = (old, *(_section(span.get(name)) for name in names))
            found = self._places.get((*place, record_id), self._places.get(place))
            if found is None or not found.keys() >= set(within):
                outcome = "place_unknown"
                new |= dict.fromkeys(within, "moved to an unknown place")
            else:
                new |= {key: value for key, value in found.items() if key in span}
        self.moved[outcome] += 1
        return new


def _section(value: Any) -> str:
    """The value of a key as text; a section of a KILT file without its newline."""
    return str(value).rstrip("\n")


def evaluate_kilt(files: KiltFiles, options: KiltEvaluation, *, reject: Reject) -> KiltScores:
    """The scores of a file of predictions, or of two beside each other.

    Every gold record counts, also one that has no prediction. Memory: the values of all records, some 250 bytes each,
    and one record.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold.
    """
    with ExitStack() as stack:
        articles = None
        if files.accept_redirects is not None:
            articles = stack.enter_context(KnowledgeSource.open(files.accept_redirects))
        system = partial(_System, files, options, reject=reject, articles=articles)
        scores = KiltScores(system(files.predictions).evaluate())
        if files.compare is not None:
            scores.second = system(files.compare).evaluate()
    if scores.second is not None:
        names = [name for name in scores.first.names if name in scores.second.names]
        if options.resamples and scores.first.records:
            first, second = scores.first.columns(names), scores.second.columns(names)
            scores.differences = dict(zip(names, differences(first, second, options.resamples), strict=True))
    return scores


class _System:
    """One file of predictions beside the gold file."""

    def __init__(
        self,
        files: KiltFiles,
        options: KiltEvaluation,
        path: str,
        *,
        reject: Reject,
        articles: KnowledgeSource | None,
    ) -> None:
        self._path = path
        self._files = files
        self._options = options
        self._articles = articles
        self._lines = Lines(reject)
        self._crosswalk = Crosswalk(files.crosswalk) if files.crosswalk is not None else None
        self._scores = SystemScores(path, rejected=self._lines.rejected)
        self._unanswered: list[tuple[str, RawRecord]] = []
        self._n_answers = 0

    def evaluate(self) -> SystemScores:
        rows: list[dict[str, float]] = []
        with Joined() as joined:
            self._read_predictions(joined)
            for record_id, gold in self._gold(joined):
                content = joined.get("predictions", record_id)
                self._scores.without_prediction += content is None
                prediction = NO_PREDICTION if content is None else parse_prediction(orjson.loads(content))
                values = self._values(record_id, gold, prediction)
                self._scores.without_answers += not gold.answers
                self._scores.has_pages.append(any(place_ids(output, PAGE) for output in gold.outputs))
                rows.append(values)
                self._scores.ids.append(record_id)
            unknown = (record_id for record_id, _ in joined.without_question("predictions"))
            n_common = len(self._scores.ids) - self._scores.without_prediction
            ids = iter(self._scores.ids)
            check_ids(self._files.gold, self._path, n_common=n_common, gold_ids=ids, unknown=unknown)
            for record_id, raw in joined.without_question("predictions"):
                self._reject(raw, RecordError("unknown_id", f"{record_id!r} is not in {self._files.gold}"), record_id)
        scores = self._scores
        scores.names = tuple(rows[0]) if rows else ()
        scores.values = np.array([list(row.values()) for row in rows], dtype=np.float64).reshape(
            len(rows), len(scores.names)
        )
        if self._crosswalk is not None:
            scores.moved = self._crosswalk.moved
        if self._options.resamples and rows:
            scores.intervals = dict(zip(scores.names, intervals(scores.values, self._options.resamples), strict=True))
        return scores

    def _read_predictions(self, joined: Joined) -> None:
        for raw, record in self._records(self._path, "predictions"):
            record_id = ""
            try:
                record_id = id_of(record)
                prediction = parse_prediction(record)
                joined.put("predictions", record_id, raw, orjson.dumps({"output": record["output"]}))
            except RecordError as error:
                self._reject(raw, error, record_id)
                continue
            if prediction.provenance is None:
                self._reject(raw, RecordError("several_provenances", "provenance in several outputs"), record_id)
            if prediction.answer is None:
                self._unanswered.append((record_id, raw._replace(data=b"")))
            else:
                self._n_answers += 1
        if self._n_answers:
            for record_id, raw in self._unanswered:
                self._reject(raw, RecordError("no_answer", "no output, or not one with an answer"), record_id)

    def _gold(self, joined: Joined) -> Iterator[tuple[str, GoldRecord]]:
        for raw, record in self._records(self._files.gold, "gold"):
            record_id = ""
            try:
                record_id = id_of(record)
                gold = parse_gold(record)
                joined.open_question(record_id)
            except RecordError as error:
                self._reject(raw, error, record_id, role="gold")
            else:
                yield record_id, gold

    def _records(self, path: str, role: str) -> Iterator[tuple[RawRecord, Json]]:
        expected = "records of KILT with id and output"
        return self._lines.read(path, role, lambda record: "id" in record and "output" in record, expected=expected)

    def _reject(self, raw: RawRecord, error: RecordError, record_id: str, *, role: str = "predictions") -> None:
        if error.reason == "duplicate_question":
            error = RecordError("duplicate_id", error.detail)
        self._lines.reject(raw, error, role, record_id)

    def _answer(self, prediction: Prediction) -> str:
        """The predicted answer; of the title of a redirect, where that counts, the article's."""
        answer = prediction.answer or ""
        if self._articles is None:
            return answer
        found = self._articles.resolve(answer)
        return found.title if found.by == "title" and found.hops and found.title is not None else answer

    def _values(self, record_id: str, gold: GoldRecord, prediction: Prediction) -> dict[str, float]:
        """The values of a record by metric, in the order in which they are shown."""
        quirks, ks, keys = self._options.quirks, self._options.ks, self._options.rank_keys
        null_ids = "null_ids" in quirks
        provenance = prediction.provenance or ()
        if self._crosswalk is not None:
            provenance = self._crosswalk.move(record_id, provenance, keys)
        values: dict[str, float] = {}
        if self._n_answers:
            answers = score_answer(self._answer(prediction), gold.answers)
            found = r_precision(
                place_ids(provenance, PAGE, null_ids=null_ids),
                [place_ids(output, PAGE, null_ids=null_ids) for output in gold.outputs],
            )
            values |= zip(DOWNSTREAM, answers, strict=True)
            values |= zip(KILT, answers if found == 1 else NOTHING, strict=True)
        predicted = place_ids(provenance, keys, null_ids=null_ids)
        gold_places = [place_ids(output, keys, null_ids=null_ids) for output in gold.outputs]
        values["Rprec"] = r_precision(predicted, gold_places)
        values |= rank_scores(predicted, evidence_sets(gold.outputs, keys, quirks), ks)
        empty = "empty_answers" in quirks
        values |= context_scores(provenance, gold.answers, gold.titles, ks, empty=empty)
        values["entity_in_input"] = float(is_in_input(gold.titles, gold.text, empty=empty))
        return values


def evaluate_tasks(
    files: KiltFiles, options: KiltEvaluation, *, reject: Reject
) -> tuple[dict[str, SystemScores], list[str]]:
    """The scores of every task by gold file, in the leaderboard's order, and gold files without predictions.

    A file of predictions has the name of its gold file. Tasks that KILT does not have come last, without a metric.

    Raises:
        SetupError: as ``evaluate_kilt``; there is no gold file, or no predictions for any.
    """
    folder = files.predictions
    order = {name: number for number, name in enumerate(all_sources())}
    scores, missing = {}, []
    gold_files = glob(join(files.gold, "*.jsonl*"))
    for path in sorted(gold_files, key=lambda path: (order.get(base_name(path).partition("-")[0], len(order)), path)):
        name = base_name(path)
        if Folder.of(join(folder, name)).exists():
            check_plausible("kilt", path, join(folder, name))
            task = replace(files, gold=path, predictions=join(folder, name), all_tasks=False)
            scores[name] = evaluate_kilt(task, options, reject=reject).first
        elif metric_of(name):
            missing.append(name)
    if not scores and not missing:
        raise SetupError(f"{files.gold} has no file like nq-dev-kilt.jsonl; name the folder of gold files.")
    if not scores:
        raise SetupError(f"{folder} has no file that is named like one of {files.gold}, such as {missing[0]}.")
    return scores, missing
