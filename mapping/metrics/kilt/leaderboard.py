"""The table of KILT's leaderboard: every task by the metric that is reported for it."""

from __future__ import annotations

from dataclasses import replace

from kbsource.errors import SetupError
from kbsource.files import Storage, base_name, join
from mapping.metrics.kilt.evaluate import Reject, evaluate_kilt
from mapping.metrics.kilt.options import KiltEvaluation, KiltFiles
from mapping.metrics.kilt.scores import METRICS, SystemScores, metric_of


def evaluate_tasks(
    files: KiltFiles, storage: Storage, options: KiltEvaluation, *, reject: Reject, scratch_folder: str | None = None
) -> tuple[dict[str, SystemScores], list[str]]:
    """Gives the scores of every task by gold file, in the leaderboard's order, and gold files without predictions.

    Args:
        files: folders; a file of predictions has the name of its gold file.
        storage, options, reject, scratch_folder: as for ``evaluate_kilt``.

    Raises:
        SetupError: as ``evaluate_kilt``; there is no gold file, or no predictions for any.
    """
    folder = files.all_tasks or ""
    gold_files = [path for path in storage.glob(join(files.gold, "*.jsonl*")) if metric_of(base_name(path))]
    if not gold_files:
        raise SetupError(f"{files.gold} has no file like nq-dev-kilt.jsonl; name the folder of gold files.")
    order = list(METRICS)
    scores, missing = {}, []
    for path in sorted(gold_files, key=lambda path: (order.index(base_name(path).partition("-")[0]), path)):
        name = base_name(path)
        if not storage.exists(join(folder, name)):
            missing.append(name)
            continue
        task = replace(files, gold=path, predictions=join(folder, name), all_tasks=None)
        scores[name] = evaluate_kilt(task, storage, options, reject=reject, scratch_folder=scratch_folder).first
    if not scores:
        raise SetupError(f"{folder} has no file that is named like one of {files.gold}, such as {missing[0]}.")
    return scores, missing
