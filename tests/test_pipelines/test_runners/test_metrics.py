"""What steps count for the pages of runners is what the release says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from apache_beam.metrics import MetricsFilter

from kbsource.files import Folder
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.passages.kind import PASSAGES_CORPUS
from pipelines.cli import main
from pipelines.runners import running
from pipelines.runners.counters import NAMESPACE, StepNames, seconds_of_steps
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.builds import build_mini
from tests.support.passages import cut_release
from tests.support.real_data import ROOT

InputCounts = dict[str, Counter[str]]
"""By outermost step the counters by name."""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> InputCounts:
    """What the job that the test runs counts, once it has run; its names are in the documentation."""
    found: InputCounts = {}

    def look(result: Any, names: StepNames) -> dict[str, float]:
        for counter in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            found.setdefault(counter.key.step.partition("/")[0], Counter())[counter.key.metric.name] += (
                counter.committed
            )
            assert _is_documented(counter.key.metric.name)
        seconds = seconds_of_steps(result, names)
        assert all(n > 0 for n in seconds.values())
        assert list(seconds.values()) == sorted(seconds.values(), reverse=True)
        return seconds

    monkeypatch.setattr(running, "seconds_of_steps", look)
    return found


def _is_documented(name: str) -> bool:
    page = (ROOT / "docs" / "running.md").read_text("utf-8").partition("## What a job shows")[2].partition("\n## ")[0]
    names = {
        metric_name
        for row in re.findall(r"^\| (`[^|]*)\|", page, re.MULTILINE)
        for metric_name in re.findall(r"`([^`]*)`", row)
    }
    return name in names or any(
        name.startswith(own_name.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) for own_name in names if own_name[-1].isupper()
    )


def test_a_build_counts_what_its_manifest_says(tmp_path: Path, counted: InputCounts) -> None:
    dump, output = mini_wiki.MULTISTREAM, str(tmp_path / "release")
    assert main(["build", str(dump), "--output", output, "--max-rejects", "0.02"]) == 0
    totals = PAGES_RELEASE.read(output).totals
    read = counted["dump"]
    assert (read["pages"], read["redirects"], read["other_namespaces"]) == (
        totals.pages_read,
        totals.redirects,
        totals.other_namespaces,
    )
    rejected = {name.removeprefix("rejected_"): n for step in counted.values() for name, n in step.items()}
    assert {reason: rejected[reason] for reason in totals.rejected} == totals.rejected
    assert read["stored_bytes"] == dump.stat().st_size
    assert counted["pages"]["articles"] == totals.articles


def test_an_alignment_counts_its_evidence_by_outcome(release: Path, tmp_path: Path, counted: InputCounts) -> None:
    records = [
        record("a", [evidence("rises in Lake Miravel", title="River Ullane")]),
        record("b", [evidence("of no page", title="Nowhere at all")]),
        "not JSON",
    ]
    given = write_records(tmp_path / "own.jsonl", records)
    made = map_mini(tmp_path / "aligned", release, "jsonl", given, max_rejects=0.5)
    outcomes = {
        name.removeprefix("evidences_"): n
        for step in counted.values()
        for name, n in step.items()
        if name.startswith("evidences_")
    }
    assert outcomes == made.report["counts"]["evidences"] == {"exact": 1, "page_missing": 1}
    assert made.steps


@pytest.mark.slow
def test_the_counters_of_other_jobs_are_what_their_releases_say(tmp_path: Path, counted: InputCounts) -> None:
    release, wikidata = tmp_path / "release", str(tmp_path / "wikidata")
    lines = ["wikidata", str(mini_wikidata.DUMP), "--output", wikidata, "--sites", mini_wikidata.SITE]
    assert main([*lines, "--max-rejects", "0.01"]) == 0
    totals = WIKIDATA_RELEASE.read(wikidata).totals
    read = counted["read again"]  # without the lines of entities that come twice
    assert (read["lines"], read["items"], read["properties"], read["others"]) == (
        totals.lines_read,
        totals.items,
        totals.properties,
        totals.other_entities,
    )

    build_mini(release, wikidata=wikidata)
    cut_release(tmp_path / "passages", release)
    counts = PASSAGES_CORPUS.read(str(tmp_path / "passages")).facts["counts"]
    cut = next(step for step in counted.values() if "passages" in step)
    assert {name: cut[name] for name in ("pages", "passages", "words")} == {
        name: counts[name] for name in ("pages", "passages", "words")
    }

    output = str(tmp_path / "qampari")
    assert main(["qampari", str(release), wikidata, "--model", "none", "--output", output]) == 0
    facts = Folder.of(f"{output}/report.json").read_json()["facts"]
    assert sum(step["searches"] for step in counted.values()) == sum(fact["searches"] for fact in facts.values())
