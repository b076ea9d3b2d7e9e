"""Options of ``kbsource amber``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from kbsource.errors import SetupError
from kbsource.runtime.database import MEMORY_MB
from mapping.acceptance import read_rule
from mapping.amber.records import AMBER_CHOICES, AmberOptions
from mapping.entail.signal import ModelOptions
from mapping.options import FLAT, AtLeast1, Choices, File, Release, Rule, Words, check_choices, check_options
from pipelines.options.shared import PLACES, JoinMemory, Output, TakenAs


@dataclass(frozen=True, slots=True)
class AmberJobOptions:
    """Inputs and options of the job."""

    CHOICES: ClassVar[Choices] = AMBER_CHOICES

    kb: Release
    """Release of pages with their Wikidata items, so built with --page-props or --wikidata, or from HTML."""
    wikidata: Release
    """Release of Wikidata made by kbsource wikidata."""
    pageviews: Release
    """Release of page views made by kbsource pageviews."""
    _: KW_ONLY
    output: Output
    collection: Words = ()
    """Collections of entity types for which sets are made; by default all."""
    types: File | None = None
    """JSON or YAML file with types, properties and templates; by default the two collections of the package, human and
    nonhuman.
    """
    as_: TakenAs | None = None
    min_views: AtLeast1 = 5
    """Minimum number of page views of an entity."""
    deprecated: Literal["keep", "drop"] = "keep"
    """Keep or drop deprecated statements."""
    rules: Annotated[AmberOptions, FLAT] = AmberOptions()
    verify: Annotated[ModelOptions | None, FLAT] = None
    """Model that judges every tuple; None for no model."""
    accept: Rule | None = None
    """Rule that decides whether a tuple is accepted when its page mentions its value, like "bleu>=0.3" or
    "entailment>=0.5"; kbsource map --help explains such rules.
    """
    memory: JoinMemory = MEMORY_MB

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if the rule needs a model but none is set."""
        check_options(self)
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := sorted(signals - {"bleu"})):
            raise SetupError(
                f"--accept {self.accept!r}: only a model computes {', '.join(unknown)}; name one with --model MODEL."
            )
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        left_out = PLACES | {"verify", "memory", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}
