"""``kbsource qampari``: questions with many answers for a snapshot."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from pipelines.commands.flags.common import Command, add_run_arguments, run_flags
from pipelines.commands.flags.verify_flags import MODEL_FLAGS, add_model_flags, model_options
from pipelines.progress import clock

if TYPE_CHECKING:
    from pipelines.jobs.qampari import QampariSummary

_POOL_FLAGS = {
    SIMPLE: "simple",
    COMPOSITION: "compositions",
    INTERSECTION: "intersections",
    TABLE_SIMPLE: "table-simple",
    TABLE_COMPOSITION: "table-compositions",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--kb", required=True, metavar="RELEASE", help="knowledge source, built with the items of its pages")
    add("--wikidata", required=True, metavar="RELEASE", help="release of Wikidata, see kbsource wikidata")
    add("--output", required=True, metavar="DIR", help="folder of what is made; new, or left by a run that was killed")
    add(
        "--model",
        metavar="MODEL",
        help="NLI model that judges candidate sentences: folder of a cross-encoder, or hub name; none: the first "
        "sentence of the page of one that names the other is the proof (default: the one that QAMPARI used)",
    )
    add_model_flags(parser)
    _add_evidence_flags(parser)
    _add_selection_flags(parser)
    add("--with-meta", action="store_true", help="give records a field meta: relations, items, probabilities, places")
    add(
        "--released-case",
        action="store_true",
        help="write proofs as the published files have them, each sentence in lower case but for its first letter",
    )
    add(
        "--released-wording",
        action="store_true",
        help="leave the verbs of compositions as the published questions have them: persons that works for X",
    )
    add_run_arguments(parser)


def _add_evidence_flags(parser: argparse.ArgumentParser) -> None:
    from mapping.qampari.facts.evidence import N_BEFORE
    from mapping.qampari.facts.joins import MOST_SUBJECTS
    from mapping.qampari.facts.validation import LEAST_ENTAILMENT
    from mapping.qampari.lists.list_tables import LEAST_ROWS

    add = parser.add_argument
    add("--relations", metavar="FILE", help="relations and their words, TOML (default: those of the package)")
    add(
        "--least-entailment",
        type=float,
        metavar="P",
        help=f"a sentence proves a fact when its probability of entailment is above this (default: {LEAST_ENTAILMENT})",
    )
    add(
        "--sentences-before",
        type=int,
        default=N_BEFORE,
        metavar="N",
        help="sentences of the same paragraph that a proof begins with (default: %(default)s)",
    )
    add(
        "--most-subjects",
        type=int,
        default=MOST_SUBJECTS,
        metavar="N",
        help="properties and values with more subjects are passed over (default: %(default)s)",
    )
    add(
        "--most-specific-types",
        action="store_true",
        help="of typed questions about one thing with the same answers keep the one with the most specific type",
    )
    add("--all-proofs", action="store_true", help="of a value that several things have, the proofs of all of them")
    add("--no-tables", action="store_true", help="make no questions about the tables of list pages")
    add(
        "--least-rows", type=int, default=LEAST_ROWS, metavar="N", help="rows that a table needs (default: %(default)s)"
    )
    add(
        "--key-columns",
        metavar="FILE",
        help="key columns of tables, JSON Lines of {title, table, column} (default: a rule finds them)",
    )
    add("--redirect-aliases", action="store_true", help="titles that lead to the page of a table's answer are aliases")


def _add_selection_flags(parser: argparse.ArgumentParser) -> None:
    from mapping.qampari.selection import AnswerFilter, SampleSizes

    add = parser.add_argument
    usual, sizes = AnswerFilter(), SampleSizes()
    add("--seed", default="qampari", metavar="TEXT", help="of every draw (default: %(default)s)")
    add(
        "--least-answers",
        type=int,
        default=usual.least,
        metavar="N",
        help="validated answers that a question needs (default: %(default)s)",
    )
    add(
        "--most-answers",
        type=int,
        default=usual.most,
        metavar="N",
        help="validated answers that it may have (default: %(default)s)",
    )
    add(
        "--least-share",
        type=float,
        default=usual.share,
        metavar="SHARE",
        help="share of all answers that must be validated (default: %(default)s)",
    )
    for subset, name in _POOL_FLAGS.items():
        add(
            f"--pool-{name}",
            type=int,
            default=sizes.pool[subset],
            metavar="N",
            help=f"questions of {subset} for development and test together (default: %(default)s)",
        )
    add(
        "--train-per-relation",
        type=int,
        default=sizes.train_per_relation,
        metavar="N",
        help="most training questions that rest on one relation (default: %(default)s)",
    )
    add(
        "--mixed",
        choices=("train", "drop"),
        default="train",
        help="intersections of a training with a test relation (default: %(default)s)",
    )


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.qampari.facts.validation import LEAST_ENTAILMENT
    from mapping.qampari.selection import AnswerFilter, SampleSizes
    from pipelines.jobs.qampari import make_qampari
    from pipelines.options.qampari import QampariOptions
    from pipelines.progress import Progress

    if args.model == "none":
        for name in ("least_entailment", *MODEL_FLAGS):
            if getattr(args, name) is not None:
                raise SetupError(f"--{name.replace('_', '-')} is for a model, and --model is none; leave one out.")
    if args.no_tables:
        for name in ("key_columns", "redirect_aliases"):
            if getattr(args, name):
                raise SetupError(
                    f"--{name.replace('_', '-')} is for questions about tables, and --no-tables makes none."
                )
    options = QampariOptions(
        kb=args.kb,
        wikidata=args.wikidata,
        output=args.output,
        model=None if args.model == "none" else model_options(args.model, vars(args)),
        relations=args.relations,
        key_columns=args.key_columns,
        seed=args.seed,
        answer_filter=AnswerFilter(args.least_answers, args.most_answers, args.least_share),
        sizes=SampleSizes(
            {subset: getattr(args, f"pool_{name.replace('-', '_')}") for subset, name in _POOL_FLAGS.items()},
            args.train_per_relation,
        ),
        mixed=args.mixed,
        most_subjects=args.most_subjects,
        most_specific_types=args.most_specific_types,
        sentences_before=args.sentences_before,
        least_entailment=LEAST_ENTAILMENT if args.least_entailment is None else args.least_entailment,
        least_rows=args.least_rows,
        has_tables=not args.no_tables,
        all_proofs=args.all_proofs,
        redirect_aliases=args.redirect_aliases,
        with_meta=args.with_meta,
        is_released_case=args.released_case,
        is_released_wording=args.released_wording,
        worker_memory_bytes=args.worker_memory << 20,
    )
    summary = make_qampari(options, flags=run_flags(args), progress=Progress())
    print(summary_json(summary) if args.json else summary_text(summary))
    return 0


def summary_json(summary: QampariSummary) -> str:
    """Gives what was made as one JSON object."""
    value = {"output": summary.output, "seconds": round(summary.seconds, 1), **summary.report}
    return json.dumps(value, ensure_ascii=False, indent=2)


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
    head = ("subset", "queries", "answers", "with page", "found", "validated", "kept")
    rows: list[tuple[str, ...]] = [head]
    for subset in SUBSETS:
        counts = report["funnel"].get(subset, {})
        names = ("queries", "answers", "answers_with_page", "answers_aligned", "answers_validated", "kept")
        cells = [f"{counts.get(name, 0):,}" for name in names]
        if subset == INTERSECTION:
            cells[names.index("answers_with_page")] = "-"  # nobody looks: the answers are validated already
        rows.append((subset, *cells))
    lines = _columns(rows)
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
    return _columns(rows)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


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
