"""What every dataset's reader is: a ``Source`` with its inputs, options and counts, and the examples it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.records import Evidence, Example

Split = Literal["train", "dev", "test"]
EvidenceKey = tuple[int, int]
"""Output's index and the evidence's index in it; ``PARTIAL`` in the first place for record-level partial evidence."""

PARTIAL = -1


@dataclass(frozen=True, slots=True)
class Inputs:
    """Paths of one run.

    Attributes:
        records: the dataset's own files, in the order they are read; ``.gz`` and ``.bz2`` are read as they are.
        references: where the evidence texts stand, when that is elsewhere: FEVER's wiki-pages, HotpotQA's
            abstracts, the RawText folder of WNED, the knowledge source a KILT file was made for.
    """

    records: tuple[str, ...]
    references: tuple[str, ...] = ()


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
        seed: names the random split of WNED.
        sentence_escapes: FEVER: ``undone``, or ``kept`` to leave ``-LRB-`` and its like in the evidence text.
        keep_meta: HotpotQA: put ``level`` and ``type`` into the record's ``meta``.
        numbering: KILT files made from a release of this project: paragraphs counted as in the ``kilt`` form or
            as the release's ``elements``.
    """

    scratch: str | None = None
    window: Literal["right", "released", "whole"] = "right"
    max_tokens: int = 256
    blank_lines: Literal["skip", "released"] = "skip"
    seed: str = "kilt"
    sentence_escapes: Literal["undone", "kept"] = "undone"
    keep_meta: bool = False
    numbering: Literal["kilt", "elements"] = "kilt"


@dataclass(slots=True)
class Tally:
    """Counts of one reading.

    Attributes:
        records: records met in the inputs: lines, array elements or mentions of the split.
        examples: examples given.
        excluded: records left out because the dataset's rules say so, by reason.
        rejected: records that could not be used, by reason.
        evidences: pieces of evidence in the examples given.
        lost_evidences: those among them whose text the dataset's own references do not have, by reason.
        references: records met in the references.
        rejected_references: those among them that could not be used, by reason.
    """

    records: int = 0
    examples: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    evidences: int = 0
    lost_evidences: Counter[str] = field(default_factory=Counter)
    references: int = 0
    rejected_references: Counter[str] = field(default_factory=Counter)

    @property
    def is_balanced(self) -> bool:
        """Says whether records in = examples out + excluded + rejected."""
        return self.records == self.examples + self.excluded.total() + self.rejected.total()


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


@dataclass(frozen=True, slots=True)
class ReleasedExample(Example):
    """A record that already has KILT's form.

    Attributes:
        released: the record as read. ``released["output"][i]["provenance"][j]`` is ``outputs[i].evidence[j]``; the
            record is written back over it, so that keys, their order and what is not known here stay.
        partial: evidence of ``released["meta"]["partial_evidence"]``, in order.
    """

    released: dict[str, Any]
    partial: tuple[Evidence, ...]


def iter_evidence(example: Example) -> Iterator[tuple[EvidenceKey, Evidence]]:
    """Gives every evidence of an example with its key, outputs first, then partial evidence."""
    for index, output in enumerate(example.outputs):
        for place, evidence in enumerate(output.evidence):
            yield (index, place), evidence
    if isinstance(example, ReleasedExample):
        for place, evidence in enumerate(example.partial):
            yield (PARTIAL, place), evidence


def released_span(example: ReleasedExample, key: EvidenceKey) -> dict[str, Any]:
    """Gives the span as it was read, for a crosswalk from the old knowledge source to the new."""
    index, place = key
    spans = (
        example.released["meta"]["partial_evidence"]
        if index == PARTIAL
        else example.released["output"][index]["provenance"]
    )
    span: dict[str, Any] = spans[place]
    return span


def check_split(source: Source, split: str) -> None:
    """Raises SetupError for a split that the dataset does not have."""
    if split not in source.splits:
        raise SetupError(f"{source.name} has no split {split!r}. Choose one of: {', '.join(source.splits)}.")
