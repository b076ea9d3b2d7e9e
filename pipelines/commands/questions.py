"""Questions: the passages that prove their answers, and what people judge of both."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any

from cyclopts import App, Parameter

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.kind import ListingKind
from kbsource.release.output import output_file
from mapping.annotation.crowd import TaskOptions, apply_crowd
from mapping.annotation.crowd import export_tasks as export
from mapping.annotation.tasks import CAMPAIGN, CandidateOptions, TaskForm
from mapping.contexts.export import ContextsFiles, ContextsOptions, export_contexts
from mapping.contexts.kind import CONTEXTS
from mapping.options import FLAT, AtLeast1, File, Files, FolderPath, NewFile, Release, check_ending
from mapping.qampari.kind import QAMPARI_RELEASE
from pipelines.terminal import Row, Summary, command_line

tasks_app = App(
    name="qampari-tasks",
    help="Ask people about a QAMPARI release, and take in verdicts.\n\nA line that cannot be used is named on the "
    "standard error with file, line and reason, and the exit code is 1.",
)
campaign_app = App(
    name="campaign",
    help="Have people judge whether passages answer questions.\n\nMakes tasks for people out of what several systems "
    "found for the questions of a KILT file, and takes in what they say. kbsource map nq or eli5 with --campaign then "
    "makes provenance of it.",
)


def qampari_contexts(
    release: Release,
    passages: Release,
    /,
    *,
    output: FolderPath,
    retrieved: Files = (),
    kb: Release | None = None,
    options: Annotated[ContextsOptions, FLAT] = ContextsOptions(),
) -> Summary:
    """Give the questions of QAMPARI their passages.

    Writes for each question the passages that hold its proofs and, out of what a retriever found, hard negatives and
    ranked passages: in DPR's form and in that of Fusion-in-Decoder. Proofs that no passage holds are listed with the
    reason. A ranked line, or a published question, that cannot be used is named on the standard error with file, line
    and reason, and the exit code is 1.

    Args:
        release: folder of a QAMPARI release, or of QAMPARI's files as they are published.
        passages: passages of the knowledge source that it was made from.
        output: empty folder.
        retrieved: qid and ctxs, a list of passages with id, title, text and score, best first, as for evaluate; may be
            given several times. Without it there are no hard negatives and no ranked passages.
        kb: for published files, whose proofs are looked for in its pages: the release that the passages are from.

    Examples:
        kbsource qampari-contexts qampari/enwiki-20261001 passages/enwiki-20261001 --output contexts
        kbsource qampari-contexts qampari/enwiki-20261001 passages/enwiki-20261001 \\
            --retrieved bm25-train.jsonl bm25-dev.jsonl --output contexts --top 100
        kbsource qampari-contexts downloads/qampari_data passages/enwiki-20261001 --kb releases/enwiki-20261001 \\
            --output contexts
    """
    from pipelines.progress import Progress

    with ExitStack() as stack:
        finder = None
        if kb is not None:
            from mapping.contexts.proof_finder import ReleaseProofs

            finder = stack.enter_context(ReleaseProofs.open(kb))
        report = export_contexts(
            ContextsFiles(release, passages, retrieved),
            output,
            options,
            finder=finder,
            note=Progress().note,
        )
    questions, proofs = report["questions"], report["proofs"]
    rows = {
        **{f"questions of {split}": questions[split] for split in ("train", "dev", "test")},
        "proofs": proofs["all"],
        "  in a passage": proofs["placed"],
        **{f"  not: {reason}": count for reason, count in proofs["unplaced"].items()},
        "hard negatives": report["hard_negatives"],
        "questions with fewer than positives": questions["fewer_negatives_than_positives"],
        "questions without ranked passages": questions["without_retrieved"],
        "lines rejected": sum(report["rejected"].values()),
    }
    return Summary(
        rows=rows.items(),
        values=report,
        faults=_rejected(CONTEXTS, output),
        next=command_line("verify", output, "--qampari", release, "--passages", passages),
        is_ok=not report["rejected"],
    )


@tasks_app.command(name="export")
def export_tasks(
    release: Release, /, *, output: FolderPath, options: Annotated[TaskOptions, FLAT] = TaskOptions()
) -> Summary:
    """Tasks about a release.

    Answers of dev and test questions to judge, with wrong ones among them, and questions to write anew.

    Args:
        release: folder of a QAMPARI release.
        output: empty folder for the tasks.

    Examples:
        kbsource qampari-tasks export qampari/enwiki-20261001 --output tasks
    """
    counts = export(release, output, options)
    rows: list[Row] = [
        ("answers to judge", counts["answers"] + counts["wrong_answers"]),
        ("  wrong on purpose", counts["wrong_answers"]),
        ("questions to write anew", counts["paraphrases"]),
    ]
    again = command_line("qampari-tasks", "apply", release, output, "--verdicts", "FILE", "--output", "DIR")
    return Summary(rows=rows, values=counts, next=again)


@tasks_app.command(name="apply")
def apply_verdicts(
    release: Release,
    tasks: FolderPath,
    /,
    *,
    output: FolderPath,
    verdicts: File | None = None,
    paraphrases: File | None = None,
    least_answers: AtLeast1 = 5,
) -> Summary:
    """A new release without the answers judged wrong and with the paraphrases.

    A question with too few answers left is replaced.

    Args:
        release: folder of a QAMPARI release.
        tasks: folder that kbsource qampari-tasks export wrote.
        output: empty folder for the new release.
        verdicts: task_id, verdict (correct, incorrect) and worker; JSON Lines, CSV or an export of Label Studio.
        paraphrases: qid and paraphrase, one object a line.
        least_answers: answers that a question needs.

    Examples:
        kbsource qampari-tasks apply qampari/enwiki-20261001 tasks --verdicts verdicts.jsonl \\
            --paraphrases paraphrases.jsonl --output qampari/enwiki-20261001-judged
    """
    if verdicts is None and paraphrases is None:
        raise SetupError("nothing to take in: give --verdicts, --paraphrases or both.")
    report = apply_crowd(release, tasks, output, verdicts=verdicts, paraphrases=paraphrases, least=least_answers)
    answers, wrong, questions, texts = (
        report[name] for name in ("answers", "wrong_answers", "questions", "paraphrases")
    )
    rows: list[Row] = [
        ("answers judged", answers["judged"]),
        ("answers without a verdict", answers["missing"]),
        ("answers dropped", answers["dropped"]),
        ("wrong answers judged", wrong["judged"]),
        ("wrong answers accepted", wrong["accepted"]),
        ("questions replaced", questions["replaced"]),
        ("questions lost", questions["not_replaced"]),
        ("paraphrases used", texts["used"]),
        ("questions without a paraphrase", texts["missing"]),
        ("lines rejected", sum(report["rejected"].values())),
    ]
    again = command_line("verify", output)
    return Summary(
        rows=rows, values=report, faults=_rejected(QAMPARI_RELEASE, output), next=again, is_ok=not report["rejected"]
    )


def _rejected(kind: ListingKind, output: str) -> list[BadRecord]:
    """What the table ``rejected`` of a release has."""
    return [BadRecord(**row) for row in kind.rows(output, kind.read(output), "rejected")]


@campaign_app.command
def candidates(
    gold: File,
    runs: Annotated[Files, Parameter(metavar="RUN")],
    /,
    *,
    output: NewFile,
    kb: Release | None = None,
    options: Annotated[CandidateOptions, FLAT] = CandidateOptions(),
) -> Summary:
    """Passages to judge, out of several runs.

    Chooses the passages of every question: the best of each system in turn, each once, if it shares enough tokens with
    a gold answer.

    Args:
        gold: the questions: a KILT file with answers.
        runs: predictions of each system.
        output: file of candidates.
        kb: texts of pages, where a run names pages alone.

    Examples:
        kbsource campaign candidates nq-dev-kilt.jsonl a.jsonl b.jsonl --output c.jsonl
    """
    from kbsource.lookup import KnowledgeSource
    from mapping.annotation.campaign import write_candidates

    faults: list[BadRecord] = []
    with ExitStack() as stack:
        source = stack.enter_context(KnowledgeSource.open(kb)) if kb else None
        check_ending("--output", output, "JSON Lines", fitting=["jsonl"])
        counts = write_candidates(gold, list(runs), output, options, source=source, reject=faults.append)
    values = {**counts, "rejected": len(faults)}
    again = command_line("campaign", "tasks", output, "--output", "tasks")
    return Summary(rows=_rows(values, ""), values=values, faults=faults, next=again)


@campaign_app.command
def tasks(candidates: File, /, *, output: FolderPath, form: TaskForm = "jsonl") -> Summary:
    """Tasks in the form of a tool.

    Writes a task for each passage of each question, in an order that tells nothing.

    Args:
        candidates: file that kbsource campaign candidates wrote.
        output: empty folder for the tasks.
        form: jsonl: one JSON object a line; csv: a row a task, with empty columns for what is said of it; label-studio:
            tasks for its import, beside the labelling interface.

    Examples:
        kbsource campaign tasks c.jsonl --form label-studio --output tasks
    """
    from mapping.annotation.campaign import write_campaign_tasks

    values = write_campaign_tasks(candidates, output, form)
    again = command_line("campaign", "import", output, "JUDGEMENTS", "--output", "campaign")
    return Summary(rows=_rows(values, ""), values=values, next=again)


@campaign_app.command(name="import")
def take_in(tasks: FolderPath, judgements: Files, /, *, output: FolderPath) -> Summary:
    """What people said.

    Takes in what people said of the tasks, with the place of every highlight in its passage. What cannot be used is
    named on the standard error and released, and the exit code is 1.

    Args:
        tasks: folder that kbsource campaign tasks wrote.
        judgements: passage_id, worker_id, label (yes, no, partial), highlight and free_text: JSON Lines, CSV, or an
            export of Label Studio.
        output: empty folder for what people said.

    Examples:
        kbsource campaign import tasks export.json --output campaign
    """
    from mapping.annotation.campaign import import_judgements

    counts = import_judgements(tasks, list(judgements), output)
    again = command_line("campaign", "report", output)
    return Summary(
        rows=_rows(counts, ""),
        values=counts,
        faults=_rejected(CAMPAIGN, output),
        next=again,
        is_ok=not counts["rejected"],
    )


@campaign_app.command
def report(campaign: FolderPath, /, *, questions: NewFile | None = None) -> Summary:
    """What came of it, and how far people agree.

    Gives what was accepted by two people or more, Cohen's and Fleiss' kappa, who accepted gold passages, and the
    passages that are unlike every answer and want a look.

    Args:
        campaign: folder that kbsource campaign import wrote.
        questions: where the fate of every question is written, JSON Lines.

    Examples:
        kbsource campaign report campaign --questions fates.jsonl
    """
    import orjson

    from mapping.annotation.campaign import report_campaign

    if questions:
        check_ending("--questions", questions, "JSON Lines", fitting=["jsonl"])
    summary, fates = report_campaign(campaign)
    if questions:
        with output_file(questions) as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in fates)
    return Summary(rows=_rows(summary, ""), values=summary)


def _rows(value: dict[str, Any], before: str) -> list[Row]:
    rows: list[Row] = []
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
