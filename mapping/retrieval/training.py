"""Training examples for retrievers and readers: the passages and targets of a question, and the line of each form.

| form | an example | its passages |
|---|---|---|
| dpr | a question | evidence as positives; the best passages of other pages as hard negatives |
| seq2seq | a question and one of its answers | the first retrieved passages, put before the input |
| fid | a question | the first retrieved passages; the target is the first answer, for QAMPARI all answers |
| pig | a question and one passage | evidence, with its answers as target; the best passage without an answer |
| fact-checking | a claim and one passage | evidence; neutral passages of other pages, and of the same pages |
| amber | a question and one passage | evidence; a passage of the best page that is not gold |

Evidence is a passage that contains a part of a provenance span, as in ``kbsource beir``, or the sentence of a QAMPARI
proof. Random draws are ordered by SHA-256 over the names of dataset and question.

Sources: Karpukhin et al., Dense Passage Retrieval (2020); Maillard et al., Multi-task retrieval for
knowledge-intensive tasks (2021); Petroni et al., KILT (2021), section 5; Izacard and Grave (2021); Amouyal et al.,
QAMPARI (2022), section 4; Chen et al., AmbER sets (2021), section 4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from heapq import nsmallest
from itertools import count, islice
from typing import Annotated, Any, Literal, NamedTuple, get_args

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError
from kbsource.rows import Int32, Row
from mapping.contexts.gold import RankedPassage
from mapping.contexts.records import SEPARATOR, NameFinder, hard_negatives
from mapping.options import AtLeast1, Checked
from mapping.passages.forms import json_line
from mapping.retrieval.queries import Hit, Query
from mapping.sources.source import Split

TrainingForm = Literal["dpr", "seq2seq", "fid", "pig", "fact-checking", "amber"]
FORMS: tuple[TrainingForm, ...] = get_args(TrainingForm)
NOT_RELEVANT, NEUTRAL, NONE = "Not Relevant", "NEUTRAL", "none"
"""Outputs of readers for a passage without an answer: QAMPARI's generator, a fact checker, slot filling of AmbER."""
LABELS = frozenset(("SUPPORTS", "REFUTES"))
POSITIVE, NEGATIVE, CONTEXT = "positive", "negative", "context"
ROLES = (POSITIVE, NEGATIVE, CONTEXT)
TRAINING_REASONS: dict[str, str] = {
    "no_evidence": "no passage contains a part of the question's provenance",
    "no_answers": "the question has no answer, so there is no target",
    "no_label": "the answer is not SUPPORTS or REFUTES, so the question is not a claim",
    "other_task": "AmbER has no reader for the task. Its readers answer questions, check claims and fill slots",
    "no_answer_span": "no passage of the evidence contains an answer",
    "not_ranked": "the run has no results for the question",
    "duplicate_question": "the run contains the question more than once",
    "unknown_question": "the run has passages for a question that is not in the dataset",
}
"""Reasons why a question has no example, or a line of a run is skipped: reason -> meaning."""


class TrainingPassage(Row):
    """A passage of an example."""

    role: Annotated[str, f"{', '.join(ROLES[:-1])} or {ROLES[-1]}"]
    passage_id: Annotated[str, "id of the passage in the corpus"]
    title: Annotated[str, "title of its page"]
    text: Annotated[str, "text of the passage"]
    score: Annotated[float | None, "score in the run; null if the run does not have the passage"]


class TrainingExample(Row):
    """One row per training example, by dataset and question."""

    dataset: Annotated[str, "name of the dataset with its split"]
    number: Annotated[Int32, "number of the example in its dataset, from 0"]
    query_id: Annotated[str, "id of the question"]
    input: Annotated[str, "input of the record, with its tags such as [SEP]"]
    answers: Annotated[tuple[str, ...], "answers of the record and their aliases"]
    target: Annotated[
        str | None,
        "text that a model should write, or the label; null for retrievers, and if there is no answer",
    ]
    answer_start: Annotated[
        Int32 | None,
        "for extractive readers, offset in characters at which the target starts in the text of the first passage",
    ]
    passages: Annotated[
        tuple[TrainingPassage, ...],
        "passages of the example: positives first, and in each group the best first",
    ]


class TrainingBatch(Row):
    """One row per batch of an epoch, in the order of training."""

    epoch: Annotated[Int32, "number of the epoch, from 0"]
    batch: Annotated[Int32, "number of the batch in its epoch, from 0"]
    dataset: Annotated[str, "dataset of all examples of the batch"]
    examples: Annotated[tuple[Int32, ...], "numbers of the examples in the dataset"]


@dataclass(frozen=True, slots=True)
class TrainingOptions(Checked):
    """Options for making examples."""

    form: Annotated[TrainingForm, Parameter("--for")]
    """The model that is trained: dpr (retriever), seq2seq (BART and T5, with passages or closed book), fid
    (Fusion-in-Decoder), pig (QAMPARI's passage-independent generator), fact-checking (classifier), amber (the readers
    that AmbER evaluates)."""
    _: KW_ONLY
    top: AtLeast1 | None = None
    """For seq2seq and fid: number of retrieved passages in an example; by default 3 for seq2seq and 100 for fid."""
    negatives: AtLeast1 | None = None
    """For dpr, pig, fact-checking and amber: number of negative passages of a question; by default 1. fact-checking has
    two kinds of negatives, and this number of each."""
    examples_per_task: AtLeast1 | None = None
    """For dpr: examples that each dataset has in an epoch, drawn again if it has fewer; by default 150,000."""
    epochs: AtLeast1 | None = None
    """For dpr: epochs whose batches are written; by default 1."""
    batch_size: AtLeast1 | None = None
    """For dpr: examples in a batch, all from the same dataset; by default 128."""
    split: Split = "train"
    """Split of a QAMPARI release; for any other dataset, its folder determines the split."""

    def __post_init__(self) -> None:
        """Raises SetupError for an option that the form does not use."""
        Checked.__post_init__(self)
        for name in ("top", "negatives", "examples_per_task", "epochs", "batch_size"):
            if getattr(self, name) is not None and name not in _DEFAULTS[self.form]:
                option = name.replace("_", "-")
                raise SetupError(f"--for {self.form} does not use --{option}; leave it out.")

    def value(self, name: str) -> int:
        """Returns the value of a numeric option, or its default for the form; 0 if the form does not use it."""
        given: int | None = getattr(self, name)
        return _DEFAULTS[self.form].get(name, 0) if given is None else given

    @property
    def n_ranked(self) -> int | None:
        """Returns the number of first passages of a run to use; None for all."""
        return self.value("top") or None

    def facts(self) -> dict[str, Any]:
        """Returns all values, including defaults, for a manifest."""
        numbers = {name: self.value(name) for name in _DEFAULTS[self.form]}
        return {"form": self.form, "split": self.split, **numbers}


_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "dpr": {"negatives": 1, "examples_per_task": 150_000, "epochs": 1, "batch_size": 128},
    "seq2seq": {"top": 3},
    "fid": {"top": 100},
    "pig": {"negatives": 1},
    "fact-checking": {"negatives": 1},
    "amber": {"negatives": 1},
}


class TrainingQuery(NamedTuple):
    """A question of a dataset with the passages for its examples."""

    dataset: str
    query: Query
    evidence: Sequence[Hit]  # passages with evidence, in corpus order; for QAMPARI in the order of the proofs
    ranked: Sequence[Hit] = ()  # retrieved passages, best first
    others: Sequence[Hit] = ()  # passages of the provenance pages that are not evidence
    targets: Mapping[str, str] = {}  # answers proved by QAMPARI's evidence, by passage
    target: str | None = None  # all answers of a QAMPARI question

    def negatives(self, n_passages: int) -> list[Hit]:
        """Returns the best-ranked passages of non-gold pages that mention no answer."""
        names = NameFinder(answer for answer in self.query.answers if answer not in LABELS)
        return self._without_answers((hit for hit in self.ranked if not self.query.has_gold(hit)), names, n_passages)

    def irrelevant(self, n_passages: int) -> list[Hit]:
        """Returns the best-ranked passages that are not evidence and mention no answer."""
        evidence = {hit.document for hit in self.evidence}
        found = (hit for hit in self.ranked if hit.document not in evidence)
        return self._without_answers(found, NameFinder(self.query.answers), n_passages)

    def _without_answers(self, hits: Iterable[Hit], names: NameFinder, n_passages: int) -> list[Hit]:
        by_id = {hit.document: hit for hit in reversed([*hits])}
        ranked = [RankedPassage(hit.document, hit.title, hit.text, hit.score) for hit in reversed(by_id.values())]
        found = hard_negatives(ranked, names, gold_ids=(), most=n_passages)
        return [by_id[hit.passage_id] for hit in found]

    def random_others(self, n_passages: int) -> list[Hit]:
        """Returns passages of the provenance pages that are not evidence, the first ones in hash order."""
        names = self.dataset, self.query.query_id
        return sorted(self.others, key=lambda hit: digest(*names, hit.document))[:n_passages]


def digest(*names: object) -> bytes:
    """Returns the SHA-256 of names, which puts passages and examples in a random order.

    >>> digest("nq-train", 7) == digest("nq-train", "7") != digest("nq-train", 8)
    True
    """
    return hashlib.sha256("\0".join(map(str, names)).encode()).digest()


class _Draft(NamedTuple):
    """An example without the data of its dataset and question."""

    target: str | None = None
    passages: Sequence[TrainingPassage] = ()
    answer_start: int | None = None


def examples_of(source: TrainingQuery, options: TrainingOptions) -> list[TrainingExample]:
    """Returns the examples of a question, numbered from 0.

    Raises:
        RecordError: for a reason of ``TRAINING_REASONS``.
    """
    query = source.query
    return [
        TrainingExample(
            source.dataset,
            number,
            query.query_id,
            query.input,
            query.answers,
            draft.target,
            draft.answer_start,
            tuple(draft.passages),
        )
        for number, draft in enumerate(_MAKERS[options.form](source, options))
    ]


def _for_dpr(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    _check(source)
    negatives = source.negatives(options.value("negatives"))
    yield _Draft(passages=[*_passages(POSITIVE, source.evidence, source), *_passages(NEGATIVE, negatives, source)])


def _for_seq2seq(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    _check(source, needs_evidence=False)
    contexts = _passages(CONTEXT, source.ranked[: options.value("top")], source)
    for answer in [source.target] if source.target is not None else source.query.answers:
        yield _Draft(answer, contexts)


def _for_fid(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    _check(source, needs_evidence=False)
    if not source.ranked:
        raise RecordError("not_ranked", source.query.query_id)
    target = source.query.answers[0] if source.target is None else source.target
    yield _Draft(target, _passages(CONTEXT, source.ranked[: options.value("top")], source))


def _for_pig(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    _check(source)
    for hit in source.evidence:
        target = source.targets.get(hit.document) or _named_answer(source.query.answers, hit)
        yield _Draft(target, _passages(POSITIVE, [hit], source))
    for hit in source.irrelevant(options.value("negatives")):
        yield _Draft(NOT_RELEVANT, _passages(NEGATIVE, [hit], source))


def _named_answer(answers: Sequence[str], hit: Hit) -> str:
    """Returns the first answer that a passage mentions; the first of all answers if it mentions none."""
    named = (answer for answer in answers if NameFinder([answer], most_edits=0).is_in(hit.title, hit.text))
    return next(named, answers[0])


def _for_fact_checking(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    label = _label(source)
    for hit in source.evidence:
        yield _Draft(label, _passages(POSITIVE, [hit], source))
    n_negatives = options.value("negatives")
    for hit in [*source.negatives(n_negatives), *source.random_others(n_negatives)]:
        yield _Draft(NEUTRAL, _passages(NEGATIVE, [hit], source))


def _for_amber(source: TrainingQuery, options: TrainingOptions) -> Iterator[_Draft]:
    task = task_of(source.query)
    if task == "entity linking":
        raise RecordError("other_task", f"{source.query.query_id}: {task}")
    if task == "question answering":
        yield from _spans(source)
        target: str | None = None
    else:
        if task == "fact checking":
            answer, target = _label(source), NEUTRAL
        else:
            _check(source)
            answer, target = source.query.answers[0], NONE
        for hit in source.evidence:
            yield _Draft(answer, _passages(POSITIVE, [hit], source))
    pages: dict[str, Hit] = {}
    for hit in source.ranked:
        if not source.query.has_gold(hit):
            pages.setdefault(hit.page_id, hit)
    for hit in islice(pages.values(), options.value("negatives")):
        yield _Draft(target, _passages(NEGATIVE, [hit], source))


def _spans(source: TrainingQuery) -> list[_Draft]:
    """Returns an example for each evidence passage that contains an answer verbatim."""
    _check(source)
    drafts = []
    for hit in source.evidence:
        answer = next((name for name in source.query.answers if name and name in hit.text), None)
        if answer is not None:
            drafts.append(_Draft(answer, _passages(POSITIVE, [hit], source), hit.text.index(answer)))
    if not drafts:
        raise RecordError("no_answer_span", source.query.query_id)
    return drafts


def task_of(query: Query) -> str:
    """Returns the task of a question, determined from its input and answers.

    >>> [task_of(query) for query in (Query("1", "a", ("REFUTES",)), Query("2", "Ada [SEP] spouse", subject="Ada"))]
    ['fact checking', 'slot filling']
    """
    if query.answers and LABELS.issuperset(query.answers):
        return "fact checking"
    if query.is_mention:
        return "entity linking"
    return "slot filling" if query.subject else "question answering"


def _label(source: TrainingQuery) -> str:
    _check(source)
    if task_of(source.query) != "fact checking":
        raise RecordError("no_label", source.query.query_id)
    return source.query.answers[0]


def _check(source: TrainingQuery, *, needs_evidence: bool = True) -> None:
    if not source.query.answers:
        raise RecordError("no_answers", source.query.query_id)
    if needs_evidence and not source.evidence:
        raise RecordError("no_evidence", source.query.query_id)


def _passages(role: str, hits: Iterable[Hit], source: TrainingQuery) -> list[TrainingPassage]:
    scores = {hit.document: hit.score for hit in reversed(source.ranked)}
    return [TrainingPassage(role, hit.document, hit.title, hit.text, scores.get(hit.document)) for hit in hits]


_MAKERS: Mapping[str, Callable[[TrainingQuery, TrainingOptions], Iterator[_Draft]]] = {
    "dpr": _for_dpr,
    "seq2seq": _for_seq2seq,
    "fid": _for_fid,
    "pig": _for_pig,
    "fact-checking": _for_fact_checking,
    "amber": _for_amber,
}


def line_of(example: TrainingExample, form: TrainingForm) -> bytes:
    """Returns an example as a line of the form."""
    if form == "dpr":
        return json_line(
            {
                "dataset": example.dataset,
                "id": example.query_id,
                "question": example.input,
                "answers": example.answers,
                "positive_ctxs": _contexts(example, POSITIVE, "passage_id"),
                "negative_ctxs": [],
                "hard_negative_ctxs": _contexts(example, NEGATIVE, "passage_id"),
            }
        )
    if form in ("fid", "pig"):
        names = {"id": example.query_id, "question": example.input, "target": example.target}
        return json_line({**names, "answers": example.answers, "ctxs": _contexts(example, None, "id")})
    query = Query(example.query_id, example.input, example.answers)
    if form == "fact-checking" or (form == "amber" and task_of(query) == "fact checking"):
        (passage,) = example.passages
        place = {"id": _pair_id(example), "claim": example.input, "title": passage.title, "text": passage.text}
        return json_line({**place, "label": example.target})
    if form == "amber" and (example.target is None or example.answer_start is not None):
        (passage,) = example.passages
        texts, starts = ([], []) if example.target is None else ([example.target], [example.answer_start])
        return json_line(
            {
                "id": _pair_id(example),
                "title": passage.title,
                "question": example.input,
                "context": passage.text,
                "answers": {"text": texts, "answer_start": starts},
            }
        )
    return json_line(
        {"id": example.query_id, "input": example.input, "source": _source(example, query), "target": example.target}
    )


def _contexts(example: TrainingExample, role: str | None, id_key: str) -> list[dict[str, Any]]:
    return [
        {id_key: passage.passage_id, "title": passage.title, "text": passage.text, "score": passage.score or 0.0}
        for passage in example.passages
        if role in (None, passage.role)
    ]


def _pair_id(example: TrainingExample) -> str:
    return f"{example.query_id}@{example.passages[0].passage_id}"


def _source(example: TrainingExample, query: Query) -> str:
    """Returns the prompt of ``kbsource read`` for an example: with passages, or closed book."""
    from mapping.retrieval.reader import read_prompt  # needs the dependencies of models

    hits = [
        Hit(passage.passage_id, passage.passage_id.partition("__")[0], passage.title, passage.text)
        for passage in example.passages
    ]
    return read_prompt(None, "read" if hits else "closed").text(query, hits)


def batches_of(sizes: Mapping[str, int], options: TrainingOptions) -> Iterator[TrainingBatch]:
    """Draws the batches of all epochs. Each batch has one dataset; datasets take turns. Datasets without examples are
    skipped.

    Args:
        sizes: examples of each dataset, in the order of the datasets.
    """
    size = options.value("batch_size")
    for epoch in range(options.value("epochs")):
        drawn = {
            name: _draw(name, n_examples, epoch, options.value("examples_per_task"))
            for name, n_examples in sizes.items()
            if n_examples
        }
        numbers = count()
        for start in range(0, options.value("examples_per_task") if drawn else 0, size):
            for name, examples in drawn.items():
                yield TrainingBatch(epoch, next(numbers), name, tuple(examples[start : start + size]))


def _draw(name: str, n_examples: int, epoch: int, n_drawn: int) -> list[int]:
    """Returns a number of examples of a dataset in hash order. No example is repeated before all have been used."""
    drawn: list[int] = []
    for cycle in count():
        if len(drawn) >= n_drawn:
            return drawn[:n_drawn]
        numbers = range(n_examples)
        drawn += nsmallest(n_drawn - len(drawn), numbers, key=lambda number: digest(name, epoch, cycle, number))
    raise AssertionError  # count() has no end


def answer_targets(answers: Iterable[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """Returns the answers that the evidence of a list question proves, separated by ``#``, by passage.

    Args:
        answers: each with the passages that prove it.

    >>> answer_targets([("Sorn", ["3__1"]), ("Tey", ["3__1", "5__0"]), ("Tey", ["5__0"])])
    {'3__1': 'Sorn#Tey', '5__0': 'Tey'}
    """
    proven: dict[str, dict[str, None]] = {}
    for answer, passages in answers:
        for passage in passages:
            proven.setdefault(passage, {})[answer] = None
    return {passage: SEPARATOR.join(names) for passage, names in proven.items()}
