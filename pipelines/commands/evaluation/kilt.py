"""``kbsource evaluate kilt``: answers with their provenance, by the metrics of KILT."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from kbsource.errors import SetupError
from kbsource.files import atomic_write
from pipelines.commands.evaluation.common import add_shared, chosen_quirks, report
from pipelines.commands.flags.common import Command
from pipelines.options.fields import add_flags, from_flags
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from kbsource.files import Storage
    from mapping.metrics.kilt.options import KiltEvaluation, KiltFiles


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.metrics.kilt.options import QUIRKS, KiltEvaluation, KiltFiles

    parser.add_argument("predictions", nargs="?", metavar="PREDICTIONS", help="id and output for each record")
    add_flags(parser, KiltFiles, but=("predictions",))
    add_flags(parser, KiltEvaluation)
    add_shared(parser, QUIRKS)


def _run(args: argparse.Namespace) -> int:
    import orjson

    from mapping.metrics.kilt.evaluate import evaluate_kilt
    from mapping.metrics.kilt.options import QUIRKS, KiltEvaluation, KiltFiles
    from mapping.metrics.kilt.scores import scores_text
    from pipelines.stores.storage import storage_for

    options = from_flags(vars(args), KiltEvaluation, quirks=chosen_quirks(args, QUIRKS))
    files = from_flags(vars(args), KiltFiles, predictions=args.predictions)
    storage = storage_for(*(path for field in fields(files) if (path := getattr(files, field.name)) is not None))
    if files.all_tasks is not None:
        return _run_all(files, storage, options, as_json=args.json)
    scores = evaluate_kilt(files, storage, options, reject=report)
    if files.items is not None:
        with atomic_write(storage, files.items) as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in scores.first.rows())
    print(json.dumps(scores.to_json(), ensure_ascii=False, indent=2) if args.json else scores_text(scores))
    return 1 if scores.has_rejects else 0


def _run_all(files: KiltFiles, storage: Storage, options: KiltEvaluation, *, as_json: bool) -> int:
    from mapping.metrics.kilt.leaderboard import evaluate_tasks
    from mapping.metrics.kilt.scores import leaderboard_text

    if others := [
        name for name in ("predictions", "compare", "crosswalk", "items") if getattr(files, name) is not None
    ]:
        raise SetupError(f"--all evaluates each file of a folder; leave {others[0]} out.")
    scores, missing = evaluate_tasks(files, storage, options, reject=report)
    for name in missing:
        print(f"{name}: no predictions", file=sys.stderr)
    if as_json:
        print(json.dumps({name: one.to_json() for name, one in scores.items()}, ensure_ascii=False, indent=2))
    else:
        print_text(leaderboard_text(scores))
    return 1 if missing or any(score.rejected for score in scores.values()) else 0


COMMAND = Command(
    name="kilt",
    summary="answers and their provenance: the tasks of KILT",
    description="Compares predictions with the gold records of a task: accuracy, exact match, F1, ROUGE-L, the same\n"
    "where the provenance is right (KILT scores), and R-precision, recall and precision of evidence sets.",
    examples=(
        "kbsource evaluate kilt predictions.jsonl --gold nq-dev-kilt.jsonl",
        "kbsource evaluate kilt a.jsonl --compare b.jsonl --gold nq-dev-kilt.jsonl --bootstrap 10000",
        "kbsource evaluate kilt old.jsonl --gold aligned/nq/nq-dev-kilt.jsonl --crosswalk aligned/nq",
        "kbsource evaluate kilt --all predictions/ --gold kilt/",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
