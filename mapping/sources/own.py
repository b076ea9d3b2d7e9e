"""The project's own format, for your own datasets: JSON Lines, one record per line.

::

    {"id": "q1",
     "input": "Where does the River Ullane rise?",
     "output": [{"answer": "Lake Miravel",
                 "evidence": [{"title": "River Ullane", "text": "It rises in Lake Miravel."}],
                 "meta": {"source": "quiz"}}],
     "meta": {"level": "easy"}}

- ``id``: string or integer, unique over all inputs; written as a string.
- ``input``: string; optional.
- ``output``: list of valid outputs, each with an ``answer``, an ``evidence``, or both. All pieces of one ``evidence``
  list are needed together; several outputs are alternatives. Omit it in records to be written without answers.
- ``evidence``: list of objects that name their page in exactly one way: ``title``, ``url``, ``page_id`` (string or
  integer) or ``qid``. ``text`` is searched for in the page; without it, the page itself is the evidence. Its key may
  also be ``quote`` or ``evidence``, or the one given with ``--evidence-key``. ``meta`` is copied into the written span.
- ``meta``: object in outputs and records, copied unchanged.

Any other key is rejected as ``unknown_field``, so that misspelt keys are noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbsource.errors import RecordError
from mapping.options import Name
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.examples import Origin, RecordSource
from mapping.sources.raw_records import (
    Json,
    digits_or_text,
    only_known,
    optional_object,
    optional_objects,
    optional_text,
    text_at,
)
from mapping.sources.source import SourceOptions

_PAGE_KEYS = ("title", "url", "page_id", "qid")
_RECORD = frozenset({"id", "input", "output", "meta"})
_OUTPUT = frozenset({"answer", "evidence", "meta"})
TEXT_KEYS = ("text", "quote", "evidence")
"""Keys that may contain the text of a piece of evidence."""


@dataclass(frozen=True, slots=True)
class OwnOptions(SourceOptions):
    """Options of the format."""

    evidence_key: Name | None = None
    """Key of the evidence text in the records; by default text, quote or evidence."""


class Own(RecordSource[OwnOptions]):
    """Reads the format described above. The split only selects the rules for filtering and writing records."""

    name = "jsonl"
    summary = "Your own data, in the project's format"
    form = "one JSON object a line with id, input and output, a list of objects with answer and evidence"
    keys = frozenset({"id"})
    hypothesis = "answer"
    options_type = OwnOptions

    def id_of(self, record: Json) -> str:
        return digits_or_text(record, "id")

    def fits(self, path: str, record: Json) -> bool:
        outputs = record.get("output", [])
        return (
            super().fits(path, record)
            and isinstance(outputs, list)
            and all(isinstance(output, dict) and "provenance" not in output for output in outputs)
        )

    def check_files(self) -> None:
        """Accepts any file name."""

    def example(self, record: Json, origin: Origin) -> Example:
        """See ``RecordSource.example``.

        Raises:
            RecordError: ``missing_field``, ``wrong_type``, ``unknown_field``, ``ambiguous_page``, ``ambiguous_text``.
        """
        only_known(record, _RECORD)
        text = optional_text(record, "input")
        key = self.options.evidence_key
        keys = TEXT_KEYS if key is None else (key,)
        outputs = [_output(output, keys) for output in optional_objects(record, "output")]
        return origin.example(text, outputs, optional_object(record, "meta"))


def _output(written: Json, text_keys: Sequence[str]) -> Output:
    only_known(written, _OUTPUT)
    answer = optional_text(written, "answer")
    evidence = tuple(_evidence(part, text_keys) for part in optional_objects(written, "evidence"))
    if answer is None and not evidence:
        raise RecordError("missing_field", "an output must have an answer, evidence, or both")
    return Output(answer, evidence, optional_object(written, "meta"))


def evidence_text(written: Json, text_keys: Sequence[str]) -> str | None:
    """Returns the text of a piece of evidence under any of these keys; None without a text.

    Raises:
        RecordError: ``wrong_type``, ``ambiguous_text``.
    """
    named = [key for key in text_keys if key in written]
    if len(named) > 1:
        raise RecordError(
            "ambiguous_text", f"a piece of evidence has its text as {' and '.join(named)}; keep one of them"
        )
    return optional_text(written, named[0]) if named else None


def _evidence(written: Json, text_keys: Sequence[str]) -> Evidence:
    only_known(written, frozenset({*_PAGE_KEYS, *text_keys, "meta"}))
    kinds = [key for key in _PAGE_KEYS if key in written]
    if not kinds:
        raise RecordError("missing_field", f"a piece of evidence must name its page by one of {', '.join(_PAGE_KEYS)}")
    if len(kinds) > 1:
        raise RecordError(
            "ambiguous_page", f"a piece of evidence names its page by {' and '.join(kinds)}; keep one of them"
        )
    (kind,) = kinds
    value = digits_or_text(written, kind) if kind == "page_id" else text_at(written, kind)
    return Evidence(PageKey(kind, value), evidence_text(written, text_keys), optional_object(written, "meta"))


SOURCES = (Own,)
