"""Options of ``kbsource entity-linking``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any

from kbsource.runtime.database import MEMORY_MB
from mapping.entity_linking.records import ContextOptions
from mapping.options import FLAT, AtLeast0, Checked, File, Name, Release
from pipelines.options.shared import JoinMemory, Output


@dataclass(frozen=True, slots=True)
class EntityLinkingOptions(Checked):
    """Inputs and options of entity-linking data."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    train: AtLeast0 = 9_000_000
    """Maximum number of training records."""
    dev: AtLeast0 = 10_000
    """Number of development records. They are taken from pages without training records."""
    context: Annotated[ContextOptions, FLAT] = ContextOptions()
    exclude: File | None = None
    """File with one title or page id per line. The links of these pages are not used; list the pages of an evaluation
    here.
    """
    seed: Name = "kilt"
    """Seed for all random draws."""
    memory: JoinMemory = MEMORY_MB

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the data, as JSON values for the manifest."""
        return {"train": self.train, "dev": self.dev, "seed": self.seed, **asdict(self.context)}
