"""Is a KILT file what it should be? Types, ids, places in a release, and BLEU where the evidence is known.

Source: the authors' validator (types of ``input``, ``output``, ``answer``, ``wikipedia_id``, ``title``), and what their
readers rely on: unique ids, pages that exist, characters that lie in their paragraph, sections.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.release.reader import read_table
from mapping.search.bleu import bleu
from mapping.search.numbering import Numbering, paragraphs_of
from mapping.search.tokens import Tokeniser
from mapping.sources.reading.base import PARTIAL_EVIDENCE
from mapping.sources.reading.fields import is_integer
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_lines
from mapping.sources.reading.scratch import Scratch

RULES: dict[str, str] = {
    "bad_score": "bleu_score is no number from 0 to 1",
    "bad_type": "a field of another type than it has",
    "duplicate_id": "an id that was there before",
    "empty_output": "output is an empty list",
    "empty_span": "the characters of a span enclose no text",
    "malformed_line": "a line that is no JSON object",
    "missing_field": "a field that is needed is absent",
    "offset_range": "a span that lies outside of its paragraph",
    "page_unknown": "wikipedia_id is no page of the release",
    "paragraph_range": "a paragraph that the page does not have",
    "score_differs": "BLEU of the evidence against the text of the span is not bleu_score",
    "section_differs": "section is not that of the paragraph",
    "title_differs": "title is not the page's",
}
"""Rule -> meaning of breaking it."""

_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")
_TOLERANCE = 1e-9
_RECORDS_AT_ONCE = 2_000
_EXAMPLES_PER_RULE = 20


class KiltFinding(NamedTuple):
    """A rule that is broken: line of the file, id of the record, what was seen."""

    line: int
    example_id: str
    rule: str
    detail: str


@dataclass(slots=True)
class Validation:
    """What was checked, and what is wrong.

    Attributes:
        is_empty: the file has no line; whether that is right only its manifest can say.
        records, outputs, spans: how many were checked.
        located: spans with character offsets.
        rescored: those of them whose BLEU was computed again.
        broken: findings by rule.
        findings: the first ones of each rule, in the order of the file.
    """

    is_empty: bool = False
    records: int = 0
    outputs: int = 0
    spans: int = 0
    located: int = 0
    rescored: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    findings: list[KiltFinding] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Says whether no rule is broken."""
        return not self.broken

    def add(self, finding: KiltFinding) -> None:
        """Takes note of a finding."""
        self.broken[finding.rule] += 1
        if self.broken[finding.rule] <= _EXAMPLES_PER_RULE:
            self.findings.append(finding)


class _Span(NamedTuple):
    """A span of a record, and the evidences that it may be of."""

    line: int
    example_id: str
    span: dict[str, Any]
    page_id: int
    evidence: tuple[str, ...]


def validate_kilt(
    path: str,
    source: KnowledgeSource,
    storage: Storage,
    *,
    numbering: Numbering = "kilt",
    alignments: str | None = None,
    scratch: str | None = None,
) -> Validation:
    """Checks a KILT file against a release. Memory: ``_RECORDS_AT_ONCE`` records; every page is read once for them.

    Args:
        path: the file; .gz and .bz2 too.
        source: the release it was made for.
        storage: of the file and the alignments.
        numbering: how the file counts paragraphs.
        alignments: folder that ``kbsource map`` wrote the file into; its table has the evidence. None: no BLEU is
            computed again.
        scratch: folder for a temporary index; None for the system's.

    Raises:
        SetupError: there is no such file, or it is another one altogether.
    """
    if _is_empty(path, storage):
        return Validation(is_empty=True)
    check_shape(path, iter_lines(storage, path), lambda record: "id" in record, expected="a KILT file, with ids")
    checker = _Checker(source, numbering)
    lines = iter_lines(storage, path)
    with Scratch(scratch) as ids:
        known = _Evidences(alignments, storage, ids) if alignments is not None else None
        while batch := list(islice(lines, _RECORDS_AT_ONCE)):
            records = _Records(ids, known, checker.result)
            for raw in batch:
                records.check(raw)
            found = [*records.findings, *checker.check(records.spans)]
            for finding in sorted(found, key=lambda fault: fault.line):
                checker.result.add(finding)
    return checker.result


def _is_empty(path: str, storage: Storage) -> bool:
    if not storage.exists(path):
        return False
    # A file of no bytes at all is in no form that could be read.
    return not storage.size(path) or next(iter_lines(storage, path), None) is None


class _Records:
    """Checks what needs no page."""

    def __init__(self, ids: Scratch, known: _Evidences | None, result: Validation) -> None:
        self._ids = ids
        self._known = known
        self._result = result
        self.findings: list[KiltFinding] = []
        self.spans: list[_Span] = []

    def check(self, raw: RawRecord) -> None:
        """Adds what is wrong with a record to ``findings``, and its spans to ``spans``."""
        self._result.records += 1
        try:
            record = raw.parse()
        except RecordError as error:
            self.findings.append(KiltFinding(raw.line, "", "malformed_line", str(error)))
            return
        example_id = record.get("id")

        def broken(rule: str, detail: str) -> None:
            self.findings.append(KiltFinding(raw.line, str(example_id), rule, detail))

        if not isinstance(example_id, str):
            broken("bad_type" if "id" in record else "missing_field", "id: a string is needed")
        elif self._ids.give(example_id, 0) is not None:
            broken("duplicate_id", example_id)
        if "input" in record and not isinstance(record["input"], str):
            broken("bad_type", "input: a string is needed")
        outputs = record.get("output", [])
        if not isinstance(outputs, list):
            broken("bad_type", "output: a list is needed")
            return
        if "output" in record and not outputs:
            broken("empty_output", "a record without answers has no output at all")
        for number, output in enumerate(outputs):
            self._result.outputs += 1
            if fault := _output_fault(output):
                broken(fault[0], f"output {number}: {fault[1]}")
            if isinstance(output, dict):
                self._add_spans(raw.line, str(example_id), output.get("provenance", []), broken)
        meta = record.get("meta")
        if isinstance(meta, dict):
            self._add_spans(raw.line, str(example_id), meta.get(PARTIAL_EVIDENCE, []), broken)

    def _add_spans(self, line: int, example_id: str, spans: object, broken: Callable[[str, str], None]) -> None:
        if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
            broken("bad_type", "spans: a list of objects is needed")
            return
        for span in spans:
            self._result.spans += 1
            page_id, title = span.get("wikipedia_id"), span.get("title")
            if title is not None and not isinstance(title, str):
                broken("bad_type", f"title: a string is needed, found {title!r}")
            if not isinstance(page_id, str):
                rule = "bad_type" if "wikipedia_id" in span else "missing_field"
                broken(rule, f"wikipedia_id: a string is needed, found {page_id!r}")
            elif not (page_id.isascii() and page_id.isdecimal() and len(page_id) <= 18):
                broken("page_unknown", f"{page_id!r} is no page id")
            else:
                evidence = self._known.get(example_id, page_id, span) if self._known is not None else ()
                self.spans.append(_Span(line, example_id, span, int(page_id), evidence))


def _output_fault(output: object) -> tuple[str, str] | None:
    if not isinstance(output, dict):
        return "bad_type", "an object is needed"
    if "answer" not in output and "provenance" not in output:
        return "missing_field", "neither answer nor provenance"
    if "answer" in output and not isinstance(output["answer"], str):
        return "bad_type", "answer: a string is needed"
    return None


class _Checker:
    """Checks spans against their pages."""

    def __init__(self, source: KnowledgeSource, numbering: Numbering) -> None:
        self.result = Validation()
        self._source = source
        self._numbering = numbering
        self._tokeniser = Tokeniser(source.site.lang)

    def check(self, spans: list[_Span]) -> Iterator[KiltFinding]:
        """Gives what is wrong with spans, page by page."""
        page: Page | None = None
        page_id = -1
        texts: list[str] = []
        sections: list[str] = []
        for span in sorted(spans, key=lambda one: (one.page_id, one.line)):
            if span.page_id != page_id:
                page_id = span.page_id
                page = self._source.by_id(page_id)
                texts, sections = paragraphs_of(page, self._numbering) if page is not None else ([], [])
            for rule, detail in self._faults(span, page, texts, sections):
                yield KiltFinding(span.line, span.example_id, rule, detail)

    def _faults(
        self, one: _Span, page: Page | None, texts: list[str], sections: list[str]
    ) -> Iterator[tuple[str, str]]:
        span = one.span
        if page is None:
            yield "page_unknown", f"{one.page_id} is no page of the release"
            return
        if isinstance(span.get("title"), str) and span["title"] != page.title:
            yield "title_differs", f"{span['title']!r}, the page is {page.title!r}"
        score = span.get("bleu_score", 0.0)
        if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1:
            yield "bad_score", repr(score)
            score = None
        if not any(name in span for name in _PLACE):
            return
        first, last = span.get("start_paragraph_id"), span.get("end_paragraph_id")
        if not (is_integer(first) and is_integer(last)):
            yield "bad_type", f"paragraphs {first!r}, {last!r}: integers are needed"
            return
        if not 0 <= first <= last < len(texts):
            yield "paragraph_range", f"{first} to {last} of {page.title!r}, which has {len(texts)}"
            return
        section = span.get("section")
        if section is not None and (not isinstance(section, str) or section.rstrip("\n") != sections[first]):
            yield "section_differs", f"{section!r}, paragraph {first} of {page.title!r} is in {sections[first]!r}"
        if "start_character" not in span and "end_character" not in span:
            return
        self.result.located += 1
        yield from self._text_faults(one, texts[first : last + 1], score)

    def _text_faults(self, span: _Span, texts: list[str], score: float | None) -> Iterator[tuple[str, str]]:
        start, end = span.span.get("start_character"), span.span.get("end_character")
        if not (is_integer(start) and is_integer(end)):
            yield "bad_type", f"characters {start!r}, {end!r}: integers are needed"
            return
        if not (0 <= start <= len(texts[0]) and 0 <= end <= len(texts[-1])):
            yield "offset_range", f"{start} to {end} of paragraphs of {len(texts[0])} and {len(texts[-1])} characters"
            return
        texts[-1] = texts[-1][:end]
        texts[0] = texts[0][start:]
        text = "\n".join(texts)
        if not text.strip():
            yield "empty_span", f"characters {start} to {end}"
        elif span.evidence and score is not None:
            self.result.rescored += 1
            forms = self._tokeniser.forms(text)
            # Several evidences of a record may have ended in one place, each with a score of its own.
            scores = [bleu(self._tokeniser.forms(each), forms) for each in span.evidence]
            again = min(scores, key=lambda found: abs(found - score))
            if abs(again - score) > _TOLERANCE:
                yield "score_differs", f"{score!r}, computed {again!r} for {text[:120]!r}"


class _Evidences:
    """The evidence texts of an alignment, kept in an index on disk."""

    def __init__(self, folder: str, storage: Storage, scratch: Scratch) -> None:
        self._scratch = scratch
        for row in read_table(folder, "alignments", storage):
            if row["is_written"] and row["evidence_text"] is not None:
                key = _key(row["example_id"], str(row["page_id"]), row)
                scratch.add(key, row["evidence_text"].encode())

    def get(self, example_id: str, page_id: str, span: Mapping[str, Any]) -> tuple[str, ...]:
        """Gives the evidences of a record that stand where a span is, none where the alignment did not write it."""
        return tuple(text.decode() for text in self._scratch.rows(_key(example_id, page_id, span)))


def _key(example_id: str, page_id: str, span: Mapping[str, Any]) -> str:
    return json.dumps([example_id, page_id, *(span.get(name) for name in _PLACE)])
