"""The kinds of release that a campaign leaves.

::

    tasks.jsonl | tasks.csv | tasks.json, tasks.xml    what people are given
    passages.jsonl                                     passage_id, wikipedia_id, wikipedia_title, text
    key.jsonl                                          not for them: input, answers, which systems found each passage

    judgements.jsonl                                   what they said, a line for each highlight
    passages.jsonl, key.jsonl                          as in the tasks
    rejected/                                          lines that could not be used
"""

from __future__ import annotations

from kbsource.release.kind import ListingKind
from kbsource.schema import REJECTED
from mapping.sources.forms.task_files import TASK_FORMS, task_names

TASKS, PASSAGES, KEY, JUDGEMENTS = "tasks", "passages.jsonl", "key.jsonl", "judgements.jsonl"

CAMPAIGN_TASKS = ListingKind(
    name="folder of tasks of a campaign",
    format="kbsource-campaign-tasks-1",
    made_by="kbsource campaign tasks",
    tables={},
    files=(*(name for form in TASK_FORMS for name in task_names(TASKS, form)), PASSAGES, KEY),
)
CAMPAIGN = ListingKind(
    name="campaign",
    format="kbsource-campaign-1",
    made_by="kbsource campaign import",
    tables={"rejected": REJECTED},
    files=(JUDGEMENTS, PASSAGES, KEY),
)
