"""Records of Natural Questions made up for a test."""

from __future__ import annotations

from typing import Any


def nq_place(start: int, end: int) -> dict[str, int]:
    return {"start_token": start, "end_token": end}


def nq_annotation(*short: tuple[int, int], long: tuple[int, int] = (-1, -1), choice: str = "NONE") -> dict[str, Any]:
    return {
        "annotation_id": 7,
        "long_answer": {**nq_place(*long), "candidate_index": -1},
        "short_answers": [nq_place(*one) for one in short],
        "yes_no_answer": choice,
    }


def nq_question(*annotations: Any, text: str = "<P> a b c d e f </P>", **fields: Any) -> dict[str, Any]:
    return {
        "example_id": 1,
        "question_text": "q",
        "document_url": "https://mini.example.org//w/index.php?title=Lake_Miravel&amp;oldid=1",
        "document_text": text,
        "long_answer_candidates": [],
        "annotations": list(annotations),
        **fields,
    }
