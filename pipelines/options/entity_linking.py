"""Options of ``kbsource entity-linking``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mapping.entity_linking.options import ContextOptions
from mapping.options import Checked, option, path_option
from pipelines.options.fields import output_option


@dataclass(frozen=True, slots=True)
class EntityLinkingOptions(Checked):
    """Which data are made."""

    kb: str = option(help="folder of a release", metavar="RELEASE")
    output: str = output_option("the data")
    train: int = option(9_000_000, "records of train; all that there are, where there are fewer", lowest=0)
    dev: int = option(10_000, "records of dev, from other pages", lowest=0)
    context: ContextOptions = field(default_factory=ContextOptions)
    exclude: str | None = path_option(
        "pages whose links are not taken, a title or page id a line: those that an evaluation is about"
    )
    seed: str = option("kilt", "names what is drawn at random", metavar="NAME")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the data, as JSON values for the manifest."""
        return {"train": self.train, "dev": self.dev, "seed": self.seed, **asdict(self.context)}
