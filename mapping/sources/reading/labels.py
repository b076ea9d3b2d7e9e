"""Answers of test records that are not published with them, from files of their own, joined by id.

A file of labels is the dataset's own labelled form of the test file, or a JSON array or JSON lines with the id and the
label fields of each record; fields that are no labels are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.sources.reading.base import Tally
from mapping.sources.reading.fields import Json
from mapping.sources.reading.files_in import RawRecord, array_start, check_shape, iter_array, iter_lines, opened
from mapping.sources.reading.scratch import Scratch

_PEEKED_BYTES = 256


def iter_labels(storage: Storage, path: str, *, key: str | None = None) -> Iterator[RawRecord]:
    """Gives the records of a file that is a JSON array, an object with an array under a key, or JSON lines.

    Raises as ``opened``.
    """
    with opened(storage, path) as (file, _):
        head = file.read(_PEEKED_BYTES).lstrip()
    if key is not None and array_start(head, key):
        return iter_array(storage, path, key=key)
    is_array = head.startswith(b"[")
    return iter_array(storage, path) if is_array else iter_lines(storage, path)


def check_labels(
    paths: Iterable[str], storage: Storage, *, of: str, fields: tuple[str, ...], key: str | None = None
) -> None:
    """Looks at the beginning of every file of labels.

    Args:
        paths: of the files.
        storage: reads them.
        of: whose labels they are to be.
        fields: that each record must have.
        key: as for ``iter_labels``.

    Raises:
        SetupError: as ``opened``, or none of the first records has the fields.
    """
    for path in paths:
        check_shape(
            path,
            iter_labels(storage, path, key=key),
            lambda record: set(fields) <= record.keys(),
            expected=f"labels of {of}, JSON lines or one array of objects with {', '.join(fields)}",
        )


class Labels(Scratch):
    """Answers by id, in an index on disk. A context: the index is removed when it ends.

    Args:
        folder: for the index; None for the system's folder for temporary files.
        id_of: gives the id of a parsed record, and of a parsed label.
        fields: of a label, which are put into its record; the first is needed.
    """

    def __init__(self, folder: str | None, *, id_of: Callable[[Json], str], fields: tuple[str, ...]) -> None:
        super().__init__(folder)
        self._id_of = id_of
        self._fields = fields

    def keep(self, files: Iterable[Iterable[RawRecord]], tally: Tally) -> Iterator[BadRecord]:
        """Reads the labels once and gives those that cannot be used; they count as references."""
        for number, raws in enumerate(files):
            for raw in raws:
                tally.references += 1
                try:
                    self._keep(raw.parse(), number)
                except RecordError as error:
                    tally.rejected_references[error.reason] += 1
                    yield raw.bad(error, stage="reference")

    def _keep(self, label: Json, file: int) -> None:
        key = self._id_of(label)
        values = {name: label[name] for name in self._fields if name in label}
        if self._fields[0] not in values:
            raise RecordError("missing_field", f"{self._fields[0]!r}; there are {', '.join(map(repr, label))}")
        if self.give(key, file) is not None:
            raise RecordError("duplicate_id", key)
        self.want(key)
        self.put(key, json.dumps(values).encode("ascii"))

    def join(self, record: Json) -> Json:
        """Gives a record with its label.

        Raises:
            RecordError: ``missing_label``, and as ``id_of``.
        """
        key = self._id_of(record)
        label = self.get(key)
        if label is None:
            raise RecordError("missing_label", f"no label has the id {key!r}")
        return {**record, **json.loads(label)}
