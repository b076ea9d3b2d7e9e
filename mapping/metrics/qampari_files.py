"""The files that QAMPARI is evaluated from: gold questions, predictions, retrieved passages.

All are JSON Lines or one JSON array, plain, gzip or bzip2, joined by ``qid``, or where a record has none by ``id``
(string or integer); other keys are passed over, so that released files are read as they are.

gold
    ``answer_list``: at least one ``{answer_text, aliases, aid, proof}``. ``aliases`` and ``aid`` may be absent.
    ``proof``, which only ERECALL@K reads: list of ``{proof_text, found_in_url}``; may be absent. Where the record has
    ``positive_ctxs`` (list of ``{pid, chunk_id, title, text}``), these are the evidence in place of the proofs; a
    ``pid`` is the ``aid`` of its answer, two underscores and a number. A question with one answer, as in Natural
    Questions, has in place of ``answer_list`` its ``answers``: at least one string, all of them names of that answer.
predictions
    ``predictions``: list of strings, or ``prediction``: the only one. A gold file with this key will do.
retrieved
    ``ctxs``: list of ``{id, title, text}``, best first; only ``--evidence-match id`` reads the ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import orjson

from kbsource.errors import RecordError
from mapping.metrics.answer_lists import GoldNames
from mapping.metrics.evaluation_options import EvidenceMatch
from mapping.metrics.retrieval import RetrievedPassage
from mapping.sources.reading.fields import Json, digits_or_text, is_integer, list_at, objects_at, optional_text, text_at

Kind = Literal["predictions", "retrieved"]
Role = Literal["gold", "predictions", "retrieved"]

KEYS: dict[Role, tuple[str, ...]] = {
    "gold": ("answer_list", "answers"),
    "predictions": ("predictions", "prediction"),
    "retrieved": ("ctxs",),
}
"""What a line of each file has beside its id: one of these."""

REASONS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "duplicate_answer": "two answers of one question have the same aid",
    "duplicate_question": "the qid was given before in this file",
    "malformed_json": "a line that is not JSON",
    "missing_field": "a field that is needed is absent",
    "no_answers": "a gold question without answers",
    "record_too_long": "a line of more than 64 MiB",
    "unknown_answer": "a piece of evidence whose pid belongs to none of the answers",
    "unknown_question": "predictions or passages for a question that is not among the gold ones",
    "wrong_type": "a value of another type than the field has",
}
"""Why a line is left out: reason -> meaning."""


class GoldEvidence(NamedTuple):
    """A passage that says that some of the answers are right.

    Attributes:
        passage: what it says, and where.
        answers: places in the list of answers, ascending.
    """

    passage: RetrievedPassage
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with what it should be answered by.

    Attributes:
        answers: at least one.
        evidence: each passage once, in the order of the answers; empty where it was not asked for.
        is_single: it is asked for one answer and not for a list.
    """

    answers: tuple[GoldNames, ...]
    evidence: tuple[GoldEvidence, ...]
    is_single: bool = False


def qid_of(record: Json) -> str:
    """Gives the question's id; raises ``missing_field`` or ``wrong_type``."""
    return digits_or_text(record, "id" if "id" in record and "qid" not in record else "qid")


def is_line_of(record: Json, role: Role) -> bool:
    """Says whether a record has the keys that a line of such a file needs."""
    return ("qid" in record or "id" in record) and any(key in record for key in KEYS[role])


def parse_gold(record: Json, match: EvidenceMatch | None, *, repeats: bool = False) -> GoldQuestion:
    """Gives the question of a gold record.

    Args:
        record: with the keys given at the head of this module.
        match: what its evidence will be matched by; None leaves it out.
        repeats: as released: a passage that is given several times is several.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``, ``no_answers``, ``duplicate_answer``, ``unknown_answer``.
    """
    # Where there are mappings, the answers are the names of many answers, as readers are given them.
    if "answers" in record and "answer_list" not in record and "ans_mappings" not in record:
        return _parse_single(record)
    listed = objects_at(record, "answer_list")
    if not listed:
        raise RecordError("no_answers", "answer_list is empty")
    answers = tuple(
        GoldNames(text_at(answer, "answer_text"), strings_at(answer, "aliases") if "aliases" in answer else ())
        for answer in listed
    )
    owners: dict[str, int] = {}
    for number, one in enumerate(listed):
        aid = optional_text(one, "aid")
        if aid is not None and owners.setdefault(aid, number) != number:
            raise RecordError("duplicate_answer", aid)
    if match is None:
        return GoldQuestion(answers, ())
    # An empty list says of passages with ids that there are none; for the text there may still be proofs.
    has_contexts = "positive_ctxs" in record if match == "id" else bool(record.get("positive_ctxs"))
    found = _contexts(record, owners, match) if has_contexts else _proofs(listed, match)
    if repeats:
        return GoldQuestion(answers, tuple(GoldEvidence(passage, (number,)) for number, passage in found))
    passages: dict[RetrievedPassage, dict[int, None]] = {}
    for number, passage in found:
        passages.setdefault(passage, {})[number] = None
    return GoldQuestion(answers, tuple(GoldEvidence(one, tuple(sorted(numbers))) for one, numbers in passages.items()))


def _parse_single(record: Json) -> GoldQuestion:
    names = strings_at(record, "answers")
    if not names:
        raise RecordError("no_answers", "answers is empty")
    return GoldQuestion((GoldNames(names[0], names[1:]),), (), is_single=True)


def _contexts(record: Json, owners: dict[str, int], match: EvidenceMatch) -> Iterator[tuple[int, RetrievedPassage]]:
    for context in objects_at(record, "positive_ctxs"):
        pid = text_at(context, "pid")
        number = owners.get(pid.rpartition("__")[0])
        if number is None:
            raise RecordError("unknown_answer", f"pid {pid!r}")
        if match == "id":
            yield number, RetrievedPassage(digits_or_text(context, "chunk_id"), "", "")
        else:
            yield number, RetrievedPassage("", text_at(context, "title"), text_at(context, "text"))


def _proofs(listed: list[Json], match: EvidenceMatch) -> Iterator[tuple[int, RetrievedPassage]]:
    for number, one in enumerate(listed):
        for proof in objects_at(one, "proof") if "proof" in one else ():
            if match == "id":
                raise RecordError(
                    "missing_field", "positive_ctxs, which give evidence the id of a passage; match by text"
                )
            yield number, RetrievedPassage("", text_at(proof, "found_in_url"), text_at(proof, "proof_text"))


def pack_predictions(record: Json) -> bytes:
    """Gives the predictions of a record in the form in which they are kept; raises as ``strings_at``."""
    if "prediction" in record and "predictions" not in record:
        return orjson.dumps((text_at(record, "prediction"),))
    return orjson.dumps(strings_at(record, "predictions"))


def unpack_predictions(content: bytes) -> list[str]:
    """Gives back what ``pack_predictions`` was given."""
    predictions: list[str] = orjson.loads(content)
    return predictions


def pack_passages(record: Json, n_kept: int, *, with_ids: bool) -> bytes:
    """Gives the best passages of a record in the form in which they are kept.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    passages = [
        (digits_or_text(context, "id") if with_ids else "", text_at(context, "title"), text_at(context, "text"))
        for context in objects_at(record, "ctxs")
    ]
    return orjson.dumps(passages[:n_kept])


def unpack_passages(content: bytes) -> list[RetrievedPassage]:
    """Gives back the passages that ``pack_passages`` kept."""
    return [RetrievedPassage(*one) for one in orjson.loads(content)]


def strings_at(record: Json, key: str) -> tuple[str, ...]:
    """Gives a list of strings; numbers stand for their digits.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    values = []
    for value in list_at(record, key):
        if not (isinstance(value, str) or is_integer(value)):
            raise RecordError("wrong_type", f"{key!r}: expected strings, found {repr(value)[:80]}")
        values.append(str(value))
    return tuple(values)
