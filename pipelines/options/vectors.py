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
    """Encoder for queries that was trained together with the passage encoder, such as DPR's question encoder: a folder
    or a name on the hub. By default, one encoder encodes both.
    """
    precision: VectorPrecision = "float16"
    """Precision of the numbers in a vector. float16: two bytes each; int8: half as large; bits: a sixteenth as large.
    """
    base: Release | None = None
    """Vectors of earlier passages by the same encoder. If the title and text of a passage did not change, its vector is
    copied from here. This saves time and does not change the output.
    """
    base_passages: Release | None = None
    """Passages that the --base vectors were made from."""
