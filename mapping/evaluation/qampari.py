"""The metrics of QAMPARI: questions with many answers, each stated somewhere in Wikipedia.

Source: Amouyal et al., QAMPARI (2022), section 5. Where the released script differs from the paper or goes wrong, its
behaviour has a name in ``mapping.evaluation.options.QUIRKS`` and is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.evaluation.answer_lists import ListScore, score_list
from mapping.evaluation.options import QampariFiles, QampariOptions
from mapping.evaluation.qampari_files import (
    GoldQuestion,
    Joined,
    Kind,
    pack_passages,
    pack_predictions,
    parse_gold,
    qid_of,
    unpack_passages,
    unpack_predictions,
)
from mapping.evaluation.retrieval import Passage, answer_ranks, ranks_by_id, ranks_by_text
from mapping.sources.fields import Json
from mapping.sources.files_in import RawRecord, check_shape, iter_lines

DECIMALS = 6


@dataclass(slots=True)
class Mean:
    """A mean that is being taken."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.n += 1

    @property
    def value(self) -> float | None:
        """The mean, rounded to ``DECIMALS``; None of nothing."""
        return round(self.total / self.n, DECIMALS) if self.n else None


@dataclass(slots=True)
class QampariScores:
    """Means over questions, under the names that the released script gives them.

    Attributes:
        questions: gold questions.
        reader: ``recall``, ``precision``, ``f1``, ``f1_above`` (share of questions with F1 >= 0.5), ``rec_above``
            (recall >= 0.8); empty without predictions.
        arecall: ARECALL@K by K; empty without retrieved passages.
        erecall: ERECALL@K by K, over questions with evidence.
        without_predictions: questions without a line of predictions; their scores are 0.
        without_passages: questions without a line of passages; likewise.
        without_evidence: questions whose answers have no evidence; no part of ERECALL@K.
        rejected: lines by file's role and reason.
    """

    questions: int = 0
    reader: dict[str, Mean] = field(default_factory=dict)
    arecall: dict[int, Mean] = field(default_factory=dict)
    erecall: dict[int, Mean] = field(default_factory=dict)
    without_predictions: int = 0
    without_passages: int = 0
    without_evidence: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Gives the scores as JSON, means alone."""
        value: dict[str, Any] = {"questions": self.questions}
        if self.reader:
            value["reader"] = {name: mean.value for name, mean in self.reader.items()}
            value["without_predictions"] = self.without_predictions
        if self.arecall:
            value["arecall"] = {str(k): mean.value for k, mean in self.arecall.items()}
            value["erecall"] = {str(k): mean.value for k, mean in self.erecall.items()}
            value["without_passages"] = self.without_passages
            value["without_evidence"] = self.without_evidence
        value["rejected"] = {role: dict(sorted(counts.items())) for role, counts in sorted(self.rejected.items())}
        return value


Reject = Callable[[BadRecord], None]


def evaluate_qampari(
    files: QampariFiles, storage: Storage, options: QampariOptions, *, reject: Reject, scratch_folder: str | None = None
) -> QampariScores:
    """Gives the scores of a file of predictions, of retrieved passages, or both.

    Every gold question counts, also one that the other files do not have. Memory holds one question.

    Args:
        files: JSON Lines, see ``mapping.evaluation.qampari_files``.
        storage: holds them.
        options: how it is done.
        reject: called with the place and reason of every line that cannot be used, and of lines for unknown questions.
        scratch_folder: where the join is kept meanwhile; None for the system's.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold; nothing to evaluate.
    """
    if files.predictions is None and files.retrieved is None:
        raise SetupError("Give --predictions, --retrieved, or both.")
    with Joined(scratch_folder) as joined:
        evaluation = _Evaluation(files, options, joined, reject)
        evaluation.read_given(storage)
        evaluation.read_gold(storage)
        return evaluation.scores


class _Evaluation:
    def __init__(self, files: QampariFiles, options: QampariOptions, joined: Joined, reject: Reject) -> None:
        self._files = files
        self._options = options
        self._joined = joined
        self._report = reject
        self.scores = QampariScores()
        if files.predictions is not None:
            names = ("recall", "precision", "f1", "f1_above", "rec_above")
            self.scores.reader = {name: Mean() for name in names}
        if files.retrieved is not None:
            self.scores.arecall = {k: Mean() for k in options.ks}
            self.scores.erecall = {k: Mean() for k in options.ks}

    def read_given(self, storage: Storage) -> None:
        """Puts predictions and passages aside by question."""
        n_kept, with_ids = self._options.ks[-1], self._options.evidence_match == "id"
        given: tuple[tuple[Kind, str | None, str, Callable[[Json], bytes]], ...] = (
            ("predictions", self._files.predictions, "predictions", pack_predictions),
            ("retrieved", self._files.retrieved, "ctxs", lambda one: pack_passages(one, n_kept, with_ids=with_ids)),
        )
        for kind, path, key, pack in given:
            if path is None:
                continue
            for raw, record in self._records(storage, path, kind, key):
                qid = ""
                try:
                    qid = qid_of(record)
                    self._joined.put(kind, qid, raw, pack(record))
                except RecordError as error:
                    self._reject(raw, error, kind, qid)

    def read_gold(self, storage: Storage) -> None:
        """Scores question after question, then reports what was given for none of them."""
        match = self._options.evidence_match if self._files.retrieved is not None else None
        for raw, record in self._records(storage, self._files.gold, "gold", "answer_list"):
            qid = ""
            try:
                qid = qid_of(record)
                self._joined.open_question(qid)
                question = parse_gold(record, match)
            except RecordError as error:
                self._reject(raw, error, "gold", qid)
                continue
            self.scores.questions += 1
            if self._files.predictions is not None:
                self._score_predictions(question, self._joined.get("predictions", qid))
            if self._files.retrieved is not None:
                self._score_passages(question, self._joined.get("retrieved", qid))
        kinds: tuple[Kind, ...] = ("predictions", "retrieved")
        for kind in kinds:
            for qid, raw in self._joined.without_question(kind):
                self._reject(raw, RecordError("unknown_question", f"{qid!r} is not in {self._files.gold}"), kind, qid)

    def _records(self, storage: Storage, path: str, role: str, key: str) -> Iterator[tuple[RawRecord, Json]]:
        check_shape(
            path,
            iter_lines(storage, path),
            lambda one: "qid" in one and key in one,
            expected=f"JSON Lines with qid and {key} ({role})",
        )
        for raw in iter_lines(storage, path):
            try:
                record = raw.parse()
            except RecordError as error:
                self._reject(raw, error, role, "")
            else:
                yield raw, record

    def _reject(self, raw: RawRecord, error: RecordError, role: str, qid: str) -> None:
        self.scores.rejected.setdefault(role, Counter())[error.reason] += 1
        self._report(raw.bad(error, key=qid, stage=role))

    def _score_predictions(self, question: GoldQuestion, content: bytes | None) -> None:
        self.scores.without_predictions += content is None
        score = score_list(
            unpack_predictions(content) if content is not None else (),
            question.answers,
            matching=self._options.matching,
            raw_predictions="raw_predictions" in self._options.quirks,
            listed_names="listed_names" in self._options.quirks,
            last_owner="last_owner" in self._options.quirks,
        )
        for name, value in _named(score).items():
            self.scores.reader[name].add(value)

    def _score_passages(self, question: GoldQuestion, content: bytes | None) -> None:
        self.scores.without_passages += content is None
        passages = unpack_passages(content) if content is not None else []
        ranks = answer_ranks(question.answers, passages, substring="substring" in self._options.quirks)
        shares = self._evidence_ranks(question, passages)
        self.scores.without_evidence += not shares
        for k in self._options.ks:
            self.scores.arecall[k].add(share_within(ranks, k))
            if shares:
                self.scores.erecall[k].add(sum(share_within(one, k) for one in shares) / len(shares))

    def _evidence_ranks(self, question: GoldQuestion, passages: Sequence[Passage]) -> list[list[int | None]]:
        """Gives the ranks of the evidence of each answer that has some; under the quirk of all evidence together."""
        evidence = [one.passage for one in question.evidence]
        find = ranks_by_id if self._options.evidence_match == "id" else ranks_by_text
        ranks = find(evidence, passages)
        if "evidence_mean" in self._options.quirks:
            return [ranks] if ranks else []
        of_answers: list[list[int | None]] = [[] for _ in question.answers]
        for one, rank in zip(question.evidence, ranks, strict=True):
            for number in one.answers:
                of_answers[number].append(rank)
        return [one for one in of_answers if one]


def share_within(ranks: Sequence[int | None], k: int) -> float:
    """Gives the share of ranks, at least one, that are among the first ``k``; None is no rank."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


def _named(score: ListScore) -> dict[str, float]:
    return {
        "recall": score.recall,
        "precision": score.precision,
        "f1": score.f1,
        "f1_above": float(score.has_half_f1),
        "rec_above": float(score.has_high_recall),
    }


_SHOWN = {
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "f1_above": "F1 >= 0.5",
    "rec_above": "recall >= 0.8",
}


def scores_text(scores: QampariScores) -> str:
    """Gives the scores for reading, in per cent."""
    lines = [f"questions            {scores.questions:>9,}"]
    if scores.reader:
        lines.append(f"without predictions  {scores.without_predictions:>9,}")
        lines += [f"{_SHOWN[name]:<21}{_percent(mean)}" for name, mean in scores.reader.items()]
    if scores.arecall:
        lines.append(f"without passages     {scores.without_passages:>9,}")
        lines.append(f"without evidence     {scores.without_evidence:>9,}")
        lines += [f"{f'ARECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.arecall.items()]
        lines += [f"{f'ERECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.erecall.items()]
    for role, counts in sorted(scores.rejected.items()):
        lines += [f"rejected {role}: {reason} {count:,}" for reason, count in sorted(counts.items())]
    return "\n".join(lines)


def _percent(mean: Mean) -> str:
    return f"{'–':>9}" if mean.value is None else f"{100 * mean.value:>8.2f}%"
