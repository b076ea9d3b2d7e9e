"""Which model reads, in which form, and how it is run: options, without what a model needs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from mapping.entail.signal import Accelerator, Device, Precision, Ram
from mapping.options import AtLeast1, Checked, File, Name, Tokens

ReadForm = Literal["closed", "read", "fid", "pig"]
"""How a model reads: the question alone; passages one behind the other; Fusion-in-Decoder; each passage by itself."""
GENERATOR = "mapping.retrieval.generation:Generator"


@dataclass(frozen=True, slots=True)
class ReaderOptions(Checked):
    """Which model reads, and how it is run."""

    model: Annotated[File, Parameter(metavar="MODEL")]
    """Folder of a seq2seq or causal model with safetensors weights, here or in a store, its name on the hub, or a GGUF
    file here."""
    _: KW_ONLY
    revision: Name | None = None
    """Branch, tag or commit of a model on the hub."""
    precision: Precision = "float32"
    """Of weights and products; bfloat16 takes half the memory, and may change what is written."""
    device: Device = "auto"
    """auto, a GPU where there is one; cpu, cuda or cuda:N."""
    accelerator: Accelerator | None = None
    """What the machines that run the model are to have, as a resource hint of Beam; Dataflow heeds it."""
    ram: Ram | None = None
    """Least memory of these machines, likewise."""
    max_tokens: Tokens = 1024
    """Tokens of a prompt at most, or what the model takes, where that is less; passages are left out, the last first,
    or cut."""
    new_tokens: AtLeast1 = 32
    """Tokens that are written at most."""
    batch_tokens: AtLeast1 = 4096
    """Tokens that go through the model at once, padding and written ones among them; one prompt always does."""
    generator: Annotated[str, Parameter(parse=False)] = GENERATOR  # what opens it: module and class
