"""Revises a QAMPARI release with crowd results: removes wrong answers, applies paraphrases, and replaces questions that
have too few answers left.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_rejected
from mapping.annotation.crowd import POOL, candidate_of, question_key
from mapping.annotation.verdicts import JudgedTasks, Task, WorkerOptions, read_answers, read_checks
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import SIMPLE
from mapping.qampari.records import QueryRow, Question
from mapping.qampari.release import parse_qid, qid_of, read_question_rows, read_questions, write_release_files
from mapping.qampari.selection import draw_key
from mapping.write.kind import write_report

Dropped = Mapping[str, Collection[int]]
"""Numbers of the answers that were judged wrong, by qid."""
Moved = Mapping[tuple[str, str], tuple[str, str] | None]
"""The split and qid of questions that enter the pool, by subset and key; None for questions that leave it."""


def find_replacements(release: str, manifest: ListingManifest, *, dropped: Dropped, seed: str, least: int) -> Moved:
    """Returns the questions that have too few answers after dropping the wrong ones, and their replacements.

    Replacements are numbered after the existing questions of their split.
    """
    short: defaultdict[tuple[str, str], list[Question]] = defaultdict(list)
    numbers: Counter[str] = Counter()
    for question in read_questions(release, manifest):
        if question.split in POOL and question.qid is not None:
            numbers[str(question.split)] = max(numbers[str(question.split)], parse_qid(question.qid).n)
            if _n_distinct(_without(question, dropped)) < least:
                short[_hand(question)].append(question)
    hands: defaultdict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in read_questions(release, manifest) if short else ():
        hand = _hand(question)
        if (
            hand in short
            and question.eligible_split == "test"
            and question.split is None
            and _n_distinct(question) >= least
        ):
            hands[hand].append(question)
            if len(hands[hand]) >= 2 * len(short[hand]) + 64:
                hands[hand] = _first_drawn(hands[hand], seed)[: len(short[hand])]
    moved: dict[tuple[str, str], tuple[str, str] | None] = {}
    for hand, leaving in sorted(short.items()):
        moved |= dict.fromkeys(map(question_key, leaving))
        for gone, new in zip(_first_drawn(leaving, seed), _first_drawn(hands[hand], seed), strict=False):
            assert gone.split is not None
            numbers[gone.split] += 1
            moved[question_key(new)] = gone.split, qid_of(numbers[gone.split], new.subset, gone.split)
    return moved


def _hand(question: Question) -> tuple[str, str]:
    """Returns the group within which a question is sampled, as in ``selection.draw_pool``: its subset and, for simple
    questions, its relation.
    """
    return question.subset, question.property_ids[0] if question.subset == SIMPLE else ""


def _first_drawn(hand: Sequence[Question], seed: str) -> list[Question]:
    return sorted(hand, key=lambda question: draw_key(candidate_of(question), seed, "pool"))


def _n_distinct(question: Question) -> int:
    return len({answer.text.casefold() for answer in question.answers})


def _without(question: Question, dropped: Dropped) -> Question:
    gone = dropped.get(question.qid or "", set())
    left = tuple(answer for number, answer in enumerate(question.answers) if number not in gone)
    return replace(question, answers=left, n_dropped=question.n_dropped + len(gone))


def revise_questions(
    release: str,
    manifest: ListingManifest,
    dropped: Dropped,
    paraphrases: Mapping[str, str],
    moved: Moved,
    counts: Counter[str],
) -> Iterator[Question]:
    """Revises the questions one by one, in the order of the rows of their table, and counts the changes."""
    for question in read_questions(release, manifest):
        revised = _without(question, dropped)
        counts["answers_dropped"] += revised.n_dropped - question.n_dropped
        if (place := question_key(question)) in moved:
            split, qid = moved[place] or (None, None)
            yield replace(revised, split=split, qid=qid, paraphrase=None)
        elif question.qid is not None and (paraphrase := paraphrases.get(question.qid)) is not None:
            counts["paraphrases_used"] += 1
            counts["without_entity"] += any(about.text not in paraphrase for about in question.entities)
            yield replace(revised, paraphrase=paraphrase)
        else:
            yield revised


def apply_crowd(
    release: str,
    tasks_folder: str,
    output: str,
    *,
    verdicts: Sequence[str] = (),
    paraphrases: Sequence[str] = (),
    checks: str | None = None,
    least: int = 5,
    workers: WorkerOptions | None = None,
) -> dict[str, Any]:
    """Writes a release without the answers judged wrong, and with paraphrases; returns the report.

    A development or test question that is left with fewer than ``least`` answers of different text is removed from its
    split. It is replaced by the next question in the order of sampling that is eligible for test and has the same
    subset and, for simple questions, the same relation. If no such question is left, the
    split becomes smaller. Memory: development and test set.

    Args:
        release: folder of the release that the tasks were made from.
        tasks_folder: folder written by ``write_crowd_tasks``.
        verdicts, paraphrases: files with the annotators' answers; a second look comes after the first.
        checks: file of verdicts on paraphrases; wrong ones are not used.
        workers: annotators to exclude.

    Raises:
        SetupError: an input is invalid, the tasks belong to another release, ``output`` is not empty, or ``least`` is
            below 1.
    """
    if least < 1:
        raise SetupError(f"--least-answers is {least}; give a number of at least 1.")
    rejected: list[BadRecord] = []
    manifest, form, own, _, tasks, paraphrase_tasks, excluded, judged, every = read_answers(
        release,
        tasks_folder,
        output,
        verdicts=verdicts,
        paraphrases=paraphrases,
        workers=workers,
        reject=rejected.append,
    )
    is_right = read_checks(checks, paraphrase_tasks, rejected.append)
    written = {
        qid: paraphrase.text
        for qid, paraphrase in every.items()
        if paraphrase.worker not in excluded and is_right.get(qid, True)
    }
    dropped: defaultdict[str, set[int]] = defaultdict(set)
    for task_id, is_correct in judged.final.items():
        if not is_correct and not tasks[task_id].is_wrong:
            qid, _, number = tasks[task_id].aid.rpartition("__")
            dropped[qid].add(int(number))
    moved = find_replacements(release, manifest, dropped=dropped, seed=form.seed, least=least)
    counts: Counter[str] = Counter()
    questions = revise_questions(release, manifest, dropped, written, moved, counts)
    given = {"verdicts": verdicts, "paraphrases": paraphrases, "checks": () if checks is None else (checks,)}
    facts = {
        **({"release": manifest.facts["release"]} if "release" in manifest.facts else {}),
        "form": form._asdict(),
        "qampari": {"manifest_sha256": manifest.sha256},
        "tasks": {"manifest_sha256": own.sha256},
        "inputs": {name: list(map(asdict, input_files(paths))) for name, paths in given.items() if paths},
        "options": {"least": least, "rejected_workers": sorted(excluded)},
        "code": code_facts(),
    }
    with ReleaseFolder(output, kind=QAMPARI_RELEASE):
        queries = read_question_rows(release, manifest, "queries", QueryRow)
        entries = write_release_files(questions, queries, form=form, output=output)
        report = _report(tasks, judged, paraphrase_tasks, written, moved, counts, rejected)
        report["paraphrase_checks"] = {
            "checked": len(every.keys() & is_right.keys()),
            "rejected": sum(not right for qid, right in is_right.items() if qid in every),
        }
        report["rejected_workers"] = {
            name: {
                "verdicts": judged.n_taken_out[name],
                "paraphrases": sum(paraphrase.worker == name for paraphrase in every.values()),
            }
            for name in sorted(excluded)
        }
        entries.append(write_rejected(rejected, output=output))
        entries.append(write_report(report, output=output))
        commit(QAMPARI_RELEASE, QAMPARI_RELEASE.listing(entries, facts), output)
    return report


def _report(
    tasks: Mapping[str, Task],
    judged: JudgedTasks,
    paraphrase_tasks: Collection[str],
    paraphrases: Mapping[str, str],
    moved: Moved,
    counts: Counter[str],
    rejected: Sequence[BadRecord],
) -> dict[str, Any]:
    right = {task_id for task_id, task in tasks.items() if not task.is_wrong}
    wrong = set(tasks) - right
    accepted = sum(judged.final.get(task_id, False) for task_id in wrong)
    n_come = sum(place is not None for place in moved.values())
    n_left = len(moved) - n_come
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
            name: {key: worker_counts[key] for key in ("verdicts", "wrong_judged", "wrong_accepted")}
            for name, worker_counts in sorted(judged.workers.items())
        },
        "questions": {"replaced": n_come, "not_replaced": n_left - n_come},
        "paraphrases": {
            "used": counts["paraphrases_used"],
            "missing": len(paraphrase_tasks) - len(paraphrases),
            "of_replaced": len(paraphrases) - counts["paraphrases_used"],
            "without_entity": counts["without_entity"],
        },
        "rejected": dict(sorted(Counter(bad.reason for bad in rejected).items())),
    }
