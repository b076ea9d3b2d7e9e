"""Validates a KILT file: types, ids, locations in a release, and BLEU if the evidence is known.

Source: the authors' validator (types of ``input``, ``output``, ``answer``, ``wikipedia_id``, ``title``), and the
assumptions of the authors' readers: ids are unique, pages exist, characters are within their paragraph, and sections
match.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Folder
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from mapping.records import Place
from mapping.search.bleu import bleu
from mapping.search.numbering import Numbering, paragraphs_of
from mapping.search.tokens import Tokeniser
from mapping.sources.raw_records import RawRecord, check_lines, is_integer, iter_lines
from mapping.sources.scratch import Scratch
from mapping.sources.source import PARTIAL_EVIDENCE
from mapping.write.kind import ALIGNMENT

RULES: dict[str, str] = {
    "bad_score": "bleu_score is not a number from 0 to 1",
    "bad_type": "a field has the wrong type",
    "duplicate_id": "the id occurred before",
    "empty_output": "output is an empty list",
    "empty_span": "the characters of a span contain no text",
    "malformed_line": "a line is not a JSON object",
    "missing_field": "a required field is missing",
    "offset_range": "a span is outside its paragraph",
    "page_unknown": "wikipedia_id is not a page of the release",
    "paragraph_range": "a paragraph that the page does not have",
    "score_differs": "bleu_score is not the BLEU of the evidence and the text of the span",
    "section_differs": "section is not the section of the paragraph",
    "title_differs": "title is not the title of the page",
}
"""Rules, with the meaning of a violation."""

_TOLERANCE = 1e-9
_RECORDS_AT_ONCE = 2_000
_EXAMPLES_PER_RULE = 20


class KiltFinding(NamedTuple):
    """A violated rule: the line of the file, the id of the record, and a description."""

    line: int
    example_id: str
    rule: str
    detail: str


@dataclass(slots=True)
class Validation:
    """The counts of the checked records, and the findings."""

    is_empty: bool = False  # the file has no lines; its manifest shows whether that is correct
    # number of checked records
    records: int = 0
    outputs: int = 0
    spans: int = 0
    located: int = 0  # spans with character offsets
    rescored: int = 0  # located spans whose BLEU was recomputed
    broken: Counter[str] = field(default_factory=Counter)  # number of findings by rule
    findings: list[KiltFinding] = field(default_factory=list)  # the first findings of each rule, in file order

    @property
    def is_valid(self) -> bool:
        """Returns whether no rule is violated."""
        return not self.broken

    def add(self, finding: KiltFinding) -> None:
        """Records a finding."""
        self.broken[finding.rule] += 1
        if self.broken[finding.rule] <= _EXAMPLES_PER_RULE:
            self.findings.append(finding)


class _Span(NamedTuple):
    """A span of a record, with the pieces of evidence that may have been aligned to it."""

    line: int
    example_id: str
    span: dict[str, Any]
    page_id: int
    evidence: tuple[str, ...]


def check_kilt(
    path: str,
    source: KnowledgeSource,
    *,
    numbering: Numbering = "kilt",
    alignments: str | None = None,
    scratch: str | None = None,
) -> Validation:
    """Checks a KILT file against a release.

    BLEU is recomputed if ``alignments`` names the folder that ``kbsource map`` wrote the file to, because its table has
    the evidence. Memory: ``_RECORDS_AT_ONCE`` records; each of their pages is read once.

    Raises:
        SetupError: the file does not exist, or is not a KILT file at all.
    """
    # A file without any bytes is in no readable format.
    if Folder.of(path).exists() and (not Folder.of(path).size() or next(iter_lines(path), None) is None):
        return Validation(is_empty=True)
    check_lines(path, lambda record: "id" in record, expected="a KILT file, with ids")
    lines = iter_lines(path)
    with Scratch(scratch) as index:
        for row in () if alignments is None else _aligned_rows(alignments):
            if row["is_written"] and row["evidence_text"] is not None:
                index.add(_key(row["example_id"], str(row["page_id"]), row), row["evidence_text"].encode())
        checker = _Checker(source, numbering, index)
        while batch := list(islice(lines, _RECORDS_AT_ONCE)):
            checker.check(batch)
    return checker.result


def _aligned_rows(folder: str) -> Iterator[dict[str, Any]]:
    return ALIGNMENT.rows(folder, ALIGNMENT.read(folder), "alignments")


class _Checker:
    """Checks records, and their spans against the pages.

    ``index`` is a file on disk with the ids of the records that were read, and the evidence of an alignment by
    ``_key``.
    """

    def __init__(self, source: KnowledgeSource, numbering: Numbering, index: Scratch) -> None:
        self.result = Validation()
        self._source, self._numbering, self._index = source, numbering, index
        self._tokeniser = Tokeniser(source.site.lang)
        self._findings: list[KiltFinding] = []
        self._spans: list[_Span] = []

    def check(self, records: Iterable[RawRecord]) -> None:
        """Checks records, one page after another, and stores the findings in the order of the file."""
        self._findings, self._spans = [], []
        for raw in records:
            self._check_record(raw)
        self._findings += self._check_spans()
        for finding in sorted(self._findings, key=lambda fault: fault.line):
            self.result.add(finding)

    def _check_record(self, raw: RawRecord) -> None:
        self.result.records += 1
        try:
            record = raw.parse()
        except RecordError as error:
            self._findings.append(KiltFinding(raw.line, "", "malformed_line", str(error)))
            return
        example_id = record.get("id")

        def broken(rule: str, detail: str) -> None:
            self._findings.append(KiltFinding(raw.line, str(example_id), rule, detail))

        if not isinstance(example_id, str):
            broken("bad_type" if "id" in record else "missing_field", "id: expected a string")
        elif self._index.claim_id(example_id, 0) is not None:
            broken("duplicate_id", example_id)
        if "input" in record and not isinstance(record["input"], str):
            broken("bad_type", "input: expected a string")
        outputs = record.get("output", [])
        if not isinstance(outputs, list):
            broken("bad_type", "output: expected a list")
            return
        if "output" in record and not outputs:
            broken("empty_output", "a record without answers has no output at all")
        for number, output in enumerate(outputs):
            self.result.outputs += 1
            if fault := _output_fault(output):
                broken(fault[0], f"output {number}: {fault[1]}")
            if isinstance(output, dict):
                self._add_spans(raw.line, str(example_id), output.get("provenance", []), broken)
        meta = record.get("meta")
        if isinstance(meta, dict):
            self._add_spans(raw.line, str(example_id), meta.get(PARTIAL_EVIDENCE, []), broken)

    def _add_spans(self, line: int, example_id: str, spans: object, broken: Callable[[str, str], None]) -> None:
        if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
            broken("bad_type", "spans: expected a list of objects")
            return
        for span in spans:
            self.result.spans += 1
            page_id, title = span.get("wikipedia_id"), span.get("title")
            if title is not None and not isinstance(title, str):
                broken("bad_type", f"title: expected a string, found {title!r}")
            if not isinstance(page_id, str):
                rule = "bad_type" if "wikipedia_id" in span else "missing_field"
                broken(rule, f"wikipedia_id: expected a string, found {page_id!r}")
            elif not (page_id.isascii() and page_id.isdecimal() and len(page_id) <= 18):
                broken("page_unknown", f"{page_id!r} is not a page id")
            else:
                evidence = tuple(text.decode() for text in self._index.rows(_key(example_id, page_id, span)))
                self._spans.append(_Span(line, example_id, span, int(page_id), evidence))

    def _check_spans(self) -> Iterator[KiltFinding]:
        page: Page | None = None
        page_id = -1
        texts: list[str] = []
        sections: list[str] = []
        for span in sorted(self._spans, key=lambda span: (span.page_id, span.line)):
            if span.page_id != page_id:
                page_id = span.page_id
                page = self._source.by_id(page_id)
                texts, sections = paragraphs_of(page, self._numbering) if page is not None else ([], [])
            for rule, detail in self._faults(span, page, texts, sections):
                yield KiltFinding(span.line, span.example_id, rule, detail)

    def _faults(
        self, checked_span: _Span, page: Page | None, texts: list[str], sections: list[str]
    ) -> Iterator[tuple[str, str]]:
        span = checked_span.span
        if page is None:
            yield "page_unknown", f"{checked_span.page_id} is not a page of the release"
            return
        if isinstance(span.get("title"), str) and span["title"] != page.title:
            yield "title_differs", f"{span['title']!r}, the page is {page.title!r}"
        score = span.get("bleu_score", 0.0)
        if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1:
            yield "bad_score", repr(score)
            score = None
        if not any(name in span for name in Place.__struct_fields__):
            return
        first, last = span.get("start_paragraph_id"), span.get("end_paragraph_id")
        if not (is_integer(first) and is_integer(last)):
            yield "bad_type", f"paragraphs {first!r}, {last!r}: expected integers"
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
        yield from self._text_faults(checked_span, texts[first : last + 1], score)

    def _text_faults(self, span: _Span, texts: list[str], score: float | None) -> Iterator[tuple[str, str]]:
        start, end = span.span.get("start_character"), span.span.get("end_character")
        if not (is_integer(start) and is_integer(end)):
            yield "bad_type", f"characters {start!r}, {end!r}: expected integers"
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
            # Several pieces of evidence of a record may have been aligned to one location, each with its own score.
            scores = [bleu(self._tokeniser.forms(piece), forms) for piece in span.evidence]
            again = min(scores, key=lambda found: abs(found - score))
            if abs(again - score) > _TOLERANCE:
                yield "score_differs", f"{score!r}, computed {again!r} for {text[:120]!r}"


def _output_fault(output: object) -> tuple[str, str] | None:
    if not isinstance(output, dict):
        return "bad_type", "expected an object"
    if "answer" not in output and "provenance" not in output:
        return "missing_field", "neither answer nor provenance"
    if "answer" in output and not isinstance(output["answer"], str):
        return "bad_type", "answer: expected a string"
    return None


def _key(example_id: str, page_id: str, span: Mapping[str, Any]) -> str:
    return json.dumps([example_id, page_id, *map(span.get, Place.__struct_fields__)])
