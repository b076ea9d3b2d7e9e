"""Encoders, readers, cross-encoders, and what systems search with: options, without what these need."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from kbsource.files import Folder
from mapping.entail.signal import (  # noqa: F401  # types of inherited fields, looked up here
    MAX_PAIR_TOKENS,
    ONNX_FILES,
    Accelerator,
    Backend,
    Device,
    ModelOptions,
    PlacedModel,
    Precision,
    Ram,
)
from mapping.entity_linking.records import LinkerOptions
from mapping.options import FLAT, AtLeast1, Checked, File, FolderPath, Name, Text, Tokens, Words

DEPTH = 100
Pooling = Literal["cls", "mean", "pooler"]
TextForm = Literal["plain", "pair", "blink"]
"""What an encoder reads of a passage: title and text as two lines, as two segments (DPR), or with BLINK's mark between
them."""
ReadForm = Literal["closed", "read", "fid", "pig", "best", "rag-sequence", "rag-token", "extractive", "fact-checking"]
"""How a model reads: the question alone; passages one behind the other; Fusion-in-Decoder; each passage by itself, with
all answers, the most probable one, or one that all passages together make most probable; a span of a passage; or a
claim beside each passage."""


@dataclass(frozen=True, slots=True)
class EncoderOptions(PlacedModel):
    """Which encoder, and how it is run."""

    model: Annotated[File, Parameter(metavar="MODEL")]
    """Folder of an encoder, here or in a store, as sentence-transformers has them or alone: model.onnx is run by ONNX
    Runtime, and where there is none model.safetensors by PyTorch; or static vectors of model2vec."""
    _: KW_ONLY
    pooling: Pooling | None = None
    """The vector of a text: that of its first token (cls), the mean of all, or the output of the model's pooler; by
    default as the model's files say."""
    text_form: TextForm | None = None
    """How a passage is given to the encoder: plain, title and text as two lines; pair, as two segments; or blink, with
    BLINK's marks, also around the mention of a query. By default pair for DPR and plain for all others. Vectors of DPR
    and BLINK keep their lengths, so that scores are inner products."""
    query_prefix: Text | None = None
    """Stands before every query; by default what the model's files say, or nothing."""
    passage_prefix: Text | None = None
    """Stands before every passage, likewise."""
    max_tokens: AtLeast1 | None = None
    """Tokens of a text that count; by default as the model's files say."""


@dataclass(frozen=True, slots=True)
class ReaderOptions(PlacedModel):
    """Which model reads, and how it is run."""

    model: Annotated[File, Parameter(metavar="MODEL")]
    """Folder of a model with safetensors weights, here or in a store, its name on the hub, or a GGUF file here: seq2seq
    or causal, RAG, for question answering (extractive), or a classifier of pairs (fact-checking)."""
    _: KW_ONLY
    revision: Name | None = None
    """Branch, tag or commit of a model on the hub."""
    precision: Precision = "float32"
    """Of weights and products; bfloat16 takes half the memory, and may change what is written."""
    max_tokens: Tokens = 1024
    """Tokens of a prompt at most, or what the model takes, where that is less; passages are left out, the last first,
    or cut."""
    new_tokens: AtLeast1 = 32
    """Tokens of an answer at most."""
    batch_tokens: AtLeast1 = 4096
    """Tokens that go through the model at once, padding and written ones among them; one prompt always does."""
    labels: Annotated[Words | None, Parameter("--label-names")] = None
    """What the outputs of a fact checker mean, in their order, where its config does not say: entailment, neutral,
    contradiction."""
    opener: Annotated[str, Parameter(parse=False)] = ""  # what opens it: module and class; by default by the form


@dataclass(frozen=True, slots=True)
class RerankerOptions(PlacedModel):
    """Which cross-encoder, how many passages it reads, and where it runs."""

    model: Annotated[File, Parameter(metavar="MODEL")]
    """Cross-encoder: folder of a Hugging Face model, here or in a store, or its name on the hub; its model.onnx is run
    by ONNX Runtime, and where there is none its safetensors by PyTorch."""
    _: KW_ONLY
    depth: AtLeast1 = DEPTH
    """Passages of a query that it reads, the first ones; the others stay behind them."""

    def model_options(self) -> ModelOptions:
        """The same as ``mapping.entail.model`` takes it."""
        return ModelOptions(self.model, backend=backend_of(self.model), device=self.device, max_tokens=MAX_PAIR_TOKENS)


def backend_of(model: str) -> Backend:
    """Returns what runs a model: ONNX Runtime where its folder has an export, and PyTorch where it has none."""
    return "onnx" if any(Folder.of(model).exists(name) for name in ONNX_FILES) else "torch"


@dataclass(frozen=True, slots=True)
class SystemOptions(Checked):
    """What systems search with."""

    _: KW_ONLY
    index: FolderPath | None = None
    """Folder of the passages' index, which kbsource search makes; by default PASSAGES-bm25, beside them."""
    tfidf: FolderPath | None = None
    """Beginning of the folders of the Tf-idf indexes, which kbsource search makes: "-passage" and "-page" are appended.
    By default PASSAGES-tfidf, beside the passages."""
    linking: FolderPath | None = None
    """Folder that kbsource entity-linking wrote, for aliases."""
    vectors: FolderPath | None = None
    """Folder that kbsource vectors wrote, for dense; by default PASSAGES-vectors, beside the passages."""
    model: File | None = None
    """Folder of the encoder that made them."""
    mention_model: File | None = None
    """Model that finds the mentions of a query for aliases, and for dense with BLINK's vectors: folder of a token
    classifier of transformers, or of a spaCy pipeline. By default aliases finds those that its table knows."""
    query_model: File | None = None
    """Folder of the encoder of queries, in place of --model, if the vectors were made with one."""
    approximate: bool = False
    """Look for the nearest vectors in a graph, which does not find all of them: for many millions. kbsource search
    makes it, in VECTORS-usearch."""
    reranker: Annotated[File | None, Parameter(metavar="MODEL")] = None
    """Cross-encoder, for rerank, as kbsource rerank takes it."""
    depth: AtLeast1 | None = None
    """First passages or pages of each system that are fused, and first passages that a cross-encoder reads, whatever
    --top is; by default 100."""
    mentions: Annotated[LinkerOptions, FLAT] = LinkerOptions()
