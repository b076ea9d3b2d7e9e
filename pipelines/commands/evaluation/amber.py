"""``kbsource evaluate amber``: which of the entities that share a name was retrieved."""

from __future__ import annotations

import argparse
import json

from mapping.metrics.evaluation_options import AmberFiles, AmberOptions
from pipelines.commands.evaluation.common import report
from pipelines.commands.flags.common import Command, facts_table
from pipelines.options.fields import add_flags, from_flags


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, AmberFiles)
    add_flags(parser, AmberOptions)
    parser.add_argument("--json", action="store_true", help="the scores as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.files import atomic_write, join
    from mapping.charts import svg
    from mapping.metrics.amber import evaluate_amber
    from mapping.reports.any_report import flat_values
    from pipelines.stores.storage import storage_for

    files, options = from_flags(vars(args), AmberFiles), from_flags(vars(args), AmberOptions)
    storage = storage_for(*(path for path in (files.gold, files.predictions, files.metrics, files.plot) if path))
    scores = evaluate_amber(files, storage, options, reject=report)
    written = {files.plot: svg(scores.gap_chart())} if files.plot else {}
    for k in options.ks if files.metrics else ():
        for name, value in (("metrics", scores.metrics(k)), ("raw_metrics", {"accuracy": scores.hits[k]})):
            written[join(files.metrics or "", f"{name}@{k}.json")] = json.dumps(value, indent=4)
    for path, text in written.items():
        with atomic_write(storage, path) as file:
            file.write(text.encode())
    said = scores.to_json()
    print(json.dumps(said, ensure_ascii=False, indent=2) if args.json else facts_table(flat_values(said)))
    return 1 if scores.rejected else 0


COMMAND = Command(
    name="amber",
    summary="entities that share a name: AmbER sets",
    description="Compares retrieved pages and answers with a gold file of AmbER sets: accuracy@K of all, head and\n"
    "tail queries, consistency, entity confusion, accuracy by gap in popularity, F1 or accuracy of answers.",
    examples=("kbsource evaluate amber --gold amber_sets.jsonl --predictions ranked.jsonl --k 1,20 --plot gaps.svg",),
    add_arguments=_add_arguments,
    run=_run,
)
