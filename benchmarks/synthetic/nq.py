"""Generates Natural Questions: about 280 KB per record in the full form and 25 KB in the simplified form, as in the
real files.

A page has a heading, a table, and paragraphs with 3,000 tokens in all. There are five annotators (one in the simplified
form). About four records in ten have short answers, as in the real data. 1 % have only yes or no, and 1 % have only
long short answers. Every thousandth line is truncated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.synthetic.form import Synthetic, Words, write_text

_N_PARAGRAPHS = 30
_N_WORDS = 96
_BROKEN_EVERY = 1_000
_NULL = {"start_token": -1, "end_token": -1, "candidate_index": -1}


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes about ``n_bytes`` of Natural Questions in the full form into a folder, and returns the files."""
    words = Words("nq")
    path = write_text(folder / "nq-dev-00.jsonl", _lines(words, n_annotators=5, is_full=True), n_bytes=n_bytes)
    return Synthetic("nq", "dev", (path,))


def write_simplified(folder: Path, n_bytes: int) -> Synthetic:
    """Writes Natural Questions in the simplified form."""
    words = Words("nq simplified")
    lines = _lines(words, n_annotators=1, is_full=False)
    path = write_text(folder / "simplified-nq-train.jsonl", lines, n_bytes=n_bytes)
    return Synthetic("nq", "train", (path,))


def _lines(words: Words, *, n_annotators: int, is_full: bool) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        line = _full(words, number, n_annotators) if is_full else _simplified(words, number, n_annotators)
        yield f"{line[: len(line) // 2] if number % _BROKEN_EVERY == 0 else line}\n"


def _simplified(words: Words, number: int, n_annotators: int) -> str:
    tokens, paragraphs = _page(words)
    record = {
        "document_text": " ".join(tokens),
        "long_answer_candidates": [{"start_token": s, "top_level": True, "end_token": e} for s, e in paragraphs],
        **_question(words, number, _annotations(words, paragraphs, n_annotators)),
    }
    return json.dumps(record, ensure_ascii=False)


def _full(words: Words, number: int, n_annotators: int) -> str:
    tokens, paragraphs = _page(words)
    written: list[str] = []
    byte = 0
    for token in tokens:
        end = byte + len(token)
        is_html = "true" if token.startswith("<") else "false"
        written.append(f'{{"token":"{token}","start_byte":{byte},"end_byte":{end},"html_token":{is_html}}}')
        byte = end + 1
    record = {
        **_question(words, number, _annotations(words, paragraphs, n_annotators)),
        "document_title": words.title(number),
        "document_html": " ".join(tokens),
        "long_answer_candidates": [{"start_token": s, "end_token": e, "top_level": True} for s, e in paragraphs],
    }
    return f'{json.dumps(record)[:-1]}, "document_tokens": [{",".join(written)}]}}'


def _page(words: Words) -> tuple[list[str], list[tuple[int, int]]]:
    """Returns the tokens of a page and the positions of its paragraphs."""
    tokens = ["<H1>", *words.list(2), "</H1>", "<Table>", "<Tr>", "<Td>", *words.list(2), "</Td>", "</Tr>", "</Table>"]
    paragraphs = []
    for _ in range(_N_PARAGRAPHS):
        start = len(tokens)
        tokens += ["<P>", *words.list(_N_WORDS), ".", "</P>"]
        paragraphs.append((start, len(tokens)))
    return tokens, paragraphs


def _question(words: Words, number: int, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    title = words.title(number).replace(" ", "_")
    return {
        "question_text": words.text(9),
        "annotations": annotations,
        "document_url": f"https://en.wikipedia.org//w/index.php?title={title}&amp;oldid={8 * 10**8 + number}",
        "example_id": words.rng.randrange(-(2**63), 2**63),
    }


def _annotations(words: Words, paragraphs: list[tuple[int, int]], n_annotators: int) -> list[dict[str, Any]]:
    kind = words.rng.random()
    return [_annotation(words, words.rng.choice(paragraphs), kind) for _ in range(n_annotators)]


def _annotation(words: Words, paragraph: tuple[int, int], kind: float) -> dict[str, Any]:
    """Returns an annotation: with short answers below 0.38, yes or no up to 0.39, long short answers up to 0.4."""
    start, end = paragraph
    first = words.rng.randrange(start + 1, end - 12)
    length = 12 if 0.39 <= kind < 0.4 else words.rng.randint(1, 5)
    is_short = kind < 0.38 or 0.39 <= kind < 0.4
    return {
        "annotation_id": words.rng.randrange(2**64),
        "long_answer": _NULL if kind > 0.6 else {"start_token": start, "end_token": end, "candidate_index": 0},
        "short_answers": [{"start_token": first, "end_token": first + length}] if is_short else [],
        "yes_no_answer": "YES" if 0.38 <= kind < 0.39 else "NONE",
    }
