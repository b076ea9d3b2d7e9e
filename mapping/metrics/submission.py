"""Predictions as they are submitted to KILT's challenge. There is a line for every test question, with one output that
has an answer and its provenance, as the released scorer requires.

Source: facebookresearch/KILT, ``kilt/eval_downstream.py``, which refuses a file that lacks one of the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import base_name
from kbsource.release.output import output_file
from mapping.metrics.evaluation import KiltEvaluation, KiltFiles
from mapping.metrics.evaluator import GOLD, Reject, SystemOutput, evaluate
from mapping.metrics.kilt import NO_PREDICTION, GoldRecord, KiltMetrics, KiltPrediction, KiltScores, task_files
from mapping.metrics.plausible import check_plausible
from mapping.options import check_ending
from mapping.sources.raw_records import Json

_ZIP = ".zip"
_SPAN = (
    "wikipedia_id",
    "title",
    "section",
    "start_paragraph_id",
    "start_character",
    "end_paragraph_id",
    "end_character",
)


def write_submission(
    files: KiltFiles, output: str, *, reject: Reject
) -> tuple[Mapping[str, SubmissionCounts], Sequence[str]]:
    """Writes the predictions for one or all files of test questions.

    Returns the counts of each file, and the files of KILT's tasks without predictions. Predictions are in the order of
    the questions. A question without a prediction has an empty answer and no provenance. Spans have only KILT's keys.

    Args:
        output: a .zip with a file for each file of questions, or the predictions for a single one as JSON Lines.

    Raises:
        SetupError: an input is not a file of questions or predictions, or they have no id in common.
    """
    tasks, missing = task_files(files) if files.all_tasks else ([files], [])
    if not output.lower().endswith(_ZIP):
        if files.all_tasks:
            raise SetupError(
                f"--submission {output}: with --all, a submission has several files and is an archive; "
                f"name it like {output}{_ZIP}."
            )
        check_ending("--submission", output, "JSON Lines", fitting=["jsonl"])
    for task in tasks:
        check_plausible("kilt", task.gold, task.predictions)
    counts = {}
    with output_file(output) as target, _opener(target, is_zip=output.lower().endswith(_ZIP)) as opened:
        for task in tasks:
            name = f"{base_name(task.gold).partition('.jsonl')[0]}.jsonl"
            with opened(name) as file:
                submission = _Submission(task, file)
                evaluate(submission, reject=reject)
                counts[name] = submission.scores
    return counts, missing


@contextmanager
def _opener(target: BinaryIO, *, is_zip: bool) -> Iterator[Callable[[str], Any]]:
    """Opens the files of a submission by name: members of an archive without times, or the target itself."""
    if not is_zip:

        @contextmanager
        def itself(_: str) -> Iterator[BinaryIO]:
            yield target

        yield itself
        return
    with ZipFile(target, "w") as archive:

        def member(name: str) -> Any:
            info = ZipInfo(name)  # without a time, which is the start of 1980
            info.compress_type = ZIP_DEFLATED
            return archive.open(info, "w", force_zip64=True)

        yield member


@dataclass
class SubmissionCounts(KiltScores):
    """Counts of the questions of a submission."""

    empty_answers: int = 0  # predictions without an answer, which score 0

    def counts(self) -> Iterator[tuple[str, int]]:
        """Lists the numbers of records, and of records without a prediction or with an empty answer."""
        yield from super().counts()
        if self.empty_answers:
            yield "with an empty answer, which scores 0", self.empty_answers


class _Submission(KiltMetrics):
    """Writes the prediction for each question, and counts questions without one and empty answers."""

    scores: SubmissionCounts

    def __init__(self, files: KiltFiles, file: BinaryIO) -> None:
        super().__init__(files, KiltEvaluation(), None, files.predictions)
        self._file = file
        self.scores = SubmissionCounts()

    def expected(self, role: str) -> str:
        return "questions of KILT with id" if role == GOLD else super().expected(role)

    def fits(self, role: str, record: Json) -> bool:
        return "id" in record if role == GOLD else super().fits(role, record)

    def check_stored(self, role: str, stored: Any, reject: Callable[[RecordError], None]) -> None:
        super().check_stored(role, stored, reject)
        provenance = KiltPrediction(*stored).provenance or ()
        if any(span.get("wikipedia_id") is None for span in provenance):
            reject(RecordError("missing_field", "a span without wikipedia_id, which is left out"))

    def parse(self, record: Json) -> GoldRecord:
        return GoldRecord("", (), (), ())

    def score(self, ids: Sequence[str], question: GoldRecord, given: SystemOutput) -> None:
        (record_id,) = ids
        kept = given.get("predictions", record_id)
        self.scores.new_item(record_id)
        self.scores.without_prediction += kept is None
        prediction = NO_PREDICTION if kept is None else KiltPrediction(*kept)
        spans = [
            {key: span[key] for key in _SPAN if span.get(key) is not None} | {"wikipedia_id": str(span["wikipedia_id"])}
            for span in prediction.provenance or ()
            if span.get("wikipedia_id") is not None
        ]
        answer = prediction.answer or ""
        self.scores.empty_answers += kept is not None and not answer.strip()
        output = {"answer": answer, "provenance": spans}
        self._file.write(orjson.dumps({"id": record_id, "output": [output]}, option=orjson.OPT_APPEND_NEWLINE))
