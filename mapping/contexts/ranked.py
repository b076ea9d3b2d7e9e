"""Ranked passages as a retriever gives them for the questions of a release.

The same files as for ``kbsource evaluate qampari --retrieved``: ``qid`` and ``ctxs``, a list of ``{id, title, text}``,
best first, each with a ``score`` if it has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.contexts.gold import GoldPassages
from mapping.metrics.qampari_files import is_line_of, qid_of
from mapping.sources.reading.fields import Json, digits_or_text, objects_at, text_at
from mapping.sources.reading.files_in import check_shape
from mapping.sources.reading.joined import Joined
from mapping.sources.reading.labels import iter_labels

REASONS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "duplicate_passage": "a passage comes twice among those of a question",
    "duplicate_question": "the qid was given before",
    "malformed_json": "a line that is not JSON",
    "missing_field": "a field that is needed is absent",
    "other_text": "a passage that proves an answer has another text in the corpus: the corpus was cut in another way",
    "record_too_long": "a line of more than 64 MiB",
    "unknown_passage": "the corpus has no passage with the id: page id, two underscores, number",
    "unknown_question": "passages for a question that is not in the release",
    "wrong_type": "a value of another type than the field has",
}
"""Why a line is left out: reason -> meaning."""

Reject = Callable[[BadRecord], None]


class RankedPassage(NamedTuple):
    """A passage that a retriever found.

    Attributes:
        passage_id, title, text: as the retriever gave them.
        score: of the retriever; without one, 1 over the rank.
    """

    passage_id: str
    title: str
    text: str
    score: float


def read_ranked(
    paths: Sequence[str], storage: Storage, joined: Joined, gold: GoldPassages, *, most: int, reject: Reject
) -> None:
    """Puts the passages of every line aside by question.

    Args:
        paths: files of lines.
        storage: holds them.
        joined: takes them; also those of questions that are not in the release.
        gold: what is known of the corpus.
        most: passages of a question that are kept.
        reject: called with the place and reason of every line that cannot be used.

    Raises:
        SetupError: a file cannot be read, or its first lines are not what it should hold.
    """
    for path in paths:
        check_shape(
            path,
            iter_labels(storage, path),
            lambda one: is_line_of(one, "retrieved"),
            expected="JSON Lines or an array with qid and ctxs",
        )
        for raw in iter_labels(storage, path):
            qid = ""
            try:
                record = raw.parse()
                qid = qid_of(record)
                joined.put("retrieved", qid, raw, _packed(_passages(record, gold)[:most]))
            except RecordError as error:
                reject(raw.bad(error, key=qid, stage="retrieved"))


def _packed(passages: Sequence[RankedPassage]) -> bytes:
    return orjson.dumps(list(map(tuple, passages)))


def ranked_for(qid: str, joined: Joined) -> list[RankedPassage] | None:
    """Gives the passages of a question, best first; None where there was no line."""
    content = joined.get("retrieved", qid)
    return None if content is None else [RankedPassage(*one) for one in orjson.loads(content)]


def _passages(record: Json, gold: GoldPassages) -> list[RankedPassage]:
    passages = [_passage(one, rank, gold) for rank, one in enumerate(objects_at(record, "ctxs"), start=1)]
    seen: set[str] = set()
    for passage in passages:
        if passage.passage_id in seen:
            raise RecordError("duplicate_passage", passage.passage_id)
        seen.add(passage.passage_id)
    return passages


def _passage(record: Json, rank: int, gold: GoldPassages) -> RankedPassage:
    passage_id, title, text = digits_or_text(record, "id"), text_at(record, "title"), text_at(record, "text")
    if not gold.is_passage(passage_id):
        raise RecordError("unknown_passage", repr(passage_id)[:80])
    known = gold.with_id(passage_id)
    if known is not None and known.text != text:
        raise RecordError("other_text", f"{passage_id}: {text[:80]!r}, in the corpus {known.text[:80]!r}")
    return RankedPassage(passage_id, title, text, 1 / rank if record.get("score") is None else _number(record["score"]))


def _number(value: Any) -> float:
    """Gives a score, which some retrievers write as text."""
    try:
        is_odd = isinstance(value, bool) or (isinstance(value, str) and "_" in value)  # "1_0" would be ten
        number = math.nan if is_odd else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise RecordError("wrong_type", f"'score': expected a number, found {repr(value)[:80]}")
    return number
