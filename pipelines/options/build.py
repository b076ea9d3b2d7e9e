"""Options of each job, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kbsource.errors import SetupError
from pipelines.options.checks import check_max_rejects, check_range_bytes, check_worker_memory

_AS_OF = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of ``kbsource build``; docs/commands.md has their meaning.

    Attributes:
        dump: files or patterns of one dump.
        output: folder of the release.
        page_props, siteinfo, only_titles: files; None without.
        wikidata: folder of a release of Wikidata; None without.
        limit_pages: pages read at most; None for all.
        as_of: ISO 8601 in UTC; None for the newest revisions.
        max_rejects: highest share of the pages that may be rejected.
        allow_truncated: build from a dump that breaks off.
        page_timeout_s: seconds that one page may take.
        worker_memory_bytes: memory that a working process may allocate.
        range_bytes: bytes of the pieces that the dump is read in; None for a size that suits the dump.
        parser: ``module:class`` of what parses pages, made with the site.
    """

    dump: tuple[str, ...]
    output: str
    page_props: str | None = None
    wikidata: str | None = None
    siteinfo: str | None = None
    only_titles: str | None = None
    limit_pages: int | None = None
    as_of: str | None = None
    max_rejects: float = 0.001
    allow_truncated: bool = False
    page_timeout_s: float = 60.0
    worker_memory_bytes: int = 4 << 30
    range_bytes: int | None = None
    parser: str = "kbsource.pages.articles:PageParser"

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if self.limit_pages is not None and self.limit_pages < 1:
            raise SetupError(f"--limit-pages is {self.limit_pages}; give at least 1, or leave it out for all pages.")
        check_max_rejects(self.max_rejects, of="pages")
        if self.as_of is not None and not _AS_OF.fullmatch(self.as_of):
            raise SetupError(f"--as-of is {self.as_of!r}; write it like 2019-08-01T00:00:00Z.")
        if self.page_timeout_s <= 0:
            raise SetupError(f"--page-timeout is {self.page_timeout_s:g}; give a number of seconds above 0.")
        check_worker_memory(self.worker_memory_bytes)
        check_range_bytes(self.range_bytes)

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the release, as JSON values for the manifest."""
        return {
            "limit_pages": self.limit_pages,
            "only_titles": self.only_titles is not None,
            "as_of": self.as_of,
            "max_rejects": self.max_rejects,
            "allow_truncated": self.allow_truncated,
            "page_timeout_s": self.page_timeout_s,
            "worker_memory_bytes": self.worker_memory_bytes,
            "range_bytes": self.range_bytes,
            "parser": self.parser,
        }
