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
extended
    ``answer_list``: list of ``{answer_text, aliases}``, further answers, as in the paper's ExtendedSet, with or without
    those of the gold file.

The kind of a question stands in the middle of its ``qid``.

Source: Amouyal et al., QAMPARI (2022), section 5. Where the released script differs from the paper or goes wrong, its
behaviour has a name in ``QAMPARI_QUIRKS`` and is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

import orjson

from kbsource.errors import RecordError, SetupError
from mapping.metrics.answers import READER_METRICS, GoldNames, answer_form, is_exact, score_list
from mapping.metrics.evaluation import (
    DECIMALS,
    EvidenceMatch,
    Lines,
    Mean,
    QampariEvaluation,
    QampariFiles,
    Reject,
    rejected_json,
    rejected_text,
)
from mapping.metrics.plausible import check_ids
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

Given = Literal["predictions", "retrieved", "extended"]
Role = Literal["gold"] | Given

KEYS: dict[Role, tuple[str, ...]] = {
    "gold": ("answer_list", "answers"),
    "predictions": ("predictions", "prediction"),
    "retrieved": ("ctxs",),
    "extended": ("answer_list",),
}
"""What a line of each file has beside its id: one of these."""

REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_answer": "two answers of one question have the same aid",
    "duplicate_question": "the qid was given before in this file",
    "no_answers": "a gold question without answers",
    "unknown_answer": "a piece of evidence whose pid belongs to none of the answers",
    "unknown_question": "predictions, passages or answers for a question that is not among the gold ones",
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
        if not (names := strings_at(record, "answers")):
            raise RecordError("no_answers", "answers is empty")
        return GoldQuestion((GoldNames(names[0], names[1:]),), (), is_single=True)
    listed = objects_at(record, "answer_list")
    if not listed:
        raise RecordError("no_answers", "answer_list is empty")
    answers = gold_names(listed)
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


def gold_names(listed: list[Json]) -> tuple[GoldNames, ...]:
    """What each answer of an ``answer_list`` is called; raises as ``strings_at``."""
    return tuple(
        GoldNames(text_at(answer, "answer_text"), strings_at(answer, "aliases") if "aliases" in answer else ())
        for answer in listed
    )


def kind_of(qid: str) -> str | None:
    """The kind of question that a qid names; None where it names none.

    >>> kind_of("7__wikidata_comp__dev"), kind_of("nq_7")
    ('wikidata_comp', None)
    """
    parts = qid.split("__")
    return parts[1] if len(parts) == 3 else None


def extended(question: GoldQuestion, further: Sequence[GoldNames]) -> GoldQuestion:
    """A question with further answers; one that has a name of an answer before it is that answer."""
    answers = list(question.answers)
    known = {form for answer in answers for form in _forms(answer)}
    for answer in further:
        forms = _forms(answer)
        if known.isdisjoint(forms):
            answers.append(answer)
        known |= forms
    return replace(question, answers=tuple(answers))


def _forms(answer: GoldNames) -> set[str]:
    return {answer_form(name) or name for name in (answer.text, *answer.aliases)}


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


def pack_answers(record: Json) -> bytes:
    """The answers of a record in the form in which they are kept; raises as ``strings_at``."""
    return orjson.dumps([tuple(one) for one in gold_names(objects_at(record, "answer_list"))])


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
class Means:
    """Means over some gold questions, under the names that the released script gives them; what was not given scores
    0."""

    questions: int
    #: Those of ``READER_METRICS``, over the questions with a list of answers; empty without predictions.
    reader: dict[str, Mean]
    arecall: dict[int, Mean]  # ARECALL@K by K; empty without retrieved passages
    erecall: dict[int, Mean]  # likewise, over questions with evidence

    def columns(self) -> Iterator[tuple[str, Mean]]:
        """The means with what they are called for reading."""
        yield from ((READER_METRICS[name][0], mean) for name, mean in self.reader.items())
        yield from ((f"ARECALL@{k}", mean) for k, mean in self.arecall.items())
        yield from ((f"ERECALL@{k}", mean) for k, mean in self.erecall.items())

    def to_json(self) -> dict[str, Any]:
        """The means as JSON."""
        value: dict[str, Any] = {"questions": self.questions}
        if self.reader:
            value["reader"] = {name: mean.value for name, mean in self.reader.items()}
        if self.arecall:
            value["arecall"] = {str(k): mean.value for k, mean in self.arecall.items()}
            value["erecall"] = {str(k): mean.value for k, mean in self.erecall.items()}
        return value


@dataclass(slots=True)
class QampariScores:
    """The scores of all gold questions, of those of each kind, and of those with further answers."""

    every: Means
    extended: tuple[Means, Means]  # without and with the further answers
    by_kind: dict[str, Means] = field(default_factory=dict)  # by the names of the kinds
    n_added: list[int] = field(default_factory=list)  # further answers of each question that may have some
    #: Share of the questions with a single answer that are answered exactly; None without predictions.
    em: Mean | None = None
    without_predictions: int = 0
    without_passages: int = 0
    without_evidence: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def has_lists(self) -> bool:
        """Whether a question has a list of answers; also where there is no question at all."""
        return self.em is None or self.every.questions != self.em.n or not self.every.questions

    def groups(self) -> dict[str, Means]:
        """The parts of the questions that there are, by what they are called."""
        parts = dict(sorted(self.by_kind.items()))
        return parts | (
            dict(zip(("extended, gold", "extended, all"), self.extended, strict=True)) if self.n_added else {}
        )

    def to_json(self) -> dict[str, Any]:
        """The scores as JSON, means alone."""
        value = self.every.to_json()
        if self.em is not None:
            if not self.has_lists:
                del value["reader"]
            if self.em.n:
                value["single_answer"] = {"questions": self.em.n, "em": self.em.value}
            value["without_predictions"] = self.without_predictions
        if self.every.arecall:
            value["without_passages"] = self.without_passages
            value["without_evidence"] = self.without_evidence
        if self.by_kind:
            value["by_kind"] = {kind: means.to_json() for kind, means in sorted(self.by_kind.items())}
        if self.n_added:
            value["extended_set"] = {
                "added_answers": {
                    "mean": round(fmean(self.n_added), DECIMALS),
                    "median": median(self.n_added),
                    "most": max(self.n_added),
                    "questions_without": self.n_added.count(0),
                    "questions_by_number": {str(n): self.n_added.count(n) for n in sorted(set(self.n_added))},
                },
                **dict(zip(("gold_answers", "all_answers"), (one.to_json() for one in self.extended), strict=True)),
            }
        value["rejected"] = rejected_json(self.rejected)
        return value


def scores_text(scores: QampariScores) -> str:
    """The scores for reading, in per cent."""
    every = scores.every
    lines = [f"questions            {every.questions:>9,}"]
    columns = dict(every.columns())
    if scores.em is not None:
        lines.append(f"without predictions  {scores.without_predictions:>9,}")
        if scores.has_lists:
            lines += [f"{label:<21}{_percent(columns.pop(label))}" for label, _ in READER_METRICS.values()]
        if scores.em.n:
            lines.append(f"of a single answer   {scores.em.n:>9,}")
            lines.append(f"{'exact match':<21}{_percent(scores.em)}")
    if every.arecall:
        lines.append(f"without passages     {scores.without_passages:>9,}")
        lines.append(f"without evidence     {scores.without_evidence:>9,}")
        lines += [f"{label:<21}{_percent(mean)}" for label, mean in columns.items() if "RECALL@" in label]
    if groups := scores.groups():
        labels = [label for label, _ in every.columns()]
        lines += ["", f"{'kind':<21}{'questions':>10}" + "".join(f"{label:>15}" for label in labels)]
        for name, means in groups.items():
            shown = "".join(f"{_percent(mean):>15}" for _, mean in means.columns())
            lines.append(f"{name:<21}{means.questions:>10,}{shown}")
    return "\n".join([*lines, *rejected_text(scores.rejected)])


def _percent(mean: Mean) -> str:
    return f"{'–':>9}" if mean.value is None else f"{100 * mean.value:>8.2f}%"


def evaluate_qampari(files: QampariFiles, options: QampariEvaluation, *, reject: Reject) -> QampariScores:
    """The scores of a file of predictions, of retrieved passages, or both.

    Every gold question counts, also one that the other files do not have. Memory holds one question.

    Raises:
        SetupError: a file cannot be read, or the first lines are not what it should hold; nothing to evaluate.
    """
    if files.predictions is None and files.retrieved is None:
        raise SetupError("Give --predictions, --retrieved, or both.")
    with Joined() as joined:
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
        self._first_id: list[str] = []
        self._n_common: Counter[str] = Counter()
        self.scores = QampariScores(
            self._means(),
            (self._means(), self._means()),
            em=None if files.predictions is None else Mean(),
            rejected=lines.rejected,
        )

    def _means(self) -> Means:
        ks = () if self._files.retrieved is None else self._options.ks
        names = () if self._files.predictions is None else READER_METRICS
        arecall, erecall = ({k: Mean() for k in ks} for _ in range(2))
        return Means(0, {name: Mean() for name in names}, arecall, erecall)

    def read_given(self) -> None:
        """Puts predictions, passages and further answers aside by question."""
        n_kept, with_ids = self._options.ks[-1], self._options.evidence_match == "id"
        given: tuple[tuple[Given, str | None, Callable[[Json], bytes]], ...] = (
            ("predictions", self._files.predictions, pack_predictions),
            ("retrieved", self._files.retrieved, lambda one: pack_passages(one, n_kept, with_ids=with_ids)),
            ("extended", self._files.extended, pack_answers),
        )
        for role, path, pack in given:
            if path is None:
                continue
            for raw, record in self._records(path, role):
                qid = ""
                try:
                    qid = qid_of(record)
                    self._joined.put(role, qid, raw, pack(record))
                except RecordError as error:
                    self._lines.reject(raw, error, role, qid)

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
            self._score(qid, question)
        roles: tuple[Given, ...] = ("predictions", "retrieved", "extended")
        paths = {"predictions": self._files.predictions, "retrieved": self._files.retrieved}
        for role, path in paths.items():
            if path is not None:
                unknown_ids = (qid for qid, _ in self._joined.without_question(role))
                own, n_common = iter(self._first_id), self._n_common[role]
                check_ids(self._files.gold, path, n_common=n_common, gold_ids=own, unknown=unknown_ids)
        for role in roles:
            for qid, raw in self._joined.without_question(role):
                unknown = RecordError("unknown_question", f"{qid!r} is not in {self._files.gold}")
                self._lines.reject(raw, unknown, role, qid)

    def _records(self, path: str, role: Role) -> Iterator[tuple[RawRecord, Json]]:
        expected = f"JSON Lines or an array with qid and {' or '.join(KEYS[role])}"
        return self._lines.read(path, role, lambda record: is_line_of(record, role), expected=expected)

    def _score(self, qid: str, question: GoldQuestion) -> None:
        scores, kind = self.scores, kind_of(qid)
        self._first_id = self._first_id or [qid]
        predictions, passages, further = (
            None if content is None else orjson.loads(content)
            for content in (self._joined.get(role, qid) for role in ("predictions", "retrieved", "extended"))
        )
        self._n_common.update(predictions=predictions is not None, retrieved=passages is not None)
        groups = [scores.every]
        if kind is not None:
            groups.append(scores.by_kind.setdefault(kind, self._means()))
        if further is not None:
            whole = extended(question, [GoldNames(text, tuple(aliases)) for text, aliases in further])
            scores.n_added.append(len(whole.answers) - len(question.answers))
            without, with_all = scores.extended
            groups.append(without)
            self._add(whole, predictions, passages, [with_all])
        self._add(question, predictions, passages, groups)
        if scores.em is not None:
            scores.without_predictions += predictions is None
            if question.is_single:
                scores.em.add(float(is_exact(predictions or (), question.answers[0])))
        if self._files.retrieved is not None:
            scores.without_passages += passages is None
            scores.without_evidence += not question.evidence

    def _add(self, question: GoldQuestion, predictions: Any, passages: Any, groups: Sequence[Means]) -> None:
        """Adds the scores of a question; what was not given for it is None."""
        for means in groups:
            means.questions += 1
        if self._files.predictions is not None and not question.is_single:
            for name, value in self._list_scores(question, predictions or ()):
                for means in groups:
                    means.reader[name].add(value)
        if self._files.retrieved is not None:
            found = [RetrievedPassage(*kept) for kept in passages or ()]
            ranks = answer_ranks(question.answers, found, substring="substring" in self._options.quirks)
            shares = self._evidence_ranks(question, found)
            for k, means in product(self._options.ks, groups):
                means.arecall[k].add(share_within(ranks, k))
                if shares:
                    means.erecall[k].add(sum(share_within(share, k) for share in shares) / len(shares))

    def _list_scores(self, question: GoldQuestion, predictions: Sequence[str]) -> Iterator[tuple[str, float]]:
        score = score_list(
            predictions,
            question.answers,
            matching=self._options.matching,
            raw_predictions="raw_predictions" in self._options.quirks,
            listed_names="listed_names" in self._options.quirks,
            last_owner="last_owner" in self._options.quirks,
        )
        return ((name, float(value_of(score))) for name, (_, value_of) in READER_METRICS.items())

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
