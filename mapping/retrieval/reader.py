"""Questions and passages as prompts of a generating model, what it writes as predictions, and the model.

The forms: ``closed``, the question alone; ``read``, one prompt with as many passages as fit; ``fid``,
Fusion-in-Decoder, in which each passage is encoded with the question by itself and all are decoded together; ``pig``,
QAMPARI's passage-independent generator, which answers from each passage by itself. Of ``pig`` a list of answers is the
union; a single one is what most passages give, and these come first in its provenance.

The model is a seq2seq or causal one of transformers that writes greedily, from files that run no code. Nothing of its
generation settings counts but its marks: no sampling, no beams, no penalties. On the CPU a process computes with one
thread, so that what is written depends neither on the cores nor on who else has them; many prompts take as many
workers.

Sources: Izacard and Grave, Leveraging Passage Retrieval with Generative Models for Open Domain Question Answering
(2021); Amouyal et al., QAMPARI (2022), section 4.
"""

from __future__ import annotations

import os
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder
from mapping.contexts.export import SEPARATOR
from mapping.entail.model import check_whole, like_lengths, torch_device
from mapping.entail.signal import ModelOptions, digest_of, load_library, model_folder, model_sha256, opening
from mapping.metrics.answers import NOT_RELEVANT, answer_form
from mapping.passages.forms import json_line
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.runs import prediction_line, provenance_of
from mapping.retrieval.system_options import ReaderOptions, ReadForm
from mapping.sources.raw_records import Json, digits_or_text

PROMPTS = "prompts.toml"
_FIELD = re.compile(r"\{(input|question|passages|title|text)\}")
_QUERY_FIELDS = {"input", "question"}
_NO_ANSWERS = frozenset(("", NOT_RELEVANT, "none", "no answer", "not answerable", "unanswerable", "unknown"))
"""What a reader writes, in the form of answers, of a passage that has none."""
_PURPOSE = "kbsource read"
_UNBOUNDED = 10**6


def contexts_of(record: Json, key: str = "ctxs") -> list[Hit]:
    """The passages of a question with ``ctxs``, or of a prediction, best first; pages without a text are left out.

    Raises:
        RecordError: ``missing_field`` or ``wrong_type``.
    """
    names = ("id", "chunk_id") if key in record else ("passage_id", "wikipedia_id")
    contexts = []
    for one in provenance_of(record, key):
        document = digits_or_text(one, next((name for name in names if name in one), names[-1]))
        if one.get("text"):
            page_id = str(one.get("wikipedia_id") or document.partition("__")[0])
            contexts.append(Hit(document, page_id, str(one.get("title", "")), str(one["text"])))
    return contexts


class Prompt(NamedTuple):
    """What a reader is given, with the fields of ``prompts.toml``."""

    prompt: str
    passage: str = ""

    def text(self, asked: Query, contexts: Sequence[Hit]) -> str:
        """The prompt of a question with passages."""
        filled = "".join(_filled(self.passage, {"title": one.title, "text": one.text}) for one in contexts)
        return _filled(self.prompt, {"input": asked.input, "question": asked.text, "passages": filled})


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: values.get(field[1], ""), template)


def read_prompt(path: str | None, form: ReadForm) -> Prompt:
    """The prompt of a file, or the project's own of a form.

    Raises:
        SetupError: the file is no TOML, or lacks a key or field; names it.
    """
    if path is None:
        return Prompt(**tomllib.loads((resources.files("mapping.retrieval") / PROMPTS).read_text("utf-8"))[form])
    try:
        own = tomllib.loads(Folder.of(path).read().decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{path} is no TOML: {error}.") from error
    wanted = ("prompt",) if form == "closed" else ("prompt", "passage")
    if sorted(own) != sorted(wanted) or not all(isinstance(one, str) for one in own.values()):
        raise SetupError(f"{path}: give {' and '.join(wanted)}, each a text, for --form {form}.")
    for key in wanted:
        fields = {field[1] for field in _FIELD.finditer(own[key])}
        needed = {"text"} if key == "passage" else set() if form == "closed" else {"passages"}
        known = {"title", "text"} if key == "passage" else needed | _QUERY_FIELDS
        if fields - known:
            raise SetupError(f"{path}: {key} has {{{min(fields - known)}}}, which means nothing there.")
        if missing := needed - fields:
            raise SetupError(f"{path}: {key} lacks {{{min(missing)}}}.")
        if key == "prompt" and not fields & _QUERY_FIELDS:
            raise SetupError(f"{path}: prompt lacks {{input}}, the record's input; {{question}} is its words alone.")
    return Prompt(**own)


class _Plan(NamedTuple):
    """What a question is asked by."""

    asked: Query
    contexts: tuple[Hit, ...]  # those that are read
    prompts: list[tuple[str, ...]]
    refused: RecordError | None = None  # why it is not asked


def answered(
    questions: Sequence[Query], model: Generator, *, form: ReadForm, prompt: Prompt, top: int
) -> Iterator[bytes | RecordError]:
    """The prediction of each question, as a line of its benchmark; or why there is none."""
    plans = [_planned(one, model, form, prompt, top) for one in questions]
    written = iter(model.write([text for plan in plans for text in plan.prompts]))
    for plan in plans:
        texts = [next(written) for _ in plan.prompts]
        yield plan.refused or _line(plan, texts)


def _planned(asked: Query, model: Generator, form: ReadForm, prompt: Prompt, top: int) -> _Plan:
    contexts = () if form == "closed" else asked.contexts[:top]
    n_question = model.count([prompt.text(asked, ())])[0]
    if n_question > model.max_tokens - bool(contexts):
        why = f"{asked.query_id}: the question alone has {n_question:,} tokens; {model.max_tokens:,} fit"
        return _Plan(asked, (), [], RecordError("prompt_too_long", why))
    together = [(one,) for one in contexts] if form in ("fid", "pig") else [contexts]
    fitting = [_fitting(asked, own, model, prompt) for own in together]
    texts = [prompt.text(asked, own) for own in fitting if own]
    if not texts and form != "pig":
        texts = [prompt.text(asked, ())]
    return _Plan(asked, tuple(chain(*fitting)), [tuple(texts)] if form == "fid" else [(text,) for text in texts])


def _fitting(asked: Query, contexts: tuple[Hit, ...], model: Generator, prompt: Prompt) -> tuple[Hit, ...]:
    """The first passages whose prompt is not too long; of the first, where it is alone too long, the beginning."""

    def n_over(used: tuple[Hit, ...]) -> int:
        return model.count([prompt.text(asked, used)])[0] - model.max_tokens

    n_used = bisect_right(range(1, len(contexts) + 1), 0, key=lambda n: n_over(contexts[:n]))
    used = contexts[: max(n_used, 1)]
    while used and (n_less := n_over(used)) > 0:
        only, n_text = used[0], model.count([used[0].text])[0]
        shorter = model.cut(only.text, max(n_text - n_less, 0))
        used = (replace(only, text=shorter),) if 0 < len(shorter) < len(only.text) else ()
    return used


def _line(plan: _Plan, written: Sequence[str]) -> bytes:
    asked, contexts = plan.asked, plan.contexts
    found = [_answers(text, is_list=asked.benchmark == "qampari") for text in written]
    if asked.benchmark == "qampari":
        names: dict[str, str] = {}
        for answer in (answer for own in found for answer in own):
            names.setdefault(answer_form(answer), answer)
        ctxs = [{"id": one.document, "title": one.title, "text": one.text} for one in contexts]
        line = {"qid": asked.query_id, "question": asked.input, "predictions": list(names.values()), "ctxs": ctxs}
        return json_line(line)
    given = [answer for own in found for answer in own or [""]]
    forms = list(map(answer_form, given))
    counts = Counter(filter(None, forms))
    best = max(counts, key=counts.__getitem__, default="")  # of equal ones the first
    if len(written) > 1:  # a passage each, of which those that give the answer come first
        order = sorted(range(len(forms)), key=lambda number: forms[number] != best)
        contexts = tuple(contexts[number] for number in order)
    return prediction_line(asked, contexts, given[forms.index(best)] if best else "")


def _answers(written: str, *, is_list: bool) -> list[str]:
    """The answers in what a model wrote: its first line that is not empty, of a list its parts."""
    line = next((line.strip() for line in written.splitlines() if line.strip()), "")
    parts = line.split(SEPARATOR) if is_list else [line]
    return [part.strip() for part in parts if answer_form(part) not in _NO_ANSWERS]


class Generator:
    """A model on PyTorch.

    Raises:
        SetupError: the model is not there, or not what is needed.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._torch = torch = load_library("torch", purpose=_PURPOSE)
        transformers = load_library("transformers", purpose=_PURPOSE)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        folder, files = _located(options)
        given = {"trust_remote_code": False, "local_files_only": True, **files}
        with opening(options.model, "this is no reader that can be opened"):
            config = transformers.AutoConfig.from_pretrained(folder, **given)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
            self.can_fuse = bool(config.is_encoder_decoder)
            kind = transformers.AutoModelForSeq2SeqLM if self.can_fuse else transformers.AutoModelForCausalLM
            weights = {} if files else {"use_safetensors": True}
            dtype = getattr(torch, options.precision)
            model, found = kind.from_pretrained(folder, dtype=dtype, output_loading_info=True, **given, **weights)
        check_whole(options.model, found["missing_keys"])
        if not getattr(self._tokenizer, "is_fast", False):
            raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json).")
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._tokenizer.padding_side = "right" if self.can_fuse else "left"
        self._device = torch_device(torch, options.device)
        if self._device == "cpu":
            torch.set_num_threads(1)
        self._model = model.to(self._device).eval()
        settings = model.generation_config.to_dict()
        marks = {name: value for name, value in settings.items() if name.endswith("_token_id")}
        marks["pad_token_id"] = self._tokenizer.pad_token_id
        self._settings = transformers.GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=options.new_tokens, **marks
        )
        # What settings do not say, generate would take from the model's own.
        self._model.generation_config = self._settings
        self._new_tokens, self._batch_tokens = options.new_tokens, options.batch_tokens
        positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        limit = min(one for one in (self._tokenizer.model_max_length, positions, _UNBOUNDED) if one)
        # What is written stands behind a prompt, where there is no encoder.
        self.max_tokens = min(options.max_tokens, limit - (0 if self.can_fuse else options.new_tokens))
        if self.max_tokens < 1:
            raise SetupError(f"--new-tokens is {options.new_tokens}; {options.model} takes {limit}, prompt included.")

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of texts, marks included."""
        return [len(one) for one in self._tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []

    def cut(self, text: str, n_tokens: int) -> str:
        """The beginning of a text, so many tokens at most."""
        if n_tokens < 1:
            return ""
        offsets = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ends = [end for _, end in offsets["offset_mapping"]]
        return text[: ends[min(n_tokens, len(ends)) - 1]] if ends else ""

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        """What it writes of each; the batches depend on the list alone."""
        written: dict[int, str] = {}
        with self._torch.inference_mode():
            for places in self._batches({place: one[0] for place, one in enumerate(prompts) if len(one) == 1}):
                batch = self._padded([prompts[place][0] for place in places])
                found = self._model.generate(**batch, generation_config=self._settings)
                start = 0 if self.can_fuse else batch["input_ids"].shape[1]
                texts = self._tokenizer.batch_decode(found[:, start:], skip_special_tokens=True)
                written |= zip(places, texts, strict=True)
            for place, texts in enumerate(prompts):
                if len(texts) > 1:
                    written[place] = self._fused(texts)
        return [written[place] for place in range(len(prompts))]

    def _batches(self, texts: Mapping[int, str]) -> list[list[int]]:
        """Places of texts of like length."""
        lengths = dict(zip(texts, self.count([*texts.values()]), strict=True))
        return like_lengths(lengths, lambda _, n, longest: (n + 1) * (longest + self._new_tokens) <= self._batch_tokens)

    def _padded(self, texts: Sequence[str]) -> Any:
        batch = self._tokenizer(list(texts), padding=True, return_tensors="pt", verbose=False).to(self._device)
        return {name: batch[name] for name in ("input_ids", "attention_mask")}

    def _fused(self, texts: Sequence[str]) -> str:
        """Fusion-in-Decoder: each text is encoded by itself, all of them are decoded together."""
        torch, encoder = self._torch, self._model.get_encoder()
        states: dict[int, Any] = {}
        for places in self._batches(dict(enumerate(texts))):
            batch = self._padded([texts[place] for place in places])
            encoded = encoder(**batch)
            for row, place in enumerate(places):
                states[place] = encoded.last_hidden_state[row][batch["attention_mask"][row].bool()]
        fused = torch.cat([states[place] for place in range(len(texts))])[None]
        found = self._model.generate(
            encoder_outputs=type(encoded)(last_hidden_state=fused),
            attention_mask=torch.ones(fused.shape[:2], dtype=torch.long, device=self._device),
            generation_config=self._settings,
        )
        text: str = self._tokenizer.batch_decode(found, skip_special_tokens=True)[0]
        return text

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        """The hash of a model's files; its weights are hashed, not opened. Raises SetupError: there is none."""
        folder, files = _located(options)
        return digest_of([options.model]) if files else model_sha256(folder, "torch")


def _located(options: ReaderOptions) -> tuple[str, dict[str, str]]:
    """The folder of a model, and the name of its file where it is one of GGUF."""
    if not options.model.endswith(".gguf"):
        return model_folder(ModelOptions(options.model, revision=options.revision)), {}
    if not os.path.isfile(options.model):
        raise SetupError(f"{options.model}: no such file here.")
    for library in ("accelerate", "gguf"):
        load_library(library, purpose="a GGUF file (pip install 'kbsource[read]')")
    return os.path.dirname(options.model) or ".", {"gguf_file": os.path.basename(options.model)}
