"""Facts whose search ends its process: they are not proved, and all others are as without them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from mapping.inspector.about import release_counts
from pipelines.commands.make import qampari_summary
from tests.support.moody_facts import BAD_TITLE, MoodyFactSearch
from tests.support.qampari_worlds import Maker, options_for, run_job

pytestmark = pytest.mark.slow  # guarded processes of a whole job


@pytest.mark.parametrize("how", ["segfault", "memory"])
def test_a_fact_whose_search_ends_its_process_is_not_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    maker = Maker()
    maker.add("Q1", "Ada")
    titles = [f"Book {number}" for number in range(10, 18)]
    for number, title in enumerate(titles, 10):
        maker.add(f"Q{number}", title, "P50 Q1", page=[f"{title} was written by Ada."])
    world = maker.write(tmp_path / "world")
    monkeypatch.setattr("pipelines.qampari.facts.FactSearch", partial(MoodyFactSearch, how))

    made = run_job(options_for(world, tmp_path / "release"))

    assert made.report["facts"]["simple"]["timed_out"] == made.manifest.facts["counts"]["timed_out"]["simple"] == 1
    assert ("searches that took too long", 1) in qampari_summary(made).rows
    assert "simple 1" in dict(release_counts(made.manifest.to_json()))["timed out"]
    (row,) = ds.dataset(tmp_path / "release" / "questions", format="parquet").to_table().to_pylist()
    assert [answer["text"] for answer in row["answers"]] == [title for title in titles if title != BAD_TITLE]
