"""``kbsource evaluate qampari``: lists of answers and retrieved passages."""

from __future__ import annotations

import argparse
import json

from pipelines.commands.evaluation.common import add_shared, chosen_quirks, report
from pipelines.commands.flags.common import Command
from pipelines.options.fields import add_flags, from_flags


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.metrics.evaluation_options import QUIRKS, QampariEvaluation, QampariFiles

    add_flags(parser, QampariFiles)
    add_flags(parser, QampariEvaluation)
    add_shared(parser, QUIRKS)


def _run(args: argparse.Namespace) -> int:
    from mapping.metrics.evaluation_options import QUIRKS, QampariEvaluation, QampariFiles
    from mapping.metrics.qampari import evaluate_qampari
    from mapping.metrics.scores import scores_text
    from pipelines.stores.storage import storage_for

    options = from_flags(vars(args), QampariEvaluation, quirks=chosen_quirks(args, QUIRKS))
    files = from_flags(vars(args), QampariFiles)
    given = [path for path in (files.gold, files.predictions, files.retrieved) if path is not None]
    scores = evaluate_qampari(files, storage_for(*given), options, reject=report)
    print(json.dumps(scores.to_json(), ensure_ascii=False, indent=2) if args.json else scores_text(scores))
    return 1 if scores.rejected else 0


COMMAND = Command(
    name="qampari",
    summary="questions with many answers: QAMPARI",
    description="Compares predicted lists of answers and retrieved passages with a gold file of QAMPARI.",
    examples=(
        "kbsource evaluate qampari --gold dev_data.jsonl --predictions predictions.jsonl",
        "kbsource evaluate qampari --gold dev_data.jsonl --retrieved bm25.jsonl --k 10,100 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
