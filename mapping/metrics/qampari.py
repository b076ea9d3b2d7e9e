"""The metrics of QAMPARI: questions with many answers, each stated somewhere in Wikipedia.

The files are JSON Lines or one JSON array, plain or compressed. They are joined by ``qid``, or by ``id`` (string or
integer) if a record has no ``qid``. Other keys are ignored, so released files can be read unchanged.

- gold: ``answer_list``, at least one ``{answer_text, aliases, aid, proof}``. ``aliases`` and ``aid`` are optional.
  ``proof``, which only ERECALL@K reads, is an optional list of ``{proof_text, found_in_url}``. If the record has
  ``positive_ctxs`` (list of ``{pid, chunk_id, title, text}``), these are the evidence instead of the proofs; a ``pid``
  is the ``aid`` of its answer, two underscores and a number. A question with one answer, as in Natural Questions, has
  ``answers`` instead of ``answer_list``: at least one string, all of them names of that answer.
- predictions: ``predictions``, a list of strings, or ``prediction``, the only one. A gold file that also has this key
  is accepted.
- retrieved: ``ctxs``, a list of ``{id, title, text}``, best first; only ``--evidence-match id`` reads the ids.
- extended: ``answer_list``, a list of ``{answer_text, aliases}``: further answers, as in the paper's ExtendedSet, with
  or without the answers of the gold file.

The kind of a question is the middle part of its ``qid``.

Source: Amouyal et al., QAMPARI (2022), section 5. Where the released script differs from the paper or has errors, its
behaviour is named in ``QAMPARI_QUIRKS`` and is off by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import fmean, median
from typing import Any, NamedTuple

from kbsource.errors import RecordError, SetupError
from mapping.metrics.answers import READER_METRICS, GoldNames, answer_form, is_exact, score_list
from mapping.metrics.evaluation import EvidenceMatch, QampariEvaluation, QampariFiles
from mapping.metrics.evaluator import (
    DECIMALS,
    EvaluationResult,
    Metrics,
    Reject,
    Scores,
    SystemOutput,
    evaluated,
    percent,
)
from mapping.metrics.ranks import RetrievedPassage, answer_ranks, ranks_by_id, ranks_by_text
from mapping.sources.raw_records import (
    FAULTS,
    Json,
    digits_or_text,
    is_integer,
    list_at,
    objects_at,
    optional_objects,
    optional_text,
    readable_records,
    text_at,
)

EXACT = "exact match"
EXTENDED = ("extended, gold", "extended, all")
"""The questions with further answers, evaluated without and with these."""
_MOST_LOOKED_AT = 1_000
KEYS: dict[str, tuple[str, ...]] = {
    "gold": ("answer_list", "answers"),
    "predictions": ("predictions", "prediction"),
    "retrieved": ("ctxs",),
    "extended": ("answer_list",),
}
"""Keys of the lines of each file besides the id: one of these is required."""

REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_answer": "two answers to one question have the same aid",
    "duplicate_question": "the qid occurred before in this file",
    "no_answers": "a gold question without answers",
    "unknown_answer": "a piece of evidence whose pid belongs to none of the answers",
    "unknown_question": "predictions, passages or answers for a question that is not in the gold file",
}
"""Reasons for ignoring a line: reason -> meaning."""


class GoldEvidence(NamedTuple):
    """A passage stating that some of the answers are correct."""

    passage: RetrievedPassage  # text, title and id of the passage
    answers: tuple[int, ...]  # positions, in the list of answers, of the answers that the passage proves; ascending


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its expected answers."""

    answers: tuple[GoldNames, ...]  # the expected answers; at least one
    #: Distinct passages, in the order of the answers; empty if evidence is not needed.
    evidence: tuple[GoldEvidence, ...]
    is_single: bool = False  # true if the question asks for one answer, false if it asks for a list


def record_qid(record: Json) -> str:
    """Returns the question's id; raises ``missing_field`` or ``wrong_type``."""
    return digits_or_text(record, "id" if "id" in record and "qid" not in record else "qid")


def is_line_of(record: Json, role: str) -> bool:
    """Returns whether a record has the keys required in such a file."""
    return ("qid" in record or "id" in record) and any(key in record for key in KEYS[role])


def parse_qampari_gold(record: Json, match: EvidenceMatch | None, *, repeats: bool = False) -> GoldQuestion:
    """Parses a gold record; its evidence is read only if ``match`` is given.

    With ``repeats``, as in the released script, a passage that is listed several times counts several times.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``, ``no_answers``, ``duplicate_answer``, ``unknown_answer``.
    """
    # In records with mappings, "answers" contains the names of several answers, as used for training readers.
    if "answers" in record and "answer_list" not in record and "ans_mappings" not in record:
        if not (names := strings_at(record, "answers")):
            raise RecordError("no_answers", "answers is empty")
        return GoldQuestion((GoldNames(names[0], names[1:]),), (), is_single=True)
    listed = objects_at(record, "answer_list")
    if not listed:
        raise RecordError("no_answers", "answer_list is empty")
    answers = gold_names(listed)
    owners: dict[str, int] = {}
    for number, answer in enumerate(listed):
        aid = optional_text(answer, "aid")
        if aid is not None and owners.setdefault(aid, number) != number:
            raise RecordError("duplicate_answer", aid)
    if match is None:
        return GoldQuestion(answers, ())
    # If matched by id, an empty list means no evidence; if matched by text, there may still be proofs.
    has_contexts = "positive_ctxs" in record if match == "id" else bool(record.get("positive_ctxs"))
    found = _contexts(record, owners, match) if has_contexts else _proofs(listed, match)
    if repeats:
        return GoldQuestion(answers, tuple(GoldEvidence(passage, (number,)) for number, passage in found))
    passages: dict[RetrievedPassage, dict[int, None]] = {}
    for number, passage in found:
        passages.setdefault(passage, {})[number] = None
    return GoldQuestion(
        answers, tuple(GoldEvidence(passage, tuple(sorted(numbers))) for passage, numbers in passages.items())
    )


def gold_names(listed: list[Json]) -> tuple[GoldNames, ...]:
    """Returns the names of each answer in an ``answer_list``; raises as ``strings_at``."""
    return tuple(
        GoldNames(text_at(answer, "answer_text"), strings_at(answer, "aliases") if "aliases" in answer else ())
        for answer in listed
    )


def question_kind(qid: str) -> str | None:
    """Returns the kind of question that a qid names; None if it names none.

    >>> question_kind("7__wikidata_comp__dev"), question_kind("nq_7")
    ('wikidata_comp', None)
    """
    parts = qid.split("__")
    return parts[1] if len(parts) == 3 else None


def with_answers(question: GoldQuestion, further: Sequence[GoldNames]) -> GoldQuestion:
    """Returns a question with further answers added, except those that share a name with an earlier answer."""
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
    for number, answer in enumerate(listed):
        for proof in optional_objects(answer, "proof"):
            if match == "id":
                raise RecordError(
                    "missing_field", "positive_ctxs, which give evidence the id of a passage; match by text"
                )
            yield number, RetrievedPassage("", text_at(proof, "found_in_url"), text_at(proof, "proof_text"))


def kept_predictions(record: Json) -> Sequence[str]:
    """Returns the predictions of a record; raises as ``strings_at``."""
    if "prediction" in record and "predictions" not in record:
        return (text_at(record, "prediction"),)
    return strings_at(record, "predictions")


def kept_passages(record: Json, n_kept: int, *, with_ids: bool) -> Sequence[tuple[str, str, str]]:
    """Returns id, title and text of the best passages of a record.

    Raises:
        RecordError: ``missing_field``, ``wrong_type``.
    """
    passages = [
        (digits_or_text(context, "id") if with_ids else "", text_at(context, "title"), text_at(context, "text"))
        for context in objects_at(record, "ctxs")
    ]
    return passages[:n_kept]


def strings_at(record: Json, key: str) -> tuple[str, ...]:
    """Returns a list of strings; integers are converted to their digits. Raises RecordError: ``missing_field``,
    ``wrong_type``."""
    values = []
    for value in list_at(record, key):
        if not (isinstance(value, str) or is_integer(value)):
            raise RecordError("wrong_type", f"{key!r}: expected strings, found {repr(value)[:80]}")
        values.append(str(value))
    return tuple(values)


@dataclass(slots=True)
class QampariScores(Scores):
    """Scores over all gold questions, over each kind of question, and over questions with further answers. Missing
    output scores 0.

    Columns have readable names, followed by the name of the part for a part of the questions: ``F1``, ``ARECALL@10``,
    ``F1 wikidata_comp``, ``F1 extended, all``.
    """

    has_predictions: bool = False
    ks: tuple[int, ...] = ()  # ranks for passages; empty without retrieved passages
    n_questions: Counter[str] = field(
        default_factory=Counter
    )  # number of questions by part; the part "" has all questions
    n_single: int = 0  # questions that ask for one answer
    n_added: list[int] = field(default_factory=list)  # number of further answers of each question that may have some
    without_predictions: int = 0
    without_passages: int = 0
    without_evidence: int = 0

    @property
    def has_lists(self) -> bool:
        """True if any question has a list of answers; also if there are no questions."""
        return self.n_questions[""] != self.n_single or not self.n_questions[""]

    def parts(self) -> list[str]:
        """Returns the parts of the questions: kinds, and those with further answers."""
        return [
            *sorted(part for part in self.n_questions if part not in ("", *EXTENDED)),
            *(EXTENDED if self.n_added else ()),
        ]

    def labels(self) -> Iterator[str]:
        """Lists the names of the means over questions with lists of answers, and over passages."""
        if self.has_predictions:
            yield from (label for label, _ in READER_METRICS.values())
        yield from (f"{name}@{k}" for name in ("ARECALL", "ERECALL") for k in self.ks)

    def to_json(self) -> dict[str, Any]:
        """Returns the scores as JSON, only means."""
        value = self._part_json("")
        if self.has_predictions:
            if not self.has_lists:
                del value["reader"]
            if self.n_single:
                value["single_answer"] = {"questions": self.n_single, "em": self.columns[EXACT].rounded}
            value["without_predictions"] = self.without_predictions
        if self.ks:
            value["without_passages"] = self.without_passages
            value["without_evidence"] = self.without_evidence
        if kinds := [part for part in self.parts() if part not in EXTENDED]:
            value["by_kind"] = {kind: self._part_json(kind) for kind in kinds}
        if self.n_added:
            value["extended_set"] = {
                "added_answers": {
                    "mean": round(fmean(self.n_added), DECIMALS),
                    "median": median(self.n_added),
                    "most": max(self.n_added),
                    "questions_without": self.n_added.count(0),
                    "questions_by_number": {str(n): self.n_added.count(n) for n in sorted(set(self.n_added))},
                },
                **dict(zip(("gold_answers", "all_answers"), map(self._part_json, EXTENDED), strict=True)),
            }
        return value

    def _part_json(self, part: str) -> dict[str, Any]:
        """Returns the means over a part of the questions, under the names used by the released script."""
        value: dict[str, Any] = {"questions": self.n_questions[part]}
        if self.has_predictions:
            value["reader"] = {name: self._rounded(label, part) for name, (label, _) in READER_METRICS.items()}
        for name in ("arecall", "erecall") if self.ks else ():
            value[name] = {str(k): self._rounded(f"{name.upper()}@{k}", part) for k in self.ks}
        return value

    def _rounded(self, label: str, part: str) -> float | None:
        column = self.columns.get(_name(label, part))
        return None if column is None else column.rounded

    def counts(self) -> Iterator[tuple[str, int]]:
        """Lists the number of questions, and how many of them are missing in each file."""
        yield "questions", self.n_questions[""]
        if self.has_predictions:
            yield "without predictions", self.without_predictions
            if self.n_single:
                yield "of a single answer", self.n_single
        if self.ks:
            yield "without passages", self.without_passages
            yield "without evidence", self.without_evidence

    def groups(self) -> Iterator[Sequence[str]]:
        """Lists the metrics over all questions."""
        if self.has_predictions:
            yield [label for label, _ in READER_METRICS.values() if self.has_lists] + [EXACT] * bool(self.n_single)
        if self.ks:
            yield [label for label in self.labels() if "RECALL@" in label]

    def table(self) -> Iterator[str]:
        """Prints a table of the subsets of the questions."""
        labels = [*self.labels()]
        if parts := self.parts():
            yield f"{'kind':<21}{'questions':>10}" + "".join(f"{label:>15}" for label in labels)
        for part in parts:
            shown = "".join(f"{percent(self.mean(_name(label, part))):>15}" for label in labels)
            yield f"{part:<21}{self.n_questions[part]:>10,}{shown}"


def _name(label: str, part: str) -> str:
    """Returns the name of a column.

    >>> _name("F1", ""), _name("F1", "wikidata_comp")
    ('F1', 'F1 wikidata_comp')
    """
    return f"{label} {part}".rstrip()


def evaluate_qampari(
    files: QampariFiles, options: QampariEvaluation, *, reject: Reject
) -> EvaluationResult[QampariScores]:
    """Returns the scores of a file of predictions, of retrieved passages, or both; or a comparison of two systems.

    Every gold question counts, including those missing in the other files.

    Raises:
        SetupError: as ``evaluate``; nothing to evaluate.
    """
    if files.predictions is None and files.retrieved is None:
        raise SetupError("Give --predictions, --retrieved, or both.")
    given = {
        role: path
        for role, path in (("predictions", files.predictions), ("retrieved", files.retrieved))
        if path is not None
    }
    first = QampariMetrics(files, options, given, next(iter(given.values())))
    second = None
    if files.compare is not None:
        second = QampariMetrics(files, options, _roles_of(files.compare), files.compare)
    return evaluated(first, second, resamples=options.resamples, reject=reject)


def _roles_of(path: str) -> dict[str, str]:
    """Returns the roles of a file, by the keys of its first records: predictions, retrieved passages, or both."""
    keys = {key for record in islice(readable_records(path), _MOST_LOOKED_AT) for key in record}
    found = {role: path for role in ("predictions", "retrieved") if keys & {*KEYS[role]}}
    return found or {"predictions": path}


class QampariMetrics(Metrics[GoldQuestion, QampariScores]):
    """Evaluates lists of answers, and passages that contain them."""

    family = "qampari"

    def __init__(self, files: QampariFiles, options: QampariEvaluation, given: Mapping[str, str], path: str) -> None:
        """Initialises the metrics.

        Args:
            given: a system's output by role, ``predictions``, ``retrieved`` or both, as paths.
            path: the name of the system in messages.
        """
        ks = tuple(options.ks) if "retrieved" in given else ()
        scores = QampariScores(path, has_predictions="predictions" in given, ks=ks)
        self._predicted = tuple(given)
        further = {} if files.extended is None else {"extended": files.extended}
        super().__init__(files.gold, {**given, **further}, scores)
        self._options = options

    @property
    def predicted(self) -> Sequence[str]:
        return self._predicted

    def expected(self, role: str) -> str:
        return f"JSON Lines or an array with qid and {' or '.join(KEYS[role])}"

    def fits(self, role: str, record: Json) -> bool:
        return is_line_of(record, role)

    def id_of(self, record: Json) -> str:
        return record_qid(record)

    def stored_values(self, role: str, record: Json) -> Any:
        if role == "predictions":
            return kept_predictions(record)
        if role == "extended":
            return [tuple(gold_name) for gold_name in gold_names(objects_at(record, "answer_list"))]
        return kept_passages(record, self._options.ks[-1], with_ids=self._options.evidence_match == "id")

    def parse(self, record: Json) -> GoldQuestion:
        match = self._options.evidence_match if self.scores.ks else None
        return parse_qampari_gold(record, match, repeats="evidence_mean" in self._options.quirks)

    def score(self, ids: Sequence[str], question: GoldQuestion, given: SystemOutput) -> None:
        scores, (qid,) = self.scores, ids
        predictions, passages, further = (
            given.get(role, qid) if role in self.given else None for role in ("predictions", "retrieved", "extended")
        )
        item, parts = scores.new_item(qid), [""]
        if (kind := question_kind(qid)) is not None:
            parts.append(kind)
        if further is not None:
            whole = with_answers(question, [GoldNames(text, tuple(aliases)) for text, aliases in further])
            scores.n_added.append(len(whole.answers) - len(question.answers))
            parts.append(EXTENDED[0])
            self._add(item, whole, predictions, passages, [EXTENDED[1]])
        self._add(item, question, predictions, passages, parts)
        if scores.has_predictions:
            scores.without_predictions += predictions is None
            if question.is_single:
                scores.n_single += 1
                scores.columns[EXACT].add(item, float(is_exact(predictions or (), question.answers[0])))
        if scores.ks:
            scores.without_passages += passages is None
            scores.without_evidence += not question.evidence

    def _add(self, item: int, question: GoldQuestion, predictions: Any, passages: Any, parts: Sequence[str]) -> None:
        """Adds the scores of a question to subsets of the questions; None means missing output."""
        scores = self.scores
        scores.n_questions.update(parts)
        values: list[tuple[str, float]] = []
        if scores.has_predictions and not question.is_single:
            values += self._list_scores(question, predictions or ())
        if scores.ks:
            found = [RetrievedPassage(*kept) for kept in passages or ()]
            ranks = answer_ranks(question.answers, found, substring="substring" in self._options.quirks)
            shares = self._evidence_ranks(question, found)
            for k in scores.ks:
                values.append((f"ARECALL@{k}", share_within(ranks, k)))
                if shares:
                    values.append((f"ERECALL@{k}", sum(share_within(share, k) for share in shares) / len(shares)))
        for name, value in values:
            for part in parts:
                scores.columns[_name(name, part)].add(item, value)

    def _list_scores(self, question: GoldQuestion, predictions: Sequence[str]) -> Iterator[tuple[str, float]]:
        score = score_list(
            predictions,
            question.answers,
            matching=self._options.matching,
            raw_predictions="raw_predictions" in self._options.quirks,
            listed_names="listed_names" in self._options.quirks,
            last_owner="last_owner" in self._options.quirks,
        )
        return ((label, float(value_of(score))) for label, value_of in READER_METRICS.values())

    def _evidence_ranks(self, question: GoldQuestion, passages: Sequence[RetrievedPassage]) -> list[list[int | None]]:
        """Returns the ranks of the evidence, in a list for each answer that has evidence; with the quirk, all in one
        list."""
        evidence = [piece.passage for piece in question.evidence]
        if self._options.evidence_match == "id":
            ranks = ranks_by_id(evidence, passages)
        else:
            ranks = ranks_by_text(evidence, passages, partial_runs="partial_runs" in self._options.quirks)
        if "evidence_mean" in self._options.quirks:
            return [ranks] if ranks else []
        of_answers: list[list[int | None]] = [[] for _ in question.answers]
        for piece, rank in zip(question.evidence, ranks, strict=True):
            for number in piece.answers:
                of_answers[number].append(rank)
        return [answer for answer in of_answers if answer]


def share_within(ranks: Sequence[int | None], k: int) -> float:
    """Returns the share of ranks, at least one, that are among the first ``k``; None means not retrieved."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)
