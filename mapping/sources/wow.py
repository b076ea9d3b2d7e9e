"""Wizard of Wikipedia: turns of a dialogue, with the sentence that the wizard chose to talk about.

Source: Dinan et al. 2019, "Wizard of Wikipedia"; the files of ParlAI: ``train.json``, ``valid_topic_split.json``,
``test_topic_split.json`` (topics that are not in train) and their ``random_split`` counterparts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal

from kbsource.dump.compressed.streams import without_suffix
from kbsource.errors import RecordError, SetupError
from kbsource.files import base_name
from kbsource.records import BadRecord
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.examples import ExclusionError, Origin, leave_out, read_record
from mapping.sources.raw_records import (
    Json,
    check_shape,
    iter_array,
    objects_at,
    optional_object,
    optional_objects,
    text_at,
)
from mapping.sources.source import Averages, Ownership, PublishedFigures, Source, SourceOptions, Split

_FILES: dict[Split, str] = {"train": "train.json", "dev": "valid_topic_split.json", "test": "test_topic_split.json"}
_OTHER_FILES = ("valid_random_split.json", "test_random_split.json")
_SPEAKER = re.compile(r"(?:\d+_)?(?P<part>Wizard|Apprentice)")
_NOTHING_USED = "no_passages_used"
# <chosen|self|partner>_<title with underscores>_<number of the sentence>
_SENTENCE_KEY = re.compile(r"[^_]+_(?P<title>.+)_[^_]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WizardOptions(SourceOptions):
    """Options of Wizard of Wikipedia."""

    turns: Literal["right", "released"] = "right"
    """Turns in the input, and the answer. right: the input ends before the wizard's utterance, which is the answer.
    released: the input includes the utterance, and the answer is the chosen sentence, as in the authors' code.
    """


class WizardOfWikipedia(Source[WizardOptions]):
    """Dialogues; each turn of a wizard is one record.

    Ids are ``<split>-<dialogue>-<turn>``, numbered from 0 over all inputs, including excluded ones.
    """

    name = "wow"
    summary = "Wizard of Wikipedia: turns of a dialogue, with the sentences that they are based on"
    options_type = WizardOptions
    metric = "f1"
    published = PublishedFigures(
        {"train": 63_734, "dev": 3_054, "test": 2_944},
        Averages(1, 1, 1, 1),
        {"dev": (469, 12.06), "test": (427, 11.39)},
    )
    ownership = Ownership(
        "Wizard of Wikipedia", "the authors of Wizard of Wikipedia", "https://parl.ai/projects/wizard_of_wikipedia/"
    )

    def check_inputs(self) -> None:
        for path in self.inputs.records:
            name = without_suffix(base_name(path))
            if name != _FILES[self.split] and name in (*_FILES.values(), *_OTHER_FILES):
                raise SetupError(
                    f"{path}: {self.split} of wow is {_FILES[self.split]} (dev and test have topics that train lacks"
                    "). Give that file, or another --split; a file of your own needs another name."
                )
            check_shape(
                path,
                iter_array(path),
                lambda record: isinstance(record.get("dialog"), list),
                expected="dialogues of Wizard of Wikipedia, one JSON array of objects with chosen_topic and dialog",
            )

    def read(self) -> Iterator[Example | BadRecord]:
        """See ``Source.read``. An unreadable dialogue, or a dialogue without a wizard's turn, counts as one record."""
        raws = chain.from_iterable(iter_array(path) for path in self.inputs.records)
        for number, raw in enumerate(raws):
            name = f"{self.split}-{number}"
            try:
                dialogue = Dialogue(raw.parse(), self.options)
                if not dialogue.wizard_turns:
                    raise ExclusionError("no_wizard")
            except (ExclusionError, RecordError) as error:
                yield from leave_out(Origin(raw, key=name), error, self.tally)
                continue
            for turn in dialogue.wizard_turns:
                origin = Origin(raw, key=f"{name}-{turn}")
                yield from read_record(origin, partial(dialogue.example, turn), self.tally)


class Dialogue:
    """A parsed dialogue; ``wizard_turns`` are the numbers of the wizard's turns, from 0.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``: it has no list of turns with speaker and text;
            ``unknown_speaker``.
    """

    def __init__(self, record: Json, options: WizardOptions) -> None:
        self._record = record
        self._is_released = options.turns == "released"
        self._turns = objects_at(record, "dialog")
        self._texts = [text_at(turn, "text") for turn in self._turns]
        self.wizard_turns = [number for number, turn in enumerate(self._turns) if _part(turn) == "Wizard"]

    def example(self, number: int, origin: Origin) -> Example:
        """Returns the example for a wizard's turn: all turns before it, its text, and the chosen sentence.

        Raises:
            ExclusionError: ``first_turn``, ``no_answer``, ``no_passages_used``, ``nothing_checked``.
            RecordError: ``missing_field``, ``wrong_type``, ``no_title``.
        """
        turn, answer = self._turns[number], self._texts[number]
        key, sentence = _checked_sentence(turn)
        history = self._texts[:number]
        if not any(text.strip() for text in history):
            raise ExclusionError("first_turn")
        if not answer.strip():
            raise ExclusionError("no_answer")
        if self._is_released:
            history, answer = self._texts[: number + 1], sentence.strip()
        evidence = Evidence(PageKey("title", self._title(number, key, sentence)), sentence.strip())
        return origin.example("\n".join(history), [Output(answer, (evidence,))])

    def _title(self, number: int, key: str, sentence: str) -> str:
        """Returns the page of a sentence: the checked page, else the page that its key names, else the page whose
        passage contains it."""
        checked = optional_object(self._turns[number], "checked_passage") or {}
        if len(checked) == 1:
            (title,) = checked.values()
            passages = (passage for shown, passage in self._all_passages(number) if shown == title)
            if isinstance(title, str) and any(sentence in passage for passage in passages):
                return title
        if (named := _SENTENCE_KEY.fullmatch(key)) and (title := named["title"].replace("_", " ").strip()):
            return title
        for title, passage in self._all_passages(number):
            if sentence in passage:
                return title
        raise RecordError("no_title", f"nothing names the page of {sentence[:80]!r}, its key is {key!r}")

    def _all_passages(self, number: int) -> Iterator[tuple[str, list[Any]]]:
        """Iterates over the titles and sentences that were shown up to a turn, the latest first; the chosen topic comes
        last."""
        for turn in reversed(self._turns[: number + 1]):
            for passages in optional_objects(turn, "retrieved_passages"):
                for title, sentences in passages.items():
                    yield title, _sentences(sentences)
        if "chosen_topic_passage" in self._record:
            yield text_at(self._record, "chosen_topic"), _sentences(self._record["chosen_topic_passage"])


def _part(turn: Json) -> str:
    speaker = text_at(turn, "speaker")
    if not (found := _SPEAKER.fullmatch(speaker)):
        raise RecordError("unknown_speaker", f"{speaker[:80]!r} is neither wizard nor apprentice")
    return found["part"]


def _checked_sentence(turn: Json) -> tuple[str, str]:
    """Returns the key and text of the sentence that the wizard chose.

    Raises:
        ExclusionError: ``nothing_checked``, ``no_passages_used``.
        RecordError: ``wrong_type``.
    """
    checked = optional_object(turn, "checked_sentence") or {}
    if not checked:
        raise ExclusionError("nothing_checked")
    if _NOTHING_USED in (*checked, *checked.values()):
        raise ExclusionError(_NOTHING_USED)
    if len(checked) != 1:
        raise RecordError("wrong_type", f"'checked_sentence': expected an object with one key, found {len(checked)}")
    ((key, sentence),) = checked.items()
    if not isinstance(sentence, str):
        raise RecordError("wrong_type", f"'checked_sentence': expected a string, found {sentence!r:.80}")
    if not sentence.strip():
        raise ExclusionError("nothing_checked")
    return key, sentence


def _sentences(written: object) -> list[Any]:
    if not isinstance(written, list):
        raise RecordError("wrong_type", f"a passage must be a list of sentences, found {written!r:.80}")
    return written


SOURCES = (WizardOfWikipedia,)
