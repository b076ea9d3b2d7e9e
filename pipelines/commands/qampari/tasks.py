"""``kbsource qampari-tasks``: tasks for people about a QAMPARI release, and what they said taken in."""

from __future__ import annotations

import argparse
import json
import sys

from pipelines.commands.flags.common import Command, facts_table
from pipelines.options.fields import add_flags, from_flags
from pipelines.terminal import print_text

_EXPORT, _APPLY = "export", "apply"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.qampari.crowd.tasks import TaskOptions

    add = parser.add_argument
    add("mode", choices=(_EXPORT, _APPLY), metavar="MODE", help="export: write tasks; apply: take in what people said")
    add("release", metavar="RELEASE", help="folder of a QAMPARI release")
    add("--output", required=True, metavar="DIR", help="empty folder for the tasks, or for the new release")
    add_flags(parser, TaskOptions)
    add("--tasks", metavar="DIR", help="apply: folder that export wrote")
    add(
        "--verdicts",
        metavar="FILE",
        help="apply: task_id, verdict (correct, incorrect) and worker; JSON Lines, CSV or an export of Label Studio",
    )
    add("--paraphrases", metavar="FILE", help="apply: qid and paraphrase, one object a line")
    add("--least-answers", type=int, metavar="N", help="apply: answers that a question needs (default: 5)")
    add("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError

    for mode, names in {
        _EXPORT: ("wrong_share", "train_paraphrases", "seed", "form"),
        _APPLY: ("tasks", "verdicts", "paraphrases", "least_answers"),
    }.items():
        for name in names:
            if mode != args.mode and getattr(args, name) is not None:
                raise SetupError(f"--{name.replace('_', '-')} is for {mode}; leave it out.")
    return _export(args) if args.mode == _EXPORT else _apply(args)


def _export(args: argparse.Namespace) -> int:
    from mapping.qampari.crowd.tasks import TaskOptions, export_tasks
    from pipelines.stores.storage import storage_for

    options = from_flags(vars(args), TaskOptions)
    counts = export_tasks(args.release, args.output, storage_for(args.release, args.output), options)
    if args.json:
        print(json.dumps(counts, indent=2))
    else:
        rows = {
            "answers to judge": counts["answers"] + counts["wrong_answers"],
            "  wrong on purpose": counts["wrong_answers"],
            "questions to write anew": counts["paraphrases"],
        }
        print_text(facts_table(rows.items()))
    return 0


def _apply(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.release.reader import read_table
    from mapping.qampari.crowd.apply import CrowdFiles, apply_crowd
    from pipelines.stores.storage import storage_for

    if args.tasks is None:
        raise SetupError("--tasks is missing: give the folder that kbsource qampari-tasks export wrote.")
    if args.verdicts is None and args.paraphrases is None:
        raise SetupError("nothing to take in: give --verdicts, --paraphrases or both.")
    given = [path for path in (args.release, args.tasks, args.verdicts, args.paraphrases, args.output) if path]
    storage = storage_for(*given)
    files = CrowdFiles(args.release, args.tasks, args.verdicts, args.paraphrases)
    report = apply_crowd(files, args.output, storage, least=5 if args.least_answers is None else args.least_answers)
    for bad in read_table(args.output, "rejected", storage):
        print(f"{bad['file']}, {bad['detail']} ({bad['reason']})", file=sys.stderr)
    if args.json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        answers, wrong, questions, texts = (
            report[name] for name in ("answers", "wrong_answers", "questions", "paraphrases")
        )
        rows = {
            "answers judged": answers["judged"],
            "answers without a verdict": answers["missing"],
            "answers dropped": answers["dropped"],
            "wrong answers judged": wrong["judged"],
            "wrong answers accepted": wrong["accepted"],
            "questions replaced": questions["replaced"],
            "questions lost": questions["not_replaced"],
            "paraphrases used": texts["used"],
            "questions without a paraphrase": texts["missing"],
            "lines rejected": sum(report["rejected"].values()),
        }
        print_text(facts_table(rows.items()))
    return 1 if report["rejected"] else 0


COMMAND = Command(
    name="qampari-tasks",
    summary="tasks for people about a QAMPARI release, and their verdicts",
    description="export writes tasks: answers of dev and test questions to judge, with wrong ones among them, and\n"
    "questions to write anew. apply makes a new release without the answers judged wrong and with the\n"
    "paraphrases; a question with too few answers left is replaced. A line that cannot be used is\n"
    "named on the standard error with file, line and reason, and the exit code is 1.",
    examples=(
        "kbsource qampari-tasks export qampari/enwiki-20261001 --output tasks",
        "kbsource qampari-tasks apply qampari/enwiki-20261001 --tasks tasks --verdicts verdicts.jsonl "
        "--paraphrases paraphrases.jsonl --output qampari/enwiki-20261001-judged",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
