"""Options of ``kbsource build``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from mapping.options import Checked, option, path_option
from pipelines.options.fields import memory_option, output_option, range_option, rejects_option, truncated_option

_PLACES = ("dump", "output", "page_props", "wikidata", "siteinfo")


@dataclass(frozen=True, slots=True)
class BuildOptions(Checked):
    """What is built, and how.

    Attributes:
        parser: ``module:class`` of what parses pages, made with the site and, where they are used, the definitions.
    """

    dump: tuple[str, ...] = option(
        help="file or pattern of the dump; may be given several times; quote patterns",
        metavar="PATTERN",
        is_repeated=True,
    )
    output: str = output_option("the release")
    page_props: str | None = path_option("page_props.sql.gz of the same date: Wikidata items, disambiguation")
    wikidata: str | None = path_option(
        "release that kbsource wikidata made: items by sitelink, with labels, descriptions and aliases", "DIR"
    )
    siteinfo: str | None = path_option("siteinfo as JSON from the wiki's API: aliases of namespaces")
    only_titles: str | None = path_option(
        "only the articles whose titles the file lists, one a line, and the redirects that lead to them"
    )
    limit_pages: int | None = option(
        None,
        "only the first N pages of the dump, of all namespaces",
        lowest=1,
        remedy="give at least 1, or leave it out for all pages",
    )
    as_of: str | None = option(
        None,
        "of each page the newest revision not after TIME, like 2019-08-01T00:00:00Z",
        metavar="TIME",
        form=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        like="2019-08-01T00:00:00Z",
    )
    templates: Literal["definitions", "lua", "rules"] = option(
        "definitions",
        "what shows a template that no rule knows: its own definition in the dump, that with the Lua modules that it "
        "calls (needs kbsource[lua]), or nothing",
        choices=("definitions", "lua", "rules"),
    )
    max_rejects: float = rejects_option(0.001, of="pages")
    allow_truncated: bool = truncated_option()
    page_timeout_s: float = option(
        60.0,
        "longest time for one page, which is then extracted in a simpler way",
        flag="--page-timeout",
        metavar="SECONDS",
        above=0,
        remedy="give a number of seconds above 0",
    )
    worker_memory_bytes: int = memory_option()
    range_bytes: int | None = range_option()
    parser: str = "kbsource.pages.articles:PageParser"

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in _PLACES}
        return {**values, "only_titles": self.only_titles is not None}
