"""What systems search with, and the cross-encoder that may read what they found: options, without what they need."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from cyclopts import Parameter

from kbsource.files import Folder, is_local
from mapping.entail.signal import MAX_PAIR_TOKENS, ONNX_FILES, Accelerator, Device, ModelOptions, Ram, onnx_path
from mapping.entity_linking.records import LinkerOptions
from mapping.options import FLAT, AtLeast1, Checked, File, FolderPath

DEPTH = 100


@dataclass(frozen=True, slots=True)
class RerankerOptions(Checked):
    """Which cross-encoder, how many passages it reads, and where it runs."""

    model: Annotated[File, Parameter(metavar="MODEL")]
    """Cross-encoder: folder of a Hugging Face model, here or in a store, or its name on the hub; its model.onnx is run
    by ONNX Runtime, and where there is none its safetensors by PyTorch."""
    _: KW_ONLY
    depth: AtLeast1 = DEPTH
    """Passages of a query that it reads, the first ones; the others stay behind them."""
    device: Device = "auto"
    """auto, a GPU where there is one; cpu, cuda or cuda:N."""
    accelerator: Accelerator | None = None
    """What the machines that run the model are to have, as a resource hint of Beam; Dataflow heeds it."""
    ram: Ram | None = None
    """Least memory of these machines, likewise."""

    def model_options(self) -> ModelOptions:
        """The same as ``mapping.entail.model`` takes it."""
        if is_local(self.model):
            has_onnx = onnx_path(self.model) is not None
        else:
            has_onnx = any(Folder.of(self.model).exists(name) for name in ONNX_FILES)
        return ModelOptions(
            self.model, backend="onnx" if has_onnx else "torch", device=self.device, max_tokens=MAX_PAIR_TOKENS
        )


@dataclass(frozen=True, slots=True)
class SystemOptions(Checked):
    """What systems search with."""

    _: KW_ONLY
    index: FolderPath | None = None
    """Folder of the passages' index, which kbsource search makes; by default PASSAGES-bm25, beside them."""
    linking: FolderPath | None = None
    """Folder that kbsource entity-linking wrote, for aliases."""
    vectors: FolderPath | None = None
    """Folder that kbsource vectors wrote, for dense; by default PASSAGES-vectors, beside the passages."""
    model: File | None = None
    """Folder of the encoder that made them."""
    approximate: bool = False
    """Look for the nearest vectors in a graph, which does not find all of them: for many millions. kbsource search
    makes it, in VECTORS-usearch."""
    reranker: Annotated[File | None, Parameter(metavar="MODEL")] = None
    """Cross-encoder, for rerank, as kbsource rerank takes it."""
    depth: AtLeast1 | None = None
    """Passages of a query that it reads, the first ones; by default 100."""
    mentions: Annotated[LinkerOptions, FLAT] = LinkerOptions()
