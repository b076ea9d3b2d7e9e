"""Options of encoders, readers, cross-encoders and search systems, without importing their libraries."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from kbsource.files import Folder
from mapping.entail.signal import (  # noqa: F401  # types of inherited fields, looked up here
    MAX_PAIR_TOKENS,
    Accelerator,
    Device,
    ModelOptions,
    PlacedModel,
    Precision,
    Ram,
)
from mapping.entity_linking.records import LinkerOptions
from mapping.hub import ONNX_FILES, Backend, local_model
from mapping.options import FLAT, AtLeast1, Checked, FolderPath, Model, Text, Tokens, Words

DEPTH = 100
Pooling = Literal["cls", "mean", "pooler"]
TextForm = Literal["plain", "pair", "blink"]
"""The form of a passage for an encoder: title and text as two lines, as two segments (DPR), or with BLINK's
marker between them."""
ReadForm = Literal["closed", "read", "fid", "pig", "best", "rag-sequence", "rag-token", "extractive", "fact-checking"]
"""How a model reads: only the question (closed); passages in sequence (read); Fusion-in-Decoder (fid); each passage
separately, with all answers (pig), the most probable answer (best), or the answer that is most probable over all
passages (rag-…); to find a span of a passage (extractive); or to judge a claim by each passage (fact-checking)."""


@dataclass(frozen=True, slots=True)
class EncoderOptions(PlacedModel):
    """Options of an encoder."""

    model: Model
    """Folder of an encoder, local or remote, or its name on the hub, in the layout of sentence-transformers or
    without it: model.onnx runs on ONNX Runtime; without it, model.safetensors runs on PyTorch; or static vectors of
    model2vec."""
    _: KW_ONLY
    pooling: Pooling | None = None
    """Vector of a text. cls: the vector of its first token; mean: the mean over all tokens; pooler: the output of the
    model's pooler. By default, the model's files decide.
    """
    text_form: TextForm | None = None
    """Form of the text given to the encoder: plain, title and text as two lines; pair, as two segments; or blink, with
    BLINK's markers, also around the mention of a query. By default pair for DPR and plain for all others. Vectors of
    DPR and BLINK are not normalised, so that scores are inner products."""
    query_prefix: Text | None = None
    """Prefix of every query. By default, the prefix in the model's files, or an empty one."""
    passage_prefix: Text | None = None
    """Prefix of every passage. By default, the prefix in the model's files, or an empty one."""
    max_tokens: AtLeast1 | None = None
    """Maximum number of tokens of a text. The rest of the text is cut off. By default, the limit in the model's files.
    """


@dataclass(frozen=True, slots=True)
class ReaderOptions(PlacedModel):
    """Options of a reader."""

    model: Model
    """Local or remote folder of a model with safetensors weights, its name on Hugging Face, or a local GGUF file.
    It can be a seq2seq model, a causal language model, a RAG model, an extractive question-answering model, or a
    classifier of text pairs (for fact-checking)."""
    _: KW_ONLY
    precision: Precision = "float32"
    """Precision of weights and products; bfloat16 halves the memory, and may change the output."""
    max_tokens: Tokens = 1024
    """Maximum tokens of a prompt, or the model's limit if that is lower; passages are dropped, the last first, or
    cut."""
    new_tokens: AtLeast1 = 32
    """Maximum tokens of an answer."""
    batch_tokens: AtLeast1 = 4096
    """Maximum tokens in a batch, including padding and generated tokens; a batch always has at least one prompt."""
    labels: Annotated[Words | None, Parameter("--label-names")] = None
    """Labels of a fact checker's outputs, in the order of the outputs, such as entailment,neutral,contradiction. Needed
    only if the model's config does not name them.
    """
    opener: Annotated[str, Parameter(parse=False)] = ""  # module and class that open it; by default chosen by the form


@dataclass(frozen=True, slots=True)
class RerankerOptions(PlacedModel):
    """Options of a cross-encoder."""

    model: Model
    """Cross-encoder: folder of a Hugging Face model, local or remote, or its name on the hub; its model.onnx runs
    on ONNX Runtime; without it, its safetensors run on PyTorch."""
    _: KW_ONLY
    depth: AtLeast1 = DEPTH
    """Number of first passages of each query that the cross-encoder reads. The other passages follow in their old
    order.
    """

    def model_options(self) -> ModelOptions:
        """Returns these options for ``mapping.entail.model``."""
        return ModelOptions(self.model, backend=backend_of(self.model), device=self.device, max_tokens=MAX_PAIR_TOKENS)


def backend_of(model: str) -> Backend:
    """Returns the backend of a model: ONNX Runtime if its folder has an export, otherwise PyTorch."""
    return "onnx" if any(Folder.of(local_model(model)).exists(name) for name in ONNX_FILES) else "torch"


@dataclass(frozen=True, slots=True)
class SystemOptions(Checked):
    """Options of search systems."""

    _: KW_ONLY
    index: FolderPath | None = None
    """Folder of the passages' index, which the first search makes; by default PASSAGES-bm25, next to the passages."""
    tfidf: FolderPath | None = None
    """Common prefix of the paths of the two Tf-idf indexes, PREFIX-passage and PREFIX-page, made by kbsource search. By
    default PASSAGES-tfidf, next to the passages."""
    linking: FolderPath | None = None
    """Folder that kbsource entity-linking wrote. The system named aliases needs it."""
    vectors: FolderPath | None = None
    """Folder that kbsource vectors wrote, for the system dense; by default PASSAGES-vectors, next to the passages."""
    model: Model | None = None
    """Encoder with which the vectors were made: its folder, or its name on the hub."""
    mention_model: Model | None = None
    """Model that finds the mentions of a query for aliases, and for dense with BLINK's vectors: a token classifier of
    transformers, as a folder or a name on the hub, or the folder of a spaCy pipeline. By default aliases finds the
    mentions in its own table."""
    query_model: Model | None = None
    """Encoder of queries, as a folder or a name on the hub, if queries and passages have different encoders. Use it
    instead of --model."""
    approximate: bool = False
    """Search the nearest vectors in a graph, which may miss some of them. Use this for many millions of passages.
    kbsource search builds the graph in VECTORS-usearch.
    """
    reranker: Model | None = None
    """Cross-encoder for systems that end in :rerank, like the --model of kbsource rerank."""
    depth: AtLeast1 | None = None
    """Number of results of each system that are combined, or reordered by a cross-encoder, regardless of --top; by
    default 100.
    """
    mentions: Annotated[LinkerOptions, FLAT] = LinkerOptions()
