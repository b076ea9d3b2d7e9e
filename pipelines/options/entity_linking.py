"""Options of ``kbsource entity-linking``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any

from mapping.entity_linking.records import ContextOptions
from mapping.options import FLAT, AtLeast0, Checked, File, Name, Release
from pipelines.options.shared import Output


@dataclass(frozen=True, slots=True)
class EntityLinkingOptions(Checked):
    """Inputs and options of entity-linking data."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    train: AtLeast0 = 9_000_000
    """Maximum number of records in train."""
    dev: AtLeast0 = 10_000
    """Number of records in dev, taken from pages that are not in train."""
    context: Annotated[ContextOptions, FLAT] = ContextOptions()
    exclude: File | None = None
    """File of pages whose links are not used, such as the pages of an evaluation: one title or page id per line."""
    seed: Name = "kilt"
    """Seed of the random draws."""

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the data, as JSON values for the manifest."""
        return {"train": self.train, "dev": self.dev, "seed": self.seed, **asdict(self.context)}
