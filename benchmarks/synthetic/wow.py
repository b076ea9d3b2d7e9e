"""Generates dialogues of about 70 KB: ten turns, each with seven passages of eight sentences, as in the files of
ParlAI.

The wizard speaks every other turn, and in half of the dialogues also the first turn. In one of his turns in ten, no
sentence was chosen, and in one in ten, no passage was used. The page is only in the key in one turn in ten, and only in
the passages in one turn in ten. One dialogue in a thousand has a turn without text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.synthetic.form import Synthetic, Words, write_array

_TURNS = 10
_SHOWN = 7
_SENTENCES = 8


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes dialogues with this number of bytes."""
    records = write_array(folder / "train.json", _dialogues(Words("wow")), n_bytes=n_bytes)
    return Synthetic("wow", "train", (records,))


def _dialogues(words: Words) -> Iterator[str]:
    number = 0
    while True:
        turns: list[dict[str, Any]] = []
        shown: list[tuple[str, list[str]]] = []
        for at in range(_TURNS):
            passages = [_passage(words) for _ in range(_SHOWN)]
            is_wizard = (at + number) % 2 == 0
            turn: dict[str, Any] = {
                "speaker": "0_Wizard" if is_wizard else "1_Apprentice",
                "text": f"{words.text(16)}.",
                "retrieved_topics": [title for title, _ in passages],
                "retrieved_passages": [dict([cut_passage]) for cut_passage in passages],
            }
            if is_wizard:
                turn |= _choice(words, shown)
            turns.append(turn)
            shown = passages
        if number % 1_000 == 999:
            del turns[-1]["text"]
        topic, passage = _passage(words)
        yield json.dumps(
            {
                "chosen_topic": topic,
                "persona": words.text(10),
                "wizard_eval": 5,
                "dialog": turns,
                "chosen_topic_passage": passage,
            }
        )
        number += 1


def _passage(words: Words) -> tuple[str, list[str]]:
    return words.title(words.rng.randrange(1 << 20)), [f"{words.text(18)}." for _ in range(_SENTENCES)]


def _choice(words: Words, shown: list[tuple[str, list[str]]]) -> dict[str, Any]:
    kind = words.rng.randrange(10)
    if not shown or kind == 0:
        return {"checked_sentence": {}, "checked_passage": {}}
    if kind == 1:
        nothing = {"no_passages_used": "no_passages_used"}
        return {"checked_sentence": nothing, "checked_passage": nothing}
    title, sentences = words.rng.choice(shown)
    sentence = words.rng.choice(sentences)
    key = "partner" if kind == 2 else f"partner_{title.replace(' ', '_')}_0"
    passage = {} if kind in (2, 3) else {f"partner_passage_0_{title}": title}
    return {"checked_sentence": {key: sentence}, "checked_passage": passage}
