"""Commands for human judgements (QAMPARI tasks, campaigns and AmbER's user study), and for QAMPARI with passages."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any

from cyclopts import App, Parameter

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.kind import ListingKind
from kbsource.release.output import output_file
from mapping.annotation.crowd import TaskOptions
from mapping.annotation.crowd import write_crowd_tasks as export
from mapping.annotation.extended_set import ExtendedOptions, export_extended, import_extended
from mapping.annotation.filter_sample import (
    AnswerFilterOptions,
    FilterSampleOptions,
    export_filter_sample,
    report_filter,
)
from mapping.annotation.revision import apply_crowd
from mapping.annotation.second_look import LookOptions, second_look
from mapping.annotation.study import StudyOptions, import_choices, report_study, write_study
from mapping.annotation.tasks import CAMPAIGN, CAMPAIGN_TASKS, N_ANNOTATIONS, CandidateOptions, TaskForm, is_study
from mapping.annotation.verdicts import WorkerOptions
from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.kind import CONTEXTS
from mapping.contexts.records import ContextsOptions
from mapping.entail.signal import UsualModelOptions
from mapping.options import FLAT, AtLeast1, File, Files, FolderPath, NewFile, Release, check_ending
from mapping.qampari.kind import QAMPARI_RELEASE
from pipelines.terminal import Row, Summary, command_line

tasks_app = App(
    name="qampari-tasks",
    help="Export crowd tasks for a QAMPARI release, and import the verdicts.\n\nLines that cannot be used are reported "
    "on the standard error with file, line and reason, and the exit code is 1.",
)
campaign_app = App(
    name="campaign",
    help="Collect human judgements on whether passages answer questions.\n\nExports tasks with the passages that "
    "several systems found for the questions of a KILT file, and imports the judgements. To turn the judgements into "
    "provenance, run kbsource map nq or eli5 with --campaign.",
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
    """Attach passages to the questions of QAMPARI.

    Writes the passages that contain the proofs of each question and, from a retriever's results, hard negatives and
    ranked passages. The files have the formats of DPR and of Fusion-in-Decoder. Proofs that no passage contains are
    listed with the reason. Ranked lines and published questions that cannot be used are reported on the standard error
    with file, line and reason, and the exit code is 1.

    Args:
        release: Folder of a QAMPARI release, or of QAMPARI's published files.
        passages: Passages of the release of pages from which the QAMPARI release was made.
        output: Empty folder.
        retrieved: Results of a retriever, as for kbsource evaluate: qid and ctxs, a list of passages with id, title,
            text and score, best first. Several files may be given. Without them, hard negatives and ranked passages are
            not written.
        kb: Release of pages that the passages were cut from. Only for QAMPARI's published files, whose proofs are
            searched for in these pages.

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
        "questions with fewer hard negatives than positives": questions["fewer_negatives_than_positives"],
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
    """Export the tasks of a release.

    Exports two kinds of tasks for people: judging answers to dev and test questions (some wrong answers are mixed in),
    and rephrasing questions.

    Args:
        release: Folder of a QAMPARI release.
        output: Empty folder for the tasks.

    Examples:
        kbsource qampari-tasks export qampari/enwiki-20261001 --output tasks
    """
    counts = export(release, output, options)
    rows: list[Row] = [
        ("answers to judge", counts["answers"] + counts["wrong_answers"]),
        ("  wrong on purpose", counts["wrong_answers"]),
        ("questions to rewrite", counts["paraphrases"]),
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
    verdicts: Files = (),
    paraphrases: Files = (),
    paraphrase_verdicts: File | None = None,
    least_answers: AtLeast1 = 5,
    workers: Annotated[WorkerOptions, FLAT] = WorkerOptions(),
) -> Summary:
    """Make a new release from verdicts and paraphrases.

    The new release omits answers that were judged wrong, and uses the paraphrases. Questions with too few remaining
    answers are replaced.

    Args:
        release: Folder of a QAMPARI release.
        tasks: Folder that kbsource qampari-tasks export wrote.
        output: Empty folder for the new release.
        verdicts: File with task_id, verdict (correct, incorrect) and worker: JSON Lines, CSV or an export of Label
            Studio. List the verdicts of a second look after the first ones.
        paraphrases: File with qid, paraphrase and optionally worker: JSON Lines.
        paraphrase_verdicts: File with qid and verdict, for paraphrases that were checked. Incorrect paraphrases are not
            used.
        least_answers: Minimum number of answers of a question.

    Examples:
        kbsource qampari-tasks apply qampari/enwiki-20261001 tasks --verdicts verdicts.jsonl \\
            --paraphrases paraphrases.jsonl --output qampari/enwiki-20261001-judged
    """
    if not verdicts and not paraphrases:
        raise SetupError("nothing to import: give --verdicts, --paraphrases or both.")
    report = apply_crowd(
        release,
        tasks,
        output,
        verdicts=verdicts,
        paraphrases=paraphrases,
        checks=paraphrase_verdicts,
        least=least_answers,
        workers=workers,
    )
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
        *((("paraphrases rejected", report["paraphrase_checks"]["rejected"]),) if paraphrase_verdicts else ()),
        *(
            (f"verdicts and paraphrases of {name} removed", counts["verdicts"] + counts["paraphrases"])
            for name, counts in report["rejected_workers"].items()
        ),
        ("lines rejected", sum(report["rejected"].values())),
    ]
    again = command_line("verify", output)
    if questions["replaced"]:
        again = command_line("qampari-tasks", "export", output, "--not-in", tasks, "--output", "DIR")
    return Summary(
        rows=rows, values=report, faults=_rejected(QAMPARI_RELEASE, output), next=again, is_ok=not report["rejected"]
    )


@tasks_app.command(name="again")
def ask_again(
    release: Release,
    tasks: FolderPath,
    /,
    *,
    output: FolderPath,
    verdicts: Files,
    paraphrases: Files = (),
    workers: Annotated[WorkerOptions, FLAT] = WorkerOptions(),
    options: Annotated[LookOptions, FLAT] = LookOptions(),
) -> Summary:
    """Export tasks for a second look.

    Exports tasks to judge or check again: all answers judged incorrect, 5 % of those judged correct, answers without a
    valid verdict, and half of each person's paraphrases. Then call kbsource qampari-tasks apply with the tasks of
    export, with the first and the second verdicts as --verdicts, and with the checks of paraphrases as
    --paraphrase-verdicts.

    Args:
        release: Folder of a QAMPARI release.
        tasks: Folder that kbsource qampari-tasks export wrote.
        output: Empty folder for the tasks.
        verdicts: The first verdicts, in a file as for qampari-tasks apply.
        paraphrases: The paraphrases, in a file as for qampari-tasks apply.

    Examples:
        kbsource qampari-tasks again qampari/enwiki-20261001 tasks --verdicts verdicts.jsonl --output second
    """
    faults: list[BadRecord] = []
    counts = second_look(
        release,
        tasks,
        output,
        options,
        verdicts=verdicts,
        paraphrases=paraphrases,
        workers=workers,
        reject=faults.append,
    )
    further = ["--verdicts", *verdicts, "SECOND", "--output", "DIR"]
    again = command_line("qampari-tasks", "apply", release, tasks, *further)
    values = {**counts, "rejected": len(faults)}
    return Summary(rows=_rows(values, ""), values=values, faults=faults, next=again, is_ok=not faults)


@tasks_app.command(name="extend")
def extend(
    release: Release, /, *, output: FolderPath, options: Annotated[ExtendedOptions, FLAT] = ExtendedOptions()
) -> Summary:
    """Export tasks to find further answers, for an ExtendedSet.

    Draws questions of the test set. In each task, people look for answers that the question does not have yet.

    Args:
        release: Folder of a QAMPARI release.
        output: Empty folder for the tasks.

    Examples:
        kbsource qampari-tasks extend qampari/enwiki-20261001 --output extend
    """
    counts = export_extended(release, output, options)
    again = command_line("qampari-tasks", "extended", output, "ANSWERS", "--output", "extended.jsonl")
    return Summary(rows=_rows(counts, ""), values=counts, next=again)


@tasks_app.command(name="extended")
def extended(tasks: FolderPath, answers: Files, /, *, output: NewFile) -> Summary:
    """Make an ExtendedSet from the answers that people added.

    Prints the share of questions without added answers, and the mean, median and maximum number of added answers. Pass
    the file to kbsource evaluate qampari with --extended.

    Args:
        tasks: Folder that kbsource qampari-tasks extend wrote.
        answers: File with qid, answer_text, found_in_url, proof_text and worker, one line for each answer: JSON Lines
            or CSV.
        output: JSON Lines file for the further answers.

    Examples:
        kbsource qampari-tasks extended extend found.jsonl --output extended.jsonl
    """
    check_ending("--output", output, "JSON Lines", fitting=["jsonl"])
    faults: list[BadRecord] = []
    report = import_extended(tasks, answers, output, reject=faults.append)
    values = {**report, "rejected": len(faults)}
    return Summary(rows=_rows(values, ""), values=values, faults=faults, is_ok=not faults)


def _rejected(kind: ListingKind, output: str) -> list[BadRecord]:
    """Returns the rows of the table ``rejected`` of a release."""
    return [BadRecord(**row) for row in kind.rows(output, kind.read(output), "rejected")]


@tasks_app.command(name="filter-sample")
def filter_sample(
    release: Release, /, *, output: FolderPath, options: Annotated[FilterSampleOptions, FLAT] = FilterSampleOptions()
) -> Summary:
    """Export a sample of proofs, to measure what the NLI filter removes.

    Draws proofs for people to judge. The release must have been made with --model none.

    Args:
        release: Folder of a QAMPARI release.
        output: Empty folder for the tasks.

    Examples:
        kbsource qampari-tasks filter-sample qampari/enwiki-20261001-none --output sample
    """
    counts = export_filter_sample(release, output, options)
    again = command_line("qampari-tasks", "filter-report", output, "--verdicts", "FILE", "--model", "MODEL")
    return Summary(rows=_rows(counts, ""), values=counts, next=again)


@tasks_app.command(name="filter-report")
def filter_report(
    tasks: FolderPath,
    /,
    *,
    verdicts: Files,
    model: Annotated[UsualModelOptions, FLAT] = UsualModelOptions(),
    options: Annotated[AnswerFilterOptions, FLAT] = AnswerFilterOptions(),
) -> Summary:
    """Report what the NLI filter removes from a sample that people judged.

    Has a model judge the proofs that people labelled. Prints the share of the incorrect proofs and the share of the
    correct proofs that the threshold removes (in the paper, 70 % and 7.5 %). Also prints the highest threshold that
    removes at most 7.5 % of the correct proofs.

    Args:
        tasks: Folder that kbsource qampari-tasks filter-sample wrote.
        verdicts: File with task_id and verdict (correct or incorrect), as for qampari-tasks apply.

    Examples:
        kbsource qampari-tasks filter-report sample --verdicts verdicts.jsonl --model models/nli
    """
    from mapping.entail.model import open_model

    faults: list[BadRecord] = []
    report = report_filter(tasks, verdicts, open_model(model), options, reject=faults.append)
    values = {**report, "rejected": len(faults)}
    return Summary(rows=_rows(values, ""), values=values, faults=faults, is_ok=not faults)


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
    """Choose passages to judge from several runs.

    Selects the best passage of each system in turn, then the second best, and so on. A passage is selected once, and
    only if it shares enough tokens with a gold answer.

    Args:
        gold: KILT file of questions with answers.
        runs: Files of predictions, one for each system.
        output: File for the candidates.
        kb: Release with the texts of pages; needed if a run names pages without passages.

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
def tasks(
    candidates: File,
    /,
    *,
    output: FolderPath,
    form: Annotated[TaskForm, Parameter("--format")] = "jsonl",
    annotations: AtLeast1 = N_ANNOTATIONS,
) -> Summary:
    """Export tasks for an annotation tool.

    Writes a task for each passage of each question. The order of the tasks does not reveal the systems or the gold
    passages.

    Args:
        candidates: File that kbsource campaign candidates wrote.
        output: Empty folder for the tasks.
        form: Format of the tasks. jsonl: one JSON object per line; csv: one row per task, with empty columns for the
            judgement; label-studio: tasks to import into Label Studio, and its labelling interface.
        annotations: Number of people who should judge each passage. Every task contains it as n_annotations.

    Examples:
        kbsource campaign tasks c.jsonl --format label-studio --output tasks
    """
    from mapping.annotation.campaign import write_campaign_tasks

    values = write_campaign_tasks(candidates, output, form, n_annotations=annotations)
    again = command_line("campaign", "import", output, "JUDGEMENTS", "--output", "campaign")
    return Summary(rows=_rows(values, ""), values=values, next=again)


@campaign_app.command
def study(
    sets: File,
    /,
    *,
    kb: Release,
    output: FolderPath,
    form: Annotated[TaskForm, Parameter("--format")] = "jsonl",
    options: Annotated[StudyOptions, FLAT] = StudyOptions(),
) -> Summary:
    """Export tasks for AmbER's user study, in which people choose the page that a query is about.

    Draws queries, and writes a task for each. A task has the question, its gold page, and the pages of two other
    entities of its set. People choose a page and mark the answer in it. Pass the folder to kbsource campaign import and
    report.

    Args:
        sets: File of AmbER sets, amber_sets.jsonl, with questions or slots.
        kb: Release that contains the pages.
        output: Empty folder for the tasks.
        form: Format of the tasks. jsonl: one JSON object per line; csv: one row per task, with empty columns for the
            judgement; label-studio: tasks to import into Label Studio, and its labelling interface.

    Examples:
        kbsource campaign study amber/enwiki-20261001/human/qa/amber_sets.jsonl --kb releases/enwiki-20261001 \\
            --output study
    """
    from kbsource.lookup import KnowledgeSource

    faults: list[BadRecord] = []
    with KnowledgeSource.open(kb) as source:
        counts = write_study(sets, source, output, options, form, reject=faults.append)
    values = {**counts, "rejected": len(faults)}
    again = command_line("campaign", "import", output, "JUDGEMENTS", "--output", "campaign")
    return Summary(rows=_rows(values, ""), values=values, faults=faults, next=again, is_ok=not faults)


@campaign_app.command(name="import")
def take_in(tasks: FolderPath, judgements: Files, /, *, output: FolderPath) -> Summary:
    """Import judgements.

    Imports judgements of the tasks, with the position of every highlight in its passage. Judgements that cannot be used
    are reported on the standard error and written to the table rejected, and the exit code is 1.

    Args:
        tasks: Folder that kbsource campaign tasks or study wrote.
        judgements: File with passage_id, worker_id, label (yes, no, partial), highlight, free_text and other_passage:
            JSON Lines, CSV, or an export of Label Studio. For a study: query_id, worker_id, label (1, 2, 3, none) and
            highlight.
        output: Empty folder for the judgements.

    Examples:
        kbsource campaign import tasks export.json --output campaign
    """
    from mapping.annotation.campaign import import_judgements

    take = import_choices if is_study(CAMPAIGN_TASKS.read(tasks)) else import_judgements
    counts = take(tasks, list(judgements), output)
    again = command_line("campaign", "report", output)
    return Summary(
        rows=_rows(counts, ""),
        values=counts,
        faults=_rejected(CAMPAIGN, output),
        next=again,
        is_ok=not counts["rejected"],
    )


@campaign_app.command
def report(campaign: FolderPath, /, *, items: NewFile | None = None, predictions: Files = ()) -> Summary:
    """Report the results of a campaign, and how far people agree.

    Prints the number of passages that at least two people accepted, Cohen's and Fleiss' kappa, and how many people
    accepted gold passages. Lists accepted passages that resemble no answer, which you should check. Lists people who
    accepted no passage of a question and supplied neither another passage nor an explanation. For a study, prints
    document accuracy and exact match for people, and for systems on the same pages.

    Args:
        campaign: Folder that kbsource campaign import wrote.
        items: Output file for the outcome of every question, JSON Lines.
        predictions: Predictions of a system, only for a study: JSON Lines with id and output; may be repeated.

    Examples:
        kbsource campaign report campaign --items fates.jsonl
    """
    import orjson

    from mapping.annotation.campaign import report_campaign

    if items:
        check_ending("--items", items, "JSON Lines", fitting=["jsonl"])
    faults: list[BadRecord] = []
    if is_study(CAMPAIGN.read(campaign)):
        summary, fates = report_study(campaign, list(predictions), reject=faults.append)
    elif predictions:
        raise SetupError(f"--predictions works only for a study, and {campaign} is not a study; leave it out.")
    else:
        summary, fates = report_campaign(campaign)
    if items:
        with output_file(items) as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in fates)
    return Summary(rows=_rows(summary, ""), values=summary, faults=faults, is_ok=not faults)


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
