"""Converts the records of a dataset to examples: parses them, adds their labels, converts them, checks their ids, and
counts them.

``RecordSource`` is a dataset that makes one example from each record. A file of labels is either the dataset's own
labelled form of the test file, or a JSON array or JSON lines with the id and the label fields of each record; all other
fields are ignored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from kbsource.errors import RecordError
from kbsource.records import BadRecord
from mapping.records import Evidence, Example, Output, RecordFate
from mapping.sources.raw_records import Json, RawRecord, check_shape, iter_lines, iter_records
from mapping.sources.scratch import Scratch
from mapping.sources.source import LabelForm, Options, Source, Tally, check_names


class ExclusionError(Exception):
    """The rules of the dataset exclude a record. The argument is the slug of the reason."""


class Origin:
    """A record that is being converted to an example, with the evidence that was lost.

    ``key`` is its id as soon as that is known; ``references`` returns the text of a reference by key.
    """

    __slots__ = ("key", "lost", "raw", "references")

    def __init__(
        self, raw: RawRecord, references: Callable[[str], bytes | None] = lambda key: None, *, key: str = ""
    ) -> None:
        self.raw = raw
        self.key = key
        self.references = references
        self.lost: list[RecordError] = []

    def lose(self, reason: str, detail: str) -> None:
        """Records that the text of a piece of evidence cannot be looked up."""
        self.lost.append(RecordError(reason, detail))

    def example(
        self, text: str | None, outputs: Iterable[Output], meta: Json | None = None, partial: Iterable[Evidence] = ()
    ) -> Example:
        """Returns the example of this record, with input ``text``."""
        return Example(self.key, text, tuple(outputs), meta, self.raw.file, self.raw.line, tuple(partial))


def read_record(origin: Origin, convert: Callable[[Origin], Example], tally: Tally) -> Iterator[Example | BadRecord]:
    """Yields the evidence that a record lost, then its example; or the reason why the record is skipped. Counts all of
    them.
    """
    try:
        example = convert(origin)
    except (ExclusionError, RecordError) as error:
        yield from leave_out(origin, error, tally)
        return
    tally.records += 1
    for lost in origin.lost:
        tally.lost_evidences[lost.reason] += 1
        yield origin.raw.bad(lost, key=example.example_id, stage="evidence")
    yield tally.count_example(example)


def leave_out(origin: Origin, error: ExclusionError | RecordError, tally: Tally) -> list[BadRecord]:
    """Counts a record that was excluded or rejected; returns the row for a rejected one."""
    tally.records += 1
    place = origin.key or None, origin.raw.file, origin.raw.line
    if isinstance(error, ExclusionError):
        tally.count_skipped(RecordFate(None, *place, "excluded", str(error)))
        return []
    tally.count_skipped(RecordFate(None, *place, "rejected", error.reason))
    return [origin.raw.bad(error, key=origin.key)]


def read_references(raws: Iterable[RawRecord], keep: Callable[[RawRecord], None], tally: Tally) -> Iterator[BadRecord]:
    """Reads and counts references. Yields each reference that cannot be used."""
    for raw in raws:
        tally.references += 1
        try:
            keep(raw)
        except RecordError as error:
            tally.rejected_references[error.reason] += 1
            yield raw.bad(error, stage="reference")


def keep_wanted(
    raws: Iterable[RawRecord],
    key_and_text: Callable[[RawRecord], tuple[str, Callable[[], bytes]]],
    *,
    scratch: Scratch,
    tally: Tally,
) -> Iterator[BadRecord]:
    """Reads references once and stores the texts that examples need. Yields the references that cannot be used."""

    def keep(raw: RawRecord) -> None:
        key, text = key_and_text(raw)
        if scratch.is_wanted(key):
            scratch.put(key, text())

    return read_references(raws, keep, tally)


class Labels(Scratch):
    """Answers by id, in an index on disk."""

    def __init__(self, folder: str | None, form: LabelForm, id_of: Callable[[Json], str]) -> None:
        super().__init__(folder)
        self._form, self._id_of = form, id_of

    def read(self, paths: Sequence[str], tally: Tally) -> Iterator[BadRecord]:
        """Reads files of labels. Yields each label that cannot be used. Labels are counted under ``references``."""
        for number, path in enumerate(paths):
            raws = iter_records(path, key=self._form.array)
            yield from read_references(raws, partial(self._keep, number), tally)

    def _keep(self, file: int, raw: RawRecord) -> None:
        label = raw.parse()
        key = self._id_of(label)
        values = {name: label[name] for name in self._form.fields if name in label}
        if self._form.fields[0] not in values:
            raise RecordError(
                "missing_field", f"{self._form.fields[0]!r} is missing; found {', '.join(map(repr, label))}"
            )
        if self.claim_id(key, file) is not None:
            raise RecordError("duplicate_id", key)
        self.want(key)
        self.put(key, json.dumps(values).encode("ascii"))

    def join(self, record: Json) -> Json:
        """Returns a record with its label added; raises RecordError: ``missing_label``, and as ``id_of``."""
        key = self._id_of(record)
        if (label := self.get(key)) is None:
            raise RecordError("missing_label", f"no label has the id {key!r}")
        return {**record, **json.loads(label)}


def check_labels(paths: Iterable[str], form: LabelForm) -> None:
    """Checks the beginning of every file of labels; raises SetupError in the same cases as ``open_decompressed`` and
    ``check_shape``.
    """
    fields = (form.id_field, *form.fields)
    for path in paths:
        check_shape(
            path,
            iter_records(path, key=form.array),
            lambda record: set(fields) <= record.keys(),
            expected=f"labels of {form.of}, JSON lines or one array of objects with {', '.join(fields)}",
        )


class RecordSource(Source[Options]):
    """A dataset that makes one example from each record, independently.

    If the texts of its evidence are in references, every record is converted twice: first to collect the keys of the
    texts that it needs, then, after the references were read once, with the texts.
    """

    scratch: Scratch
    form: ClassVar[str]  # contents of a file, for messages; {keys} is replaced by the keys that a record has
    keys: ClassVar[frozenset[str]]  # required in each record
    answer_keys: ClassVar[frozenset[str]] = frozenset()  # also required, except in records of test

    @abstractmethod
    def id_of(self, record: Json) -> str:
        """Returns the id of a record; raises RecordError."""

    @abstractmethod
    def example(self, record: Json, origin: Origin) -> Example:
        """Returns the example of a parsed record with its label; raises RecordError and ExclusionError."""

    def raws(self, path: str) -> Iterator[RawRecord]:
        """Reads the records of a file."""
        return iter_lines(path)

    def fits(self, path: str, record: Json) -> bool:
        """Returns whether a record of a file can belong to this dataset."""
        return self._needed_keys <= record.keys()

    def other_id(self, record: Json, example_id: str) -> str | None:
        """Returns another id for a record whose id occurs in an earlier file, or None."""
        return None

    def reference_files(self) -> list[str]:
        """Returns the files of the references, in order; raises SetupError."""
        return list(self.inputs.references)

    def reference(self, raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
        """Returns the key of a reference and a function that returns its text; raises RecordError."""
        raise NotImplementedError

    @property
    def expected(self) -> str:
        """Returns a description of a file's contents, for messages."""
        return self.form.format(keys=", ".join(sorted(self._needed_keys)))

    @property
    def _needed_keys(self) -> frozenset[str]:
        return self.keys if self.split == "test" else self.keys | self.answer_keys

    def check_inputs(self) -> None:
        for path in self.inputs.records:
            check_shape(path, self.raws(path), partial(self.fits, path), expected=self.expected)
        self.check_files()
        if self.labels is not None:
            check_labels(self.inputs.labels, self.labels)
        self.check_references()

    def check_files(self) -> None:
        """Raises SetupError if a file contains records of another split."""
        check_names(self.inputs.records, self.split)

    def check_references(self) -> None:
        """Raises SetupError if references are missing, or are not of the expected kind."""

    def read(self) -> Iterator[Example | BadRecord]:
        inputs = self.inputs
        with ExitStack() as stack:
            self.scratch = stack.enter_context(Scratch(inputs.scratch))
            labels: Labels | None = None
            if self.labels is not None and inputs.labels:
                labels = stack.enter_context(Labels(inputs.scratch, self.labels, self.id_of))
                yield from labels.read(inputs.labels, self.tally)
            yield from self.read_references(labels)
            for number, path in enumerate(inputs.records):
                convert = partial(self._given, labels, number)
                for raw in self.raws(path):
                    yield from read_record(Origin(raw, self.scratch.get), convert, self.tally)

    def read_references(self, labels: Labels | None) -> Iterator[BadRecord]:
        """Reads the references and stores the texts that examples need. Yields the references that cannot be used."""
        if not self.inputs.references:
            return
        for path in self.inputs.records:
            for raw in self.raws(path):
                with suppress(RecordError, ExclusionError):
                    self._converted(labels, Origin(raw, self.scratch.want))
        for path in self.reference_files():
            yield from keep_wanted(iter_lines(path), self.reference, scratch=self.scratch, tally=self.tally)

    def _converted(self, labels: Labels | None, origin: Origin) -> tuple[Json, Example]:
        record = origin.raw.parse()
        origin.key = self.id_of(record)
        return record, self.example(labels.join(record) if labels else record, origin)

    def _given(self, labels: Labels | None, file: int, origin: Origin) -> Example:
        """Returns the example of a record, with a unique id. ``file`` is the number of the input file."""
        record, example = self._converted(labels, origin)
        earlier = self.scratch.claim_id(example.example_id, file)
        if earlier is None:
            return example
        other = self.other_id(record, example.example_id) if earlier != file else None
        if other is None or self.scratch.claim_id(other, file) is not None:
            raise RecordError("duplicate_id", example.example_id)
        return replace(example, example_id=other)
