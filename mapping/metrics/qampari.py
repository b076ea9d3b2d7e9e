"""The metrics of QAMPARI: questions with many answers, each stated somewhere in Wikipedia.

Source: Amouyal et al., QAMPARI (2022), section 5. Where the released script differs from the paper or goes wrong, its
behaviour has a name in ``mapping.metrics.evaluation_options.QUIRKS`` and is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.metrics.answer_lists import READER_METRICS, is_exact, score_list
from mapping.metrics.evaluation_options import QampariEvaluation, QampariFiles
from mapping.metrics.qampari_files import (
    KEYS,
    GoldQuestion,
    Kind,
    Role,
    is_line_of,
    pack_passages,
    pack_predictions,
    parse_gold,
    qid_of,
    unpack_passages,
    unpack_predictions,
)
from mapping.metrics.retrieval import RetrievedPassage, answer_ranks, ranks_by_id, ranks_by_text
from mapping.metrics.scores import Mean, QampariScores
from mapping.sources.reading.fields import Json
from mapping.sources.reading.files_in import RawRecord, check_shape
from mapping.sources.reading.joined import Joined
from mapping.sources.reading.labels import iter_labels

Reject = Callable[[BadRecord], None]


def evaluate_qampari(
    files: QampariFiles,
    storage: Storage,
    options: QampariEvaluation,
    *,
    reject: Reject,
    scratch_folder: str | None = None,
) -> QampariScores:
    """Gives the scores of a file of predictions, of retrieved passages, or both.

    Every gold question counts, also one that the other files do not have. Memory holds one question.

    Args:
        files: see ``mapping.metrics.qampari_files``.
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
    def __init__(self, files: QampariFiles, options: QampariEvaluation, joined: Joined, reject: Reject) -> None:
        self._files = files
        self._options = options
        self._joined = joined
        self._report = reject
        self.scores = QampariScores()
        if files.predictions is not None:
            self.scores.reader = {name: Mean() for name in READER_METRICS}
            self.scores.em = Mean()
        if files.retrieved is not None:
            self.scores.arecall = {k: Mean() for k in options.ks}
            self.scores.erecall = {k: Mean() for k in options.ks}

    def read_given(self, storage: Storage) -> None:
        """Puts predictions and passages aside by question."""
        n_kept, with_ids = self._options.ks[-1], self._options.evidence_match == "id"
        given: tuple[tuple[Kind, str | None, Callable[[Json], bytes]], ...] = (
            ("predictions", self._files.predictions, pack_predictions),
            ("retrieved", self._files.retrieved, lambda one: pack_passages(one, n_kept, with_ids=with_ids)),
        )
        for kind, path, pack in given:
            if path is None:
                continue
            for raw, record in self._records(storage, path, kind):
                qid = ""
                try:
                    qid = qid_of(record)
                    self._joined.put(kind, qid, raw, pack(record))
                except RecordError as error:
                    self._reject(raw, error, kind, qid)

    def read_gold(self, storage: Storage) -> None:
        """Scores question after question, then reports what was given for none of them."""
        match = self._options.evidence_match if self._files.retrieved is not None else None
        repeats = "evidence_mean" in self._options.quirks
        for raw, record in self._records(storage, self._files.gold, "gold"):
            qid = ""
            try:
                qid = qid_of(record)
                self._joined.open_question(qid)
                question = parse_gold(record, match, repeats=repeats)
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

    def _records(self, storage: Storage, path: str, role: Role) -> Iterator[tuple[RawRecord, Json]]:
        check_shape(
            path,
            iter_labels(storage, path),
            lambda one: is_line_of(one, role),
            expected=f"JSON Lines or an array with qid and {' or '.join(KEYS[role])} ({role})",
        )
        for raw in iter_labels(storage, path):
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
        predictions = unpack_predictions(content) if content is not None else []
        if question.is_single and self.scores.em is not None:
            self.scores.em.add(float(is_exact(predictions, question.answers[0])))
            return
        score = score_list(
            predictions,
            question.answers,
            matching=self._options.matching,
            raw_predictions="raw_predictions" in self._options.quirks,
            listed_names="listed_names" in self._options.quirks,
            last_owner="last_owner" in self._options.quirks,
        )
        for name, (_, value_of) in READER_METRICS.items():
            self.scores.reader[name].add(float(value_of(score)))

    def _score_passages(self, question: GoldQuestion, content: bytes | None) -> None:
        self.scores.without_passages += content is None
        passages = unpack_passages(content) if content is not None else []
        ranks = answer_ranks(question.answers, passages, substring="substring" in self._options.quirks)
        shares = self._evidence_ranks(question, passages)
        self.scores.without_evidence += not shares
        for k in self._options.ks:
            self.scores.arecall[k].add(share_within(ranks, k))
            if shares:
                self.scores.erecall[k].add(sum(share_within(share, k) for share in shares) / len(shares))

    def _evidence_ranks(self, question: GoldQuestion, passages: Sequence[RetrievedPassage]) -> list[list[int | None]]:
        """Gives the ranks of the evidence of each answer that has some; under the quirk of all evidence together."""
        evidence = [piece.passage for piece in question.evidence]
        if self._options.evidence_match == "id":
            ranks = ranks_by_id(evidence, passages)
        else:
            ranks = ranks_by_text(evidence, passages, partial_runs="partial_runs" in self._options.quirks)
        if "evidence_mean" in self._options.quirks:
            return [ranks] if ranks else []
        of_answers: list[list[int | None]] = [[] for _ in question.answers]
        for one, rank in zip(question.evidence, ranks, strict=True):
            for number in one.answers:
                of_answers[number].append(rank)
        return [answer for answer in of_answers if answer]


def share_within(ranks: Sequence[int | None], k: int) -> float:
    """Gives the share of ranks, at least one, that are among the first ``k``; None is no rank."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)
