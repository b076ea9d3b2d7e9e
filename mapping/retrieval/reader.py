"""Converts questions and passages to prompts for a generative model, and its output to predictions.

The forms are:

- ``closed``: only the question.
- ``read``: one prompt with as many passages as fit.
- ``fid``: Fusion-in-Decoder. Each passage is encoded separately with the question, and all are decoded together.
- ``pig``: QAMPARI's passage-independent generator, which answers from each passage separately. A list of answers is the
  union; a single answer is the one given for most passages, and these come first in its provenance.
- ``best``: the most probable answer from a single passage, as in AmbER's slot filling. Passages are ordered by the
  scores of their answers, those without an answer last.
- ``rag-sequence`` and ``rag-token``: the answer that is most probable given all passages together. The probability of a
  passage is its share in the softmax of the retrieval scores; it weights the model's output for that passage, as a
  whole or token by token.

Sources: Petroni et al., KILT (2021), section 5; Izacard and Grave, Leveraging Passage Retrieval with Generative Models
for Open Domain Question Answering (2021); Lewis et al., Retrieval-Augmented Generation for Knowledge-Intensive NLP
Tasks (2020); Amouyal et al., QAMPARI (2022), section 4; Chen et al., AmbER sets (2021), section 4.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import chain
from math import exp, fsum, isfinite, log
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from kbsource.documents import read_toml
from kbsource.errors import RecordError, SetupError
from kbsource.identity import stable_sha256
from mapping.contexts.records import SEPARATOR
from mapping.metrics.answers import NOT_RELEVANT, answer_form
from mapping.metrics.qampari import strings_at
from mapping.passages.forms import json_line
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.runs import prediction_line, provenance_of, score_of
from mapping.retrieval.system_options import ReadForm
from mapping.sources.raw_records import Json, digits_or_text, optional_object

PROMPTS = "prompts.toml"
_FIELD = re.compile(r"\{(input|question|passages|title|text)\}")
_QUERY_FIELDS = {"input", "question"}
_NO_ANSWERS = frozenset(("", NOT_RELEVANT, "none", "no answer", "not answerable", "unanswerable", "unknown"))
"""Normalised outputs of a reader for a passage without an answer."""
RAG_FORMS = frozenset(("rag-sequence", "rag-token"))
_BY_PASSAGE = frozenset(("fid", "pig", "best")) | RAG_FORMS
"""Forms whose prompts have one passage each."""
_AS_ONE = frozenset(("fid",)) | RAG_FORMS
"""Forms that give one answer for all prompts of a question."""
_WITHOUT_PASSAGES = frozenset(("closed", "extractive", "fact-checking"))
"""Forms whose prompt has no passages."""

FindPage = Callable[[str], Hit | None]
"""Returns the page with exactly this title."""


def contexts_of(record: Json, key: str = "ctxs") -> list[Hit]:
    """Returns the passages of a question with ``ctxs``, or of a prediction, best first; pages without a text are left
    out.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    names = ("id", "chunk_id") if key in record else ("passage_id", "wikipedia_id")
    contexts, n_scores = [], 0
    for entry in provenance_of(record, key):
        document = digits_or_text(entry, next((name for name in names if name in entry), names[-1]))
        if entry.get("text"):
            page_id = str(entry.get("wikipedia_id") or document.partition("__")[0])
            score = 0.0 if entry.get("score") is None else score_of(entry["score"])
            if not isfinite(score):
                raise RecordError("wrong_type", f"'score': expected a number, found {repr(entry['score'])[:80]}")
            n_scores += entry.get("score") is not None
            contexts.append(Hit(document, page_id, str(entry.get("title", "")), str(entry["text"]), score))
    if n_scores not in (0, len(contexts)):
        raise RecordError("missing_field", f"{len(contexts) - n_scores} of {len(contexts)} passages have no 'score'")
    return contexts


def with_template_question(query: Query, record: Json, seed: str) -> Query:
    """Returns a query with a template question of its record, selected by a hash of its id and a seed; without template
    questions, the query itself.

    Raises:
        RecordError: ``wrong_type``.
    """
    meta = (optional_object(record, "meta") if record.get("meta") is not None else None) or {}
    questions = strings_at(meta, "template_questions") if "template_questions" in meta else ()
    known = [question for question in questions if question.strip()]
    if not known:
        return query
    return replace(
        query, template_question=min(known, key=lambda question: stable_sha256(seed, query.query_id, question))
    )


class ReaderPassage(NamedTuple):
    """A passage formatted for a reader."""

    text: str
    start_char: int  # start and end of the passage's own text
    end_char: int


class Prompt(NamedTuple):
    """The prompt of a reader, with the fields of ``prompts.toml``."""

    prompt: str
    passage: str = ""

    def text(self, query: Query, contexts: Sequence[Hit]) -> str:
        """Returns the prompt for a question with passages."""
        filled = "".join(_filled(self.passage, {"title": hit.title, "text": hit.text}) for hit in contexts)
        own = replace(query, input=query.template_question) if query.template_question else query
        return _filled(self.prompt, {"input": own.input, "question": own.text, "passages": filled})

    def context(self, hit: Hit) -> ReaderPassage:
        """Returns a single formatted passage, and where its text is in the result."""
        before, _, after = self.passage.partition("{text}")
        values = {"title": hit.title, "text": hit.text}
        start = len(_filled(before, values))
        text = _filled(before, values) + hit.text + _filled(after, values)
        return ReaderPassage(text, start, start + len(hit.text))


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: values.get(field[1], ""), template)


def read_prompt(path: str | None, form: ReadForm) -> Prompt:
    """Reads a prompt from a file, or returns the project's own for a form.

    Raises:
        SetupError: the file is not TOML, or lacks a key or field, which the message names.
    """
    if path is None:
        return Prompt(**tomllib.loads((resources.files("mapping.retrieval") / PROMPTS).read_text("utf-8"))[form])
    own = read_toml(path, remedy="write its texts in quotes")
    wanted = ("prompt",) if form == "closed" else ("prompt", "passage")
    if sorted(own) != sorted(wanted) or not all(isinstance(value, str) for value in own.values()):
        raise SetupError(f"{path}: give {' and '.join(wanted)}, each a text, for --form {form}.")
    for key in wanted:
        fields = {field[1] for field in _FIELD.finditer(own[key])}
        needed = {"text"} if key == "passage" else set() if form in _WITHOUT_PASSAGES else {"passages"}
        known = {"title", "text"} if key == "passage" else needed | _QUERY_FIELDS
        if fields - known:
            raise SetupError(f"{path}: {key} has {{{min(fields - known)}}}, which means nothing there.")
        if missing := needed - fields:
            raise SetupError(f"{path}: {key} lacks {{{min(missing)}}}.")
        if key == "prompt" and not fields & _QUERY_FIELDS:
            raise SetupError(f"{path}: prompt lacks {{input}}, the record's input; {{question}} has only its words.")
    return Prompt(**own)


class ModelOutput(NamedTuple):
    """The output of a model for a prompt."""

    text: str
    score: float  # mean log-probability of its tokens


WeightedTexts = tuple[tuple[str, ...], tuple[float, ...]]
"""Texts, each with the log-probability of its passage."""


class WritingModel(Protocol):
    """A model that generates answers."""

    max_tokens: int  # maximum number of tokens of a prompt
    can_fuse: bool  # true if it has an encoder, which fid and RAG require

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, including special tokens."""
        ...

    def cut(self, text: str, n_tokens: int) -> str:
        """Returns the beginning of a text, with at most this number of tokens."""
        ...

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        """Returns the output for each prompt; if it has several texts, they are encoded separately and decoded
        together."""
        ...

    def write_scored(self, prompts: Sequence[str]) -> list[ModelOutput]:
        """Returns the output for each prompt, with its probability."""
        ...

    def write_marginal(self, prompts: Sequence[WeightedTexts], *, by_token: bool) -> list[str]:
        """Returns the most probable output over all texts of each prompt, by RAG-Token or RAG-Sequence."""
        ...


def log_shares(scores: Sequence[float]) -> tuple[float, ...]:
    """Returns the logarithms of the softmax of scores; without scores, 0 for the one prompt without passages.

    >>> log_shares([]), [round(share, 4) for share in log_shares([1.0, 1.0])]
    ((0.0,), [-0.6931, -0.6931])
    """
    if not scores:
        return (0.0,)
    most = max(scores)
    total = most + log(fsum(exp(score - most) for score in scores))
    return tuple(score - total for score in scores)


class _Plan(NamedTuple):
    """The prompts for a question."""

    asked: Query
    contexts: tuple[Hit, ...]  # passages that are read
    prompts: list[tuple[str, ...]]
    refused: RecordError | None = None  # why the question cannot be answered; None if it can


def answer_questions(
    questions: Sequence[Query],
    model: WritingModel,
    *,
    form: ReadForm,
    prompt: Prompt,
    top: int,
    find_page: FindPage | None = None,
) -> Iterator[bytes | RecordError]:
    """Predicts an answer to each question, as a line in the format of its benchmark, or returns the reason why there is
    no prediction.

    Args:
        find_page: returns the provenance of a linked mention; without it, the provenance is the passages that were
            read.
    """
    plans = [_planned(question, model, form, prompt, top) for question in questions]
    prompts = [texts for plan in plans for texts in plan.prompts]
    if form == "best":
        scored = iter(model.write_scored([text for (text,) in prompts]))
    elif form in RAG_FORMS:
        weights = [log_shares([hit.score for hit in plan.contexts]) for plan in plans if plan.prompts]
        weighted = list(zip(prompts, weights, strict=True))
        scored = (ModelOutput(text, 0.0) for text in model.write_marginal(weighted, by_token=form == "rag-token"))
    else:
        scored = (ModelOutput(text, 0.0) for text in model.write(prompts))
    for plan in plans:
        written = [next(scored) for _ in plan.prompts]
        yield plan.refused or _line(plan, written, form, find_page)


def _planned(query: Query, model: WritingModel, form: ReadForm, prompt: Prompt, top: int) -> _Plan:
    contexts = () if form == "closed" else query.contexts[:top]
    n_question = model.count([prompt.text(query, ())])[0]
    if n_question > model.max_tokens - bool(contexts):
        why = f"{query.query_id}: the question without passages has {n_question:,} tokens; {model.max_tokens:,} fit"
        return _Plan(query, (), [], RecordError("prompt_too_long", why))
    together = [(hit,) for hit in contexts] if form in _BY_PASSAGE else [contexts]
    fitting = [_fitting(query, own, model, prompt) for own in together]
    texts = [prompt.text(query, own) for own in fitting if own]
    if not texts and form not in ("pig", "best"):
        texts = [prompt.text(query, ())]
    return _Plan(query, tuple(chain(*fitting)), [tuple(texts)] if form in _AS_ONE else [(text,) for text in texts])


def _fitting(query: Query, contexts: tuple[Hit, ...], model: WritingModel, prompt: Prompt) -> tuple[Hit, ...]:
    """Returns the first passages that fit into a prompt together, or the beginning of the first if it is too long."""

    def n_over(used: tuple[Hit, ...]) -> int:
        return model.count([prompt.text(query, used)])[0] - model.max_tokens

    n_used = bisect_right(range(1, len(contexts) + 1), 0, key=lambda n: n_over(contexts[:n]))
    used = contexts[: max(n_used, 1)]
    while used and (n_less := n_over(used)) > 0:
        only, n_text = used[0], model.count([used[0].text])[0]
        shorter = model.cut(only.text, max(n_text - n_less, 0))
        used = (replace(only, text=shorter),) if 0 < len(shorter) < len(only.text) else ()
    return used


def _line(plan: _Plan, written: Sequence[ModelOutput], form: ReadForm, find_page: FindPage | None) -> bytes:
    asked, contexts = plan.asked, plan.contexts
    found = [_answers(output.text, is_list=asked.benchmark == "qampari") for output in written]
    if form == "best":
        order = sorted(range(len(found)), key=lambda number: (0.0 if found[number] else 1.0, -written[number].score))
        n_with_answer = sum(map(bool, found))
        order[n_with_answer:] = sorted(order[n_with_answer:])  # in retrieval order
        found, contexts = [found[number] for number in order][:1], tuple(contexts[number] for number in order)
    elif len(written) > 1 and asked.benchmark != "qampari":
        forms = [answer_form(own[0]) if own else "" for own in found]
        counts = Counter(filter(None, forms))
        best = max(counts, key=counts.__getitem__, default="")  # of answers with equal counts, the first
        # Passages from which the model generated the answer come first.
        order = sorted(range(len(forms)), key=lambda number: forms[number] != best)
        found, contexts = [found[number] for number in order], tuple(contexts[number] for number in order)
    return answer_line(asked, contexts, [answer for own in found for answer in own], find_page)


def answer_line(
    query: Query, contexts: Sequence[Hit], answers: Sequence[str], find_page: FindPage | None = None
) -> bytes:
    """Returns answers as a prediction for the question's benchmark: for QAMPARI all distinct ones, otherwise the first.

    Args:
        contexts: the provenance, best first.
        find_page: returns the provenance of a linked mention.
    """
    if query.benchmark == "qampari":
        names: dict[str, str] = {}
        for answer in answers:
            names.setdefault(answer_form(answer), answer)
        ctxs = [{"id": hit.document, "title": hit.title, "text": hit.text} for hit in contexts]
        line = {"qid": query.query_id, "question": query.input, "predictions": list(names.values()), "ctxs": ctxs}
        return json_line(line)
    answer = answers[0] if answers else ""
    if query.is_mention and find_page is not None:
        page = find_page(answer) if answer else None
        contexts = () if page is None else (page,)
    return prediction_line(query, contexts, answer)


def _answers(written: str, *, is_list: bool) -> list[str]:
    """Returns the answers in a model's output: its first non-empty line; for a list, the parts of this line."""
    line = next((line.strip() for line in written.splitlines() if line.strip()), "")
    parts = line.split(SEPARATOR) if is_list else [line]
    return [part.strip() for part in parts if answer_form(part) not in _NO_ANSWERS]
