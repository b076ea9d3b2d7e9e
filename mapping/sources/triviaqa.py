"""TriviaQA, the Wikipedia part of its reading comprehension form: trivia questions whose answers have many names.

Source: https://nlp.cs.washington.edu/triviaqa (README of ``triviaqa-rc.tar.gz``) and section 4 of the KILT paper (an
answer and each of its aliases are searched for in each of the question's pages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kbsource.dump.compressed.streams import SUFFIXES
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name, glob, join
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.examples import ExclusionError, Origin, RecordSource
from mapping.sources.raw_records import Json, RawRecord, iter_array, list_at, object_at, objects_at, text_at
from mapping.sources.source import (
    ANSWERS_STAY,
    Averages,
    LabelForm,
    Ownership,
    PublishedFigures,
    SourceOptions,
    Split,
    by_split,
    check_names,
    check_words,
)

_DATA = "Data"
_ANSWER = "Answer"
_FILES: dict[Split, str] = {
    "train": "wikipedia-train.json",
    "dev": "wikipedia-dev.json",
    "test": "wikipedia-test-without-answers.json",
}
_SPLIT = re.compile(rb'\],\s*"Domain": *"[^"]*",\s*"Split": *"(\w+)"')
_TAIL_BYTES = 500


class TriviaQa(RecordSource[SourceOptions]):
    """Questions with the names of their answer; each name is searched for in each page of its question.

    An input is a file of questions, the folder ``qa`` with the files of all splits, or ``triviaqa-rc.tar.gz`` itself.
    """

    name = "triviaqa"
    summary = "TriviaQA: trivia questions whose answers have many names"
    form = "TriviaQA's reading comprehension form, with {keys}"
    keys, answer_keys = frozenset({"QuestionId", "Question", "EntityPages"}), frozenset({_ANSWER})
    options_type = SourceOptions
    labels = LabelForm("TriviaQA's test questions", "QuestionId", (_ANSWER,), array=_DATA)
    # Valid as soon as one alias is found (in train: as soon as there is a page); the other aliases are kept as answers.
    policies = by_split(
        replace(ANSWERS_STAY, prefers_exact=True),
        train=replace(ANSWERS_STAY, needs_provenance=False, needs_page=True, prefers_exact=True),
    )
    hypothesis = "answer"
    metric = "em"
    published = PublishedFigures(
        {"train": 61_844, "dev": 5_359, "test": 6_586},
        Averages(1, 3.39, 1.68, 28.67),
        {"dev": (950, 15.06), "test": (1109, 14.41)},
    )
    ownership = Ownership(
        "TriviaQA",
        "the authors of the questions",
        "https://nlp.cs.washington.edu/triviaqa/",
        note="The questions are of trivia websites; those who collected them do not own the copyright.",
    )

    @property
    def expected(self) -> str:
        return f"{_FILES[self.split]} of {super().expected}"

    def id_of(self, record: Json) -> str:
        return text_at(record, "QuestionId")

    def raws(self, path: str) -> Iterator[RawRecord]:
        """Reads the questions of a split, from a file, the folder ``qa`` or the archive."""
        name = _FILES[self.split]
        in_folder = {base_name(file): file for file in glob(join(path, "*"))}
        found = [in_folder[name + ending] for ending in SUFFIXES if name + ending in in_folder]
        if in_folder and not found:
            raise SetupError(
                f"{path} is a folder without {name}; give the folder qa of triviaqa-rc.tar.gz, or the file."
            )
        return iter_array(found[0] if found else path, key=_DATA, member=f"qa/{name}")

    def check_files(self) -> None:
        for path in self.inputs.records:
            if not glob(join(path, "*")):
                check_names([path], self.split)
                # The published files name their split after the questions; this cannot be read from a compressed file.
                with Folder.of(path).open() as file:
                    file.seek(max(Folder.of(path).size() - _TAIL_BYTES, 0))
                    said = [found.decode() for found in _SPLIT.findall(file.read())]
                check_words(path, said, self.split)

    def fits(self, path: str, record: Json) -> bool:
        if record.get("SearchResults"):
            raise SetupError(f"{path} belongs to TriviaQA's web part; give a file wikipedia-*.json.")
        return super().fits(path, record)

    def example(self, record: Json, origin: Origin) -> Example:
        """Returns an example with one output for each name of the answer and each page, in the order of the names.

        Raises:
            ExclusionError: ``no_page``.
            RecordError: ``missing_field``, ``wrong_type``.
        """
        question = text_at(record, "Question")
        titles = dict.fromkeys(text_at(page, "Title") for page in objects_at(record, "EntityPages"))
        pages = [PageKey("title", title) for title in titles]
        if not pages:
            raise ExclusionError("no_page")
        outputs: list[Output] = []
        if self.split != "test" or _ANSWER in record:
            names = _names(object_at(record, _ANSWER))
            outputs = [Output(name, (Evidence(page, name),)) for name in names for page in pages]
        return origin.example(question, outputs)


def _names(answer: Json) -> list[str]:
    """Returns the distinct names of an answer: its aliases, or its value if it has no aliases."""
    written = list_at(answer, "Aliases") or [text_at(answer, "Value")]
    for name in written:
        if not isinstance(name, str):
            raise RecordError("wrong_type", f"'Aliases': expected a list of strings, found {repr(written)[:80]}")
    names = [name for name in dict.fromkeys(written) if name.strip()]
    if not names:
        raise RecordError("missing_field", "an answer has neither a name in 'Aliases' nor a 'Value'")
    return names


SOURCES = (TriviaQa,)
