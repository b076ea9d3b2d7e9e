"""Options of ``kbsource vectors``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from mapping.options import FLAT, Checked, Model, Release
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vector_kind import VectorPrecision
from pipelines.options.shared import Output


@dataclass(frozen=True, slots=True)
class VectorsOptions(Checked):
    """Inputs and options of a release of vectors."""

    passages: Release
    """Passages made by kbsource passages."""
    _: KW_ONLY
    encoder: Annotated[EncoderOptions, FLAT]
    output: Output
    query_model: Model | None = None
    """Encoder for queries, as a folder or a name on the hub, that was trained together with the passage encoder, such
    as DPR's question encoder. By default, one encoder encodes both."""
    precision: VectorPrecision = "float16"
    """Precision of a vector's numbers: float16; int8, half as large; or bits, a sixteenth as large."""
    base: Release | None = None
    """Vectors of earlier passages by the same encoder. Vectors of passages with the same title and text are copied from
    it. The output has the same bytes and takes less time."""
    base_passages: Release | None = None
    """Passages that the --base vectors were made from."""
