"""KILT files checked against a release."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kbsource.kilt import kilt_texts
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.release.output import commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.schema import ALIGNMENTS
from mapping.write.kind import ALIGNMENT
from mapping.write.validate import RULES, Validation, check_kilt
from tests.support.alignments import write_records
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, write_release
from tests.support.tokenisers import tokeniser

PAGES: list[Page] = list(synthetic_pages(6, n_paragraphs=3))
PAGE = PAGES[2]
TEXTS = kilt_texts(PAGE)[0]
PARAGRAPH = next(number for number, text in enumerate(TEXTS) if number and not text.startswith("Section::::"))
Json = dict[str, Any]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeSource:
    folder = tmp_path_factory.mktemp("validate")
    write_release(folder, PAGES, titles=[TitleRow(page.page_id, page.title) for page in PAGES])
    return KnowledgeSource.open(str(folder / "release"))


def section_of(paragraph: int) -> str:
    headings = [text for text in TEXTS[: paragraph + 1] if text.startswith("Section::::")]
    return headings[-1] if headings else "Section::::Abstract."


def good(example_id: str = "a") -> Json:
    span = {
        "wikipedia_id": str(PAGE.page_id),
        "title": PAGE.title,
        "start_paragraph_id": PARAGRAPH,
        "start_character": 0,
        "end_paragraph_id": PARAGRAPH,
        "end_character": 12,
        "bleu_score": 1.0,
        "section": section_of(PARAGRAPH),
    }
    return {"id": example_id, "input": "?", "output": [{"answer": "yes", "provenance": [span]}]}


def check(folder: Path, source: KnowledgeSource, *records: Any, alignments: str | None = None) -> Validation:
    path = write_records(folder / "x-dev-kilt.jsonl", records)
    with mock.patch("mapping.write.validate.Tokeniser", tokeniser):
        return check_kilt(str(path), source, alignments=alignments)


def test_a_good_file_is_valid(tmp_path: Path, source: KnowledgeSource) -> None:
    linking = {"id": "b", "output": [{"answer": "x", "provenance": [{"wikipedia_id": str(PAGES[0].page_id)}]}]}
    campaign = good("c")
    for name in ("start_character", "end_character", "bleu_score"):
        del campaign["output"][0]["provenance"][0][name]
    stripped = good("d")
    stripped["output"][0]["provenance"][0]["section"] = section_of(PARAGRAPH).rstrip("\n")
    without_answers = {"id": "e", "input": "?", "meta": {}}
    result = check(tmp_path, source, good(), linking, campaign, stripped, without_answers)
    assert result.findings == []
    assert (result.records, result.outputs, result.spans, result.located) == (5, 4, 4, 2)


def change(**values: Any) -> Callable[[Json], None]:
    def apply(record: Json) -> None:
        record["output"][0]["provenance"][0].update(values)

    return apply


BROKEN: list[tuple[str, Callable[[Json], Any]]] = [
    ("bad_type", change(wikipedia_id=7)),
    ("bad_type", change(title=7)),
    ("bad_type", change(start_character=True)),
    ("bad_type", change(start_paragraph_id="1")),
    ("bad_type", lambda record: record.update(input=5)),
    ("bad_type", lambda record: record.update(id=5)),
    ("bad_type", lambda record: record.update(output={})),
    ("bad_type", lambda record: record.update(output=["x"])),
    ("bad_type", lambda record: record["output"][0].update(answer=5)),
    ("bad_type", lambda record: record["output"][0].update(provenance="x")),
    ("missing_field", lambda record: record["output"][0]["provenance"][0].pop("wikipedia_id")),
    ("missing_field", lambda record: record.update(output=[{}])),
    ("empty_output", lambda record: record.update(output=[])),
    ("page_unknown", change(wikipedia_id="2")),
    ("page_unknown", change(wikipedia_id="two")),
    ("title_differs", change(title="Another")),
    ("bad_score", change(bleu_score=1.5)),
    ("bad_score", change(bleu_score="high")),
    ("paragraph_range", change(end_paragraph_id=999)),
    ("paragraph_range", change(start_paragraph_id=-1)),
    ("offset_range", change(end_character=10_000)),
    ("offset_range", change(start_character=-1)),
    ("empty_span", change(start_character=12)),
    ("section_differs", change(section="Section::::Elsewhere.")),
]


@pytest.mark.parametrize(("rule", "breaks"), BROKEN)
def test_a_broken_rule_is_named(
    tmp_path: Path, source: KnowledgeSource, rule: str, breaks: Callable[[Json], Any]
) -> None:
    broken = good("broken")
    breaks(broken)
    result = check(tmp_path, source, good(), broken)
    assert dict(result.broken) == {rule: 1}
    assert result.findings[0].line == 2
    assert not result.is_valid


def test_malformed_lines_and_duplicate_ids_are_found_and_the_rest_goes_on(
    tmp_path: Path, source: KnowledgeSource
) -> None:
    result = check(tmp_path, source, good(), "{", good(), good("z"))
    assert [(finding.line, finding.rule) for finding in result.findings] == [(2, "malformed_line"), (3, "duplicate_id")]
    assert result.records == 4


def test_bleu_is_computed_again_where_the_evidence_is_known(tmp_path: Path, source: KnowledgeSource) -> None:
    text = TEXTS[PARAGRAPH][0:12]
    span = good()["output"][0]["provenance"][0]
    place = [span[name] for name in ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")]

    def row(example_id: str, evidence: str) -> tuple[Any, ...]:
        known = (
            0,
            example_id,
            0,
            0,
            "f",
            1,
            "title",
            PAGE.title,
            evidence,
            "exact",
            PAGE.page_id,
            PAGE.title,
            "title",
            0,
        )
        return (*known, "s", 1, 0, 1, 12, 1.0, "exact", text, *place, True)

    entry = write_rows(
        # two evidences of the first record ended in the same place
        [row("a", "another text"), row("a", text), row("b", f"{text} and quite a lot more")],
        "alignments",
        ALIGNMENTS,
        output=str(tmp_path),
    )
    facts = {"options": {"threshold": 0.5}, "records": {"read": 0}}
    commit(ALIGNMENT, ALIGNMENT.listing([entry], with_counts(ALIGNMENT, [entry], facts, str(tmp_path))), str(tmp_path))

    result = check(tmp_path, source, good("a"), good("b"), good("unknown"), alignments=str(tmp_path))

    assert [(finding.example_id, finding.rule) for finding in result.findings] == [("b", "score_differs")]
    assert result.rescored == 2


def test_partial_evidence_is_checked_too(tmp_path: Path, source: KnowledgeSource) -> None:
    (span,) = good()["output"][0]["provenance"]
    fine = {**good("a"), "meta": {"partial_evidence": [span]}}
    outside = {
        **good("b"),
        "meta": {"partial_evidence": [{**span, "start_paragraph_id": 998, "end_paragraph_id": 999}]},
    }
    odd = {**good("c"), "meta": {"partial_evidence": "x"}}
    result = check(tmp_path, source, fine, outside, odd)
    assert [(finding.example_id, finding.rule) for finding in result.findings] == [
        ("b", "paragraph_range"),
        ("c", "bad_type"),
    ]
    assert result.spans == 5


def test_every_rule_has_a_test() -> None:
    tested = {rule for rule, _ in BROKEN} | {"malformed_line", "duplicate_id", "score_differs"}
    assert tested == set(RULES)


def test_findings_are_many_but_examples_are_few(tmp_path: Path, source: KnowledgeSource) -> None:
    records = [{**good(str(number)), "input": 1} for number in range(50)]
    result = check(tmp_path, source, *records)
    assert result.broken["bad_type"] == 50
    assert len(result.findings) == 20
    assert json.dumps(result.findings)


@pytest.mark.parametrize("content", [b"", b"\n", gzip.compress(b"", mtime=0)])
def test_a_file_without_a_line_is_empty_and_breaks_no_rule(
    tmp_path: Path, source: KnowledgeSource, content: bytes
) -> None:
    path = tmp_path / "x-dev-kilt.jsonl"
    path.write_bytes(content)
    result = check_kilt(str(path), source)
    assert (result.is_empty, result.is_valid, result.records) == (True, True, 0)
    assert not check(tmp_path, source, good()).is_empty
