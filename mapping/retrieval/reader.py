"""Questions and passages as prompts of a generating model, and what it writes as predictions.

The forms: ``closed``, the question alone; ``read``, one prompt with as many passages as fit; ``fid``,
Fusion-in-Decoder, in which each passage is encoded with the question by itself and all are decoded together; ``pig``,
QAMPARI's passage-independent generator, which answers from each passage by itself. Of ``pig`` a list of answers is the
union; a single one is what most passages give, and these come first in its provenance.

Sources: Izacard and Grave, Leveraging Passage Retrieval with Generative Models for Open Domain Question Answering
(2021); Amouyal et al., QAMPARI (2022), section 4.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, Protocol

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder
from mapping.contexts.export import SEPARATOR
from mapping.metrics.answers import answer_form
from mapping.passages.forms import json_line
from mapping.retrieval.queries import Context, Query
from mapping.retrieval.runs import provenance_of
from mapping.retrieval.system_options import ReadForm
from mapping.sources.raw_records import Json, digits_or_text

PROMPTS = "prompts.toml"
_FIELD = re.compile(r"\{(question|passages|title|text)\}")
_FIELDS = {"prompt": {"question", "passages"}, "passage": {"title", "text"}}
_NO_ANSWERS = frozenset(("", "none", "no answer", "not answerable", "unanswerable", "unknown"))
"""What a reader writes, in the form of answers, of a passage that has none."""


def contexts_of(record: Json, key: str = "ctxs") -> list[Context]:
    """The passages of a question with ``ctxs``, or of a prediction, best first; pages without a text are left out.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    names = ("id", "chunk_id") if key in record else ("passage_id", "wikipedia_id")
    found = [(_document(one, *names), one) for one in provenance_of(record, key)]
    return [
        Context(
            document,
            str(one.get("wikipedia_id") or document.partition("__")[0]),
            str(one.get("title", "")),
            str(one["text"]),
        )
        for document, one in found
        if one.get("text")
    ]


def _document(one: Json, *names: str) -> str:
    return digits_or_text(one, next((name for name in names if name in one), names[-1]))


class Prompt(NamedTuple):
    """What a reader is given, with the fields of ``prompts.toml``."""

    prompt: str
    passage: str = ""

    def text(self, question: str, contexts: Sequence[Context]) -> str:
        """The prompt of a question with passages."""
        filled = "".join(_filled(self.passage, {"title": one.title, "text": one.text}) for one in contexts)
        return _filled(self.prompt, {"question": question, "passages": filled})


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: values.get(field[1], ""), template)


def read_prompt(path: str | None, form: ReadForm) -> Prompt:
    """The prompt of a file, or the project's own of a form.

    Raises:
        SetupError: the file is no TOML, or lacks a key or field; names it.
    """
    if path is None:
        content = (resources.files("mapping.retrieval") / PROMPTS).read_text("utf-8")
    else:
        content = Folder.of(path).read().decode("utf-8", "replace")
    where = path or PROMPTS
    try:
        values = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{where} is no TOML: {error}.") from error
    own = values[form] if path is None else values
    wanted = ("prompt",) if form == "closed" else ("prompt", "passage")
    if sorted(own) != sorted(wanted) or not all(isinstance(one, str) for one in own.values()):
        raise SetupError(f"{where}: give {' and '.join(wanted)}, each a text, for --form {form}.")
    for key in wanted:
        fields = {field[1] for field in _FIELD.finditer(own[key])}
        needed = {"question"} if form == "closed" else _FIELDS[key]
        missing = sorted(({"text"} if key == "passage" else needed) - fields)
        if missing or fields - needed:
            odd = f"lacks {{{missing[0]}}}" if missing else f"has {{{min(fields - needed)}}}, which means nothing there"
            raise SetupError(f"{where}: {key} {odd}.")
    return Prompt(**own)


class TextGenerator(Protocol):
    """A model that writes."""

    max_tokens: int  # of a prompt
    can_fuse: bool  # whether it has an encoder, whose outcome for several texts can be decoded together

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of texts."""
        ...

    def cut(self, text: str, n_tokens: int) -> str:
        """The beginning of a text, so many tokens at most."""
        ...

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        """What it writes, greedily; of several texts, what it writes of all of them. The same list gives the same."""
        ...


class _Plan(NamedTuple):
    """What a question is asked by."""

    asked: Query
    contexts: tuple[Context, ...]  # those that are read
    prompts: list[tuple[str, ...]]
    refused: RecordError | None = None  # why it is not asked


def answered(
    questions: Sequence[Query], model: TextGenerator, *, form: ReadForm, prompt: Prompt, top: int
) -> Iterator[bytes | RecordError]:
    """The prediction of each question, as a line of its benchmark; or why there is none."""
    plans = [_planned(one, model, form, prompt, top) for one in questions]
    written = iter(model.write([text for plan in plans for text in plan.prompts]))
    for plan in plans:
        texts = [next(written) for _ in plan.prompts]
        yield plan.refused or _line(plan, texts)


def _planned(asked: Query, model: TextGenerator, form: ReadForm, prompt: Prompt, top: int) -> _Plan:
    contexts = () if form == "closed" else asked.contexts[:top]
    n_question = model.count([prompt.text(asked.text, ())])[0]
    if n_question > model.max_tokens - bool(contexts):
        why = f"{asked.query_id}: the question alone has {n_question:,} tokens; {model.max_tokens:,} fit"
        return _Plan(asked, (), [], RecordError("prompt_too_long", why))
    if form in ("closed", "read"):
        used = _fitting(asked.text, contexts, model, prompt)
        return _Plan(asked, used, [(prompt.text(asked.text, used),)])
    used = tuple(one for context in contexts for one in _fitting(asked.text, (context,), model, prompt))
    texts = [prompt.text(asked.text, (one,)) for one in used]
    if form == "pig":
        return _Plan(asked, used, [(text,) for text in texts])
    return _Plan(asked, used, [tuple(texts or [prompt.text(asked.text, ())])])


def _fitting(question: str, contexts: Sequence[Context], model: TextGenerator, prompt: Prompt) -> tuple[Context, ...]:
    """The first passages whose prompt is not too long; of the first, where it is alone too long, the beginning."""
    used = list(contexts)
    room = model.max_tokens - model.count([prompt.text(question, ())])[0]
    for number, length in enumerate(model.count([one.text for one in used])):
        room -= length
        if room < 0:
            del used[max(number, 1) :]
            break
    # Titles and what is between passages count too.
    while used and (n_tokens := model.count([prompt.text(question, used)])[0]) > model.max_tokens:
        if len(used) > 1:
            used.pop()
            continue
        only = used[0]
        n_text = model.count([only.text])[0]
        shorter = model.cut(only.text, max(n_text - max(n_tokens - model.max_tokens, 1), 0))
        used = [Context(only.document, only.page_id, only.title, shorter)] if 0 < len(shorter) < len(only.text) else []
    return tuple(used)


def _line(plan: _Plan, written: Sequence[str]) -> bytes:
    asked, contexts = plan.asked, plan.contexts
    found = [_answers(text, is_list=asked.benchmark == "qampari") for text in written]
    if asked.benchmark == "qampari":
        names: dict[str, str] = {}
        for answer in (answer for own in found for answer in own):
            names.setdefault(answer_form(answer), answer)
        ctxs = [{"id": one.document, "title": one.title, "text": one.text} for one in contexts]
        line = {"qid": asked.query_id, "question": asked.text, "predictions": list(names.values()), "ctxs": ctxs}
        return json_line(line)
    answer, givers = _most_given(found)
    if len(written) > 1:  # a passage each
        contexts = tuple(sorted(contexts, key=lambda one: contexts.index(one) not in givers))
    provenance = [
        {"wikipedia_id": one.page_id, "title": one.title, "text": one.text}
        | ({"passage_id": one.document} if one.document != one.page_id else {})
        for one in contexts
    ]
    output: dict[str, Any] = {"answer": answer, "provenance": provenance}
    is_one = asked.benchmark == "amber"
    return json_line({"id": asked.query_id, "input": asked.text, "output": output if is_one else [output]})


def _answers(written: str, *, is_list: bool) -> list[str]:
    """The answers in what a model wrote: its first line that is not empty, of a list its parts."""
    line = next((line.strip() for line in written.splitlines() if line.strip()), "")
    parts = line.split(SEPARATOR) if is_list else [line]
    return [part.strip() for part in parts if answer_form(part) not in _NO_ANSWERS]


def _most_given(found: Sequence[Sequence[str]]) -> tuple[str, frozenset[int]]:
    """The answer that most passages give, of equal ones the first, and which passages these are."""
    givers: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    for number, answers in enumerate(found):
        for answer in answers:
            givers.setdefault(answer_form(answer), []).append(number)
            names.setdefault(answer_form(answer), answer)
    best = max(givers, key=lambda form: len(givers[form]), default="")
    return names.get(best, ""), frozenset(givers.get(best, ()))
