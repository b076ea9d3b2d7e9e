"""Options of ``kbsource build``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from mapping.options import AtLeast1, Checked, File, Files, Like, Release, Seconds, Share
from pipelines.options.shared import PLACES, USUAL_MEMORY, Memory, Output, RangeBytes, Truncated

_TIME = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"


@dataclass(frozen=True, slots=True)
class BuildOptions(Checked):
    """Inputs and options of a build."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """Files of a single dump, or quoted patterns."""
    _: KW_ONLY
    output: Output
    page_props: File | None = None
    """File page_props.sql.gz of the same date, which contains Wikidata items and disambiguation pages."""
    wikidata: Release | None = None
    """Release made by kbsource wikidata. Adds the items of pages, found by sitelink, with their labels, descriptions
    and aliases.
    """
    siteinfo: File | None = None
    """JSON file with the siteinfo from the wiki's API, which contains the aliases of namespaces."""
    only_titles: File | None = None
    """File of titles, one per line. Only these articles and the redirects to them are built."""
    limit_pages: AtLeast1 | None = None
    """Read only the first N pages of the dump. Pages of all namespaces count."""
    as_of: Annotated[
        str | None,
        Parameter(metavar="TIME", validator=Like(_TIME, "2019-08-01T00:00:00Z")),
    ] = None
    """Use the newest revision of each page up to TIME, like 2019-08-01T00:00:00Z."""
    templates: Literal["lua", "definitions", "rules"] = "lua"
    """How templates are rendered. lua: by the definitions in the dump and the Lua modules that they call; by rules
    where there is no definition. definitions: the same without Lua modules, which is faster. rules: only by rules.
    """
    references: bool = False
    """Write tables of references and of their positions in the text. The build then takes about 1.6 times as long."""
    spread_tables: bool = False
    """Repeat each cell of a table in every row and column that the cell covers."""
    record_dependencies: bool = False
    """Write tables of the inputs of each page. A later build can then use this release as its --base."""
    base: Release | None = None
    """Release of an earlier dump, built with --record-dependencies. Pages whose inputs did not change are copied from
    it. This saves time and does not change the output.
    """
    max_rejects: Share = 0.001
    """Maximum share of pages that may be rejected."""
    max_fallbacks: Share = 0.001
    """Maximum share of articles that may be extracted by a simpler method because the parser failed. Ten articles are
    always allowed.
    """
    allow_truncated: Truncated = False
    page_timeout_s: Annotated[Seconds, Parameter("--page-timeout")] = 60.0
    """Maximum time for one page. A page that takes longer is extracted by a simpler method."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None
    parser: Annotated[str, Parameter(parse=False)] = "kbsource.pages.articles:PageParser"
    """Page parser, as ``module:class``. The class is called with the site and, if they are used, the template
    definitions.
    """

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in PLACES}
        return {**values, "only_titles": self.only_titles is not None}
