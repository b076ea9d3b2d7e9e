"""The project's own format, for anyone's dataset: JSON Lines, one record a line.

::

    {"id": "q1",
     "input": "Where does the River Ullane rise?",
     "output": [{"answer": "Lake Miravel",
                 "evidence": [{"title": "River Ullane", "text": "It rises in Lake Miravel."}],
                 "meta": {"source": "quiz"}}],
     "meta": {"level": "easy"}}

``id``
    String or integer, unique over all inputs; written as a string.
``input``
    String; may be absent.
``output``
    List of valid outputs, each with an ``answer``, an ``evidence``, or both. All pieces of one evidence are needed
    together; several outputs are alternatives. Absent in records to be written without answers.
``evidence``
    List of objects that name their page in exactly one way: ``title``, ``url``, ``page_id`` (string or integer) or
    ``qid``. ``text`` is what is looked for in the page; without it the page alone is the evidence. ``meta`` is
    carried into the span that is written.
``meta``
    Object, carried over as it is; in outputs and records.

Any other key is rejected as ``unknown_field``, so that a misspelt one is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.records import Evidence, Example, Output, PageKey
from mapping.sources.reading.base import Inputs, Source, SourceOptions, Split, Tally
from mapping.sources.reading.examples import Origin, read_examples
from mapping.sources.reading.fields import (
    Json,
    digits_or_text,
    objects_at,
    only_known,
    optional_object,
    optional_text,
    text_at,
)
from mapping.sources.reading.files_in import check_shape, iter_lines
from mapping.sources.reading.scratch import Scratch

_PAGE_KEYS = ("title", "url", "page_id", "qid")
_RECORD = frozenset({"id", "input", "output", "meta"})
_OUTPUT = frozenset({"answer", "evidence", "meta"})
_EVIDENCE = frozenset({*_PAGE_KEYS, "text", "meta"})


class Own(Source[SourceOptions]):
    """Reads the format above. The split only says by which rules the records are filtered and written."""

    name = "jsonl"
    options = SourceOptions

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            check_shape(
                path,
                iter_lines(storage, path),
                _fits,
                expected="one JSON object a line with id, input and output, a list of objects with answer and evidence",
            )

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: SourceOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Scratch(inputs.scratch) as scratch:
            yield from read_examples(
                [iter_lines(storage, path) for path in inputs.records],
                id_of=lambda record: digits_or_text(record, "id"),
                convert=own_example,
                scratch=scratch,
                tally=tally,
            )


def own_example(record: Json, origin: Origin) -> Example:
    """Gives the example of a parsed record.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``, ``unknown_field``, ``ambiguous_page``.
    """
    only_known(record, _RECORD)
    written = objects_at(record, "output") if "output" in record else []
    return Example(
        digits_or_text(record, "id"),
        optional_text(record, "input"),
        tuple(_output(text) for text in written),
        optional_object(record, "meta"),
        file=origin.raw.file,
        line=origin.raw.line,
    )


def _output(written: Json) -> Output:
    only_known(written, _OUTPUT)
    answer = optional_text(written, "answer")
    evidence = tuple(_evidence(part) for part in objects_at(written, "evidence")) if "evidence" in written else ()
    if answer is None and not evidence:
        raise RecordError("missing_field", "an output has an answer, evidence, or both")
    return Output(answer, evidence, optional_object(written, "meta"))


def _evidence(written: Json) -> Evidence:
    only_known(written, _EVIDENCE)
    kinds = [key for key in _PAGE_KEYS if key in written]
    if not kinds:
        raise RecordError("missing_field", f"an evidence names its page by one of {', '.join(_PAGE_KEYS)}")
    if len(kinds) > 1:
        raise RecordError("ambiguous_page", f"an evidence names its page by {' and '.join(kinds)}")
    (kind,) = kinds
    value = digits_or_text(written, kind) if kind == "page_id" else text_at(written, kind)
    return Evidence(PageKey(kind, value), optional_text(written, "text"), optional_object(written, "meta"))


def _fits(record: Json) -> bool:
    outputs = record.get("output", [])
    return (
        "id" in record
        and isinstance(outputs, list)
        and all(isinstance(output, dict) and "provenance" not in output for output in outputs)
    )
