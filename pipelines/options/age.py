"""Options of ``kbsource age``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from mapping.decide import THRESHOLD
from mapping.options import Bleu, Checked, Files, FolderPath, Releases, Seconds, Share
from pipelines.options.shared import USUAL_MEMORY, Memory, Output


@dataclass(frozen=True, slots=True)
class AgeOptions(Checked):
    """Datasets whose evidence is searched for, and the releases to search."""

    releases: Releases
    """Folders of releases of the same wiki from different dates."""
    _: KW_ONLY
    inputs: Annotated[Files, Parameter("--input")]
    """Datasets in KILT's format, one file each; they may be compressed (.bz2, .gz, .xz, .zst)."""
    output: Output
    from_kb: Annotated[FolderPath | None, Parameter(metavar="PATH")] = None
    """Release or kilt_knowledgesource.json that the datasets refer to. Leave it out if the datasets contain the text of
    their evidence.
    """
    threshold: Bleu = THRESHOLD
    """Minimum score at which a text counts as still present."""
    max_rejects: Share = 0.01
    """Maximum share of a dataset's records that may be rejected."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Maximum time for one piece of evidence. A search that takes longer is repeated once; if it takes too long again,
    the evidence is skipped.
    """

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        return {"threshold": self.threshold}
