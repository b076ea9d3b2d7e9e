"""Options of ``kbsource wikidata``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter, Token

from kbsource.errors import SetupError
from kbsource.wikidata.entity import NEEDED_QUALIFIERS
from mapping.options import Files, Like, Share, Words, check_options, listed
from pipelines.options.shared import PLACES, USUAL_MEMORY, Memory, Output, RangeBytes, Truncated


def _all_or_listed(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...] | None:
    return None if [token.value for token in tokens] == ["all"] else listed(type_, tokens)


def _qualifiers(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...] | None:
    return () if [token.value for token in tokens] == ["none"] else _all_or_listed(type_, tokens)


@dataclass(frozen=True, slots=True)
class WikidataOptions:
    """Inputs and options of a release of Wikidata. None for ``sites`` or ``qualifiers`` means all."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """JSON dump with one entity per line (.json or .ndjson, plain or compressed): files or patterns."""
    _: KW_ONLY
    output: Output
    languages: Annotated[Words, Parameter(validator=Like("[a-z]{2,}(?:-[a-z0-9]+)*", "en,de"))] = ("en",)
    """Languages of labels, descriptions and aliases, the preferred one first. Variants of these languages, and labels
    for all languages (mul), are always included.
    """
    sites: Annotated[
        Words | None,
        Parameter(
            converter=_all_or_listed,
            validator=Like(
                "[a-z][a-z0-9_]*(?:wiki|wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage)",
                "enwiki,dewiki, or all",
            ),
        ),
    ] = None
    """Wikis whose sitelinks are included, like enwiki,dewiki; by default all."""
    qualifiers: Annotated[
        Words | None,
        Parameter(
            converter=_qualifiers, validator=Like("P[1-9][0-9]*", "P580,P582, or all, or none"), show_default=False
        ),
    ] = NEEDED_QUALIFIERS
    """Properties whose qualifiers are included: a list like P580,P582, or all, or none. By default, properties that
    state a time, a role or a degree of certainty.
    """
    max_rejects: Share = 0.001
    """Maximum share of lines that may be rejected."""
    allow_truncated: Truncated = False
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if no language is given."""
        check_options(self)
        if not self.languages:
            raise SetupError("--languages is empty; give at least one language, like en.")

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in PLACES}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
