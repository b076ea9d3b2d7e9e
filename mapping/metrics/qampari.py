"""The metrics of QAMPARI: questions with many answers, each stated somewhere in Wikipedia.

The files are JSON Lines or one JSON array, plain, gzip or bzip2, joined by ``qid``, or where a record has none by
``id`` (string or integer); other keys are passed over, so that released files are read as they are.

gold
    ``answer_list``: at least one ``{answer_text, aliases, aid, proof}``. ``aliases`` and ``aid`` may be absent.
    ``proof``, which only ERECALL@K reads: list of ``{proof_text, found_in_url}``; may be absent. Where the record has
    ``positive_ctxs`` (list of ``{pid, chunk_id, title, text}``), these are the evidence in place of the proofs; a
    ``pid`` is the ``aid`` of its answer, two underscores and a number. A question with one answer, as in Natural
    Questions, has in place of ``answer_list`` its ``answers``: at least one string, all of them names of that answer.
predictions
    ``predictions``: list of strings, or ``prediction``: the only one. A gold file with this key will do.
retrieved
    ``ctxs``: list of ``{id, title, text}``, best first; only ``--evidence-match id`` reads the ids.

Source: Amouyal et al., QAMPARI (2022), section 5. Where the released script differs from the paper or goes wrong, its
behaviour has a name in ``QAMPARI_QUIRKS`` and is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from mapping.metrics.answers import READER_METRICS, GoldNames, is_exact, score_list
from mapping.metrics.evaluation import (
    EvidenceMatch,
    Lines,
    Mean,
    QampariEvaluation,
    QampariFiles,
    Reject,
    rejected_json,
    rejected_text,
)
from mapping.metrics.ranks import RetrievedPassage, answer_ranks, ranks_by_id, ranks_by_text
from mapping.sources.raw_records import (
    FAULTS,
    Json,
    RawRecord,
    digits_or_text,
    is_integer,
    list_at,
    objects_at,
    optional_objects,
    optional_text,
    text_at,
)
from mapping.sources.scratch import Joined

Kind = Literal["predictions", "retrieved"]
Role = Literal["gold", "predictions", "retrieved"]

KEYS: dict[Role, tuple[str, ...]] = {
    "gold": ("answer_list", "answers"),
    "predictions": ("predictions", "prediction"),
    "retrieved": ("ctxs",),
}
"""What a line of each file has beside its id: one of these."""

REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_answer": "two answers of one question have the same aid",
    "duplicate_question": "the qid was given before in this file",
    "no_answers": "a gold question without answers",
    "unknown_answer": "a piece of evidence whose pid belongs to none of the answers",
    "unknown_question": "predictions or passages for a question that is not among the gold ones",
}
"""Why a line is left out: reason -> meaning."""


class GoldEvidence(NamedTuple):
    """A passage that says that some of the answers are right."""

    passage: RetrievedPassage  # what it says, and where
    answers: tuple[int, ...]  # places in the list of answers, ascending


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with what it should be answered by."""

    answers: tuple[GoldNames, ...]  # at least one
    #: Each passage once, in the order of the answers; empty where it was not asked for.
    evidence: tuple[GoldEvidence, ...]
    is_single: bool = False  # it is asked for one answer and not for a list


def qid_of(record: Json) -> str:
    """The question's id; raises ``missing_field`` or ``wrong_type``."""
    return digits_or_text(record, "id" if "id" in record and "qid" not in record else "qid")


def is_line_of(record: Json, role: Role) -> bool:
    """Whether a record has the keys that a line of such a file needs."""
    return ("qid" in record or "id" in record) and any(key in record for key in KEYS[role])


def parse_gold(record: Json, match: EvidenceMatch | None, *, repeats: bool = False) -> GoldQuestion:
    """The question of a gold record; its evidence only where something is to ``match`` it by.

    With ``repeats``, as released, a passage that is given several times is several.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``, ``no_answers``, ``duplicate_answer``, ``unknown_answer``.
    """
    # Where there are mappings, the answers are the names of many answers, as readers are given them.
    if "answers" in record and "answer_list" not in record and "ans_mappings" not in record:
        return _parse_single(record)
    listed = objects_at(record, "answer_list")
    if not listed:
        raise RecordError("no_answers", "answer_list is empty")
    answers = tuple(
        GoldNames(text_at(answer, "answer_text"), strings_at(answer, "aliases") if "aliases" in answer else ())
        for answer in listed
    )
    owners: dict[str, int] = {}
    for number, one in enumerate(listed):
        aid = optional_text(one, "aid")
        if aid is not None and owners.setdefault(aid, number) != number:
            raise RecordError("duplicate_answer", aid)
    if match is None:
        return GoldQuestion(answers, ())
    # An empty list says of passages with ids that there are none; for the text there may still be proofs.
    has_contexts = "positive_ctxs" in record if match == "id" else bool(record.get("positive_ctxs"))
    found = _contexts(record, owners, match) if has_contexts else _proofs(listed, match)
    if repeats:
        return GoldQuestion(answers, tuple(GoldEvidence(passage, (number,)) for number, passage in found))
    passages: dict[RetrievedPassage, dict[int, None]] = {}
    for number, passage in found:
        passages.setdefault(passage, {})[number] = None
    return GoldQuestion(answers, tuple(GoldEvidence(one, tuple(sorted(numbers))) for one, numbers in passages.items()))


def _parse_single(record: Json) -> GoldQuestion:
    names = strings_at(record, "answers")
    if not names:
        raise RecordError("no_answers", "answers is empty")
    return GoldQuestion((GoldNames(names[0], names[1:]),), (), is_single=True)


def _contexts(record: Json, owners: dict[str, int], match: EvidenceMatch) -> Iterator[tuple[int, RetrievedPassage]]:
    for context in objects_at(record, "positive_ctxs"):
        pid = text_at(context, "pid")
        number = owners.get(pid.rpartition("__")[0])
        if number is None:
            raise RecordError("unknown_answer", f"pid {pid!r}")
        if match == "id":
            yield number, RetrievedPassage(digits_or_text(context, "chunk_id"), "", "")
        else:
            yield number, RetrievedPassage("", text_at(context, "title"), text_at(context, "text"))


def _proofs(listed: list[Json], match: EvidenceMatch) -> Iterator[tuple[int, RetrievedPassage]]:
    for number, one in enumerate(listed):
        for proof in optional_objects(one, "proof"):
            if match == "id":
                raise RecordError(
                    "missing_field", "positive_ctxs, which give evidence the id of a passage; match by text"
                )
            yield number, RetrievedPassage("", text_at(proof, "found_in_url"), text_at(proof, "proof_text"))


def pack_predictions(record: Json) -> bytes:
    """The predictions of a record in the form in which they are kept; raises as ``strings_at``."""
    if "prediction" in record and "predictions" not in record:
        return orjson.dumps((text_at(record, "prediction"),))
    return orjson.dumps(strings_at(record, "predictions"))


def pack_passages(record: Json, n_kept: int, *, with_ids: bool) -> bytes:
    """The best passages of a record in the form in which they are kept.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    passages = [
        (digits_or_text(context, "id") if with_ids else "", text_at(context, "title"), text_at(context, "text"))
        for context in objects_at(record, "ctxs")
    ]
    return orjson.dumps(passages[:n_kept])


def strings_at(record: Json, key: str) -> tuple[str, ...]:
    """A list of strings; numbers stand for their digits. Raises RecordError: ``missing_field``, ``wrong_type``."""
    values = []
    for value in list_at(record, key):
        if not (isinstance(value, str) or is_integer(value)):
            raise RecordError("wrong_type", f"{key!r}: expected strings, found {repr(value)[:80]}")
        values.append(str(value))
    return tuple(values)


@dataclass(slots=True)
class QampariScores:
    """Means over gold questions, under the names that the released script gives them; what is not given scores 0."""

    questions: int = 0
    #: Those of ``READER_METRICS``, over the questions with a list of answers; empty without predictions.
    reader: dict[str, Mean] = field(default_factory=dict)
    #: Share of the questions with a single answer that are answered exactly; None without predictions.
    em: Mean | None = None
    arecall: dict[int, Mean] = field(default_factory=dict)  # ARECALL@K by K; empty without retrieved passages
    erecall: dict[int, Mean] = field(default_factory=dict)  # likewise, over questions with evidence
    without_predictions: int = 0
    without_passages: int = 0
    without_evidence: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def has_lists(self) -> bool:
        """Whether a question has a list of answers; also where there is no question at all."""
        return self.em is None or self.questions != self.em.n or not self.questions

    def to_json(self) -> dict[str, Any]:
        """The scores as JSON, means alone."""
        value: dict[str, Any] = {"questions": self.questions}
        if self.reader and self.has_lists:
            value["reader"] = {name: mean.value for name, mean in self.reader.items()}
        if self.em is not None:
            if self.em.n:
                value["single_answer"] = {"questions": self.em.n, "em": self.em.value}
            value["without_predictions"] = self.without_predictions
        if self.arecall:
            value["arecall"] = {str(k): mean.value for k, mean in self.arecall.items()}
            value["erecall"] = {str(k): mean.value for k, mean in self.erecall.items()}
            value["without_passages"] = self.without_passages
            value["without_evidence"] = self.without_evidence
        value["rejected"] = rejected_json(self.rejected)
        return value


def scores_text(scores: QampariScores) -> str:
    """The scores for reading, in per cent."""
    lines = [f"questions            {scores.questions:>9,}"]
    if scores.em is not None:
        lines.append(f"without predictions  {scores.without_predictions:>9,}")
        if scores.has_lists:
            lines += [f"{READER_METRICS[name][0]:<21}{_percent(mean)}" for name, mean in scores.reader.items()]
        if scores.em.n:
            lines.append(f"of a single answer   {scores.em.n:>9,}")
            lines.append(f"{'exact match':<21}{_percent(scores.em)}")
    if scores.arecall:
        lines.append(f"without passages     {scores.without_passages:>9,}")
        lines.append(f"without evidence     {scores.without_evidence:>9,}")
        lines += [f"{f'ARECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.arecall.items()]
        lines += [f"{f'ERECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.erecall.items()]
    return "\n".join([*lines, *rejected_text(scores.rejected)])


def _percent(mean: Mean) -> str:
    return f"{'–':>9}" if mean.value is None else f"{100 * mean.value:>8.2f}%"


def evaluate_qampari(
    files: QampariFiles, options: QampariEvaluation, *, reject: Reject, scratch_folder: str | None = None
) -> QampariScores:
    """The scores of a file of predictions, of retrieved passages, or both.

    Every gold question counts, also one that the other files do not have. Memory holds one question.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold; nothing to evaluate.
    """
    if files.predictions is None and files.retrieved is None:
        raise SetupError("Give --predictions, --retrieved, or both.")
    with Joined(scratch_folder) as joined:
        evaluation = _Evaluation(files, options, joined, Lines(reject))
        evaluation.read_given()
        evaluation.read_gold()
        return evaluation.scores


class _Evaluation:
    def __init__(self, files: QampariFiles, options: QampariEvaluation, joined: Joined, lines: Lines) -> None:
        self._files = files
        self._options = options
        self._joined = joined
        self._lines = lines
        self.scores = QampariScores(rejected=lines.rejected)
        if files.predictions is not None:
            self.scores.reader = {name: Mean() for name in READER_METRICS}
            self.scores.em = Mean()
        if files.retrieved is not None:
            self.scores.arecall = {k: Mean() for k in options.ks}
            self.scores.erecall = {k: Mean() for k in options.ks}

    def read_given(self) -> None:
        """Puts predictions and passages aside by question."""
        n_kept, with_ids = self._options.ks[-1], self._options.evidence_match == "id"
        given: tuple[tuple[Kind, str | None, Callable[[Json], bytes]], ...] = (
            ("predictions", self._files.predictions, pack_predictions),
            ("retrieved", self._files.retrieved, lambda one: pack_passages(one, n_kept, with_ids=with_ids)),
        )
        for kind, path, pack in given:
            if path is None:
                continue
            for raw, record in self._records(path, kind):
                qid = ""
                try:
                    qid = qid_of(record)
                    self._joined.put(kind, qid, raw, pack(record))
                except RecordError as error:
                    self._lines.reject(raw, error, kind, qid)

    def read_gold(self) -> None:
        """Scores question after question, then reports what was given for none of them."""
        match = self._options.evidence_match if self._files.retrieved is not None else None
        repeats = "evidence_mean" in self._options.quirks
        for raw, record in self._records(self._files.gold, "gold"):
            qid = ""
            try:
                qid = qid_of(record)
                self._joined.open_question(qid)
                question = parse_gold(record, match, repeats=repeats)
            except RecordError as error:
                self._lines.reject(raw, error, "gold", qid)
                continue
            self.scores.questions += 1
            if self._files.predictions is not None:
                self._score_predictions(question, self._joined.get("predictions", qid))
            if self._files.retrieved is not None:
                self._score_passages(question, self._joined.get("retrieved", qid))
        kinds: tuple[Kind, ...] = ("predictions", "retrieved")
        for kind in kinds:
            for qid, raw in self._joined.without_question(kind):
                unknown = RecordError("unknown_question", f"{qid!r} is not in {self._files.gold}")
                self._lines.reject(raw, unknown, kind, qid)

    def _records(self, path: str, role: Role) -> Iterator[tuple[RawRecord, Json]]:
        expected = f"JSON Lines or an array with qid and {' or '.join(KEYS[role])}"
        return self._lines.read(path, role, lambda record: is_line_of(record, role), expected=expected)

    def _score_predictions(self, question: GoldQuestion, content: bytes | None) -> None:
        self.scores.without_predictions += content is None
        predictions: list[str] = [] if content is None else orjson.loads(content)
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
        passages = [] if content is None else [RetrievedPassage(*kept) for kept in orjson.loads(content)]
        ranks = answer_ranks(question.answers, passages, substring="substring" in self._options.quirks)
        shares = self._evidence_ranks(question, passages)
        self.scores.without_evidence += not shares
        for k in self._options.ks:
            self.scores.arecall[k].add(share_within(ranks, k))
            if shares:
                self.scores.erecall[k].add(sum(share_within(share, k) for share in shares) / len(shares))

    def _evidence_ranks(self, question: GoldQuestion, passages: Sequence[RetrievedPassage]) -> list[list[int | None]]:
        """The ranks of the evidence of each answer that has some; under the quirk of all evidence together."""
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
    """The share of ranks, at least one, that are among the first ``k``; None is no rank."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)
