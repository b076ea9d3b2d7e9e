"""What people said of the tasks of a campaign, taken in, and what comes of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from kbsource.errors import RecordError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.intact import check_hashes
from kbsource.release.layout import check_output
from kbsource.release.manifest import code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_lines, write_rejected
from mapping.campaign.agreement import fleiss_kappa, mean_kappa, pair_kappas
from mapping.campaign.kind import CAMPAIGN, CAMPAIGN_TASKS, JUDGEMENTS, KEY, PASSAGES
from mapping.campaign.prepare import LABELS
from mapping.metrics.kilt.answers import rouge_l
from mapping.sources.forms.campaign import MIN_ACCEPTED
from mapping.sources.forms.judgement_rows import judgement_rows
from mapping.sources.reading.fields import Json, digits_or_text, text_at
from mapping.sources.reading.files_in import check_shape, iter_lines

LEAST_ROUGE = 0.15
"""A passage that is less like every answer is looked at by hand. Source: Petroni et al., KILT (2021), section 4."""


def import_judgements(tasks: str, files: Sequence[str], output: str, storage: Storage) -> dict[str, int]:
    """Writes what people said into an empty folder, each highlight with its place in the passage; gives counts.

    Rows without a label, as a sheet leaves them that was not filled in, are passed over and counted. Of two labels of
    one person for a passage the first counts. Memory: the passages and labels of the campaign.

    Args:
        tasks: folder of the tasks.
        files: JSON Lines, CSV, or exports of Label Studio.
        output: an empty folder.
        storage: of everything.

    Raises:
        SetupError: the tasks are not as they were written, a file is another one, or ``output`` is not empty.
    """
    manifest = CAMPAIGN_TASKS.read(tasks, storage)
    check_hashes(tasks, manifest.entries(), storage)
    check_output(output, storage)
    texts = {line["passage_id"]: line["text"] for line in _lines(join(tasks, PASSAGES), storage)}
    questions = {line["passage_id"]: line["question_id"] for line in _lines(join(tasks, KEY), storage)}
    for path in files:
        check_shape(path, judgement_rows(path, storage), lambda one: "passage_id" in one, expected="judged passages")
    counts: Counter[str] = Counter(judgements=0, unanswered=0)
    rejected: list[BadRecord] = []
    said: dict[tuple[str, str], str] = {}

    def judgements() -> Iterator[bytes]:
        for path in files:
            for raw in judgement_rows(path, storage):
                try:
                    record = raw.parse()
                    if not record.get("label"):
                        counts["unanswered"] += 1
                        continue
                    row = _judgement(record, texts, questions, said)
                except RecordError as error:
                    rejected.append(raw.bad(error, stage="judgement"))
                else:
                    counts["judgements"] += 1
                    yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)

    with ReleaseFolder(output, storage, kind=CAMPAIGN):
        entries = [write_lines(judgements(), JUDGEMENTS, output=output, storage=storage)]
        for name in (PASSAGES, KEY):
            with storage.open_read(join(tasks, name)) as file:
                entries.append(write_lines(file, name, output=output, storage=storage))
        entries.append(write_rejected(rejected, output=output, storage=storage))
        counts["rejected"] = len(rejected)
        facts = {
            "tasks": {"manifest_sha256": manifest.sha256},
            "inputs": [asdict(file) for file in input_files(files, storage)],
            "counts": dict(counts),
            "code": asdict(code_facts()),
        }
        commit(CAMPAIGN, CAMPAIGN.listing(entries, facts), output, storage)
    return dict(counts)


def _judgement(
    record: Json, texts: dict[str, str], questions: dict[str, str], said: dict[tuple[str, str], str]
) -> dict[str, Any]:
    passage_id, worker_id = digits_or_text(record, "passage_id"), digits_or_text(record, "worker_id")
    label = text_at(record, "label").strip().lower()
    if passage_id not in texts:
        raise RecordError("unknown_passage", f"there is no passage {passage_id!r}")
    if label not in LABELS:
        raise RecordError("unknown_label", f"{label!r}; known are {', '.join(LABELS)}")
    if said.setdefault((passage_id, worker_id), label) != label:
        raise RecordError("conflicting_label", f"worker {worker_id!r} said otherwise of passage {passage_id!r}")
    row: dict[str, Any] = {
        "question_id": questions[passage_id],
        "passage_id": passage_id,
        "worker_id": worker_id,
        "label": label,
    }
    highlight = str(record.get("highlight") or "").strip()
    if highlight:
        start, end = place_of(highlight, texts[passage_id])
        row |= {"highlight": texts[passage_id][start:end], "start_char": start, "end_char": end}
    if record.get("free_text"):
        row["free_text"] = str(record["free_text"])
    return row


def place_of(highlight: str, text: str) -> tuple[int, int]:
    """Gives the first and one past the last code point of a highlight in its passage, whatever became of blanks.

    Raises:
        RecordError: ``highlight_not_found``.

    >>> place_of("a  lake", "It is a lake.")
    (6, 12)
    """
    pattern = r"\s+".join(map(re.escape, highlight.split()))
    found = re.search(pattern, text) or re.search(pattern, text, re.IGNORECASE)
    if found is None:
        raise RecordError("highlight_not_found", f"{highlight[:80]!r} is not in the passage")
    return found.span()


@dataclass(slots=True)
class CampaignReport:
    """What came of a campaign.

    Attributes:
        summary: counts and agreement, as JSON.
        questions: for each question its fate, the passages that were judged, and which are to be looked at by hand.
    """

    summary: dict[str, Any] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)


def report_campaign(folder: str, storage: Storage) -> CampaignReport:
    """Gives what came of a campaign.

    A passage is provenance where ``MIN_ACCEPTED`` accept it; one that a single person accepts, or that somebody says is
    part of the evidence, is partial evidence. A question without provenance is dropped.

    Raises:
        SetupError: the folder is none of a campaign, or not as it was written.
    """
    manifest = CAMPAIGN.read(folder, storage)
    check_hashes(folder, manifest.entries(), storage)
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in _lines(join(folder, JUDGEMENTS), storage):
        labels[row["passage_id"]][row["worker_id"]] = row["label"]
    texts = {line["passage_id"]: line["text"] for line in _lines(join(folder, PASSAGES), storage)}
    report = CampaignReport()
    by_question: dict[str, dict[str, Any]] = {}
    workers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    n_fates: Counter[str] = Counter()
    for line in _lines(join(folder, KEY), storage):
        said = labels.get(line["passage_id"], {})
        for worker, label in said.items():
            workers[worker]["judged"] += 1
            workers[worker]["gold_judged"] += line["is_gold"]
            workers[worker]["gold_accepted"] += line["is_gold"] and label == "yes"
        verdict = _verdict(said)
        rouge = max((rouge_l(texts[line["passage_id"]], answer) for answer in line["answers"]), default=0.0)
        question = by_question.setdefault(line["question_id"], {"question_id": line["question_id"], "passages": []})
        question["passages"].append(
            {
                "passage_id": line["passage_id"],
                "verdict": verdict,
                "accepted_by": sum(label == "yes" for label in said.values()),
                "judged_by": len(said),
                "is_gold": line["is_gold"],
                "rouge_l": rouge,
                "check_by_hand": verdict == "accepted" and rouge < LEAST_ROUGE,
            }
        )
    for question in by_question.values():
        verdicts = Counter(passage["verdict"] for passage in question["passages"])
        kept = "kept" if verdicts["accepted"] else "dropped"
        question["fate"] = "unjudged" if verdicts["unjudged"] == verdicts.total() else kept
        n_fates[question["fate"]] += 1
        report.questions.append(question)
    passages = [passage for question in report.questions for passage in question["passages"]]
    verdicts = Counter(passage["verdict"] for passage in passages)
    binary = {name: {worker: label == "yes" for worker, label in said.items()} for name, said in labels.items()}
    pairs = pair_kappas(binary)
    report.summary = {
        "questions": {
            "asked": len(report.questions),
            **{name: n_fates[name] for name in ("kept", "dropped", "unjudged")},
        },
        "passages": {"asked": len(passages)}
        | {name: verdicts[name] for name in ("accepted", "partial", "refused", "unjudged")},
        "accepted_per_question": verdicts["accepted"] / n_fates["kept"] if n_fates["kept"] else None,
        "check_by_hand": sum(passage["check_by_hand"] for passage in passages),
        "kappa": {
            "mean_of_pairs": mean_kappa(pairs),
            "fleiss": fleiss_kappa(binary),
            "pairs": [pair._asdict() for pair in pairs],
        },
        "workers": {name: dict(counts) for name, counts in sorted(workers.items())},
        "rejected": manifest.facts["counts"]["rejected"],
    }
    return report


def _verdict(said: dict[str, str]) -> str:
    n_accepted = sum(label == "yes" for label in said.values())
    if n_accepted >= MIN_ACCEPTED:
        return "accepted"
    if not said:
        return "unjudged"
    return "partial" if n_accepted or "partial" in said.values() else "refused"


def _lines(path: str, storage: Storage) -> Iterator[Json]:
    return (raw.parse() for raw in iter_lines(storage, path))
