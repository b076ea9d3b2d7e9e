"""Options of ``kbsource wikidata``, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kbsource.errors import SetupError
from kbsource.wikidata.entity import NEEDED_QUALIFIERS
from pipelines.options.checks import check_max_rejects, check_range_bytes, check_worker_memory

_LANGUAGE = re.compile(r"[a-z]{2,}(?:-[a-z0-9]+)*")
_SITE = re.compile(r"[a-z][a-z0-9_]*")
_PROPERTY = re.compile(r"P[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class WikidataOptions:
    """Options of ``kbsource wikidata``; docs/commands.md has their meaning.

    Attributes:
        dump: files or patterns of one dump.
        output: folder of the release.
        languages: of labels, descriptions and aliases, the preferred one first.
        sites: wikis whose sitelinks are kept; None for all.
        qualifiers: properties of the qualifiers that are kept; None for all.
        max_rejects: highest share of the lines that may be rejected.
        allow_truncated: take what can be read of a dump that breaks off.
        worker_memory_bytes: memory that a working process may allocate.
        range_bytes: bytes of the pieces that the dump is read in; None for a size that suits the dump.
    """

    dump: tuple[str, ...]
    output: str
    languages: tuple[str, ...] = ("en",)
    sites: tuple[str, ...] | None = None
    qualifiers: tuple[str, ...] | None = NEEDED_QUALIFIERS
    max_rejects: float = 0.001
    allow_truncated: bool = False
    worker_memory_bytes: int = 4 << 30
    range_bytes: int | None = None

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        for option, values, form, example in (
            ("--languages", self.languages, _LANGUAGE, "en,de"),
            ("--sites", self.sites or (), _SITE, "enwiki,dewiki, or all"),
            ("--qualifiers", self.qualifiers or (), _PROPERTY, "P580,P582, or all, or none"),
        ):
            for value in values:
                if not form.fullmatch(value):
                    raise SetupError(f"{option} has {value!r}; write it like {example}.")
        if not self.languages:
            raise SetupError("--languages is empty; give at least one, like en.")
        check_max_rejects(self.max_rejects, of="lines")
        check_worker_memory(self.worker_memory_bytes)
        check_range_bytes(self.range_bytes)

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the release, as JSON values for the manifest."""
        return {
            "languages": list(self.languages),
            "sites": None if self.sites is None else list(self.sites),
            "qualifiers": None if self.qualifiers is None else list(self.qualifiers),
            "max_rejects": self.max_rejects,
            "allow_truncated": self.allow_truncated,
            "worker_memory_bytes": self.worker_memory_bytes,
            "range_bytes": self.range_bytes,
        }
