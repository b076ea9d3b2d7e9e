"""Options of ``kbsource wikidata``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kbsource.errors import SetupError
from kbsource.wikidata.entity import NEEDED_QUALIFIERS
from mapping.options import check_options, listed, option
from pipelines.options.fields import memory_option, output_option, range_option, rejects_option, truncated_option


def _all_or_listed(typed: str) -> tuple[str, ...] | None:
    return None if typed == "all" else listed(typed)


def _qualifiers(typed: str) -> tuple[str, ...] | None:
    return () if typed == "none" else _all_or_listed(typed)


@dataclass(frozen=True, slots=True)
class WikidataOptions:
    """What the release of Wikidata is made of. Of ``sites`` and ``qualifiers`` None is all."""

    dump: tuple[str, ...] = option(
        help="JSON dump (.json.bz2, .json.gz, .json, .ndjson), one entity a line; may be given several times",
        metavar="PATTERN",
        is_repeated=True,
    )
    output: str = output_option("the release")
    languages: tuple[str, ...] = option(
        ("en",),
        "languages of labels, descriptions and aliases, the preferred one first; their variants and mul come with them",
        metavar="LIST",
        parse=listed,
        form="[a-z]{2,}(?:-[a-z0-9]+)*",
        like="en,de",
    )
    sites: tuple[str, ...] | None = option(
        None,
        "wikis whose sitelinks are kept, like enwiki,dewiki, or all (default: all)",
        metavar="LIST",
        parse=_all_or_listed,
        form="[a-z][a-z0-9_]*(?:wiki|wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage)",
        like="enwiki,dewiki, or all",
    )
    qualifiers: tuple[str, ...] | None = option(
        NEEDED_QUALIFIERS,
        "properties of the qualifiers that are kept, like P580,P582, or all, or none (default: those of time, role and "
        "certainty)",
        metavar="LIST",
        parse=_qualifiers,
        form="P[1-9][0-9]*",
        like="P580,P582, or all, or none",
    )
    max_rejects: float = rejects_option(0.001, of="lines")
    allow_truncated: bool = truncated_option()
    worker_memory_bytes: int = memory_option()
    range_bytes: int | None = range_option()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for no language."""
        check_options(self)
        if not self.languages:
            raise SetupError("--languages is empty; give at least one, like en.")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the release, as JSON values for the manifest."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        del values["dump"], values["output"]
        return values
