"""The one way from records of a file to examples: parse, convert, check the id, count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kbsource.errors import RecordError
from kbsource.records import BadRecord
from mapping.records import Example, iter_evidence
from mapping.sources.reading.base import LeftOut, Tally
from mapping.sources.reading.fields import Json
from mapping.sources.reading.files_in import RawRecord
from mapping.sources.reading.labels import Labels
from mapping.sources.reading.scratch import Scratch


class ExclusionError(Exception):
    """The rules of the dataset leave a record out; the argument is the reason's slug."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Origin:
    """Where an example comes from, and what was lost of its evidence on the way."""

    __slots__ = ("lost", "raw")

    def __init__(self, raw: RawRecord) -> None:
        self.raw = raw
        self.lost: list[RecordError] = []

    def lose(self, reason: str, detail: str) -> None:
        """Notes that the text of one piece of evidence cannot be looked up."""
        self.lost.append(RecordError(reason, detail))


Rename = Callable[[Json, str], str | None]


def read_examples(
    files: Iterable[Iterable[RawRecord]],
    *,
    id_of: Callable[[Json], str],
    convert: Callable[[Json, Origin], Example],
    scratch: Scratch,
    tally: Tally,
    rename: Rename | None = None,
    labels: Labels | None = None,
) -> Iterator[Example | BadRecord]:
    """Gives an example or a BadRecord for every record that is not excluded, and counts.

    Args:
        files: the records of each file.
        id_of: gives the id that a parsed record will have.
        convert: gives the example; raises RecordError or ExclusionError.
        scratch: knows the ids that were given.
        tally: counts are added to it.
        rename: asked for another id for a record whose id an earlier file has; None for none.
        labels: joined to each record before it is converted; None for none.
    """
    for number, raws in enumerate(files):
        for raw in raws:
            tally.records += 1
            key = ""
            origin = Origin(raw)
            try:
                record = raw.parse()
                key = id_of(record)
                example = convert(labels.join(record) if labels else record, origin)
                example = _with_own_id(example, record, number, scratch, rename)
            except ExclusionError as exclusion:
                exclude(raw, exclusion.reason, tally, key=key)
            except RecordError as error:
                yield reject(raw, error, tally, key=key)
            else:
                yield from give(example, origin, tally)


def _with_own_id(example: Example, record: Json, file: int, scratch: Scratch, rename: Rename | None) -> Example:
    earlier = scratch.give(example.example_id, file)
    if earlier is None:
        return example
    other = rename(record, example.example_id) if rename and earlier != file else None
    if other is None or scratch.give(other, file) is not None:
        raise RecordError("duplicate_id", example.example_id)
    return replace(example, example_id=other)


def give(example: Example, origin: Origin, tally: Tally) -> Iterator[Example | BadRecord]:
    """Counts an example and gives what was lost of its evidence, then the example."""
    for error in origin.lost:
        tally.lost_evidences[error.reason] += 1
        yield origin.raw.bad(error, key=example.example_id, stage="evidence")
    tally.examples += 1
    tally.evidences += sum(1 for _ in iter_evidence(example))
    yield example


def exclude(raw: RawRecord, reason: str, tally: Tally, *, key: str = "") -> None:
    """Counts a record that the rules of its dataset leave out."""
    tally.leave(LeftOut(key or None, raw.file, raw.line, "excluded", reason))


def reject(raw: RawRecord, error: RecordError, tally: Tally, *, key: str = "") -> BadRecord:
    """Counts a rejected record and gives its row."""
    tally.leave(LeftOut(key or None, raw.file, raw.line, "rejected", error.reason))
    return raw.bad(error, key=key)


def want_texts(
    files: Iterable[Iterable[RawRecord]],
    *,
    convert: Callable[[Json, Origin], Example],
    labels: Labels | None = None,
) -> None:
    """Converts every record once for the look-ups alone, so that what they ask for is known."""
    for raws in files:
        for raw in raws:
            try:
                record = raw.parse()
                convert(labels.join(record) if labels else record, Origin(raw))
            except (RecordError, ExclusionError):
                continue


def keep_texts(
    files: Iterable[Iterable[RawRecord]],
    *,
    key_and_text: Callable[[RawRecord], tuple[str, Callable[[], bytes]]],
    scratch: Scratch,
    tally: Tally,
) -> Iterator[BadRecord]:
    """Reads references once and keeps the texts that are wanted; gives the records that cannot be used.

    Args:
        files: the records of each file.
        key_and_text: gives a record's key, and what gives its text; raises RecordError.
        scratch: knows what is wanted and takes the texts.
        tally: counts are added to it.
    """
    for raws in files:
        for raw in raws:
            tally.references += 1
            try:
                key, text = key_and_text(raw)
                if scratch.is_wanted(key):
                    scratch.put(key, text())
            except RecordError as error:
                tally.rejected_references[error.reason] += 1
                yield raw.bad(error, stage="reference")
