"""Options of entity-linking data, and of the linker."""

from __future__ import annotations

from dataclasses import dataclass

from mapping.options import Checked, between, option


@dataclass(frozen=True, slots=True)
class ContextOptions(Checked):
    """How much of its text a mention keeps."""

    context_tokens: int = option(128, "tokens of context on either side of a mention, at most", lowest=1)
    context_chars: int | None = option(
        None, "characters of context on either side too, in whole tokens; 250 is the published size", lowest=1
    )
    max_tokens: int = option(
        256, "tokens of the input, tags included", lowest=2, remedy="the two tags alone are 2 tokens"
    )


@dataclass(frozen=True, slots=True)
class LinkerOptions(Checked):
    """Which mentions count."""

    min_link_probability: float = between(
        0, 1, 0.1, "least P(link given mention) of a mention", of="a probability", metavar="P"
    )
    min_prior: float = between(0, 1, 0.0, "least P(page given mention) of its page", of="a probability", metavar="P")
    min_count: int = option(1, "least number of links from a mention to its page", lowest=1)
