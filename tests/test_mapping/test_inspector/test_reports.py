"""What is said of alignments, QAMPARI, AmbER sets and any other kind, their rows written by hand."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kbsource.errors import DataError
from kbsource.release.kind import Kind
from kbsource.release.manifest import FileEntry, InnerRelease, ListingManifest
from kbsource.release.sql import connected
from mapping.amber.kind import AMBER_SETS
from mapping.amber.records import OUTCOMES
from mapping.amber.release import MEASURES as STATISTICS
from mapping.amber.release import TABLES
from mapping.document import BLEU_BINS, ENTAILMENT_BINS, Document, crossed_query, to_markdown
from mapping.inspector.about import holdings, other_values, provenance
from mapping.inspector.opened import Database, OpenRelease
from mapping.inspector.saved import saved_page
from mapping.kinds import KINDS
from mapping.schema import ALIGNMENTS as ALIGNMENT_ROWS
from mapping.schema import CROSSWALK
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, REPORT
from mapping.write.measures import WORST
from mapping.write.report import FinishedAlignment, overview_values
from tests.support.contexts import write_pages, write_questions
from tests.support.reports import (
    JUDGED,
    RELEASE,
    report_of_releases,
    report_text,
    span_row,
    write_alignment,
    write_listing,
)

ROWS = [
    span_row(0, 0.5, evidence_text="It has 5 <isles>."),
    span_row(1, 1.0),
    span_row(2, 0.1, outcome="weak", is_written=False),
    span_row(3, None, outcome="page_missing", page_id=None, title=None, text=None),
]
OLD = {"old_wikipedia_id": "1", "old_section": "S", "old_start_paragraph_id": 3}
SAME = {"new_wikipedia_id": "1", "new_section": "S", "new_start_paragraph_id": 3}


def judged(ordinal: int, score: float | None, entailment: float | None, **values: Any) -> dict[str, Any]:
    known = {
        "entailment": entailment,
        "contradiction": 0.05,
        "expected_verdict": "entailment",
        "is_chosen_by_model": False,
    }
    return span_row(ordinal, score, **{**known, **values})


def test_outcomes_scores_and_the_paper_stand_beside_each_other(tmp_path: Path) -> None:
    text = report_text(write_alignment(tmp_path / "a", ROWS))
    assert "# Alignment, fever, dev, enwiki, 20260101" in text
    assert "- in the KILT paper (figure 5): 26.0 %" in text
    assert [
        f"| {row} |" in text
        for row in ("0.10 | 33.3 % | 1", "0.50 | 33.3 % | 1", "0.95 | 0.0 % | 0", "1.00 | 33.3 % | 1")
    ] == [True] * 4
    assert "| near | 50.0 % | 2 |" in text
    assert "| \u2003weak | 1 | 25.0 % | the most similar text" in text


def test_the_worst_spans_come_first_with_what_changed_marked(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", ROWS)
    worst = [line for line in report_text(folder).splitlines() if "isles" in line]
    assert worst == [
        "| r2 | Brack | 0.1 | no | It has **5** isles. | It has **6** isles. |",
        "| r0 | Brack | 0.5 | yes | It has **5** \\<isles\\>. | It has **6** isles. |",
    ]
    assert "<mark>5</mark> &lt;isles&gt;." in saved_page(report_of_releases(folder))


def test_of_equal_scores_the_first_are_kept_and_exact_ones_never(tmp_path: Path) -> None:
    rows = [span_row(number, 1.0 if number % 3 == 0 else 0.25) for number in reversed(range(90))]
    found = re.findall(r"^\| r(\d+) \| Brack", report_text(write_alignment(tmp_path / "a", rows)), re.MULTILINE)
    assert list(map(int, found)) == [number for number in range(90) if number % 3][:WORST]


def test_exact_spans_alone_and_pages_alone_have_no_worst(tmp_path: Path) -> None:
    for name, score in (("exact", 1.0), ("pages", None)):
        assert "No span differs" in report_text(write_alignment(tmp_path / name, [span_row(0, score)]))


def test_both_signals_are_crossed_where_a_model_judged(tmp_path: Path) -> None:
    rows = [
        judged(0, 0.6, 0.95),
        judged(1, 0.6, 0.1, expected_verdict="contradiction", contradiction=0.85),
        judged(2, 1.0, 0.2),
        judged(3, None, None, contradiction=None),
    ]
    text = report_text(write_alignment(tmp_path / "a", rows, schema=JUDGED))
    assert "| 0.50–0.75 | 0 | 0 | 0 | 0 | 2 | 0 |" in text
    assert "| 1.00 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
    assert "| no span | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "| r1 | Brack | 0.6 | 0.85 | yes |" in text
    assert "Both signals" not in report_text(write_alignment(tmp_path / "b", ROWS))


def test_drift_is_told_by_how_far_evidence_moved(tmp_path: Path) -> None:
    moved = [
        {**SAME, "score": 1.0},
        {**SAME, "new_start_paragraph_id": 4, "score": 0.5},
        {**SAME, "new_section": "T", "new_start_paragraph_id": 9},
        {**SAME, "new_section": None, "new_start_paragraph_id": None},
        {**SAME, "new_wikipedia_id": "2", "score": 0.25},
        {},
    ]
    rows = [{"example_id": "r", "output": 0, "evidence": 0, "outcome": "near", **OLD, **own} for own in moved]
    folder = write_alignment(tmp_path / "a", ROWS, crosswalk=(CROSSWALK, [*rows, rows[0]]))
    text = report_text(folder)
    for move in ("same paragraph | 2 | 28.6 % | 1 |", "other paragraph of the section | 1 | 14.3 % | 0.5 |",
                 "other section of the page | 1 | 14.3 % | – |", "same page, no place in it | 1 | 14.3 % | – |",
                 "other page | 1 | 14.3 % | 0.25 |", "no page | 1 | 14.3 % | – |"):  # fmt: skip
        assert f"| {move}" in text
    assert "- years to the snapshot: 6.4" in text


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """Two alignments in a folder, the second of them moved from another snapshot."""
    aligned, parts = [], []
    crossed_rows = [{"example_id": "r", "output": 0, "evidence": 0, "outcome": "near", **OLD, **SAME}]
    for dataset, n_rows, more in (("fever", 4, {}), ("nq", 2, {"crosswalk": (CROSSWALK, crossed_rows)})):
        own = write_alignment(tmp_path / "all" / dataset, ROWS[:n_rows], dataset=dataset, **more)
        parts.append(InnerRelease(dataset, ALIGNMENT.read(str(own)).sha256))
        aligned.append(
            FinishedAlignment(
                dataset, dataset, {**ALIGNMENT.read_document(str(own), REPORT), "dropped_by_threshold": 0.25}
            )
        )
    pages = {"in_the_release": 10, "with_evidence": 5, "share": 0.5, "by_number_of_datasets": {"1": 4, "2": 1}}
    facts = {"release": RELEASE, "alignments": [{"folder": part.folder, "manifest_sha256": part.manifest_sha256}
                                                for part in parts]}  # fmt: skip
    report = overview_values(aligned, pages)
    return write_listing(tmp_path / "all", ALIGNMENTS, {}, report=report, facts=facts, parts=parts)


def test_datasets_stand_side_by_side_and_then_each(both: Path) -> None:
    text = report_text(both)
    assert "| folder | kind | alignments | misses | records | crosswalk |" in text
    assert "| fever | alignment | 4 | 0 | 4 | – |" in text
    assert "| nq | alignment | 2 | 0 | 2 | 1 |" in text
    assert "| fever, dev | 25.0 % | 26.0 % |" in text
    assert "| nq, dev | 25.0 % | 16.1 % |" in text
    assert "| fever, dev | 4 | 10,444 | 1 | 1.12 |" in text
    assert "| fever, dev | 2017-06 | 8.6 | 0.0 % | 50.0 % | 25.0 % | 25.0 % |" in text
    assert "| 2 | 1 | 20.0 % |" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Evidence that is still present, and lost evidence",
        "## Drift", "## Compared with the KILT paper", "## What it holds",
        "## What it is and was made from", "## Counts and options", "## fever", "## nq",
    ]  # fmt: skip


def test_an_alignment_that_was_exchanged_is_not_reported_on(both: Path) -> None:
    write_alignment(both / "other", ROWS[:1], dataset="nq")
    (both / "other" / "manifest.json").replace(both / "nq" / "manifest.json")
    with pytest.raises(DataError, match="not the alignment in the folder's manifest"):
        report_text(both)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_damaged_report_is_named(tmp_path: Path, content: str) -> None:
    folder = write_alignment(tmp_path / "a", ROWS)
    (folder / "report.json").write_text(content)
    with pytest.raises(DataError, match=r"report\.json.*kbsource verify"):
        report_text(folder)


def test_the_schema_of_hand_written_rows_is_that_of_alignments() -> None:
    assert set(span_row(0, 0.5)) <= set(ALIGNMENT_ROWS.names)


def test_qampari_has_its_funnel_its_answers_and_its_proofs(tmp_path: Path) -> None:
    text = report_text(write_questions(tmp_path / "q", write_pages(tmp_path / "kb")))
    assert "| kind of question | queries | kept | too few answers |" in text
    assert "| wikidata\\_simple | 4 | 3 | 1 |" in text
    assert "| wikidata\\_simple | 30 | 27 | 24 | 15 |" in text
    assert "| dev and test | 2 | 5 | 13.23 | 5 | 7 |" in text
    assert "| wikidata\\_simple | 3 | 1 | 1 | 0 |" in text
    assert "| P50 | 0 | 0 | 25 | 0 | 0 | 0 |" in text
    assert "Counts of the job" not in text  # the release holds none


_ENTITY = {"qid": "Q1", "popularity": 1.0, "is_head": False, "aliases": [], "entity_types": [], "wikipedia": []}
_EMPTY: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0, "list": []}


def test_amber_has_its_names_statistics_and_signals(tmp_path: Path) -> None:
    statistics = {name: {"made": number, "published": None} for number, name in enumerate(STATISTICS)}
    shares = {"Q5 P19": {"made": 40.0, "published": 2.5}, "Q5 P102": {"made": 60.0, "published": None}}
    collection = {
        "names": {**dict.fromkeys(OUTCOMES, 0), "set": 3, "small_gap": 1},
        "statistics": {**statistics, "shares": shares},
        "signals": {"P19": {"found": {"bleu_0.50": {"supported": 2}}, "not_found": {"no_span": {"not_judged": 1}}}},
    }
    schema = TABLES["tuples"]
    empty = {field.name: _EMPTY[str(field.type).partition("<")[0]] for field in schema if not field.nullable}
    signals = ((0.5, 0.9), (0.5, 1.0), (None, None))
    rows = [{**empty, "collection": "human", "bleu": bleu, "entailment": entailment} for bleu, entailment in signals]
    names = [
        {"collection": "human", "name": str(number), "outcome": outcome, "n_entities": 2, "n_members": 2}
        for number, outcome in enumerate(("set", "set", "small_gap", "set"))
    ]
    entities = [{**_ENTITY, "qid": f"Q{views}", "popularity": math.log10(views)} for views in (1000, 10)]
    sets = [{"collection": "human", "name": "0", "entities": entities}]
    folder = write_listing(
        tmp_path / "a",
        AMBER_SETS,
        {
            "tuples": (schema, rows),
            "names": (TABLES["names"], names),
            "sets": (TABLES["sets"], sets),
            "set_queries": (TABLES["set_queries"], []),
        },
        report={
            "collections": {"human": collection},
            "entities": {"entities": 61},
            "popularity": {"1": 4, "8": 2, "64": 1},
        },
        facts={"release": RELEASE},
    )
    text = report_text(folder)
    assert "| set | 3 | 75.0 % | a set of the release |" in text
    assert "| sets | 1 | 2,093 |\n| entities per set | 2 | 2.98 |\n| distinguished per set | 1 | 2.03 |" in text
    assert "| 1 | 3 |\n| 2 | 1 |" in text
    assert "| 0.50–0.75 | 0 | 0 | 0 | 0 | 2 | 0 |" in text
    assert text.index("| Q5 P102 | 60 | – |") < text.index("| Q5 P19 | 40 | 2.5 |")
    assert "| P19 | found | 0.50 | 0 | 2 |" in text
    assert "| P19 | not found | no span | 1 | 0 |" in text
    assert "| entities | 61 |" in text
    assert "**Page views of all entities, by rank**" in text
    assert "| 1 | 1.81 |\n| 2 | 0.9 |\n| 4 | 0 |" in text


def test_both_signals_are_binned_as_plain_comparisons_bin_them() -> None:
    rng = np.random.default_rng(0)
    edges = [0.0, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 1.0]
    scores = [*rng.choice([*edges, 0.3, 0.99], 400).tolist(), None]
    supports = [*rng.choice([*edges, 0.33], 390).tolist(), *[None] * 11]

    def names(score: float | None, support: float | None) -> tuple[str, str]:
        bleu = "no span" if score is None else BLEU_BINS[1 + int(score * 4)]
        return bleu, "not judged" if support is None else ENTAILMENT_BINS[min(int(support * 5 + 1e-9), 4)]

    wanted = Counter(map(names, scores, supports))
    with connected() as db:
        db.register("spans", pa.table({"score": scores, "support": supports}))
        rows = db.execute(crossed_query("spans", score="score", support="support")).fetchall()
    assert {(bleu, name.removeprefix("entailment ")): n for bleu, name, n in rows if n} == wanted
    assert [bleu for bleu, *_ in rows] == [name for name in BLEU_BINS for _ in ENTAILMENT_BINS]


OTHERS = [kind for kind in KINDS if kind.manifest is ListingManifest]


@pytest.mark.parametrize("kind", OTHERS, ids=[kind.format for kind in OTHERS])
def test_any_kind_has_facts_tables_and_counts(tmp_path: Path, kind: Kind[Any]) -> None:
    facts = {
        "release": RELEASE,
        "inputs": {"kb": [{"name": "x.json", "bytes": 5, "sha256": "ab"}], "none": None},
        "counts": {"pages": 3, "distinct": {"dev": 671}},
        "options": {"formats": ["a", "b"], "is_long": False, "limit": None},
    }
    entries = [FileEntry("t/t-00000-of-00001.parquet", 7, 30, "c"), FileEntry("more.jsonl", None, 10, "d")]
    manifest = ListingManifest.of(kind.format, entries, facts)
    opened = OpenRelease("x", str(tmp_path), kind, manifest, Database([]))
    text = to_markdown(Document("", (holdings(opened, has_counts=False), provenance(opened), other_values(opened))))
    assert f"- made by: {kind.made_by}" in text
    assert "| x.json | 5 | ab | kb |" in text
    assert "| t | 7 | 1 | 30 | 75.0 % |" in text
    assert "| more.jsonl | – | 1 | 10 | 25.0 % |" in text
    assert "| counts distinct dev | 671 |" in text
    assert "| options formats | a, b |" in text
    assert "| options limit | – |" in text
