"""``kbsource qampari``: questions with many answers for a snapshot."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, add_run_arguments, run_flags, summary_json
from pipelines.options.fields import add_flags, flags_of, from_flags, place
from pipelines.progress import clock
from pipelines.terminal import print_text, table_text

if TYPE_CHECKING:
    from pipelines.jobs.qampari import QampariSummary


def _pool_flags() -> dict[str, str]:
    """Gives what the flags of the subsets' sizes are called."""
    from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, TABLE_COMPOSITION, TABLE_SIMPLE

    return {
        SIMPLE: "simple",
        COMPOSITION: "compositions",
        INTERSECTION: "intersections",
        TABLE_SIMPLE: "table-simple",
        TABLE_COMPOSITION: "table-compositions",
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.entail.signal import DEFAULT_MODEL, ModelOptions
    from mapping.qampari.selection import SampleSizes
    from pipelines.options.qampari import QampariOptions

    add_flags(parser, QampariOptions)
    add = parser.add_argument
    for subset, n_questions in SampleSizes().pool.items():
        meaning = f"questions of {subset} for development and test together (default: %(default)s)"
        add(f"--pool-{_pool_flags()[subset]}", type=int, default=n_questions, metavar="N", help=meaning)
    add(
        "--model",
        default=DEFAULT_MODEL,
        metavar="MODEL",
        help="NLI model that judges candidate sentences: folder of a cross-encoder, or hub name; none: the first "
        "sentence of the page of one that names the other is the proof (default: the one that QAMPARI used)",
    )
    add_flags(parser, ModelOptions)
    add_run_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.entail.signal import DEFAULT_MODEL, ModelOptions
    from mapping.qampari.facts.validation import LEAST_ENTAILMENT
    from mapping.qampari.selection import SampleSizes
    from pipelines.jobs.qampari import make_qampari
    from pipelines.options.qampari import QampariOptions
    from pipelines.progress import Progress

    given, default_name = vars(args), os.path.basename(DEFAULT_MODEL)
    model = None if args.model == "none" else from_flags(given, ModelOptions, model=args.model)
    if model is None:
        for flag in ("--least-entailment", *(flag_option.flag for flag_option in flags_of(ModelOptions))):
            if given[place(flag)] is not None:
                raise SetupError(f"{flag} is for a model, and --model is none; leave one out.")
    elif given["least_entailment"] is None and os.path.basename(os.path.normpath(model.model)) != default_name:
        print(
            f"kbsource qampari: warning: --model {model.model} is judged by the threshold of {default_name}, "
            f"{LEAST_ENTAILMENT}; choose its own with --least-entailment.",
            file=sys.stderr,
        )
    if args.no_tables is not None:
        for flag in ("--key-columns", "--redirect-aliases"):
            if given[place(flag)]:
                raise SetupError(f"{flag} is for questions about tables, and --no-tables makes none.")
    pool = {subset: given[place(f"--pool-{name}")] for subset, name in _pool_flags().items()}
    options = from_flags(given, QampariOptions, model=model, sizes=from_flags(given, SampleSizes, pool=pool))
    summary = make_qampari(options, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, **summary.report))
    else:
        print_text(summary_text(summary))
    return 0


def summary_text(summary: QampariSummary) -> str:
    """Gives what was made for reading, and what to do next."""
    report = summary.report
    lines = [
        *funnel_lines(report),
        "",
        *_drawn_lines(report["questions"]),
        "",
        *_nothing_kept(report),
        f"wall time {clock(summary.seconds)}",
        f"The release is in {summary.output}. Check it: kbsource verify {shlex.quote(summary.output)}",
    ]
    return "\n".join(lines)


def _nothing_kept(report: dict[str, Any]) -> list[str]:
    """Gives why there may be no question at all; nothing where there is one."""
    funnel = report["funnel"].values()
    if any(counts.get("kept", 0) for counts in funnel):
        return []
    said = "No query became a question: the table queries/ has each of them, and what became of it."
    if not any(counts.get("queries", 0) for counts in funnel):
        said = (
            "No query was found, so there is no question: nothing has enough subjects in Wikidata, and no list page "
            "has a usable table. Are both releases whole, and of the same wiki?"
        )
    return [said, ""]


def funnel_lines(report: dict[str, Any]) -> list[str]:
    """Gives the funnel: of each subset how many queries and answers came how far."""
    from mapping.qampari.questions import INTERSECTION, SUBSETS

    head = ("subset", "queries", "answers", "with page", "found", "validated", "kept")
    rows: list[tuple[str, ...]] = [head]
    for subset in SUBSETS:
        counts = report["funnel"].get(subset, {})
        names = ("queries", "answers", "answers_with_page", "answers_aligned", "answers_validated", "kept")
        cells = [f"{counts.get(name, 0):,}" for name in names]
        if subset == INTERSECTION:
            cells[names.index("answers_with_page")] = "-"  # nobody looks: the answers are validated already
        rows.append((subset, *cells))
    lines = table_text(rows, right=range(1, len(head))).split("\n")
    for subset in SUBSETS:
        counts = report["funnel"].get(subset, {})
        gone = [
            f"{count:,} {name}"
            for name, count in sorted(counts.items())
            if name not in ("queries", "answers", "kept") and not name.startswith("answers_")
        ]
        if gone:
            lines.append(f"{subset}, not kept: {', '.join(gone)}")
    return lines


def _drawn_lines(questions: dict[str, Any]) -> list[str]:
    rows: list[tuple[str, ...]] = [("set", "questions", "mean answers", "published", "median", "published")]
    for name, counts in questions["answers"].items():
        shown = ["-" if counts[key] is None else f"{counts[key]:g}" for key in ("mean", "median")]
        mean, median = counts["published_mean"], counts["published_median"]
        rows.append((name, f"{counts['questions']:,}", shown[0], f"{mean:g}", shown[1], f"{median:g}"))
    return table_text(rows, right=range(1, 6)).split("\n")


COMMAND = Command(
    name="qampari",
    summary="make questions with many answers out of Wikidata and list pages, with evidence",
    description="Works out queries over Wikidata and over the tables of list pages, looks in the pages for sentences\n"
    "that say each answer, has an NLI model judge them, and writes questions in QAMPARI's form, with every\n"
    "query that was considered and what became of it. Any option that is not listed here is passed to Beam.",
    examples=(
        "kbsource qampari --kb releases/enwiki-20261001 --wikidata releases/wikidata-20261001 \\\n"
        "      --output releases/qampari-20261001 --runner local-multi",
        "kbsource qampari --kb releases/miniwiki-20260101 --wikidata releases/miniwikidata-20260101 --model none \\\n"
        "      --output releases/qampari-mini",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
