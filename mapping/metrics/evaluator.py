"""The evaluator of all benchmarks: joins files by id, counts unusable lines, computes means with intervals, and
compares two systems.

Each benchmark defines a ``Metrics`` class: the content of its files, and the values of a question and its prediction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import fsum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import orjson

from kbsource.errors import RecordError
from kbsource.records import BadRecord
from mapping.metrics.plausible import Family, check_ids, check_plausible
from mapping.metrics.significance import Difference, Interval, differences, intervals
from mapping.sources.raw_records import Json, RawRecord, check_shape, iter_records
from mapping.sources.scratch import QuestionFiles

if TYPE_CHECKING:
    from mapping.metrics.significance import Values

Q = TypeVar("Q")
S = TypeVar("S", bound="Scores")

Reject = Callable[[BadRecord], None]
"""Called with the position and the reason of every line, or part of a line, that cannot be used."""

GOLD = "gold"
DECIMALS = 6


@dataclass(slots=True)
class MetricValues:
    """The values of a metric: the numbers of their items, ascending, and the values, 0 to 1."""

    items: array[int] = field(default_factory=lambda: array("I"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, item: int, value: float) -> None:
        """Adds the value of the next item."""
        self.items.append(item)
        self.values.append(value)

    @property
    def n(self) -> int:
        """Returns how many items have a value."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Returns the mean, correctly rounded; None if there are no values."""
        return fsum(self.values) / self.n if self.n else None

    @property
    def rounded(self) -> float | None:
        """Returns the mean rounded to ``DECIMALS``."""
        mean = self.mean
        return None if mean is None else round(mean, DECIMALS)


@dataclass(slots=True)
class Scores(ABC):
    """The scores of a system. A question without a prediction scores 0 and is counted."""

    path: str = ""  # path of its predictions
    ids: list[str] = field(default_factory=list)  # ids of the scored items, in the order of the gold file
    #: By metric. Metrics of a subset of the questions have separate names, such as ``accuracy@1 head``.
    columns: defaultdict[str, MetricValues] = field(default_factory=lambda: defaultdict(MetricValues))
    intervals: dict[str, Interval] = field(default_factory=dict)  # intervals of the means
    rejected: dict[str, Counter[str]] = field(default_factory=dict)  # number of lines by role of the file and reason

    scale: ClassVar[int] = 1
    """Factor for means in JSON."""

    def new_item(self, item_id: str) -> int:
        """Adds an item and returns its number."""
        self.ids.append(item_id)
        return len(self.ids) - 1

    def mean(self, name: str) -> float | None:
        """Returns the mean of a metric; None if no item counts for it."""
        return self.columns[name].mean if name in self.columns else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterates over the items: the id of each, and its values for the metrics that it counts for."""
        positions = dict.fromkeys(self.columns, 0)
        for number, item_id in enumerate(self.ids):
            row: dict[str, Any] = {"id": item_id}
            for name, column in self.columns.items():
                at = positions[name]
                if at < column.n and column.items[at] == number:
                    row[name] = column.values[at]
                    positions[name] += 1
            yield row

    def scaled(self, interval: Interval) -> list[float]:
        """Returns the bounds of an interval for JSON."""
        return [self.scale * interval.low, self.scale * interval.high]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Returns the means as JSON, and the counts of items without values."""

    @abstractmethod
    def counts(self) -> Iterator[tuple[str, int]]:
        """Returns the counts besides the metrics: label and number."""

    def remarks(self) -> Iterator[str]:
        """Lists remarks about the scores."""
        yield from ()

    def table(self) -> Iterator[str]:
        """Prints a table for subsets of the questions, line by line."""
        yield from ()

    def groups(self) -> Iterator[Sequence[str]]:
        """Lists the metrics to print, in groups."""
        yield tuple(self.columns)


@dataclass(slots=True)
class EvaluationResult(Generic[S]):
    """The scores of a system, and optionally of a second system, with the differences."""

    first: S
    second: S | None = None
    differences: dict[str, Difference] = field(default_factory=dict)

    @property
    def has_rejects(self) -> bool:
        """Returns whether any line could not be used."""
        return bool(self.first.rejected or (self.second is not None and self.second.rejected))

    def to_json(self) -> dict[str, Any]:
        """Returns the scores as JSON."""
        value = _with_intervals(self.first)
        if self.second is not None:
            value["compared"] = _with_intervals(self.second)
            value["differences"] = {
                name: {
                    "mean": self.first.scale * difference.mean,
                    "interval": self.first.scaled(difference.interval),
                    "p": difference.p,
                }
                for name, difference in self.differences.items()
            }
        return value

    def to_text(self) -> str:
        """Returns the scores as readable text, in per cent."""
        first, second = self.first, self.second
        lines = []
        for system in (first,) if second is None else (first, second):
            of = "" if second is None else f" ({system.path})"
            lines += [f"{label:<28}{number:>8,}{of}" for label, number in system.counts()]
            lines += [f"{line}{of}" for line in (*rejected_text(system.rejected), *system.remarks())]
        for names in first.groups():
            lines += ["", *map(self._line, names)]
        if table := [*first.table()]:
            lines += ["", *table]
        return "\n".join(lines)

    def _line(self, name: str) -> str:
        line = f"{name:<28}{percent(self.first.mean(name))}{_interval(self.first.intervals.get(name))}"
        if self.second is not None and name in self.second.columns:
            line += f"{percent(self.second.mean(name))}{_interval(self.second.intervals.get(name))}"
        if (difference := self.differences.get(name)) is not None:
            line += f"  {100 * difference.mean:+.2f}{_interval(difference.interval)} p = {difference.p:.4f}"
        return line


def _with_intervals(scores: Scores) -> dict[str, Any]:
    value = scores.to_json()
    if scores.intervals:
        value["intervals"] = {name: scores.scaled(interval) for name, interval in scores.intervals.items()}
    value["rejected"] = rejected_json(scores.rejected)
    return value


def percent(mean: float | None) -> str:
    """Returns a mean in per cent, eight characters wide."""
    return f"{'–':>8}" if mean is None else f"{100 * mean:>8.2f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


def rejected_json(rejected: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """Returns rejected lines by role and reason, as JSON values."""
    return {role: dict(sorted(counts.items())) for role, counts in sorted(rejected.items())}


def rejected_text(rejected: Mapping[str, Counter[str]]) -> list[str]:
    """Returns rejected lines by role and reason, as readable text."""
    counted = rejected_json(rejected)
    return [f"rejected {role}: {reason} {count:,}" for role in counted for reason, count in counted[role].items()]


class SystemOutput:
    """The content of a system's files, by question."""

    def __init__(self, joined: QuestionFiles) -> None:
        self._joined = joined
        self.n_common: Counter[str] = Counter()  # by role, the number of gold questions in the file

    def get(self, role: str, question_id: str) -> Any:
        """Returns the stored values of a question as JSON values; None if the file does not contain the question."""
        content = self._joined.get(role, question_id)
        self.n_common[role] += content is not None
        return None if content is None else orjson.loads(content)


class Metrics(ABC, Generic[Q, S]):
    """Benchmark-specific parts: the format of the files, and the values of a question."""

    family: ClassVar[Family]
    duplicate: ClassVar[str] = "duplicate_question"
    """Reason for rejecting a record whose id occurred before in its file."""
    unknown: ClassVar[str] = "unknown_question"
    """Reason for rejecting a record whose question is not in the gold file."""

    def __init__(self, gold: str, given: Mapping[str, str], scores: S) -> None:
        """
        Args:
            gold: path of the gold file.
            given: paths of other files by role; the roles in ``predicted`` are the system's output.
            scores: receives the values.
        """
        self.gold, self.given, self.scores = gold, given, scores

    @property
    def predicted(self) -> Sequence[str]:
        """Returns the roles of the system's output files."""
        return tuple(self.given)

    @abstractmethod
    def expected(self, role: str) -> str:
        """Returns a description of a file's expected content, for error messages."""

    @abstractmethod
    def fits(self, role: str, record: Json) -> bool:
        """Returns whether a record has the keys that a file's records need."""

    @abstractmethod
    def id_of(self, record: Json) -> str:
        """Returns the id of a record's question. Raises RecordError."""

    @abstractmethod
    def stored_values(self, role: str, record: Json) -> Any:
        """Returns the values of a record to store, as JSON values. Raises RecordError."""

    def check_stored(self, role: str, stored: Any, reject: Callable[[RecordError], None]) -> None:
        """Checks the stored values of a record, and calls ``reject`` for parts that cannot be used."""

    def begin(self) -> None:
        """Prepares for reading the gold file, after all other files were read."""

    def questions(self, record: Json) -> Iterable[str]:
        """Returns the ids of the questions in a gold record. Raises RecordError."""
        return (self.id_of(record),)

    @abstractmethod
    def parse(self, record: Json) -> Q:
        """Parses a gold record. Raises RecordError."""

    @abstractmethod
    def score(self, ids: Sequence[str], question: Q, given: SystemOutput) -> None:
        """Adds the values of a gold record to ``scores``."""


def evaluate(metrics: Metrics[Any, S], *, resamples: int = 0, reject: Reject) -> S:
    """Returns the scores of a system.

    Every gold question counts, even if no other file contains it. The content of files is stored on disk; memory holds
    the values and one record.

    Args:
        resamples: bootstrap resamples for intervals; 0 for none.

    Raises:
        SetupError: a file cannot be read, its first records have the wrong format, or the files have no id in common.
    """
    scores = metrics.scores
    lines = _Lines(reject, scores.rejected)
    with QuestionFiles() as joined:
        for role, path in metrics.given.items():
            for raw, record in lines.read(path, role, partial(metrics.fits, role), metrics.expected(role)):
                key = ""
                try:
                    key = metrics.id_of(record)
                    tell = partial(lines.reject, raw._replace(data=b""), role=role, key=key)
                    kept = metrics.stored_values(role, record)
                    joined.put(role, key, raw, orjson.dumps(kept))
                    metrics.check_stored(role, kept, tell)
                except RecordError as error:
                    lines.reject(raw, _renamed(error, metrics.duplicate), role=role, key=key)
        metrics.begin()
        given, first = SystemOutput(joined), list[str]()
        for raw, record in lines.read(metrics.gold, GOLD, partial(metrics.fits, GOLD), metrics.expected(GOLD)):
            ids: Sequence[str] = ()
            try:
                ids = tuple(metrics.questions(record))
                for question_id in ids:
                    joined.open_question(question_id)
                question = metrics.parse(record)
            except RecordError as error:
                lines.reject(raw, _renamed(error, metrics.duplicate), role=GOLD, key=ids[0] if len(ids) == 1 else "")
                continue
            first = first or [*ids]
            metrics.score(ids, question, given)
        for role in metrics.predicted:
            check_ids(
                metrics.gold,
                metrics.given[role],
                n_common=given.n_common[role],
                gold_ids=iter(first),
                unknown=(question_id for question_id, _ in joined.without_question(role)),
            )
        for role in metrics.given:
            for question_id, raw in joined.without_question(role):
                unknown = RecordError(metrics.unknown, f"{question_id!r} is not in {metrics.gold}")
                lines.reject(raw, unknown, role=role, key=question_id)
    if resamples:
        scores.intervals = intervals_of(scores.columns, resamples)
    return scores


def _renamed(error: RecordError, duplicate: str) -> RecordError:
    return RecordError(duplicate, error.detail) if error.reason == "duplicate_question" else error


class _Lines:
    """Reads the lines of an evaluation's files, and counts unusable ones by role of the file and reason."""

    def __init__(self, reject: Reject, rejected: dict[str, Counter[str]]) -> None:
        self._tell, self._rejected = reject, rejected

    def read(
        self, path: str, role: str, fits: Callable[[Json], bool], expected: str
    ) -> Iterator[tuple[RawRecord, Json]]:
        """Reads the records of a file that contains JSON Lines or one JSON array, plain or compressed.

        Raises:
            SetupError: it cannot be read, or none of its first records has the ``expected`` format.
        """
        check_shape(path, iter_records(path), fits, expected=f"{expected} ({role})")
        for raw in iter_records(path):
            try:
                record = raw.parse()
            except RecordError as error:
                self.reject(raw, error, role=role)
            else:
                yield raw, record

    def reject(self, raw: RawRecord, error: RecordError, *, role: str, key: str = "") -> None:
        """Counts and reports a line, or part of it, that cannot be used."""
        self._rejected.setdefault(role, Counter())[error.reason] += 1
        self._tell(raw.bad(error, key=key, stage=role))


def evaluated(
    first: Metrics[Any, S], second: Metrics[Any, S] | None, *, resamples: int, reject: Reject
) -> EvaluationResult[S]:
    """Returns the scores of a system, and of a second one if it is given.

    Raises:
        SetupError: see ``evaluate`` and ``check_plausible``.
    """
    for metrics in (first,) if second is None else (first, second):
        for role in metrics.predicted:
            check_plausible(metrics.family, metrics.gold, metrics.given[role])
    scores = evaluate(first, resamples=resamples, reject=reject)
    if second is None:
        return EvaluationResult(scores)
    others = evaluate(second, resamples=resamples, reject=reject)
    return EvaluationResult(scores, others, differences_of(scores, others, resamples))


def differences_of(first: S, second: S, resamples: int) -> dict[str, Difference]:
    """Returns the second system's advantage for each metric of both, over the items that count for both; empty if
    ``resamples`` is 0."""
    import numpy as np

    pairs: defaultdict[bytes, list[tuple[str, Values, Values]]] = defaultdict(list)
    for name in (name for name in first.columns if resamples and name in second.columns):
        columns = first.columns[name], second.columns[name]
        common = np.intersect1d(columns[0].items, columns[1].items, assume_unique=True)
        if len(common):
            first_scores, other = (
                np.asarray(column.values)[np.searchsorted(np.asarray(column.items), common)] for column in columns
            )
            pairs[common.tobytes()].append((name, first_scores, other))
    found: dict[str, Difference] = {}
    for group in pairs.values():
        names, ones, others = zip(*group, strict=True)
        of_group = differences(np.column_stack(ones), np.column_stack(others), resamples)
        found |= zip(names, of_group, strict=True)
    return {name: found[name] for name in first.columns if name in found}


def intervals_of(columns: Mapping[str, MetricValues], resamples: int) -> dict[str, Interval]:
    """Returns the interval of the mean of each metric that has values."""
    import numpy as np

    by_size: defaultdict[int, list[str]] = defaultdict(list)
    for name, column in columns.items():
        if column.n:
            by_size[column.n].append(name)
    found: dict[str, Interval] = {}
    for names in by_size.values():
        values = np.column_stack([columns[name].values for name in names])
        found |= zip(names, intervals(values, resamples), strict=True)
    return {name: found[name] for name in columns if name in found}
