"""``kbsource evaluate``: the metrics of a benchmark."""

from __future__ import annotations

from pipelines.commands.evaluation import kilt, qampari
from pipelines.commands.flags.common import command_group

COMMAND = command_group(
    name="evaluate",
    summary="the metrics of a benchmark",
    description="Compares what a system predicts with the gold file of a benchmark. What cannot be used is named on\n"
    "the standard error with file, line and reason, and the exit code is 1.",
    parts=(qampari.COMMAND, kilt.COMMAND),
)
