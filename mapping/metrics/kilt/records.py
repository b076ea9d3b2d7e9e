"""Records and predictions of KILT as they are evaluated."""

from __future__ import annotations

from typing import NamedTuple

from kbsource.errors import RecordError
from mapping.metrics.kilt.answers import stripped
from mapping.metrics.kilt.provenance import Provenance
from mapping.sources.reading.fields import Json, objects_at

REASONS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "duplicate_id": "the id was given before in this file",
    "malformed_json": "a line that is not JSON",
    "missing_field": "a field that is needed is absent",
    "no_answer": "a prediction without an answer, or with several outputs, in a file that gives answers",
    "no_output": "a gold record whose output is empty",
    "record_too_long": "a line of more than 64 MiB",
    "several_provenances": "a prediction with provenance in several outputs: no place is taken from it",
    "unknown_id": "a prediction for a record that is not among the gold ones",
    "wrong_type": "a value of another type than the field has",
}
"""Why a line, or a part of it, is left out: reason -> meaning."""


class GoldRecord(NamedTuple):
    """What a record is evaluated by.

    Attributes:
        text: its input; empty where it has none.
        answers: stripped, none empty, each once.
        titles: of its provenance, likewise.
        outputs: provenance of each output that has one.
    """

    text: str
    answers: tuple[str, ...]
    titles: tuple[str, ...]
    outputs: tuple[Provenance, ...]


class Prediction(NamedTuple):
    """What a system gives for a record.

    Attributes:
        answer: of its only output; None where that has none, or there are several.
        provenance: places, best first; None where several outputs have some.
    """

    answer: str | None
    provenance: Provenance | None


NO_PREDICTION = Prediction("", ())


def id_of(record: Json) -> str:
    """Gives the id as ids are compared: as text, without blanks around it.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    if not isinstance(record.get("id"), str | int | float):
        raise RecordError("wrong_type" if "id" in record else "missing_field", "id is no string or number")
    return str(record["id"]).strip()


def parse_gold(record: Json) -> GoldRecord:
    """Gives what a gold record is evaluated by.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``, ``no_output``.
    """
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
    """Gives the answer and the places that a line predicts; a retriever may add the gold answers.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    outputs = objects_at(record, "output")
    with_places = [objects_at(output, "provenance") for output in outputs if "provenance" in output]
    answer = _answer(outputs[0]) if len(outputs) == 1 else None
    return Prediction(answer, None if len(with_places) > 1 else next(iter(with_places), ()))


def _answer(output: Json) -> str | None:
    """Gives the answer of an output as text, as the released script reads it; None where there is none."""
    answer = output.get("answer")
    if isinstance(answer, list | dict):
        raise RecordError("wrong_type", f"'answer': expected a string, found {repr(answer)[:80]}")
    return None if answer is None else str(answer)
