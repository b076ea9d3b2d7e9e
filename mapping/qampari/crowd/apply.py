"""A QAMPARI release made anew from what people said about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.intact import check_hashes
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import read_table
from kbsource.release.writer import write_rejected
from mapping.qampari.crowd.replace import Replacements, find_replacements, revise_questions
from mapping.qampari.crowd.tasks import CROWD_TASKS, KEY, PARAPHRASE
from mapping.qampari.crowd.verdicts import Judged, Task, dropped_answers, read_paraphrases, read_verdicts
from mapping.qampari.kind import QAMPARI_RELEASE, read_form
from mapping.qampari.question_rows import query_of_row
from mapping.qampari.release_files import write_release_files
from mapping.sources.reading.fields import Json, text_at
from mapping.sources.reading.files_in import RawRecord, iter_lines
from mapping.write.kind import write_report


@dataclass(frozen=True, slots=True)
class CrowdFiles:
    """What is read.

    Attributes:
        release: folder of the release that the tasks were made from.
        tasks: folder that ``export_tasks`` wrote.
        verdicts, paraphrases: what people said; None where it was not asked for.
    """

    release: str
    tasks: str
    verdicts: str | None
    paraphrases: str | None


def apply_crowd(files: CrowdFiles, output: str, storage: Storage, *, least: int = 5) -> dict[str, Any]:
    """Writes a release without the answers that people judged wrong and with their paraphrases; gives the report.

    A question of development or test set with fewer than ``least`` answers of different text left goes back among those
    not drawn. In its place, in the same split, comes the next one of the test side in the order of the draw: of its
    subset, of simple ones also of its relation. Where there is none the split gets smaller. Memory: development and
    test set.

    Args:
        files: what is read.
        output: an empty folder.
        storage: of everything.
        least: answers that a question needs.

    Raises:
        SetupError: an input is not what it should be, the tasks are of another release, ``output`` is not empty, or
            ``least`` is below 1.
    """
    if least < 1:
        raise SetupError(f"{least} answers that a question needs: for --least-answers give a number from 1 on.")
    manifest, form = read_form(files.release, storage)
    check_output(output, storage)
    tasks_sha256 = _check_tasks(files, manifest, storage)
    check_hashes(files.release, manifest.entries(), storage)
    tasks = {
        text_at(record, "task_id"): Task(text_at(record, "aid"), bool(record["is_wrong"]))
        for record in _records(join(files.tasks, KEY), storage)
    }
    asked = {text_at(record, "qid") for record in _records(join(files.tasks, PARAPHRASE), storage)}
    rejected: list[BadRecord] = []
    judged = read_verdicts(files.verdicts, tasks, storage, rejected.append)
    paraphrases = read_paraphrases(files.paraphrases, asked, storage, rejected.append)
    dropped = dropped_answers(tasks, judged)
    replacements = find_replacements(files.release, storage, dropped=dropped, seed=form.seed, least=least)
    counts: Counter[str] = Counter()
    questions = revise_questions(files.release, storage, dropped, paraphrases, replacements, counts)
    given = {"verdicts": files.verdicts, "paraphrases": files.paraphrases}
    facts = {
        **({"release": manifest.facts["release"]} if "release" in manifest.facts else {}),
        "form": form._asdict(),
        "qampari": {"manifest_sha256": manifest.sha256},
        "tasks": {"manifest_sha256": tasks_sha256},
        "inputs": {
            name: [asdict(input_file) for input_file in input_files([path], storage)]
            for name, path in given.items()
            if path is not None
        },
        "options": {"least": least},
        "code": asdict(code_facts()),
    }
    with ReleaseFolder(output, storage, kind=QAMPARI_RELEASE):
        entries = write_release_files(
            questions,
            (query_of_row(row) for row in read_table(files.release, "queries", storage)),
            form=form,
            output=output,
            storage=storage,
        )
        report = _report(tasks, judged, asked, paraphrases, replacements, counts, rejected)
        entries.append(write_rejected(rejected, output=output, storage=storage))
        entries.append(write_report(report, output=output, storage=storage))
        commit(QAMPARI_RELEASE, QAMPARI_RELEASE.listing(entries, facts), output, storage)
    return report


def _records(path: str, storage: Storage) -> Iterator[Json]:
    """Gives the records of a file of ours, which has no other lines; it may be empty."""
    raws: Iterator[RawRecord] = iter_lines(storage, path) if storage.size(path) else iter(())
    return (raw.parse() for raw in raws)


def _report(
    tasks: Mapping[str, Task],
    judged: Judged,
    asked: Collection[str],
    paraphrases: Mapping[str, str],
    replacements: Replacements,
    counts: Counter[str],
    rejected: Sequence[BadRecord],
) -> dict[str, Any]:
    right = {task_id for task_id, task in tasks.items() if not task.is_wrong}
    wrong = set(tasks) - right
    accepted = sum(judged.final.get(task_id, False) for task_id in wrong)
    n_left, n_come = len(replacements.left), len(replacements.come)
    return {
        "answers": {
            "judged": len(right & judged.final.keys()),
            "missing": len(right - judged.final.keys()),
            "overturned": len(right & judged.overturned),
            "dropped": counts["answers_dropped"],
        },
        "wrong_answers": {
            "judged": len(wrong & judged.final.keys()),
            "missing": len(wrong - judged.final.keys()),
            "accepted": accepted,
        },
        "workers": {
            name: {key: one[key] for key in ("verdicts", "wrong_judged", "wrong_accepted")}
            for name, one in sorted(judged.workers.items())
        },
        "questions": {"replaced": n_come, "not_replaced": n_left - n_come},
        "paraphrases": {
            "used": counts["paraphrases_used"],
            "missing": len(asked) - len(paraphrases),
            "of_replaced": len(paraphrases) - counts["paraphrases_used"],
            "without_entity": counts["without_entity"],
        },
        "rejected": dict(sorted(Counter(bad.reason for bad in rejected).items())),
    }


def _check_tasks(files: CrowdFiles, manifest: ListingManifest, storage: Storage) -> str:
    tasks = CROWD_TASKS.read(files.tasks, storage)
    if tasks.facts["qampari"]["manifest_sha256"] != manifest.sha256:
        raise SetupError(f"{files.tasks}: tasks of another release than {files.release}; give the one they are of.")
    check_hashes(files.tasks, tasks.entries(), storage)
    return tasks.sha256
