"""Pages: parsed from wikitext, or read from a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.files import absolute, join
from kbsource.pages.articles import PARSER, MakePages
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_sizes
from kbsource.site import Site
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.transforms.tables import ReadTable


class ParseWikitext(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Parses articles into pages: text with sections, exact link offsets, tables and infoboxes.

    (key, raw articles) -> (key, pages).

    Each article is parsed in a guarded process, see ``GuardedMap``. An article that exceeds the time limit or crashes
    the process is extracted by a simpler method, which is recorded in ``parse_status``. Other articles are not
    affected.

    Outputs:
        ``chunks``: (key, pages of ``kbsource.records.Page``), one chunk per input chunk, with the same key.
        ``rejected``: ``BadRecord`` of articles that cannot be extracted at all: ``page_timeout``, ``page_crash``,
            ``page_error``, ``span_mismatch``, ``invalid_page``, ``bad_text``.
        ``counts``: (key, dict): ``articles`` written, including ``taken_over``; ``skipped``, because a newer row has
            their page id.

    ``kbsource.columns.rows_of`` returns the pages of a chunk as records.

    Args:
        site: facts about the wiki, ``ReadWikipediaDump.site``.
        index: PCollection of one element, from ``BuildTitleIndex``; without it, links are not resolved and have no page
            ids.
        definitions: PCollection of one element, from ``BuildDefinitions``, for a wiki with an index; without it,
            templates are rendered only by the rules.
        has_lua: run the Lua modules that definitions call.
        has_items: the index maps pages to items.
        has_references: output pages are ``kbsource.wikitext.reference_rows.PageWithReferences``, with their references.
        has_dependencies: output pages also have a column ``dependencies`` of ``kbsource.records.PageDependencies``.
        base: folder of a release with dependencies. Pages that would be parsed to the same result are copied from it;
            ``index`` must then come from ``FindChanges``.
        spreads_tables: repeat cells over the rows and columns that they cover.
        parser: ``module:class`` of the parser, constructed with the site; see ``kbsource.pages.articles.Parser``.
        folder, timeout_s, memory_bytes, beats, removes_input: see ``GuardedMap``; the timeout applies to one article.
    """

    def __init__(
        self,
        site: Site,
        index: Any = None,
        *,
        definitions: Any = None,
        has_lua: bool = True,
        has_items: bool = False,
        has_references: bool = False,
        has_dependencies: bool = False,
        base: str | None = None,
        spreads_tables: bool = False,
        parser: str = PARSER,
        folder: str | None = None,
        timeout_s: float | None = 60.0,
        memory_bytes: int | None = 4 << 30,
        beats: str | None = None,
        removes_input: bool = False,
    ) -> None:
        super().__init__()
        if index is None and definitions is not None:
            raise SetupError("Definitions need an index of titles; give one from BuildTitleIndex.")
        self._parse = GuardedMap(
            MakePages(site, parser, has_items, has_lua, has_references, has_dependencies, base, spreads_tables),
            given=tuple(beam.pvalue.AsSingleton(folder) for folder in (index, definitions) if folder is not None),
            folder=folder,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            beats=beats,
            removes_input=removes_input,
        )

    def expand(self, chunks: Any) -> Any:
        return chunks | "parse" >> self._parse


class ReadPages(ReadTable):
    """Reads the pages of a release, as (key, record batch of ``kbsource.records.Page``). Applied to a pipeline.

    A chunk is a row group; its key is the number of the file and the number of the row group in it. All workers read
    files, each with one row group in memory. ``kbsource.columns.rows_of`` returns the pages of a batch as records if
    all columns are read.

    Args:
        release: folder of the release; local, or in a file system that Beam supports.
        columns: the columns to read, in this order; None for all.

    Raises:
        DataError: the manifest is damaged.
        SetupError: there is no release, or a file is missing or truncated.
    """

    def __init__(self, release: str, *, columns: Sequence[str] | None = None) -> None:
        release = absolute(release)
        entries = PAGES_RELEASE.read(release).tables["pages"]
        check_sizes(release, entries)
        super().__init__([join(release, entry.file) for entry in entries], columns, chunk_rows=1)
