"""Options of ``kbsource pageviews``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mapping.options import Checked, option
from pipelines.options.fields import output_option, range_option, rejects_option, truncated_option


@dataclass(frozen=True, slots=True)
class PageviewsOptions(Checked):
    """Which page views are summed."""

    input: tuple[str, ...] = option(
        help="files of page views (.bz2, .gz or plain), pageview_complete or pagecounts; may be given several times",
        metavar="PATTERN",
        is_repeated=True,
    )
    output: str = output_option("the release")
    site: str = option(
        "enwiki",
        "Wikipedia whose views are taken",
        metavar="NAME",
        form="[a-z][a-z0-9_]*wiki",
        like="enwiki",
    )
    max_rejects: float = rejects_option(0.001, of="lines")
    allow_truncated: bool = truncated_option()
    range_bytes: int | None = range_option()

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the release, as JSON values for the manifest."""
        return {
            "site": self.site,
            "max_rejects": self.max_rejects,
            "allow_truncated": self.allow_truncated,
            "range_bytes": self.range_bytes,
        }
