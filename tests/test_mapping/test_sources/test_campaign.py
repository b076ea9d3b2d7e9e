"""Annotation campaigns: judgements of passages, what follows from them, and the forms that files have."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.records import Evidence, PageKey
from mapping.sources.campaign import CampaignFindings, check_campaign, findings, keep_campaign
from mapping.sources.scratch import Scratch
from mapping.sources.source import Tally
from tests.support.alignments import write_records
from tests.support.real_data import real_path

PASSAGES: list[dict[str, Any]] = [
    {"passage_id": "p1", "wikipedia_title": "River Ullane", "text": "It rises in Lake Miravel."},
    {"passage_id": 2, "wikipedia_id": 33, "text": "A lake."},
]
HEAD = ("question_id", "passage_id", "worker_id", "label", "highlight", "free_text")


def _judgement(worker: str, label: str, highlight: str | None = "", **fields: Any) -> dict[str, Any]:
    good = {"question_id": "q", "passage_id": "p1", "worker_id": worker, "label": label, "highlight": highlight}
    return good | fields


def _read(*paths: Path, questions: tuple[str, ...] = ("q",)) -> tuple[list[CampaignFindings | None], list[str], Tally]:
    """Findings by question, the reasons of rejections and the counts."""
    names = [str(path) for path in paths]
    check_campaign(names)
    tally = Tally()
    with Scratch(None) as scratch:
        bad = list(keep_campaign(names, scratch=scratch, tally=tally))
        found = [findings(scratch, question) for question in questions]
    assert {bad_record.stage for bad_record in bad} <= {"reference"}
    assert Counter(bad_record.reason for bad_record in bad) == tally.rejected_references
    return found, [bad_record.reason for bad_record in bad], tally


def _judged(folder: Path, *rows: Any) -> tuple[CampaignFindings | None, list[str]]:
    """What judgements lead to, with a good one of another question in front."""
    first = _judgement("w", "no", question_id="other")
    judgements = write_records(folder / "judgements.jsonl", [first, *rows])
    found, reasons, _ = _read(judgements, write_records(folder / "passages.jsonl", PASSAGES))
    return found[0], reasons


def test_highlights_are_kept_with_repeats_and_the_longest_is_looked_for(tmp_path: Path) -> None:
    rows = [
        _judgement("w1", "yes", "Lake"),
        _judgement("w1", "yes", " rises in Lake "),
        _judgement("w2", "yes", "Lake"),
        _judgement("w2", "yes", "  "),
        _judgement("w3", "no", "what one marked who said no"),
    ]
    found, _ = _judged(tmp_path, *rows)
    evidence = Evidence(
        PageKey("title", "River Ullane"), "rises in Lake", {"evidence_span": ["Lake", " rises in Lake ", "Lake"]}
    )
    assert found == CampaignFindings((evidence,), ())


def test_highlights_of_who_said_partial_count_for_partial_evidence_alone(tmp_path: Path) -> None:
    first_judgement, other = _judgement("w1", "yes", "a"), _judgement("w2", "partial", "bb")
    found, _ = _judged(tmp_path, first_judgement, other)
    assert found is not None
    assert [evidence.meta for evidence in found.partial] == [{"evidence_span": ["a", "bb"]}]
    found, _ = _judged(tmp_path, first_judgement, other, _judgement("w3", "yes", "c"))
    assert found is not None
    assert [evidence.meta for evidence in found.accepted] == [{"evidence_span": ["a", "c"]}]


def test_without_a_highlight_the_passage_is_looked_for(tmp_path: Path) -> None:
    found, _ = _judged(tmp_path, _judgement("w1", "yes", None), _judgement("w2", "yes"))
    assert found is not None
    assert found.accepted == (
        Evidence(PageKey("title", "River Ullane"), "It rises in Lake Miravel.", {"evidence_span": []}),
    )


def test_passages_come_in_the_order_in_which_they_were_first_judged(tmp_path: Path) -> None:
    rows = [_judgement("w1", "yes", passage_id=2), _judgement("w1", "yes"), _judgement("w2", "yes", passage_id="2")]
    found, reasons = _judged(tmp_path, *rows, _judgement("w3", "yes"))
    assert not reasons
    assert found is not None
    assert [accepted.page for accepted in found.accepted] == [
        PageKey("page_id", "33"),
        PageKey("title", "River Ullane"),
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param("{", "malformed_json", id="no JSON"),
        pytest.param({"question_id": "q", "passage_id": "p1"}, "missing_field", id="no worker"),
        pytest.param(_judgement("w9", "maybe"), "unknown_label", id="label"),
        pytest.param(_judgement("w9", "yes", passage_id="p9"), "unknown_passage", id="passage"),
        pytest.param(_judgement("w1", "no"), "conflicting_label", id="worker contradicts himself"),
        pytest.param(_judgement("w9", "yes") | {"highlight": 7}, "wrong_type", id="highlight is a number"),
    ],
)
def test_a_bad_judgement_is_rejected_and_the_others_count(tmp_path: Path, bad: Any, reason: str) -> None:
    found, reasons = _judged(tmp_path, _judgement("w1", "yes"), bad, _judgement("w2", "yes"))
    assert reasons == [reason]
    assert found is not None
    assert len(found.accepted) == 1


def test_a_passage_that_comes_again_is_rejected(tmp_path: Path) -> None:
    passages = write_records(tmp_path / "p.jsonl", [*PASSAGES, PASSAGES[0] | {"text": "other"}, {"passage_id": "p3"}])
    _, reasons, tally = _read(passages)
    assert reasons == ["duplicate_id", "missing_field"]
    assert tally.references == 4


def test_judgements_as_csv_are_the_same_as_lines(tmp_path: Path) -> None:
    rows = [_judgement("w1", "yes", 'a "quoted"\nline, with commas', free_text="é"), _judgement("w2", "yes")]
    lines = write_records(tmp_path / "judgements.jsonl", rows)
    table = tmp_path / "judgements.csv"
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        writer.writeheader()
        writer.writerows(rows)
    passages = write_records(tmp_path / "passages.jsonl", PASSAGES)

    wanted = _read(passages, lines)
    assert wanted[0][0] is not None
    assert _read(table, passages) == wanted


def test_a_row_of_a_csv_with_too_few_columns_is_rejected(tmp_path: Path) -> None:
    table = tmp_path / "judgements.csv"
    table.write_text(",".join(HEAD) + "\nq,p1,w1,yes,,\nq,p1,w2\n\nq,p1,w3,yes,,\n", "utf-8")
    found, reasons, tally = _read(table, write_records(tmp_path / "passages.jsonl", PASSAGES))
    assert reasons == ["wrong_type"]
    assert tally.references == 3 + len(PASSAGES)
    assert found[0] is not None
    assert len(found[0].accepted) == 1


def test_a_kilt_file_gives_its_highlighted_spans_and_nothing_else(tmp_path: Path) -> None:
    def span(title: str | None, *highlights: str, **fields: Any) -> dict[str, Any]:
        named = {} if title is None else {"title": title}
        meta = {"meta": {"evidence_span": list(highlights)}} if highlights else {}
        return {"wikipedia_id": "33", **named, **fields, **meta}

    records = [
        {
            "id": "q",
            "output": [
                {"answer": "a", "provenance": [span("Short", start_paragraph_id=1)]},
                {"provenance": [span("Lake Miravel", "deep", "a deep lake")]},
                {"provenance": [span(None, "by id")]},
            ],
            "meta": {"partial_evidence": [span("River Ullane", "part")]},
        },
        {"id": 7, "output": [{"answer": "a"}]},
        {"id": "q", "output": [{"provenance": [span("Lake Miravel", "again")]}]},
        {"id": "r", "output": [{"provenance": [{"title": "x", "meta": {"evidence_span": "no list"}}]}]},
        {"id": "s", "output": [{"answer": "a"}, {"provenance": [span("Lake Miravel", start_character=3)]}]},
        {"id": "t", "output": [{"provenance": [span("Lake Miravel", meta={"annotation_id": 1 << 64})]}]},
    ]
    path = write_records(tmp_path / "eli5-dev-kilt.jsonl", records)
    found, reasons, _ = _read(path, questions=("q", "7", "r", "s", "t"))
    assert reasons == ["duplicate_id", "wrong_type", "no_highlight"]
    assert found[1:] == [None] * 4
    assert found[0] == CampaignFindings(
        (
            Evidence(PageKey("title", "Lake Miravel"), "a deep lake", {"evidence_span": ["deep", "a deep lake"]}),
            Evidence(PageKey("page_id", "33"), "by id", {"evidence_span": ["by id"]}),
        ),
        (Evidence(PageKey("title", "River Ullane"), "part", {"evidence_span": ["part"]}),),
    )


def test_real_campaign_spans_of_natural_questions() -> None:
    path = real_path("kilt/nq-dev-kilt.jsonl")
    ids = tuple(json.loads(line)["id"] for line in path.read_text("utf-8").splitlines())
    found, reasons, _ = _read(path, questions=ids)
    assert not reasons
    assert [len(judged.accepted) for judged in found if judged] == [1, 2, 1, 2, 4]


def test_a_table_in_another_encoding_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(",".join(HEAD).encode() + b"\nq,p1,w1,yes,caf\xe9,\n")
    with pytest.raises(SetupError, match="Give a CSV in UTF-8"):
        check_campaign([str(tmp_path / "latin.csv")])


_ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["p1", "2", ""]), st.sampled_from("uvw"), st.sampled_from("ynp")),
    max_size=24,
)


@given(rows=_ROWS)
def test_findings_are_what_counting_by_hand_gives_and_no_row_is_lost(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, str]]
) -> None:
    names = {"y": "yes", "n": "no", "p": "partial"}
    folder = tmp_path_factory.mktemp("campaign")
    written = [
        _judgement(worker, names[label], question_id=question, passage_id=passage)
        for question, passage, worker, label in rows
    ]
    first = _judgement("w", "no", question_id="other")
    judgements = write_records(folder / "j.jsonl", [first, *written])
    found, reasons, tally = _read(judgements, write_records(folder / "p.jsonl", PASSAGES), questions=("a", "b"))

    said: dict[tuple[str, str, str], str] = {}
    n_conflicts = 0
    for question, passage, worker, label in rows:
        if passage and said.setdefault((question, passage, worker), label) != label:
            n_conflicts += 1
    assert reasons == ["conflicting_label"] * n_conflicts
    assert tally.references == len(rows) + 1 + len(PASSAGES)
    for question, judged in zip("ab", found, strict=True):
        assert (judged is None) == (not any(row[0] == question for row in rows))
        votes = {
            passage: [label for (asked, shown, _), label in said.items() if (asked, shown) == (question, passage)]
            for passage in ("p1", "2")
        }
        accepted = sum(labels.count("y") >= 2 for labels in votes.values())
        partial = sum(labels.count("y") == 1 or ("p" in labels and labels.count("y") < 2) for labels in votes.values())
        if judged is not None:
            assert (len(judged.accepted), len(judged.partial)) == (accepted, partial)
