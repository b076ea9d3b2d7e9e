"""Wikitext -> pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.pages.page_chunks import PARSER, MakePages, PageChunks
from kbsource.site import Site
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.transforms.title_index import local_index


@dataclass(frozen=True, slots=True)
class _MakePagesHere:
    """Gives the chunk function with an index that may lie elsewhere."""

    make: MakePages

    def prepare(self, *folders: str) -> None:
        """Has index and definitions copied to this machine, for as long as this process lives."""
        for folder in folders:
            local_index(folder)

    def __call__(self, *folders: str) -> PageChunks:
        return self.make(*map(local_index, folders))


class ParseWikitext(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, raw articles) -> (Key, pages): text with sections, exact offsets of links, tables, infoboxes.

    Each article is parsed in a guarded process, see ``GuardedMap``: one that does not end in time, or ends the process,
    is extracted in the simplest way and says so in ``parse_status``; nothing else is touched by it.

    Outputs:
        ``chunks``: (Key, pages of schema ``kbsource.schema.PAGES``), a chunk for each that comes, with the same key.
        ``rejected``: ``BadRecord`` of articles that nothing can be made of: ``page_timeout``, ``page_crash``,
            ``page_error``, ``offset_law``, ``page_law``, ``bad_text``, ``bad_timestamp``.
        ``counts``: (Key, dict): ``articles`` written; ``skipped``, for a newer row has their page id.

    ``kbsource.release.columns.batch_to_pages`` gives the pages of a chunk as records.

    Args:
        site: facts of the wiki, ``ReadWikipediaDump.site``.
        index: PCollection of one element, from ``BuildTitleIndex``; without it links are not looked up, and have no
            page ids.
        definitions: PCollection of one element, from ``BuildDefinitions``, for a wiki with an index; without it
            templates are known by the rules alone.
        has_lua: modules that definitions call are run, which needs ``kbsource[lua]`` wherever pages are parsed.
        has_items: the index says which page has which item.
        parser: ``module:class`` of what parses, made with the site; see ``kbsource.pages.page_chunks.Parser``.
        folder, timeout_s, memory_bytes, beats: see ``GuardedMap``; the time is that of one article.
    """

    def __init__(
        self,
        site: Site,
        index: Any = None,
        *,
        definitions: Any = None,
        has_lua: bool = False,
        has_items: bool = False,
        parser: str = PARSER,
        folder: str | None = None,
        timeout_s: float | None = 60.0,
        memory_bytes: int | None = 4 << 30,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        if index is None and definitions is not None:
            raise SetupError("Definitions are used together with an index; give one from BuildTitleIndex.")
        self._parse = GuardedMap(
            _MakePagesHere(MakePages(site, parser, has_items, has_lua)),
            given=tuple(beam.pvalue.AsSingleton(folder) for folder in (index, definitions) if folder is not None),
            folder=folder,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            beats=beats,
        )

    def expand(self, chunks: Any) -> Any:
        return chunks | "parse" >> self._parse
