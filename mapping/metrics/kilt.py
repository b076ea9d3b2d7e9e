"""The metrics of KILT: answers and their provenance, for one system or two, for one task or all of them.

Source: Petroni et al., KILT (2021), section 4. Errors of the released scripts are named in ``KILT_QUIRKS`` and are off
by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name, glob, join
from kbsource.lookup import KnowledgeSource
from mapping.metrics.answers import NOTHING, AnswerScores, score_answer, stripped
from mapping.metrics.evaluation import PAGE, KiltEvaluation, KiltFiles
from mapping.metrics.evaluator import EvaluationResult, Metrics, Reject, Scores, SystemOutput, evaluated, percent
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
from mapping.sources.raw_records import FAULTS, Json, objects_at
from mapping.write.kind import ALIGNMENT

REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_id": "the id occurred before in this file",
    "no_answer": "a prediction without an answer, or with several outputs, in a file that contains answers",
    "no_output": "a gold record whose output is empty",
    "several_provenances": "a prediction with provenance in several outputs: its provenance is ignored",
    "unknown_id": "a prediction for a record that is not in the gold file",
}
"""Reasons for ignoring a line, or a part of it: reason -> meaning."""

DOWNSTREAM = AnswerScores._fields
KILT = tuple(f"KILT-{name}" for name in DOWNSTREAM)

_PAGE = "wikipedia_id"
_PARAGRAPHS = ("start_paragraph_id", "end_paragraph_id")
_CHARACTERS = ("start_character", "end_character")


class GoldRecord(NamedTuple):
    """The parts of a gold record that are used for evaluation."""

    text: str  # input of the record; empty without input
    answers: tuple[str, ...]  # distinct, non-empty answers, without white space at their ends
    titles: tuple[str, ...]  # distinct, non-empty titles of the record's provenance
    outputs: tuple[Provenance, ...]  # provenance of each output that has a provenance


class KiltPrediction(NamedTuple):
    """A system's prediction for a record."""

    answer: str | None  # answer of its only output; None if that output has no answer, or if there are several outputs
    provenance: Provenance | None  # locations, best first; None if several outputs have provenance


NO_PREDICTION = KiltPrediction("", ())


def id_of(record: Json) -> str:
    """Returns an id as ids are compared: as text, stripped.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    if not isinstance(record.get("id"), str | int | float):
        raise RecordError("wrong_type" if "id" in record else "missing_field", "id is not a string or number")
    return str(record["id"]).strip()


def parse_kilt_gold(record: Json) -> GoldRecord:
    """Parses a gold record; raises RecordError: ``missing_field``, ``wrong_type``, ``no_output``."""
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


def parse_kilt_prediction(record: Json) -> KiltPrediction:
    """Returns the answer and the locations that a line predicts. A retriever's line may also contain the gold answers.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    outputs = objects_at(record, "output")
    with_places = [objects_at(output, "provenance") for output in outputs if "provenance" in output]
    answer = _answer(outputs[0]) if len(outputs) == 1 else None
    return KiltPrediction(answer, None if len(with_places) > 1 else next(iter(with_places), ()))


def _answer(output: Json) -> str | None:
    """Returns the answer of an output as text, as the released script reads it; None without an answer."""
    answer = output.get("answer")
    if isinstance(answer, list | dict):
        raise RecordError("wrong_type", f"'answer': expected a string, found {repr(answer)[:80]}")
    return None if answer is None else str(answer)


def metric_of(name: str) -> str | None:
    """Returns the metric that KILT reports for a file.

    >>> metric_of("nq-dev-kilt.jsonl"), metric_of("quiz.jsonl")
    ('em', None)
    """
    source = all_sources().get(name.partition("-")[0])
    return None if source is None else source.metric


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Groups metrics by the part of the published result that contains them."""
    groups: dict[str, list[str]] = {}
    for name in names:
        group = "kilt" if name in KILT else "downstream" if name in DOWNSTREAM else "retrieval"
        groups.setdefault(group, []).append(name)
    return groups


@dataclass(slots=True)
class KiltScores(Scores):
    """The scores of a system; a record without a prediction, or without a gold answer, scores 0."""

    has_pages: list[bool] = field(default_factory=list)  # true for each record with a gold page
    without_prediction: int = 0
    without_answers: int = 0
    moved: Counter[str] = field(default_factory=Counter)  # predicted locations by outcome, with a crosswalk

    def to_json(self) -> dict[str, Any]:
        """Returns the means in the published form, and the counts of records that they leave out."""
        result: dict[str, Any] = {"records": len(self.ids)}
        for group, names in grouped(self.columns).items():
            result[group] = {name: self.mean(name) for name in names}
        result["without_prediction"] = self.without_prediction
        result["without_answers"] = self.without_answers
        if self.moved:
            result["crosswalk"] = dict(sorted(self.moved.items()))
        return result

    def counts(self) -> Iterator[tuple[str, int]]:
        """Lists the numbers of records, and of records without a prediction or gold answers."""
        yield "records", len(self.ids)
        if self.without_prediction:
            yield "without prediction", self.without_prediction
        if self.without_answers:
            yield "without gold answers", self.without_answers
        yield from ((f"places {outcome.replace('_', ' ')}", n) for outcome, n in sorted(self.moved.items()))

    def remarks(self) -> Iterator[str]:
        """Adds a remark if no question was answered."""
        if self.ids and "accuracy" not in self.columns:
            yield "no prediction has an answer, so only provenance is evaluated"

    def groups(self) -> Iterator[Sequence[str]]:
        """Lists the metrics, grouped as in the published result."""
        yield from grouped(self.columns).values()


def leaderboard_text(rows: Mapping[str, EvaluationResult[KiltScores]]) -> str:
    """Returns the leaderboard's table: for each gold file the metric of its task, without and with provenance."""
    width = max(map(len, rows), default=0)
    lines = [f"{'':<{width}}  {'records':>9}  {'metric':<8}{'score':>8}{'KILT':>8}{'Rprec':>8}{'rec@5':>8}"]
    for name, scores in rows.items():
        metric = metric_of(name) or ""
        shown = "".join(percent(scores.first.mean(part)) for part in (metric, f"KILT-{metric}", "Rprec", "recall@5"))
        lines.append(f"{name:<{width}}  {len(scores.first.ids):>9,}  {metric:<8}{shown}")
    return "\n".join(lines)


class Crosswalk:
    """Maps locations in published records to the new snapshot.

    A page is mapped to the page where its evidence was found, for any record. A page without evidence keeps its id,
    since Wikipedia never reuses ids. Paragraphs (or a section, if only that is evaluated) are mapped to where evidence
    in exactly these was found, preferably evidence of the same record. A location that cannot be mapped keeps its rank
    and never counts as correct.
    """

    def __init__(self, release: str) -> None:
        """Reads the crosswalk of an alignment; raises SetupError if it lacks a crosswalk."""
        manifest = ALIGNMENT.read(release)
        if "crosswalk" not in manifest.tables:
            raise SetupError(
                f"{release} has no crosswalk; name the release that kbsource map kilt made from the gold file."
            )
        #: Spans by outcome: ``moved``, ``page_kept``, ``page_gone``, ``place_unknown``.
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
        """Returns the locations in the new snapshot."""
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
                new |= dict.fromkeys(within, "moved to an unknown position")
            else:
                new |= {key: value for key, value in found.items() if key in span}
        self.moved[outcome] += 1
        return new


def _section(value: Any) -> str:
    """Returns the value of a key as text; for a section of a KILT file, without its newline."""
    return str(value).rstrip("\n")


def evaluate_kilt(files: KiltFiles, options: KiltEvaluation, *, reject: Reject) -> EvaluationResult[KiltScores]:
    """Returns the scores of a file of predictions, or of two compared with each other.

    Every gold record counts, including those without a prediction.

    Raises:
        SetupError: as ``evaluate``.
    """
    with ExitStack() as stack:
        articles = None
        if files.accept_redirects is not None:
            articles = stack.enter_context(KnowledgeSource.open(files.accept_redirects))
        first = KiltMetrics(files, options, articles, files.predictions)
        second = None if files.compare is None else KiltMetrics(files, options, articles, files.compare)
        return evaluated(first, second, resamples=options.resamples, reject=reject)


class KiltMetrics(Metrics[GoldRecord, KiltScores]):
    """Evaluates answers and their provenance."""

    family = "kilt"
    duplicate, unknown = "duplicate_id", "unknown_id"

    def __init__(
        self, files: KiltFiles, options: KiltEvaluation, articles: KnowledgeSource | None, predictions: str
    ) -> None:
        """Initialises the metrics.

        Args:
            articles: resolves redirects, if these are accepted.
            predictions: the predictions in ``files``, or a second system's.
        """
        super().__init__(files.gold, {"predictions": predictions}, KiltScores(predictions))
        self._options, self._articles = options, articles
        self._crosswalk = Crosswalk(files.crosswalk) if files.crosswalk is not None else None
        if self._crosswalk is not None:
            self.scores.moved = self._crosswalk.moved
        self._unanswered: list[Callable[[RecordError], None]] = []
        self._n_answers = 0

    def expected(self, role: str) -> str:
        return "records of KILT with id and output"

    def fits(self, role: str, record: Json) -> bool:
        return record.keys() >= {"id", "output"}

    def id_of(self, record: Json) -> str:
        return id_of(record)

    def stored_values(self, role: str, record: Json) -> Any:
        return tuple(parse_kilt_prediction(record))

    def check_stored(self, role: str, stored: Any, reject: Callable[[RecordError], None]) -> None:
        prediction = KiltPrediction(*stored)
        if prediction.provenance is None:
            reject(RecordError("several_provenances", "provenance in several outputs"))
        if prediction.answer is None:
            self._unanswered.append(reject)
        else:
            self._n_answers += 1

    def begin(self) -> None:
        for reject in self._unanswered if self._n_answers else ():
            reject(RecordError("no_answer", "no output, or not one with an answer"))

    def parse(self, record: Json) -> GoldRecord:
        return parse_kilt_gold(record)

    def score(self, ids: Sequence[str], question: GoldRecord, given: SystemOutput) -> None:
        (record_id,) = ids
        kept = given.get("predictions", record_id)
        self.scores.without_prediction += kept is None
        self.scores.without_answers += not question.answers
        self.scores.has_pages.append(any(place_ids(output, PAGE) for output in question.outputs))
        prediction = NO_PREDICTION if kept is None else KiltPrediction(*kept)
        item = self.scores.new_item(record_id)
        for name, value in self._values(record_id, question, prediction).items():
            self.scores.columns[name].add(item, value)

    def _answer(self, prediction: KiltPrediction) -> str:
        """Returns the predicted answer. If redirects are accepted and the answer is a redirect's title, returns the
        article's title."""
        answer = prediction.answer or ""
        if self._articles is None:
            return answer
        found = self._articles.resolve(answer)
        return found.title if found.by == "title" and found.hops and found.title is not None else answer

    def _values(self, record_id: str, gold: GoldRecord, prediction: KiltPrediction) -> dict[str, float]:
        """Returns the values of a record by metric, in display order."""
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
) -> tuple[dict[str, EvaluationResult[KiltScores]], list[str]]:
    """Returns the scores of every task by gold file, in the leaderboard's order, and the gold files without
    predictions.

    A file of predictions is named like its gold file. Tasks that are not part of KILT come last, without a metric.

    Raises:
        SetupError: as ``evaluate_kilt``; there is no gold file, or there are no predictions for any.
    """
    tasks, missing = task_files(files)
    return {base_name(task.gold): evaluate_kilt(task, options, reject=reject) for task in tasks}, missing


def task_files(files: KiltFiles) -> tuple[list[KiltFiles], list[str]]:
    """Returns the files of every task of a folder, in the leaderboard's order, and the gold files without predictions.

    Raises:
        SetupError: there is no gold file, or there are no predictions for any.
    """
    folder = files.predictions
    order = {name: number for number, name in enumerate(all_sources())}
    tasks, missing = [], []
    gold_files = glob(join(files.gold, "*.jsonl*"))
    for path in sorted(gold_files, key=lambda path: (order.get(base_name(path).partition("-")[0], len(order)), path)):
        name = base_name(path)
        if Folder.of(join(folder, name)).exists():
            tasks.append(replace(files, gold=path, predictions=join(folder, name), all_tasks=False))
        elif metric_of(name):
            missing.append(name)
    if not tasks and not missing:
        raise SetupError(f"{files.gold} has no file like nq-dev-kilt.jsonl; name the folder of gold files.")
    if not tasks:
        raise SetupError(f"{folder} has no file that is named like one of {files.gold}, such as {missing[0]}.")
    return tasks, missing
