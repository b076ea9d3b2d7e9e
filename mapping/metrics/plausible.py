"""Rejects evaluations of unsuitable files, before they return a table of zeros that looks like a result.

The reasons are gold files without answers, predictions without content, swapped files, and files without a common id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from kbsource.errors import SetupError
from mapping.sources.raw_records import Json, readable_records

Family = Literal["kilt", "qampari", "amber"]
_MOST_LOOKED_AT = 1_000
"""Number of records read to distinguish gold from predictions."""


class _Form(NamedTuple):
    """How to recognise the records of a family."""

    has_gold: Callable[[Json], bool]  # returns whether a record contains gold answers
    has_prediction: Callable[[Json], bool]  # returns whether a record contains a prediction
    is_gold: Callable[[Json], bool]  # returns whether a record has a key that only gold records have
    is_prediction: Callable[[Json], bool]  # returns whether a record has a key that only predictions have
    gold: str  # name of the part of a gold record that contains the answers, for messages
    prediction: str  # name of the part of a record that contains the prediction, for messages


def check_plausible(family: Family, gold: str, predictions: str) -> None:
    """Checks that a gold file and a file of predictions can be compared.

    Raises:
        SetupError: the gold file has no answers, or is input for ``kbsource map jsonl``; the predictions are empty; or
            the two are swapped.
    """
    form = _FORMS[family]
    if _are_swapped(form, gold, predictions):
        raise SetupError(
            f"{gold} contains predictions, and {predictions} contains gold records; name the gold file first."
        )
    if not any(record.keys() & {"output", "answers", "answer_list", "qids"} for record in readable_records(gold)):
        return  # the reader reports what the file should be
    if not any(form.has_gold(record) for record in readable_records(gold)):
        if any(_is_own_form(record) for record in readable_records(gold)):
            raise SetupError(
                f"{gold} has the format that kbsource map jsonl reads; name the …-kilt.jsonl that the command wrote."
            )
        raise SetupError(f"{gold} has no record with {form.gold}, so no prediction can be correct; name the gold file.")
    if not any(form.has_prediction(record) for record in readable_records(predictions)):
        raise SetupError(f"{predictions} has no record with {form.prediction}; name a file of predictions.")


def check_ids(gold: str, predictions: str, *, n_common: int, gold_ids: Iterator[str], unknown: Iterator[str]) -> None:
    """Checks that some predictions are for gold records.

    Args:
        n_common: number of records in both.
        gold_ids: ids of gold records.
        unknown: ids of predictions for other records.

    Raises:
        SetupError: there is no common id.
    """
    if n_common:
        return
    here, there = next(gold_ids, None), next(unknown, None)
    if here is not None and there is not None:
        raise SetupError(
            f"{gold} and {predictions} have no id in common: {here[:80]!r} and {there[:80]!r}, for example. Name "
            "predictions for these records."
        )


def _are_swapped(form: _Form, gold: str, predictions: str) -> bool:
    looked_at = [
        [record for record, _ in zip(readable_records(path), range(_MOST_LOOKED_AT), strict=False)]
        for path in (gold, predictions)
    ]
    (gold_is_gold, is_gold), (gold_is_prediction, is_prediction) = (
        [any(map(has, own)) for own in looked_at] for has in (form.is_gold, form.is_prediction)
    )
    return not gold_is_gold and (is_gold or (gold_is_prediction and not is_prediction))


def _outputs(record: Json) -> list[Json]:
    outputs = record.get("output")
    listed = outputs if isinstance(outputs, list) else [outputs]
    return [output for output in listed if isinstance(output, dict)]


def _spans(record: Json) -> list[Json]:
    places = (output.get("provenance") for output in _outputs(record))
    return [span for own in places if isinstance(own, list) for span in own if isinstance(span, dict)]


def _names_page(span: Json) -> bool:
    return span.get("wikipedia_id") not in (None, "")


def _is_own_form(record: Json) -> bool:
    return any("evidence" in output for output in _outputs(record))


def _predicts(record: Json) -> bool:
    """Returns whether a record has an answer, or provenance that names pages. A search without results writes an empty
    list."""
    outputs, spans = _outputs(record), _spans(record)
    has_list = any(isinstance(output.get("provenance"), list) for output in outputs)
    has_answer = any(output.get("answer") not in (None, "") for output in outputs)
    return has_answer or (has_list and (not spans or any(map(_names_page, spans))))


def _answers_or_found(record: Json) -> bool:
    """Returns whether a record has answers, or a list of passages. A search without results writes an empty list."""
    return _has_any(record, "predictions", "prediction") or isinstance(record.get("ctxs"), list)


def _is_kilt_gold(record: Json) -> bool:
    marks = ("bleu_score", "start_character", "meta")
    n_sets = sum(bool(output.get("provenance")) and "answer" in output for output in _outputs(record))
    return "meta" in record or n_sets > 1 or any(mark in span for span in _spans(record) for mark in marks)


def _is_kilt_prediction(record: Json) -> bool:
    return any("score" in span or "passage_id" in span for span in _spans(record))


def _has_any(record: Json, *keys: str) -> bool:
    return any(bool(value) for value in map(record.get, keys))


_ANSWER_OR_PAGE = "an answer or provenance that names a page (wikipedia_id)"
_FORMS: dict[Family, _Form] = {
    "kilt": _Form(
        has_gold=lambda record: any(map(_names_page, _spans(record))),
        has_prediction=_predicts,
        is_gold=_is_kilt_gold,
        is_prediction=_is_kilt_prediction,
        gold="provenance that names a page (wikipedia_id)",
        prediction=_ANSWER_OR_PAGE,
    ),
    "qampari": _Form(
        has_gold=lambda record: _has_any(record, "answer_list", "answers"),
        has_prediction=_answers_or_found,
        is_gold=lambda record: "answer_list" in record,
        is_prediction=lambda record: "predictions" in record or "prediction" in record,
        gold="answers",
        prediction="predictions or passages",
    ),
    "amber": _Form(
        has_gold=lambda record: _has_any(record, "qids"),
        has_prediction=_predicts,
        is_gold=lambda record: "qids" in record,
        is_prediction=lambda record: "output" in record and "qids" not in record,
        gold="entities (qids)",
        prediction=_ANSWER_OR_PAGE,
    ),
}
