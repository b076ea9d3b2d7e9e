"""A release of QAMPARI that people are asked about."""

from __future__ import annotations

from pathlib import Path

from kbsource.files import LocalStorage
from kbsource.release.layout import shard_path
from mapping.qampari.crowd.tasks import (
    TaskOptions,
)
from mapping.qampari.question_rows import DrawnQuestion
from mapping.qampari.questions import COMPOSITION
from tests.support.alignments import read_lines
from tests.support.qampari import drawn, question, undrawn

STORAGE = LocalStorage()


QUESTIONS = shard_path("questions", 0, 1)


FIRST, SECOND, THIRD = (
    [f"{name} {place}" for name in ("Brack", "Sorn", "Tey", "Ullane", "Halvane", "Mirvale")]
    for place in ("Mill", "Falls", "Bridge")
)


OPTIONS = TaskOptions(wrong_share=0.2, n_train_paraphrases=1)


DEV, OTHER, TEST = "0__wikidata_simple__dev", "1__wikidata_comp__dev", "4__wikidata_simple__test"


SPARE = [f"P50__Q{number}" for number in range(20, 24)]


def crowd_questions() -> list[DrawnQuestion]:
    return [
        drawn(question("P50__Q1", FIRST), 0, "dev"),
        drawn(question("P86__P50__Q2", SECOND, subset=COMPOSITION, property_ids=("P50", "P86")), 1, "dev"),
        drawn(question("P50__Q3", SECOND), 4, "test"),
        drawn(question("P50__Q4", FIRST), 0, "train"),
        drawn(question("P50__Q5", FIRST), 1, "train"),
        *(undrawn(question(key, THIRD)) for key in SPARE),
        undrawn(question("P51__Q2", THIRD, property_ids=("P51",))),
        undrawn(question("P50__Q30", [*THIRD[:4], THIRD[0].upper()])),
        undrawn(question("P50__Q31", THIRD))._replace(side=None),
    ]


def task_ids(tasks: Path) -> dict[str, str]:
    """Gives the id of the task about each answer, by aid."""
    return {one["aid"]: one["task_id"] for one in read_lines(tasks / "validation_key.jsonl") if not one["is_wrong"]}
