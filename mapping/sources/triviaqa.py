"""TriviaQA, the Wikipedia part of its reading comprehension form: trivia questions whose answers have many names.

Source: https://nlp.cs.washington.edu/triviaqa (README of ``triviaqa-rc.tar.gz``) and section 4 of the KILT paper (an
answer and each of its aliases are looked for in each of the question's pages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, base_name, join
from kbsource.records import BadRecord
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally, check_names, check_words
from mapping.sources.reading.examples import ExclusionError, Origin, read_examples
from mapping.sources.reading.fields import Json, list_at, object_at, objects_at, text_at
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_array
from mapping.sources.reading.labels import Labels, check_labels, iter_labels
from mapping.sources.reading.scratch import Scratch

_DATA = "Data"
_ANSWER = "Answer"
_FILES: dict[Split, str] = {
    "train": "wikipedia-train.json",
    "dev": "wikipedia-dev.json",
    "test": "wikipedia-test-without-answers.json",
}
_SPLIT = re.compile(rb'\],\s*"Domain": *"[^"]*",\s*"Split": *"(\w+)"')
_TAIL_BYTES = 500
_PACKED = ("", ".gz", ".bz2")


class TriviaQa(Source[SourceOptions]):
    """Reads questions with the names of their answer, each of which is looked for in each of their pages.

    An input is a file of questions, the folder ``qa`` that holds those of all splits, or ``triviaqa-rc.tar.gz`` as it
    is.
    """

    name = "triviaqa"
    options = SourceOptions
    has_labels = True

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        wanted = {"QuestionId", "Question", "EntityPages"} | (set() if split == "test" else {_ANSWER})
        expected = f"{_FILES[split]} of TriviaQA's reading comprehension form, with {', '.join(sorted(wanted))}"
        for path in inputs.records:

            def fits(record: Json, path: str = path) -> bool:
                if record.get("SearchResults"):
                    raise SetupError(f"{path} is of TriviaQA's web part; give a file wikipedia-*.json.")
                return wanted <= record.keys()

            check_shape(path, _questions(path, split, storage), fits, expected=expected)
            if not storage.glob(join(path, "*")):
                check_names([path], split)
                check_words(path, _said_split(path, storage), split)
        check_labels(inputs.labels, storage, of="TriviaQA's test questions", fields=("QuestionId", _ANSWER), key=_DATA)

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(inputs.scratch))
            labels: Labels | None = None
            if inputs.labels:
                labels = stack.enter_context(Labels(inputs.scratch, id_of=_id_of, fields=(_ANSWER,)))
                yield from labels.keep((iter_labels(storage, path, key=_DATA) for path in inputs.labels), tally)
            yield from read_examples(
                (_questions(path, split, storage) for path in inputs.records),
                id_of=_id_of,
                convert=TriviaQuestions(split).example,
                scratch=scratch,
                tally=tally,
                labels=labels,
            )


class TriviaQuestions:
    """Converts parsed questions of one split; those of test need no answer."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def example(self, record: Json, origin: Origin) -> Example:
        """Gives the example: one output for each name of the answer and each page, names in their order.

        Raises:
            ExclusionError: ``no_page``.
            RecordError: ``missing_field``, ``wrong_type``.
        """
        question = text_at(record, "Question")
        titles = dict.fromkeys(text_at(page, "Title") for page in objects_at(record, "EntityPages"))
        pages = [PageKey("title", title) for title in titles]
        if not pages:
            raise ExclusionError("no_page")
        outputs: tuple[Output, ...] = ()
        if self._split != "test" or _ANSWER in record:
            outputs = tuple(
                Output(name, (Evidence(page, name),)) for name in _names(object_at(record, _ANSWER)) for page in pages
            )
        return Example(_id_of(record), question, outputs, None, file=origin.raw.file, line=origin.raw.line)


def _names(answer: Json) -> list[str]:
    """Gives the distinct names of an answer: its aliases, or else its value alone."""
    written = list_at(answer, "Aliases") or [text_at(answer, "Value")]
    for name in written:
        if not isinstance(name, str):
            raise RecordError("wrong_type", f"'Aliases': expected a list of strings, found {repr(written)[:80]}")
    names = [name for name in dict.fromkeys(written) if name.strip()]
    if not names:
        raise RecordError("missing_field", "an answer has at least one name")
    return names


def _id_of(record: Json) -> str:
    return text_at(record, "QuestionId")


def _said_split(path: str, storage: Storage) -> list[str]:
    """Gives the split that a file says behind its questions, where the published files do; none of a packed one."""
    with storage.open_read(path) as file:
        file.seek(max(storage.size(path) - _TAIL_BYTES, 0))
        return [found.decode() for found in _SPLIT.findall(file.read())]


def _questions(path: str, split: Split, storage: Storage) -> Iterator[RawRecord]:
    """Gives the questions of a split, from a file, the folder ``qa`` or the archive."""
    name = _FILES[split]
    in_folder = {base_name(file): file for file in storage.glob(join(path, "*"))}
    found = [in_folder[name + ending] for ending in _PACKED if name + ending in in_folder]
    if in_folder and not found:
        raise SetupError(f"{path} is a folder without {name}; give the folder qa of triviaqa-rc.tar.gz, or the file.")
    return iter_array(storage, found[0] if found else path, key=_DATA, member=f"qa/{name}")
