"""What every dataset's reader is: a ``Source`` with its inputs, options and counts, and the examples it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.records import Example

Split = Literal["train", "dev", "test"]
EVIDENCE_SPAN = "evidence_span"
"""Key of the ``meta`` of evidence that annotators chose: a list of what they highlighted."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Paths of one run.

    Attributes:
        records: the dataset's own files, in the order they are read; ``.gz`` and ``.bz2`` are read as they are.
        references: where the evidence texts stand, when that is elsewhere: FEVER's wiki-pages, HotpotQA's
            abstracts, the RawText folder of WNED, the knowledge source a KILT file was made for, the files of an
            annotation campaign.
        labels: answers of a test split whose records have none, see ``mapping.sources.reading.labels``.
    """

    records: tuple[str, ...]
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Choices of a reader. The defaults are the right rules; quirks of released code or data have names.

    Attributes:
        scratch: existing folder for indexes on disk; None for the system's folder for temporary files.
        window: entity linking: how the context is cut. ``right``: at most ``max_tokens``, balanced.
            ``released``: as the authors' code cuts it, which keeps too little of the right side.
            ``whole``: not at all, as in the published AIDA file.
        max_tokens: entity linking: whitespace tokens of the input, the two tags included.
        blank_lines: entity linking: ``skip``, or ``released`` to let every blank line of the TSV put a second
            space into the contexts, as in the published files.
        seed: names the random split of WNED, the sample of T-REx and the random split of relations of Zero-Shot RE.
        sentence_escapes: FEVER: ``undone``, or ``kept`` to leave ``-LRB-`` and its like in the evidence text.
        keep_meta: HotpotQA: put ``level`` and ``type`` into the record's ``meta``.
        nq_keep_long_short_answers: Natural Questions: short answers of more than five tokens stay as answers without
            provenance, as in the published files; False leaves them out.
        nq_strip_html: Natural Questions: HTML tokens are no part of answers and evidence; False keeps them, as the
            authors' code does, which lowers the score of long answers.
        nq_annotation_meta: Natural Questions: ``meta`` of a long answer is of the annotation it comes from, ``own``,
            or always of the first one, ``released``, as in the published files.
        nq_null_long_answers: Natural Questions: ``skip``, or ``released`` to let the first annotation without a long
            answer give a span of no characters in front of the title, scored 1.0, as in the published files.
        nq_tokens: Natural Questions: what parts the tokens of a page, the ``blank`` alone, or any white space,
            ``released``, as in the authors' code, which shifts spans behind other white space.
        turns: Wizard of Wikipedia: ``right``, or ``released`` for the records of the authors' code, where the answer
            is the sentence that was chosen and the wizard's own utterance ends the input, which gives it away.
        numbering: KILT files made from a release of this project: paragraphs counted as in the ``kilt`` form or
            as the release's ``elements``.
        min_facts: T-REx: facts that a relation must have, else all of them are left out.
        sample: T-REx: records of dev and of test; all others are train.
        sample_pool: T-REx: records, in the order of the draw, among which those of dev and test are looked for. The
            more there are, the more are aligned for dev and test; which are drawn stays the same.
        rel_surface: T-REx: put the relation's surface forms into the record's ``meta``.
        fold: Zero-Shot RE: which of the ten original splits is read from a folder.
        relation_split: Zero-Shot RE: ``original``, or ``random`` to draw the relations of each split anew from all
            that are given: 7 of 10 for train, 1 for dev, 2 for test.
    """

    scratch: str | None = None
    window: Literal["right", "released", "whole"] = "right"
    max_tokens: int = 256
    blank_lines: Literal["skip", "released"] = "skip"
    seed: str = "kilt"
    sentence_escapes: Literal["undone", "kept"] = "undone"
    keep_meta: bool = False
    nq_keep_long_short_answers: bool = True
    nq_strip_html: bool = True
    nq_annotation_meta: Literal["own", "released"] = "own"
    nq_null_long_answers: Literal["skip", "released"] = "skip"
    nq_tokens: Literal["blank", "released"] = "blank"
    turns: Literal["right", "released"] = "right"
    numbering: Literal["kilt", "elements"] = "kilt"
    min_facts: int = 1_000
    sample: int = 5_000
    sample_pool: int = 40_000
    rel_surface: bool = False
    fold: int = 0
    relation_split: Literal["original", "random"] = "original"


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

    @property
    def is_balanced(self) -> bool:
        """Says whether records in = examples out + merged + excluded + rejected."""
        return self.records == self.examples + self.merged + self.excluded.total() + self.rejected.total()


class Source(Protocol):
    """A dataset in its original form.

    Attributes:
        name: name in the registry and on the command line.
        stem: begins the names of the files that are written.
        splits: splits that there are.
    """

    @property
    def name(self) -> str: ...

    @property
    def stem(self) -> str: ...

    @property
    def splits(self) -> tuple[Split, ...]: ...

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions) -> None:
        """Looks at the beginning of every input before anything is read.

        Raises:
            SetupError: a file is missing, empty or altogether another one than is needed, or there is no such
                split; the message says what was expected.
        """
        ...

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """Gives every record once, in the order of the inputs: an example, or the reason why there is none.

        A ``BadRecord`` has stage ``source`` for a record; ``evidence`` for one piece of evidence whose id does not
        exist, in front of its example, where the evidence has empty text; ``reference`` for a record of the
        references. Excluded records are only counted. ``tally`` is complete when the iterator has ended.

        Raises:
            SetupError: an input cannot be read to its end.
        """
        ...


def check_split(source: Source, split: str) -> None:
    """Raises SetupError for a split that the dataset does not have."""
    if split not in source.splits:
        raise SetupError(f"{source.name} has no split {split!r}. Choose one of: {', '.join(source.splits)}.")
