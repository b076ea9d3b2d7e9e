"""What people said, in whatever form it comes back: JSON Lines, CSV with a head, or an export of Label Studio."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, base_name
from mapping.sources.reading.fields import Json
from mapping.sources.reading.files_in import RawRecord, opened
from mapping.sources.reading.labels import iter_labels


def judgement_rows(path: str, storage: Storage) -> Iterator[RawRecord]:
    """Gives flat objects: what was asked, with ``worker_id``, ``label``, ``highlight`` and ``free_text``.

    A task of an export of Label Studio gives a row for each highlight of each annotation, or one without a highlight;
    annotations that were cancelled are passed over. A record that is not to be understood is given as it is.

    Raises:
        SetupError: as ``opened``; the file is no CSV in UTF-8.
    """
    if ".csv" in base_name(path).lower():
        yield from _csv_rows(path, storage)
        return
    for raw in iter_labels(storage, path):
        if b'"annotations"' not in raw.data:
            yield raw
            continue
        try:
            rows = list(_annotation_rows(raw.parse()))
        except (RecordError, KeyError, TypeError, IndexError):
            yield raw
        else:
            yield from (raw._replace(data=orjson.dumps(row)) for row in rows)


def _annotation_rows(task: Json) -> Iterator[Json]:
    """Source: the task format of Label Studio, https://labelstud.io/guide/task_format, seen November 2026."""
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        worker = annotation["completed_by"]
        row: Json = {**task["data"], "worker_id": str(worker["id"] if isinstance(worker, dict) else worker)}
        highlights: list[Any] = []
        for part in annotation["result"]:
            value = part["value"]
            if part["type"] == "choices":
                row["label"] = value["choices"][0]
            elif part["type"] == "textarea":
                row["free_text"] = "\n".join(value["text"])
            elif part["type"] == "labels":
                highlights.append(value.get("text") or task["data"]["text"][value["start"] : value["end"]])
        for highlight in highlights or [None]:
            yield row if highlight is None else {**row, "highlight": highlight}


def _csv_rows(path: str, storage: Storage) -> Iterator[RawRecord]:
    """Gives the rows of a CSV as JSON objects by the names of its head; the line is that where a row ends.

    Raises:
        SetupError: as ``opened``; the file is no CSV in UTF-8.
    """
    with opened(storage, path) as (file, _):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        rows = csv.reader(text)
        try:
            head = next(rows, [])
            for row in rows:
                if row:
                    record = dict(zip(head, row, strict=True)) if len(row) == len(head) else row
                    yield RawRecord(base_name(path), rows.line_num, -1, orjson.dumps(record))
        except (csv.Error, UnicodeDecodeError) as error:
            raise SetupError(f"{path}, line {rows.line_num}: {error}. Give a CSV in UTF-8, with a head.") from error
        finally:
            text.detach()
