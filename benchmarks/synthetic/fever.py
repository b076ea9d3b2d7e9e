"""Generates claims of about 200 bytes with one to three evidence sets of one or two sentences. A quarter are NOT ENOUGH
INFO.

For every ten claims, wiki-pages has one page of eight sentences. Some data is broken: one page in fifty is named but
missing, one sentence number in fifty does not exist, one set in fifty names no page, and one claim in ten thousand is
truncated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_text

_CLAIMS_A_PAGE = 10
_SENTENCES = 8
_PAGES_A_FILE = 50_000


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes claims with this number of bytes, and the pages that they name."""
    words = Words("fever")
    claims = _Claims(words)
    records = write_text(folder / "train.jsonl", claims.lines(), n_bytes=n_bytes)
    pages = folder / "wiki-pages"
    n_pages = claims.n_claims // _CLAIMS_A_PAGE + 1
    for number, start in enumerate(range(0, n_pages, _PAGES_A_FILE), 1):
        numbers = range(start, min(start + _PAGES_A_FILE, n_pages))
        write_text(
            pages / f"wiki-{number:03}.jsonl",
            (_page(words, article_number) for article_number in numbers),
            n_bytes=1 << 60,
        )
    return Synthetic("fever", "train", (records,), (str(pages),))


class _Claims:
    def __init__(self, words: Words) -> None:
        self._words = words
        self.n_claims = 0

    def lines(self) -> Iterator[str]:
        rng = self._words.rng
        while True:
            number = self.n_claims
            self.n_claims += 1
            if rng.random() < 0.25:
                label, sets = "NOT ENOUGH INFO", [[[number, None, None, None]]]
            else:
                label = rng.choice(("SUPPORTS", "REFUTES"))
                sets = [self._set(number) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
            claim = {
                "id": number,
                "verifiable": "NOT VERIFIABLE" if label.startswith("NOT") else "VERIFIABLE",
                "label": label,
                "claim": self._words.sentence(8),
                "evidence": sets,
            }
            line = json.dumps(claim)
            yield f"{line[:40] if number % 10_000 == 9_999 else line}\n"

    def _set(self, number: int) -> list[list[int | str | None]]:
        rng = self._words.rng
        if rng.random() < 0.02:
            return [[number, None, None, None]]
        # Pages that come later than the claims reach are missing.
        last = number // _CLAIMS_A_PAGE
        page = last + 1_000_000 if rng.random() < 0.02 else rng.randint(0, last)
        n_sentences = 2 if rng.random() < 0.16 else 1
        name = self._words.title(page).replace(" ", "_") + "_-LRB-town-RRB-"
        return [
            [number, number + at, name, rng.randrange(_SENTENCES + (rng.random() < 0.16))] for at in range(n_sentences)
        ]


def _page(words: Words, number: int) -> str:
    sentences = [words.sentence(20) for _ in range(_SENTENCES)]
    lines = "\n".join(f"{at}\t{sentence}\tan anchor\tAn anchor" for at, sentence in enumerate(sentences))
    name = words.title(number).replace(" ", "_") + "_-LRB-town-RRB-"
    return json.dumps({"id": name, "text": " ".join(sentences), "lines": lines}) + "\n"
