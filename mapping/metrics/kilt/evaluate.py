"""The evaluation of predictions for a task of KILT.

Source: Petroni et al., KILT (2021), section 4. Where the released scripts go wrong, their behaviour has a name in
``mapping.metrics.kilt.options.QUIRKS`` and is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import numpy as np
import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord
from mapping.metrics.kilt.answers import NOTHING, AnswerScores, score_answer
from mapping.metrics.kilt.crosswalk import Crosswalk
from mapping.metrics.kilt.options import PAGE, KiltEvaluation, KiltFiles
from mapping.metrics.kilt.provenance import (
    context_scores,
    evidence_sets,
    is_in_input,
    place_ids,
    r_precision,
    rank_scores,
)
from mapping.metrics.kilt.records import NO_PREDICTION, GoldRecord, Prediction, id_of, parse_gold, parse_prediction
from mapping.metrics.kilt.scores import KiltScores, SystemScores
from mapping.metrics.kilt.uncertainty import differences, intervals
from mapping.sources.reading.fields import Json
from mapping.sources.reading.files_in import RawRecord, check_shape
from mapping.sources.reading.joined import Joined
from mapping.sources.reading.labels import iter_labels

Reject = Callable[[BadRecord], None]

DOWNSTREAM = AnswerScores._fields
KILT = tuple(f"KILT-{name}" for name in DOWNSTREAM)


def evaluate_kilt(
    files: KiltFiles, storage: Storage, options: KiltEvaluation, *, reject: Reject, scratch_folder: str | None = None
) -> KiltScores:
    """Gives the scores of a file of predictions, or of two beside each other.

    Every gold record counts, also one that has no prediction. Memory: the values of all records, some 250 bytes each,
    and one record.

    Args:
        files: JSON Lines or one JSON array, plain, gzip or bzip2, in the form of the published files.
        storage: holds them.
        options: how it is done.
        reject: called with the place and reason of every line, or part of one, that cannot be used.
        scratch_folder: where predictions are kept meanwhile; None for the system's.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold.
    """
    if files.predictions is None:
        raise SetupError("Give the predictions: kbsource evaluate kilt PREDICTIONS --gold FILE.")
    with ExitStack() as stack:
        articles = None
        if files.accept_redirects is not None:
            articles = stack.enter_context(KnowledgeSource.open(files.accept_redirects, storage))
        system = partial(_System, files, storage, options, reject=reject, folder=scratch_folder, articles=articles)
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
        storage: Storage,
        options: KiltEvaluation,
        path: str,
        *,
        reject: Reject,
        folder: str | None,
        articles: KnowledgeSource | None,
    ) -> None:
        self._path = path
        self._files = files
        self._storage = storage
        self._options = options
        self._articles = articles
        self._report = reject
        self._folder = folder
        self._crosswalk = Crosswalk(files.crosswalk, storage) if files.crosswalk is not None else None
        self._scores = SystemScores(path)
        self._unanswered: list[tuple[str, RawRecord]] = []
        self._n_answers = 0

    def evaluate(self) -> SystemScores:
        rows: list[dict[str, float]] = []
        with Joined(self._folder) as joined:
            self._read_predictions(joined)
            for record_id, gold in self._gold(joined):
                content = joined.get("predictions", record_id)
                self._scores.without_prediction += content is None
                prediction = NO_PREDICTION if content is None else parse_prediction(orjson.loads(content))
                values = self._values(record_id, gold, prediction)
                self._scores.without_answers += not gold.answers
                rows.append(values)
                self._scores.ids.append(record_id)
            for record_id, raw in joined.without_question("predictions"):
                self._reject(raw, RecordError("unknown_id", f"{record_id!r} is not in {self._files.gold}"), record_id)
        scores = self._scores
        scores.names = tuple(rows[0]) if rows else ()
        scores.values = np.array([list(row.values()) for row in rows], dtype=np.float64).reshape(len(rows), -1)
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
                reason = "duplicate_id" if error.reason == "duplicate_question" else error.reason
                self._reject(raw, RecordError(reason, error.detail), record_id)
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
                reason = "duplicate_id" if error.reason == "duplicate_question" else error.reason
                self._reject(raw, RecordError(reason, error.detail), record_id, role="gold")
            else:
                yield record_id, gold

    def _records(self, path: str, role: str) -> Iterator[tuple[RawRecord, Json]]:
        check_shape(
            path,
            iter_labels(self._storage, path),
            lambda record: "id" in record and "output" in record,
            expected=f"records of KILT with id and output ({role})",
        )
        for raw in iter_labels(self._storage, path):
            try:
                record = raw.parse()
            except RecordError as error:
                self._reject(raw, error, "", role=role)
            else:
                yield raw, record

    def _reject(self, raw: RawRecord, error: RecordError, record_id: str, *, role: str = "predictions") -> None:
        self._scores.rejected.setdefault(role, Counter())[error.reason] += 1
        self._report(raw.bad(error, key=record_id, stage=role))

    def _answer(self, prediction: Prediction) -> str:
        """Gives the predicted answer; of the title of a redirect, where that counts, the article's."""
        answer = prediction.answer or ""
        if self._articles is None:
            return answer
        found = self._articles.resolve(answer)
        return found.title if found.by == "title" and found.hops and found.title is not None else answer

    def _values(self, record_id: str, gold: GoldRecord, prediction: Prediction) -> dict[str, float]:
        """Gives the values of a record by metric, in the order in which they are shown."""
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
