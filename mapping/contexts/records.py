"""Questions with passages in the forms that retrievers (DPR) and readers (Fusion-in-Decoder) are trained on.

Source: QAMPARI's released retriever files (``*_with_contexts``) and its files for Fusion-in-Decoder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from mapping.contexts.gold import GoldText
from mapping.contexts.negatives import NameFinder
from mapping.contexts.ranked import RankedPassage

SEPARATOR = "#"
"""Between the answers that a reader is to write."""
ADDED = ("question", "answers", "positive_ctxs", "hard_negative_ctxs", "ctxs")
"""What a released question gets for retrievers."""


class Positive(NamedTuple):
    """A passage that proves an answer, and which proof it holds."""

    pid: str
    passage: GoldText


def hard_negatives(
    ranked: Sequence[RankedPassage], names: NameFinder, *, gold_ids: Collection[str], most: int
) -> list[RankedPassage]:
    """Gives the best passages that are not gold and name no answer in title or text; each once.

    Args:
        ranked: best first.
        names: of the answers.
        gold_ids: ids of the passages that prove an answer.
        most: how many are wanted.
    """
    found: dict[str, RankedPassage] = {}
    for passage in ranked:
        if len(found) == most:
            break
        if passage.passage_id in gold_ids or passage.passage_id in found:
            continue
        if not names.is_in(passage.title, passage.text):
            found[passage.passage_id] = passage
    return list(found.values())


def contexts_record(
    record: dict[str, Any],
    positives: Sequence[Positive],
    negatives: Sequence[RankedPassage],
    ranked: Sequence[RankedPassage],
) -> dict[str, Any]:
    """Gives a released question with its passages.

    Args:
        record: as released.
        positives: in the order of answers and proofs; a passage that holds two proofs comes twice. Their ``score`` is
            the retriever's, 0 where it did not find the passage.
        negatives: best first; their ``pid`` is the question's id.
        ranked: what the retriever found, best first.
    """
    scores: dict[str, float] = {}
    for passage in ranked:
        scores.setdefault(passage.passage_id, passage.score)
    return {
        **record,
        "question": record["question_text"],
        "answers": [answer["answer_text"] for answer in record["answer_list"]],
        "positive_ctxs": [
            _context(positive.passage, scores.get(positive.passage.passage_id, 0.0), positive.pid)
            for positive in positives
        ],
        "hard_negative_ctxs": [_context(negative, negative.score, record["qid"]) for negative in negatives],
        "ctxs": _ranked_contexts(ranked),
    }


def fid_record(record: dict[str, Any], ranked: Sequence[RankedPassage]) -> dict[str, Any]:
    """Gives a released question as Fusion-in-Decoder reads it.

    ``answers`` are the names of all answers, each once; ``ans_mappings`` has them by answer; ``target`` is what is to
    be written: the answers with ``SEPARATOR`` between two of them.
    """
    mappings: dict[str, list[str]] = {}
    for answer in record["answer_list"]:
        names = mappings.setdefault(answer["answer_text"], [])
        names += [name for name in answer["aliases"] if name not in names]
    return {
        "id": record["qid"],
        "question": record["question_text"],
        "question_text": record["question_text"],
        "answers": list(dict.fromkeys(name for names in mappings.values() for name in names)),
        "ans_mappings": mappings,
        "target": SEPARATOR.join(answer["answer_text"] for answer in record["answer_list"]),
        "ctxs": _ranked_contexts(ranked),
    }


def _context(passage: GoldText | RankedPassage, score: float, pid: str) -> dict[str, Any]:
    return {
        "text": passage.text,
        "title": passage.title,
        "score": score,
        "chunk_id": passage.passage_id,
        "pid": pid,
    }


def _ranked_contexts(ranked: Sequence[RankedPassage]) -> list[dict[str, Any]]:
    return [
        {"id": passage.passage_id, "title": passage.title, "text": passage.text, "score": passage.score}
        for passage in ranked
    ]
