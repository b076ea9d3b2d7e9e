"""The reports on QAMPARI, on AmbER sets, and on kinds of which nothing more is known than the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kbsource.files import LocalStorage
from kbsource.release.kind import Kind
from kbsource.release.manifest import FileEntry, ListingManifest
from mapping.amber.kind import AMBER_SETS
from mapping.amber.schema import OUTCOMES, TABLES
from mapping.amber.statistics import MEASURES
from mapping.kinds import KINDS
from mapping.reports.any_report import any_document
from mapping.reports.as_markdown import write_markdown
from mapping.reports.crossing import BLEU_BINS, ENTAILMENT_BINS, Crossing
from mapping.reports.of_releases import report_on
from tests.support.contexts import write_pages, write_questions
from tests.support.reports import RELEASE, write_listing

STORAGE = LocalStorage()


def report_text(path: Path) -> str:
    return write_markdown(report_on([str(path)], STORAGE))


def test_qampari_has_its_funnel_its_answers_and_its_proofs(tmp_path: Path) -> None:
    text = report_text(write_questions(tmp_path / "q", write_pages(tmp_path / "kb")))
    assert "| kind of question | queries | kept | too few answers |" in text
    assert "| wikidata\\_simple | 4 | 3 | 1 |" in text
    assert "| wikidata\\_simple | 30 | 27 | 24 | 15 |" in text
    assert "| dev and test | 2 | 5 | 13.23 | 5 | 7 |" in text
    assert "| wikidata\\_simple | 3 | 1 | 1 | 0 |" in text
    assert "| P50 | 0 | 0 | 25 | 0 | 0 | 0 |" in text
    assert "Counts of the job" not in text  # the release holds none


def test_amber_has_its_names_statistics_and_signals(tmp_path: Path) -> None:
    measures = {name: {"made": number, "published": None} for number, name in enumerate(MEASURES)}
    shares = {"Q5 P19": {"made": 40.0, "published": 2.5}, "Q5 P102": {"made": 60.0, "published": None}}
    collection = {
        "names": {**dict.fromkeys(OUTCOMES, 0), "set": 3, "small_gap": 1},
        "statistics": {**measures, "shares": shares},
        "signals": {"P19": {"found": {"bleu_0.50": {"supported": 2}}, "not_found": {"no_span": {"not_judged": 1}}}},
    }
    schema = pa.schema([TABLES["tuples"].field(name) for name in ("bleu", "entailment")])
    rows = [{"bleu": 0.5, "entailment": 0.9}, {"bleu": 0.5, "entailment": 1.0}, {"bleu": None, "entailment": None}]
    folder = write_listing(
        tmp_path / "a",
        AMBER_SETS,
        {"tuples": (schema, rows)},
        report={"collections": {"human": collection}, "entities": {"entities": 61}},
        facts={"release": RELEASE},
    )
    text = report_text(folder)
    assert "| set | 3 | 75.0 % | a set of the release |" in text
    assert "| 0.50–0.75 | 0 | 0 | 0 | 0 | 2 | 0 |" in text
    assert text.index("| Q5 P102 | 60 | – |") < text.index("| Q5 P19 | 40 | 2.5 |")
    assert "| P19 | found | 0.50 | 0 | 2 |" in text
    assert "| P19 | not found | no span | 1 | 0 |" in text
    assert "| entities | 61 |" in text


def test_both_signals_are_binned_as_plain_comparisons_bin_them() -> None:
    rng = np.random.default_rng(0)
    edges = [0.0, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 1.0]
    scores = [*rng.choice([*edges, 0.3, 0.99], 400).tolist(), None]
    supports = [*rng.choice([*edges, 0.33], 390).tolist(), *[None] * 11]
    crossing = Crossing()
    for start in (0, 100):
        crossing.add(*(pa.chunked_array([own[start : start + 100 if start == 0 else None]], pa.float64())
                       for own in (scores, supports)))  # fmt: skip

    def names(score: float | None, support: float | None) -> tuple[str, str]:
        bleu = "no span" if score is None else BLEU_BINS[1 + int(score * 4)]
        return bleu, "not judged" if support is None else ENTAILMENT_BINS[min(int(support * 5 + 1e-9), 4)]

    wanted: dict[tuple[str, str], int] = {}
    for pair in zip(scores, supports, strict=True):
        wanted[names(*pair)] = wanted.get(names(*pair), 0) + 1
    rows = crossing.table("").rows
    found = {(row[0], name): n for row in rows for name, n in zip(ENTAILMENT_BINS, row[1:], strict=True) if n}
    assert found == wanted


OTHERS = [kind for kind in KINDS if kind.manifest is ListingManifest]


@pytest.mark.parametrize("kind", OTHERS, ids=[kind.format for kind in OTHERS])
def test_any_kind_has_facts_tables_and_counts(kind: Kind[Any]) -> None:
    facts = {
        "release": RELEASE,
        "inputs": {"kb": [{"name": "x.json", "bytes": 5, "sha256": "ab"}], "none": None},
        "counts": {"pages": 3, "distinct": {"dev": 671}},
        "options": {"formats": ["a", "b"], "is_long": False, "limit": None},
    }
    entries = [FileEntry("t/t-00000-of-00001.parquet", 7, 30, "c"), FileEntry("more.jsonl", None, 10, "d")]
    text = write_markdown(any_document(kind, ListingManifest.of(kind.format, entries, facts)))
    assert f"- made by: {kind.made_by}" in text
    assert "| x.json | 5 | ab | kb |" in text
    assert "| t | 7 | 1 | 30 | 75.0 % |" in text
    assert "| more.jsonl | – | 1 | 10 | 25.0 % |" in text
    assert "| counts distinct dev | 671 |" in text
    assert "| options formats | a, b |" in text
    assert "| options limit | – |" in text
