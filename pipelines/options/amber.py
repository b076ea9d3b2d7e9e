"""Options of ``kbsource amber``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from kbsource.errors import SetupError
from mapping.amber.records import AmberOptions
from mapping.decide.acceptance import read_rule
from mapping.entail.signal import ModelOptions
from mapping.options import check_options, listed, option, path_option
from pipelines.options.fields import output_option

_FOLDERS = ("kb", "wikidata", "pageviews", "output", "verify", "types")


@dataclass(frozen=True, slots=True)
class AmberJobOptions:
    """What is made, and how.

    Attributes:
        verify: a model is asked about every tuple; None for none.
    """

    kb: str = option(help="knowledge source, built with the items of its pages", metavar="RELEASE")
    wikidata: str = option(help="release of Wikidata, see kbsource wikidata", metavar="RELEASE")
    pageviews: str = option(help="release of page views, see kbsource pageviews", metavar="RELEASE")
    output: str = output_option("what is made")
    collection: tuple[str, ...] = option(
        (), "collections of the types, with commas (default: all)", metavar="A,B", parse=listed
    )
    types: str | None = path_option(
        "types, properties and templates, JSON or YAML (default: those of the package, human and nonhuman)"
    )
    min_views: int = option(5, "page views that an entity needs", lowest=1)
    deprecated: Literal["keep", "drop"] = option("keep", "deprecated statements")
    rules: AmberOptions = field(default_factory=AmberOptions)
    verify: ModelOptions | None = None
    accept: str | None = option(
        None,
        'tuples that are kept of those whose page names a value: "bleu>=0.3", "entailment>=0.5"; as for kbsource map',
        metavar="RULE",
    )

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for a rule on what no model tells."""
        check_options(self)
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := sorted(signals - {"bleu"})):
            raise SetupError(f"--accept {self.accept!r}: {', '.join(unknown)} is only known with --verify MODEL.")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        return {name: value for name, value in asdict(self).items() if name not in _FOLDERS}
