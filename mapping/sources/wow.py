"""Wizard of Wikipedia: turns of a dialogue, with the sentence that the wizard chose to speak about.

Source: Dinan et al. 2019, "Wizard of Wikipedia"; the files of ParlAI: ``train.json``, ``valid_topic_split.json``,
``test_topic_split.json`` (topics that train does not have) and their ``random_split`` counterparts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, base_name
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally
from mapping.sources.reading.examples import ExclusionError, Origin, exclude, give, reject
from mapping.sources.reading.fields import Json, objects_at, optional_object, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_array

_FILES: dict[Split, str] = {"train": "train.json", "dev": "valid_topic_split.json", "test": "test_topic_split.json"}
_OTHER_FILES = ("valid_random_split.json", "test_random_split.json")
_SPEAKER = re.compile(r"(?:\d+_)?(?P<part>Wizard|Apprentice)")
_NOTHING_USED = "no_passages_used"
# <chosen|self|partner>_<title with underscores>_<number of the sentence>
_SENTENCE_KEY = re.compile(r"[^_]+_(?P<title>.+)_[^_]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WizardOptions(SourceOptions):
    """Choices of Wizard of Wikipedia."""

    turns: Literal["right", "released"] = option(
        "right",
        "released gives the wizard's utterance away in the input, and has the chosen sentence as the answer, as the "
        "authors' code does",
    )


class WizardOfWikipedia(Source[WizardOptions]):
    """Reads dialogues; every turn of a wizard is a record of its own.

    Ids are ``<split>-<dialogue>-<turn>``, numbered from 0 over all inputs, the ones that are left out too.
    """

    name = "wow"
    options = WizardOptions

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: WizardOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            name = re.sub(r"\.(?:gz|bz2)$", "", base_name(path))
            if name != _FILES[split] and name in (*_FILES.values(), *_OTHER_FILES):
                raise SetupError(
                    f"{path}: {split} of wow is {_FILES[split]} (dev and test have the topics that train has not)."
                    " Give that file, or another --split; a file of your own needs another name."
                )
            check_shape(
                path,
                iter_array(storage, path),
                lambda record: isinstance(record.get("dialog"), list),
                expected="dialogues of Wizard of Wikipedia, one JSON array of objects with chosen_topic and dialog",
            )

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: WizardOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``. A dialogue that cannot be read, or in which no wizard speaks, counts as one record."""
        number = -1
        for path in inputs.records:
            for raw in iter_array(storage, path):
                number += 1
                try:
                    dialogue = Dialogue(raw.parse(), f"{split}-{number}", options)
                except RecordError as error:
                    tally.records += 1
                    yield reject(raw, error, tally, key=f"{split}-{number}")
                else:
                    if not dialogue.wizard_turns:
                        tally.records += 1
                        exclude(raw, "no_wizard", tally, key=f"{split}-{number}")
                    yield from _turns(dialogue, raw, tally)


def _turns(dialogue: Dialogue, raw: RawRecord, tally: Tally) -> Iterator[Example | BadRecord]:
    for turn in dialogue.wizard_turns:
        tally.records += 1
        origin = Origin(raw)
        try:
            example = dialogue.example(turn, origin)
        except ExclusionError as exclusion:
            exclude(raw, exclusion.reason, tally, key=dialogue.id_of(turn))
        except RecordError as error:
            yield reject(raw, error, tally, key=dialogue.id_of(turn))
        else:
            yield from give(example, origin, tally)


class Dialogue:
    """One parsed dialogue.

    Args:
        record: the dialogue.
        dialogue_id: begins the ids of its turns.
        options: ``turns`` counts.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``: it has no list of turns with speaker and text;
            ``unknown_speaker``.

    Attributes:
        wizard_turns: numbers of the turns in which the wizard speaks, from 0.
    """

    def __init__(self, record: Json, dialogue_id: str, options: WizardOptions) -> None:
        self._record = record
        self._id = dialogue_id
        self._is_released = options.turns == "released"
        self._turns = objects_at(record, "dialog")
        self._texts = [text_at(turn, "text") for turn in self._turns]
        self.wizard_turns = [number for number, turn in enumerate(self._turns) if _part(turn) == "Wizard"]

    def id_of(self, number: int) -> str:
        """Gives the id of a turn."""
        return f"{self._id}-{number}"

    def example(self, number: int, origin: Origin) -> Example:
        """Gives the example of a wizard's turn: all turns before it, its text, and the sentence that was chosen.

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
        return Example(
            self.id_of(number),
            "\n".join(history),
            (Output(answer, (evidence,)),),
            None,
            file=origin.raw.file,
            line=origin.raw.line,
        )

    def _title(self, number: int, key: str, sentence: str) -> str:
        """Gives the page of a sentence: as it was checked, else as its key names it, else whose passage holds it."""
        checked = optional_object(self._turns[number], "checked_passage") or {}
        if len(checked) == 1:
            (title,) = checked.values()
            if isinstance(title, str) and any(sentence in passage for passage in self._passages(number, title)):
                return title
        if (named := _SENTENCE_KEY.fullmatch(key)) and (title := named["title"].replace("_", " ").strip()):
            return title
        for title, passage in self._all_passages(number):
            if sentence in passage:
                return title
        raise RecordError("no_title", f"nothing names the page of {sentence[:80]!r}, its key is {key!r}")

    def _passages(self, number: int, title: str) -> Iterator[list[Any]]:
        return (passage for one, passage in self._all_passages(number) if one == title)

    def _all_passages(self, number: int) -> Iterator[tuple[str, list[Any]]]:
        """Gives titles and sentences that were shown up to a turn, the last first, the chosen topic at the end."""
        for turn in reversed(self._turns[: number + 1]):
            for passages in objects_at(turn, "retrieved_passages") if "retrieved_passages" in turn else []:
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
    """Gives key and text of the sentence that the wizard chose.

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
        raise RecordError("wrong_type", f"'checked_sentence': expected one pair, found {len(checked)}")
    ((key, sentence),) = checked.items()
    if not isinstance(sentence, str):
        raise RecordError("wrong_type", f"'checked_sentence': expected a string, found {sentence!r:.80}")
    if not sentence.strip():
        raise ExclusionError("nothing_checked")
    return key, sentence


def _sentences(written: object) -> list[Any]:
    if not isinstance(written, list):
        raise RecordError("wrong_type", f"a passage is a list of sentences, found {written!r:.80}")
    return written
