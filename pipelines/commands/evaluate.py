"""``kbsource evaluate``: the metrics of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar, get_type_hints

from cyclopts import App

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.records import BadRecord
from kbsource.release.output import output_file
from mapping.metrics.evaluation import (
    AmberEvaluation,
    AmberFiles,
    KiltEvaluation,
    KiltFiles,
    QampariEvaluation,
    QampariFiles,
)
from mapping.options import FLAT, check_ending, flag_of
from pipelines.terminal import Summary, command_line

if TYPE_CHECKING:
    from mapping.metrics.amber import AmberScores
    from mapping.metrics.evaluator import EvaluationResult, Scores

S = TypeVar("S", bound="Scores")
app = App(
    name="evaluate",
    help="Compute the metrics of a benchmark.\n\nCompares the predictions of a system with the gold file of a "
    "benchmark. Lines that cannot be used are reported on the standard error with file, line and reason, and the exit "
    "code is 1.",
)


@app.command
def qampari(
    files: Annotated[QampariFiles, FLAT], *, options: Annotated[QampariEvaluation, FLAT] = QampariEvaluation()
) -> Summary:
    """Evaluate lists of answers and retrieved passages on QAMPARI.

    Compares predicted lists of answers and retrieved passages with a gold file of QAMPARI.

    Examples:
        kbsource evaluate qampari dev_data.jsonl --predictions predictions.jsonl
        kbsource evaluate qampari dev_data.jsonl --retrieved bm25.jsonl --k 10,100 --json
        kbsource evaluate qampari test_data.jsonl --predictions predictions.jsonl --extended extended.jsonl
        kbsource evaluate qampari dev_data.jsonl --retrieved bm25.jsonl --compare dense.jsonl --bootstrap 10000
    """
    from mapping.metrics.qampari import evaluate_qampari

    flags = {"--predictions": files.predictions or "FILE", "--retrieved": files.retrieved or "FILE"}
    typed = (part for flag in flags.items() for part in flag)
    again = "" if files.predictions and files.retrieved else command_line("evaluate", "qampari", files.gold, *typed)
    return _summary(partial(evaluate_qampari, files, options), files.items, next=again)


@app.command
def kilt(files: Annotated[KiltFiles, FLAT], *, options: Annotated[KiltEvaluation, FLAT] = KiltEvaluation()) -> Summary:
    """Evaluate answers and their provenance on the tasks of KILT.

    Compares predictions with the gold records of a task. Computes accuracy, exact match, F1 and ROUGE-L; the KILT
    scores, which count an answer only if its provenance is right; and R-precision, recall and precision of evidence
    sets.

    Examples:
        kbsource evaluate kilt nq-dev-kilt.jsonl predictions.jsonl
        kbsource evaluate kilt nq-dev-kilt.jsonl a.jsonl --compare b.jsonl --bootstrap 10000
        kbsource evaluate kilt aligned/nq/nq-dev-kilt.jsonl old.jsonl --crosswalk aligned/nq
        kbsource evaluate kilt kilt/ predictions/ --all
        kbsource evaluate kilt kilt-test/ predictions/ --all --submission submission.zip
    """
    from mapping.metrics.kilt import evaluate_kilt, evaluate_tasks, leaderboard_text

    if files.submission is not None:
        return _submission(files, options, files.submission)
    if files.all_tasks:
        faults: list[BadRecord | str] = []
        if others := [name for name in ("compare", "crosswalk", "items") if getattr(files, name) is not None]:
            raise SetupError(f"--all evaluates each file of a folder; leave {others[0]} out.")
        tasks, missing = evaluate_tasks(files, options, reject=faults.append)
        return Summary(
            text=leaderboard_text(tasks),
            values={name: task.to_json() for name, task in tasks.items()},
            faults=[*faults, *(f"{name}: no predictions" for name in missing)],
            next=command_line(
                "evaluate", "kilt", f"{files.gold}/FILE", f"{files.predictions}/FILE", "--items", "ITEMS"
            ),
        )
    again = command_line(
        "evaluate", "kilt", files.gold, files.predictions, "--compare", "OTHER", "--bootstrap", "10000"
    )
    return _summary(partial(evaluate_kilt, files, options), files.items, next="" if files.compare else again)


def _submission(files: KiltFiles, options: KiltEvaluation, output: str) -> Summary:
    """Writes a submission, and reports questions without a prediction and lines that cannot be used."""
    from mapping.metrics.evaluator import rejected_json
    from mapping.metrics.submission import write_submission

    for given, plain, names in (
        (files, KiltFiles(files.gold, files.predictions), ("compare", "crosswalk", "accept_redirects", "items")),
        (options, KiltEvaluation(), tuple(field.name for field in fields(KiltEvaluation))),
    ):
        hints = get_type_hints(type(given), include_extras=True)
        for name in names:
            if getattr(given, name) != getattr(plain, name):
                flag = flag_of(name, hints[name])
                raise SetupError(f"{flag}: --submission computes no scores; leave one of the two out.")
    faults: list[BadRecord | str] = []
    tasks, missing = write_submission(files, output, reject=faults.append)
    rejected = {name: rejected_json(scores.rejected) for name, scores in tasks.items()}
    return Summary(
        f"Written to {output}.",
        rows=[(f"{name}: {label}", n) for name, scores in tasks.items() for label, n in scores.counts()],
        values={
            "output": output,
            "files": {
                name: {
                    "records": len(scores.ids),
                    "without_prediction": scores.without_prediction,
                    "empty_answers": scores.empty_answers,
                    "rejected": rejected[name],
                }
                for name, scores in tasks.items()
            },
        },
        faults=[*faults, *(f"{name}: no predictions" for name in missing)],
        is_ok=not any(rejected.values()),
    )


@app.command
def amber(
    files: Annotated[AmberFiles, FLAT], *, options: Annotated[AmberEvaluation, FLAT] = AmberEvaluation()
) -> Summary:
    """Evaluate retrieved pages and answers on AmbER sets.

    Compares retrieved pages and answers with a gold file of AmbER sets, in which each set is about entities that share
    a name. Computes accuracy@K for all, head and tail queries, consistency, entity confusion, accuracy by gap in
    popularity, and F1 or accuracy of answers.

    Examples:
        kbsource evaluate amber amber_sets.jsonl ranked.jsonl --k 1,20 --plot gaps.html
        kbsource evaluate amber amber_sets.jsonl a.jsonl --compare b.jsonl --bootstrap 10000
    """
    from mapping.document import Charts, Document, Section
    from mapping.inspector.saved import saved_page
    from mapping.metrics.amber import evaluate_amber

    if files.plot is not None:
        check_ending("--plot", files.plot, "HTML", fitting=["html"])

    def write(scores: AmberScores) -> None:
        chart = Section("Head and tail", (Charts((scores.gap_chart(),)),))
        written = {files.plot: saved_page(Document("AmbER sets", (chart,)))} if files.plot else {}
        for k in options.ks if files.metrics else ():
            for name, value in (("metrics", scores.metrics(k)), ("raw_metrics", {"accuracy": scores.hits[k]})):
                written[join(files.metrics or "", f"{name}@{k}.json")] = json.dumps(value, indent=4)
        for path, text in written.items():
            with output_file(path) as file:
                file.write(text.encode())

    plot = command_line("evaluate", "amber", files.gold, files.predictions, "--plot", "gaps.html")
    return _summary(partial(evaluate_amber, files, options), files.items, write, next="" if files.plot else plot)


def _summary(
    evaluate: Callable[..., EvaluationResult[S]],
    items: str | None,
    write: Callable[[S], None] = lambda _: None,
    *,
    next: str,
) -> Summary:
    """Evaluates, and writes the requested files.

    Args:
        evaluate: the evaluation; it accepts ``reject``.
        items: file for the scores of every item.
        write: writes other files from the first system's scores.
    """
    import orjson

    if items is not None:
        check_ending("--items", items, "JSON Lines", fitting=["jsonl"])
    faults: list[BadRecord | str] = []
    scores = evaluate(reject=faults.append)
    if items is not None:
        with output_file(items) as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in scores.first.rows())
    write(scores.first)
    return Summary(
        text=scores.to_text(), values=scores.to_json(), faults=faults, is_ok=not scores.has_rejects, next=next
    )
