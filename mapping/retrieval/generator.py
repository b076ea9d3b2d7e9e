"""Generative models of transformers that read prompts: seq2seq, causal or RAG, from files that run no code.

Decoding is greedy. Only the special tokens of a model's generation settings are used; sampling, beams and penalties are
off. On the CPU a process computes with one thread, so the output depends neither on the number of cores nor on other
load; use several workers for many prompts.

From a RAG folder, as transformers saves ``RagSequenceForGeneration`` and ``RagTokenForGeneration``, only the generator
and its tokenizer are used; ``kbsource search`` finds the passages and their scores.

Sources: Izacard and Grave, Leveraging Passage Retrieval with Generative Models for Open Domain Question Answering
(2021); Lewis et al., Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks (2020), section 2.5.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbsource.errors import SetupError
from kbsource.identity import stable_sha256
from mapping.entail.model import check_length, check_whole, like_lengths, torch_device
from mapping.entail.signal import (
    ModelOptions,
    check_layer_counts,
    digest_of,
    load_library,
    model_folder,
    model_sha256,
    opening,
)
from mapping.retrieval.reader import ModelOutput, WeightedTexts
from mapping.retrieval.reader_models import check_head
from mapping.retrieval.system_options import ReaderOptions

_PURPOSE = "kbsource read"
_UNBOUNDED = 10**6
_NO_READER = "it cannot be opened as a reader"
_GGUF_PURPOSE = "a GGUF file (pip install 'kbsource[read]')"
_GGUF = b"GGUF"
"""First bytes of GGUF files. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""
RAG_TOKENIZER = "generator_tokenizer"
"""Folder of the generator's tokenizer in a RAG folder; the question encoder has another one."""
DECIMALS = 5
"""Decimals of scores. Their last digits depend on the other texts in the batch."""


class Generator:
    """A model on PyTorch.

    Raises:
        SetupError: the model does not exist, or is not of the required kind.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._torch = torch = load_library("torch", purpose=_PURPOSE)
        transformers = load_library("transformers", purpose=_PURPOSE)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        folder, files = _located(options)
        given = {"trust_remote_code": False, "local_files_only": True, **files}
        with opening(options.model, _NO_READER):
            config = transformers.AutoConfig.from_pretrained(folder, **given)
            check_head(options.model, config, "read")
            is_rag = config.model_type == "rag"
            own = {"config": config.generator, "subfolder": RAG_TOKENIZER} if is_rag else {}
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given, **own)
            self.can_fuse = is_rag or bool(config.is_encoder_decoder)
            kind = transformers.AutoModelForSeq2SeqLM if self.can_fuse else transformers.AutoModelForCausalLM
            if is_rag:
                kind = transformers.RagSequenceForGeneration  # RAG-Token has the same weights
            weights = {} if files else {"use_safetensors": True}
            dtype = getattr(torch, options.precision)
            model, found = kind.from_pretrained(folder, dtype=dtype, output_loading_info=True, **given, **weights)
        check_whole(options.model, found["missing_keys"])
        if is_rag:
            model, config = model.rag.generator, config.generator
        if not getattr(self._tokenizer, "is_fast", False):
            raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json).")
        check_length(options.model, self._tokenizer)
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._tokenizer.padding_side = "right" if self.can_fuse else "left"
        self._device = torch_device(torch, options.device)
        if self._device == "cpu":
            torch.set_num_threads(1)
        self._model = model.to(self._device).eval()
        settings = model.generation_config.to_dict()
        marks = {name: value for name, value in settings.items() if name.endswith("_token_id")}
        marks.pop("forced_eos_token_id", None)  # it would only end truncated answers
        for name, value in marks.items():
            tokens = value if isinstance(value, list) else [value]
            if not all(token is None or isinstance(token, int) for token in tokens):
                raise SetupError(
                    f"{options.model}: {name} in its settings is {value!r:.100}, not a token. Download the model again."
                )
        marks["pad_token_id"] = self._tokenizer.pad_token_id
        self._settings = transformers.GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=options.new_tokens, **marks
        )
        # generate() would take missing settings from the model's own.
        self._model.generation_config = self._settings
        ends = marks.get("eos_token_id")
        self._ends = frozenset(ends if isinstance(ends, list) else [ends])
        self._start, self._first = marks.get("decoder_start_token_id"), marks.get("forced_bos_token_id")
        self._new_tokens, self._batch_tokens = options.new_tokens, options.batch_tokens
        positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        limit = min(length for length in (self._tokenizer.model_max_length, positions, _UNBOUNDED) if length)
        # A model without an encoder appends the output to the prompt, so both share one limit.
        self.max_tokens = min(options.max_tokens, limit - (0 if self.can_fuse else options.new_tokens))
        if self.max_tokens < 1:
            raise SetupError(
                f"--new-tokens is {options.new_tokens}; {options.model} accepts {limit}, including the prompt."
            )
        with opening(options.model, "it cannot be run"), torch.inference_mode():  # a config may contradict the weights
            self._model.generate(**self._padded(["a"]), generation_config=self._settings, max_new_tokens=1)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, including special tokens."""
        return [len(ids) for ids in self._tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []

    def cut(self, text: str, n_tokens: int) -> str:
        """Returns the beginning of a text, with at most this number of tokens."""
        if n_tokens < 1:
            return ""
        offsets = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ends = [end for _, end in offsets["offset_mapping"]]
        return text[: ends[min(n_tokens, len(ends)) - 1]] if ends else ""

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        """Returns the output for each prompt. The same list of prompts is always divided into the same batches, so it
        gives the same output.
        """
        single = {place: own_prompts[0] for place, own_prompts in enumerate(prompts) if len(own_prompts) == 1}
        written = {place: self._decoded(ids) for place, (ids, _) in self._generated(single).items()}
        with self._torch.inference_mode():
            for place, texts in enumerate(prompts):
                if len(texts) > 1:
                    written[place] = self._fused(texts)
        return [written[place] for place in range(len(prompts))]

    def write_scored(self, prompts: Sequence[str]) -> list[ModelOutput]:
        """Returns the output for each prompt with the mean log-probability of its tokens, including the end token;
        tokens forced by the model's settings count 0."""
        found = self._generated(dict(enumerate(prompts)), is_scored=True)
        return [
            ModelOutput(self._decoded(ids), score) for ids, score in (found[place] for place in range(len(prompts)))
        ]

    def write_marginal(self, prompts: Sequence[WeightedTexts], *, by_token: bool) -> list[str]:
        """Returns the most probable output over all texts of each prompt; its probability is the sum over the texts.

        By token, this is the most probable next token at every step (RAG-Token). Otherwise the candidates are the
        answers that the model generates from single texts, and each is scored with all texts (RAG-Sequence, thorough
        decoding). Tokens forced by the model's settings are certain.
        """
        if by_token:
            with self._torch.inference_mode():
                return [self._decoded(self._by_token(*prompt)) for prompt in prompts]
        texts = [(number, text) for number, (own, _) in enumerate(prompts) for text in own]
        found = self._generated({place: text for place, (_, text) in enumerate(texts)})
        candidates: list[dict[tuple[int, ...], None]] = [{} for _ in prompts]
        for place, (number, _) in enumerate(texts):
            candidates[number][tuple(found[place][0])] = None
        written = []
        with self._torch.inference_mode():
            for (own, weights), answers in zip(prompts, candidates, strict=True):
                scores = self._marginals(own, weights, list(answers)) if len(answers) > 1 else [0.0]
                best = max(range(len(scores)), key=scores.__getitem__)  # of equal scores, the first
                written.append(self._decoded(list(answers)[best]))
        return written

    def _by_token(self, texts: Sequence[str], weights: Sequence[float]) -> list[int]:
        torch = self._torch
        states, mask = self._encoded(texts)
        shares = torch.tensor(weights, dtype=torch.float32, device=self._device)[:, None]
        ids: list[int] = []
        last, past = self._start, None
        while len(ids) < self._new_tokens:
            found = self._model(
                encoder_outputs=states,
                attention_mask=mask,
                decoder_input_ids=torch.full((len(texts), 1), last, device=self._device),
                past_key_values=past,
                use_cache=True,
            )
            past = found.past_key_values
            scores = (found.logits[:, -1].float().log_softmax(-1) + shares).logsumexp(0)
            last = self._first if not ids and self._first is not None else int(scores.argmax())
            ids.append(last)
            if last in self._ends:
                break
        return ids

    def _marginals(
        self, texts: Sequence[str], weights: Sequence[float], answers: Sequence[tuple[int, ...]]
    ) -> list[float]:
        """Returns the log-probability of each answer over all texts."""
        torch = self._torch
        states, mask = self._encoded(texts)
        shares = torch.tensor(weights, dtype=torch.float32, device=self._device)
        scores = []
        for ids in answers:
            given = torch.tensor([[self._start, *ids[:-1]]] * len(texts), device=self._device)
            logits = self._model(encoder_outputs=states, attention_mask=mask, decoder_input_ids=given).logits
            wanted = torch.tensor([ids] * len(texts), device=self._device)
            tokens = logits.float().log_softmax(-1).gather(-1, wanted[:, :, None])[:, :, 0]
            if self._first is not None:
                tokens = tokens[:, 1:]
            scores.append(round(float((tokens.sum(-1) + shares).logsumexp(0)), DECIMALS))
        return scores

    def _encoded(self, texts: Sequence[str]) -> tuple[Any, Any]:
        """Returns the encoder states of texts, padded, with a mask of the positions that are not padding."""
        torch = self._torch
        states, kind = self._states(texts)
        padded = torch.nn.utils.rnn.pad_sequence(states, batch_first=True)
        lengths = torch.tensor([len(state) for state in states], device=self._device)
        mask = (torch.arange(padded.shape[1], device=self._device)[None] < lengths[:, None]).long()
        return kind(last_hidden_state=padded), mask

    def _states(self, texts: Sequence[str]) -> tuple[list[Any], Any]:
        """Returns the encoder states of the tokens of each text, and the transformers class that holds them."""
        encoder, states = self._model.get_encoder(), dict[int, Any]()
        for places in self._batches(dict(enumerate(texts))):
            batch = self._padded([texts[place] for place in places])
            encoded = encoder(**batch)
            for row, place in enumerate(places):
                states[place] = encoded.last_hidden_state[row][batch["attention_mask"][row].bool()]
        return [states[place] for place in range(len(texts))], type(encoded)

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True)
        return text

    def _generated(self, texts: Mapping[int, str], *, is_scored: bool = False) -> dict[int, tuple[list[int], float]]:
        """Returns the generated tokens for each text, up to the end token, and their mean log-probability."""
        written: dict[int, tuple[list[int], float]] = {}
        with self._torch.inference_mode():
            for places in self._batches(texts):
                batch = self._padded([texts[place] for place in places])
                found = self._model.generate(
                    **batch,
                    generation_config=self._settings,
                    return_dict_in_generate=True,
                    output_scores=is_scored,
                )
                start = 1 if self.can_fuse else batch["input_ids"].shape[1]
                rows = [self._ended(row) for row in found.sequences[:, start:].tolist()]
                scores = [[0.0]] * len(rows)
                if is_scored:
                    steps = self._model.compute_transition_scores(found.sequences, found.scores, normalize_logits=True)
                    scores = [own[: len(row)] for own, row in zip(steps.tolist(), rows, strict=True)]
                means = [round(sum(own) / max(len(own), 1), DECIMALS) for own in scores]
                written |= zip(places, zip(rows, means, strict=True), strict=True)
        return written

    def _ended(self, ids: list[int]) -> list[int]:
        """Returns the tokens up to the end token; the rest is padding."""
        end = next((place for place, token_id in enumerate(ids) if token_id in self._ends), len(ids) - 1)
        return ids[: end + 1]

    def _batches(self, texts: Mapping[int, str]) -> list[list[int]]:
        """Returns batches of texts of similar length, as their numbers."""
        lengths = dict(zip(texts, self.count([*texts.values()]), strict=True))
        return like_lengths(lengths, lambda _, n, longest: (n + 1) * (longest + self._new_tokens) <= self._batch_tokens)

    def _padded(self, texts: Sequence[str]) -> Any:
        batch = self._tokenizer(list(texts), padding=True, return_tensors="pt", verbose=False).to(self._device)
        return {name: batch[name] for name in ("input_ids", "attention_mask")}

    def _fused(self, texts: Sequence[str]) -> str:
        """Returns the output of Fusion-in-Decoder: each text is encoded separately, all of them are decoded
        together."""
        torch = self._torch
        states, kind = self._states(texts)
        fused = torch.cat(states)[None]
        found = self._model.generate(
            encoder_outputs=kind(last_hidden_state=fused),
            attention_mask=torch.ones(fused.shape[:2], dtype=torch.long, device=self._device),
            generation_config=self._settings,
        )
        return self._decoded(found[0].tolist())

    @staticmethod
    def sha256(options: ReaderOptions) -> str:
        """Returns the hash of a model's files; weights are hashed without opening them. Raises SetupError if there is
        no model."""
        folder, files = _located(options)
        if files:
            return digest_of([options.model])
        tokenizer = sorted(map(str, Path(folder, RAG_TOKENIZER).glob("*")))
        own = model_sha256(folder, "torch")
        return stable_sha256(own, digest_of(tokenizer)) if tokenizer else own


def _located(options: ReaderOptions) -> tuple[str, dict[str, str]]:
    """Returns the folder of a model, and for GGUF the name of its file."""
    if not options.model.endswith(".gguf"):
        return model_folder(ModelOptions(options.model)), {}
    if not os.path.isfile(options.model):
        raise SetupError(f"{options.model}: there is no such file.")
    with open(options.model, "rb") as file:
        if file.read(len(_GGUF)) != _GGUF:
            raise SetupError(f"{options.model}: is not a GGUF file. Download the model again, or name another.")
    load_library("accelerate", purpose=_GGUF_PURPOSE)
    gguf = load_library("gguf", purpose=_GGUF_PURPOSE)
    with opening(options.model, _NO_READER):
        fields = gguf.GGUFReader(options.model).fields
        blocks = {name: field.contents() for name, field in fields.items() if name.endswith(".block_count")}
    for name, n_layers in blocks.items():
        check_layer_counts(f"{options.model}: {name}", {"layers": n_layers})
    return os.path.dirname(options.model) or ".", {"gguf_file": os.path.basename(options.model)}
