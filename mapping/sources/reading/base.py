"""What every dataset's reader is: a ``Source`` with its inputs, options and counts, and the examples it gives."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from kbsource.errors import SetupError
from kbsource.files import Storage, base_name
from kbsource.records import BadRecord
from mapping.options import Checked, Option
from mapping.records import Example

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
_SPLIT_WORDS = {"train": "train", "dev": "dev", "val": "dev", "valid": "dev", "validation": "dev", "test": "test"}
EVIDENCE_SPAN = "evidence_span"
"""Key of the ``meta`` of evidence that annotators chose: a list of what they highlighted."""
PARTIAL_EVIDENCE = "partial_evidence"
"""Key of the ``meta`` of a record: spans that hold part of the evidence."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Paths of one run.

    Attributes:
        records: the dataset's own files, in the order they are read; ``.gz`` and ``.bz2`` are read as they are.
        references: where the evidence texts stand, when that is elsewhere: FEVER's wiki-pages, HotpotQA's
            abstracts, the RawText folder of WNED, the knowledge source a KILT file was made for, the files of an
            annotation campaign.
        labels: answers of a test split whose records have none, see ``mapping.sources.reading.labels``.
        scratch: existing folder for indexes on disk; None for the system's folder for temporary files.
    """

    records: tuple[str, ...]
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    scratch: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions(Checked):
    """Choices of a reader; those of a dataset that has any are a class of their own, beside it.

    The defaults are the right rules; quirks of released code or data have names.
    """

    @property
    def sample_records(self) -> int | None:
        """Records of dev and of test that are drawn after the filter, see ``mapping.decide.sample``; None where a
        dataset has splits of its own."""
        return None

    @property
    def places_nothing(self) -> bool:
        """Whether evidence without text has a place, in front of the title."""
        return False


def references_option(flag: str, help: str, metavar: str = "PATH") -> Option:
    """Declares the files that hold the evidence texts of a dataset; ``PATH`` is a file or a folder."""
    return Option(help, flag, metavar, name="references", is_many=True)


LABELS = Option(
    "answers of a test file without, by id; it is written with them too",
    "--labels",
    "FILE",
    name="labels",
    is_many=True,
)


Options = TypeVar("Options", bound=SourceOptions)


class LeftOut(NamedTuple):
    """A record that is no example of its own.

    Attributes:
        example_id: its id; of a merged record that of the example that it is a part of; None where none can be read.
        file, line: base name of its file, and its line there or the number of the array's element that holds it.
        outcome: how it is counted.
        reason: why; None for a merged one.
    """

    example_id: str | None
    file: str
    line: int
    outcome: Literal["excluded", "rejected", "merged"]
    reason: str | None = None


@dataclass(slots=True)
class Tally:
    """Counts of one reading.

    Attributes:
        records: records met in the inputs: lines, array elements or mentions of the split.
        examples: examples given.
        excluded: records left out because the dataset's rules say so, by reason.
        rejected: records that could not be used, by reason.
        merged: records that became a part of an example together with another record, which is the one that is
            counted with the examples.
        evidences: pieces of evidence in the examples given.
        lost_evidences: those among them whose text the dataset's own references do not have, by reason.
        references: records met in the references.
        rejected_references: those among them that could not be used, by reason.
    """

    records: int = 0
    examples: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    merged: int = 0
    evidences: int = 0
    lost_evidences: Counter[str] = field(default_factory=Counter)
    references: int = 0
    rejected_references: Counter[str] = field(default_factory=Counter)

    def leave(self, left: LeftOut) -> None:
        """Counts a record that is no example of its own."""
        if left.reason is None:
            self.merged += 1
        else:
            (self.excluded if left.outcome == "excluded" else self.rejected)[left.reason] += 1


class Source(ABC, Generic[Options]):
    """A dataset in its original form.

    Attributes:
        name: name in the registry and on the command line, which begins the names of the files that are written too.
        splits: splits that there are.
        options: class of its choices.
        references: where its evidence texts stand, when that is elsewhere; None where it takes none.
        has_labels: answers of a test split may stand in files of their own.
    """

    name: str
    splits: tuple[Split, ...] = SPLITS
    options: type[Options]
    references: Option | None = None
    has_labels: bool = False

    @abstractmethod
    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: Options) -> None:
        """Looks at the beginning of every input before anything is read.

        Raises:
            SetupError: a file is missing, empty or altogether another one than is needed, or there is no such
                split; the message says what was expected.
        """

    @abstractmethod
    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: Options, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """Gives every record once, in the order of the inputs: an example, or the reason why there is none.

        A ``BadRecord`` has stage ``source`` for a record; ``evidence`` for one piece of evidence whose id does not
        exist, in front of its example, where the evidence has empty text or is left out; ``reference`` for a record of
        the references. Excluded and merged records are told to ``tally`` alone, which is complete when the iterator
        has ended.

        Raises:
            SetupError: an input cannot be read to its end.
        """

    def check_split(self, split: str) -> None:
        """Raises SetupError for a split that the dataset does not have."""
        if split not in self.splits:
            raise SetupError(f"{self.name} has no split {split!r}. Choose one of: {', '.join(self.splits)}.")


def check_names(paths: Iterable[str], split: Split) -> None:
    """Raises SetupError for a file whose name has the words of other splits alone."""
    for path in paths:
        check_words(path, re.split("[^a-z]+", base_name(path).lower()), split)


def check_words(path: str, words: Iterable[str], split: Split) -> None:
    """Raises SetupError for a file where words that say of which split it is name other ones alone."""
    named = sorted({_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS})
    if named and split not in named:
        raise SetupError(
            f"{path} is of the split {named[0]}, not of {split}: give a file of {split}, or --split {named[0]}. A file"
            " of your own that is neither needs another name."
        )
