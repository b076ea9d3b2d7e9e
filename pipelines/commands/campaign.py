"""``kbsource campaign``: people judge whether passages answer questions."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from typing import Any

from kbsource.files import atomic_write
from pipelines.commands.evaluation.common import report
from pipelines.commands.flags.common import Command, command_group, facts_table
from pipelines.options.fields import add_flags, from_flags


def _add_output(parser: argparse.ArgumentParser, what: str, metavar: str) -> None:
    parser.add_argument("--output", required=True, metavar=metavar, help=what)
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")


def _add_candidates(parser: argparse.ArgumentParser) -> None:
    from mapping.campaign.candidates import CandidateOptions

    add = parser.add_argument
    add("--gold", required=True, metavar="FILE", help="the questions: a KILT file with answers")
    add("--run", required=True, action="append", metavar="FILE", help="predictions of a system; may be repeated")
    add("--kb", metavar="RELEASE", help="texts of pages, where a run names pages alone")
    add_flags(parser, CandidateOptions)
    _add_output(parser, "file of candidates", "FILE")


def _candidates(args: argparse.Namespace) -> int:
    from kbsource.lookup import KnowledgeSource
    from kbsource.records import BadRecord
    from mapping.campaign.candidates import CandidateOptions
    from mapping.campaign.prepare import write_candidates
    from pipelines.stores.storage import storage_for

    rejected: list[BadRecord] = []
    options = from_flags(vars(args), CandidateOptions)
    storage = storage_for(args.gold, *args.run, args.output, *([args.kb] if args.kb else []))
    with ExitStack() as stack:
        source = stack.enter_context(KnowledgeSource.open(args.kb, storage)) if args.kb else None
        counts = write_candidates(
            args.gold, args.run, args.output, storage, options, source=source, reject=rejected.append
        )
    for bad in rejected:
        report(bad)
    _show({**counts, "rejected": len(rejected)}, as_json=args.json)
    return 1 if rejected else 0


def _add_tasks(parser: argparse.ArgumentParser) -> None:
    from mapping.sources.forms.task_files import TASK_FORMS

    parser.add_argument("candidates", metavar="CANDIDATES", help="file that kbsource campaign candidates wrote")
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in TASK_FORMS.items())
    parser.add_argument("--form", choices=tuple(TASK_FORMS), default="jsonl", metavar="FORM", help=meanings)
    _add_output(parser, "empty folder for the tasks", "DIR")


def _tasks(args: argparse.Namespace) -> int:
    from mapping.campaign.prepare import write_campaign_tasks
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.candidates, args.output)
    _show(write_campaign_tasks(args.candidates, args.output, storage, args.form), as_json=args.json)
    return 0


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", metavar="TASKS", help="folder that kbsource campaign tasks wrote")
    parser.add_argument(
        "--judgements",
        required=True,
        nargs="+",
        metavar="FILE",
        help="passage_id, worker_id, label (yes, no, partial), highlight and free_text: JSON Lines, CSV, or an "
        "export of Label Studio",
    )
    _add_output(parser, "empty folder for what people said", "DIR")


def _import(args: argparse.Namespace) -> int:
    from kbsource.records import BadRecord
    from kbsource.release.reader import read_table
    from mapping.campaign.judged import import_judgements
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.tasks, *args.judgements, args.output)
    counts = import_judgements(args.tasks, args.judgements, args.output, storage)
    for row in read_table(args.output, "rejected", storage):
        report(BadRecord(**row))
    _show(counts, as_json=args.json)
    return 1 if counts["rejected"] else 0


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("campaign", metavar="CAMPAIGN", help="folder that kbsource campaign import wrote")
    parser.add_argument("--questions", metavar="FILE", help="where the fate of every question is written, JSON Lines")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def _report(args: argparse.Namespace) -> int:
    import orjson

    from mapping.campaign.judged import report_campaign
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.campaign, *([args.questions] if args.questions else []))
    found = report_campaign(args.campaign, storage)
    if args.questions:
        with atomic_write(storage, args.questions) as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in found.questions)
    _show(found.summary, as_json=args.json)
    return 0


def _show(value: dict[str, Any], *, as_json: bool) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2) if as_json else facts_table(_rows(value, "")))


def _rows(value: dict[str, Any], before: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, part in value.items():
        shown = f"{before}{name}".replace("_", " ")
        if isinstance(part, dict):
            rows += _rows(part, f"{shown}: ")
        elif isinstance(part, list):
            rows += [(f"{shown}: {own['first']}, {own['second']}", _decimals(own["kappa"])) for own in part]
        else:
            rows.append((shown, _decimals(part)))
    return rows


def _decimals(value: Any) -> Any:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else value


COMMAND = command_group(
    name="campaign",
    summary="people judge whether passages answer questions",
    description="Makes tasks for people out of what several systems found for the questions of a KILT file, and takes\n"
    "in what they say. kbsource map nq or eli5 with --campaign then makes provenance of it.",
    parts=(
        Command(
            name="candidates",
            summary="passages to judge, out of several runs",
            description="Chooses the passages of every question: the best of each system in turn, each once, if it\n"
            "shares enough tokens with a gold answer.",
            examples=(
                "kbsource campaign candidates --gold nq-dev-kilt.jsonl --run a.jsonl --run b.jsonl --output c.jsonl",
            ),
            add_arguments=_add_candidates,
            run=_candidates,
        ),
        Command(
            name="tasks",
            summary="tasks in the form of a tool",
            description="Writes a task for each passage of each question, in an order that tells nothing.",
            examples=("kbsource campaign tasks c.jsonl --form label-studio --output tasks",),
            add_arguments=_add_tasks,
            run=_tasks,
        ),
        Command(
            name="import",
            summary="what people said",
            description="Takes in what people said of the tasks, with the place of every highlight in its passage.\n"
            "What cannot be used is named on the standard error and released, and the exit code is 1.",
            examples=("kbsource campaign import tasks --judgements export.json --output campaign",),
            add_arguments=_add_import,
            run=_import,
        ),
        Command(
            name="report",
            summary="what came of it, and how far people agree",
            description="Gives what was accepted by two people or more, Cohen's and Fleiss' kappa, who accepted gold\n"
            "passages, and the passages that are unlike every answer and want a look.",
            examples=("kbsource campaign report campaign --questions fates.jsonl",),
            add_arguments=_add_report,
            run=_report,
        ),
    ),
)
