"""Options of ``kbsource pageviews``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from kbsource.runtime.database import MEMORY_MB
from mapping.options import Checked, Files, Like, Name, Share
from pipelines.options.shared import JoinMemory, Output, RangeBytes, Truncated


@dataclass(frozen=True, slots=True)
class PageviewsOptions(Checked):
    """Page views to be summed."""

    input: Annotated[Files, Parameter(metavar="VIEWS")]
    """Files of page views from pageview_complete or pagecounts, or patterns for them. They may be compressed."""
    _: KW_ONLY
    output: Output
    site: Annotated[Name, Parameter(validator=Like("[a-z][a-z0-9_]*wiki", "enwiki"))] = "enwiki"
    """Wikipedia whose views are summed, by its database name, like enwiki."""
    all_access: bool = False
    """Include the mobile site and hourly files (en, en.m, en.m.z, en.zero) when reading pagecounts. By default only
    en.z is counted, as the authors of AmbER did.
    """
    max_rejects: Share = 0.001
    """Maximum share of lines that may be rejected."""
    allow_truncated: Truncated = False
    range_bytes: RangeBytes = None
    memory: JoinMemory = MEMORY_MB

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = asdict(self)
        del values["input"], values["output"], values["memory"]
        return values
