"""Options of ``kbsource facts``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from mapping.entail.signal import ModelOptions
from mapping.options import FLAT, AtLeast0, Checked, File, Release, path_like, releases_named
from mapping.qampari.evidence import N_BEFORE
from pipelines.options.shared import JoinMemory, Output


def _two(type_: Any, value: Sequence[str]) -> None:
    if len(value) != 2:
        raise ValueError("Give two values, OLD and NEW.")


@dataclass(frozen=True, slots=True)
class FactsOptions(Checked):
    """Releases to compare, and options for proving answers."""

    old: Release
    """Older release of pages with their Wikidata items, so built with --page-props or --wikidata, or from HTML."""
    new: Release
    """Newer release of the same wiki."""
    _: KW_ONLY
    wikidata: Annotated[
        tuple[str, ...],
        Parameter(metavar="OLD NEW", n_tokens=2, converter=releases_named, validator=(path_like, _two)),
    ]
    """Two releases of Wikidata, one for each date, the older one first."""
    output: Output
    model: Annotated[ModelOptions | None, FLAT] = None
    """Model that chooses the proofs. None: the proof is the sentence most similar to the statement."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = 0.5
    """A sentence proves an answer only if its entailment probability is above this value. Needs --model."""
    sentences_before: AtLeast0 = N_BEFORE
    """Number of sentences before the proof, from the same paragraph, that are included with it."""
    questions: File | None = None
    """TOML file with the question for each property; by default the package's own."""
    memory: JoinMemory = 500

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        return {"least_entailment": self.least_entailment, "sentences_before": self.sentences_before}
