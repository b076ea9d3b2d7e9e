"""Seq2seq and causal models of transformers that write greedily, from files that run no code.

Nothing of a model's generation settings counts but its marks: no sampling, no beams, no penalties. On the CPU a process
computes with one thread, so that what is written depends neither on the cores nor on who else has them; many prompts
take as many workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from kbsource.errors import SetupError
from mapping.entail.model import like_lengths, torch_device
from mapping.entail.signal import ModelOptions, digest_of, load_library, model_folder, model_sha256
from mapping.retrieval.system_options import ReaderOptions

_PURPOSE = "kbsource read"
_UNBOUNDED = 10**6
_MARKS = (
    "bos_token_id",
    "decoder_start_token_id",
    "eos_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "pad_token_id",
)
"""What is kept of a model's generation settings."""


class Generator:
    """A ``TextGenerator`` on PyTorch.

    Raises:
        SetupError: the model is not there, or not what is needed.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._torch = torch = load_library("torch", purpose=_PURPOSE)
        transformers = load_library("transformers", purpose=_PURPOSE)
        self._outputs = load_library("transformers.modeling_outputs", purpose=_PURPOSE)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        folder, files = _located(options)
        given = {"trust_remote_code": False, "local_files_only": True, **files}
        safetensors = load_library("safetensors", purpose=_PURPOSE)
        try:
            config = transformers.AutoConfig.from_pretrained(folder, **given)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
            self.can_fuse = bool(config.is_encoder_decoder)
            kind = transformers.AutoModelForSeq2SeqLM if self.can_fuse else transformers.AutoModelForCausalLM
            weights = {} if files else {"use_safetensors": True}
            model = kind.from_pretrained(folder, dtype=getattr(torch, options.precision), **given, **weights)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, safetensors.SafetensorError) as error:
            raise SetupError(f"{options.model}: this is no reader that can be opened: {error}") from error
        if not getattr(self._tokenizer, "is_fast", False):
            raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json).")
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._tokenizer.padding_side = "right" if self.can_fuse else "left"
        self._device = torch_device(torch, options.device)
        if self._device == "cpu":
            torch.set_num_threads(1)
        self._model = model.to(self._device).eval()
        marks = {name: getattr(model.generation_config, name, None) for name in _MARKS}
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
            encoded = encoder(**batch).last_hidden_state
            for row, place in enumerate(places):
                states[place] = encoded[row][batch["attention_mask"][row].bool()]
        fused = torch.cat([states[place] for place in range(len(texts))])[None]
        found = self._model.generate(
            encoder_outputs=self._outputs.BaseModelOutput(last_hidden_state=fused),
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
