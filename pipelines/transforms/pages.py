"""Pages: made out of wikitext, read from a release, cut into passages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.files import absolute, join
from kbsource.pages.articles import PARSER, MakePages
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_sizes
from kbsource.site import Site
from mapping.passages.corpus import Base, PassageChunks
from mapping.passages.cut import CutOptions
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.transforms.tables import ReadTable


class ParseWikitext(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, raw articles) -> (key, pages): text with sections, exact offsets of links, tables, infoboxes.

    Each article is parsed in a guarded process, see ``GuardedMap``: one that does not end in time, or ends the process,
    is extracted in the simplest way and says so in ``parse_status``; nothing else is touched by it.

    Outputs:
        ``chunks``: (key, pages of ``kbsource.records.Page``), a chunk for each that comes, with the same key.
        ``rejected``: ``BadRecord`` of articles that nothing can be made of: ``page_timeout``, ``page_crash``,
            ``page_error``, ``offset_law``, ``page_law``, ``bad_text``.
        ``counts``: (key, dict): ``articles`` written, ``taken_over`` of them; ``skipped``, for a newer row has their
            page id.

    ``kbsource.columns.rows_of`` gives the pages of a chunk as records.

    Args:
        site: facts of the wiki, ``ReadWikipediaDump.site``.
        index: PCollection of one element, from ``BuildTitleIndex``; without it links are not looked up, and have no
            page ids.
        definitions: PCollection of one element, from ``BuildDefinitions``, for a wiki with an index; without it
            templates are known by the rules alone.
        has_lua: modules that definitions call are run, which needs ``kbsource[lua]`` wherever pages are parsed.
        has_items: the index says which page has which item.
        has_references: pages come as ``kbsource.wikitext.reference_rows.NotedPage``, with their references.
        has_traces: pages have a column ``trace`` besides, of ``kbsource.records.Trace``.
        base: folder of a release with traces whose pages are taken over where they would be made into the same again;
            ``index`` is then from ``FindChanges``.
        parser: ``module:class`` of what parses, made with the site; see ``kbsource.pages.articles.Parser``.
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
        has_references: bool = False,
        has_traces: bool = False,
        base: str | None = None,
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
            MakePages(site, parser, has_items, has_lua, has_references, has_traces, base),
            given=tuple(beam.pvalue.AsSingleton(folder) for folder in (index, definitions) if folder is not None),
            folder=folder,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            beats=beats,
        )

    def expand(self, chunks: Any) -> Any:
        return chunks | "parse" >> self._parse


class ReadPages(ReadTable):
    """The pages of a release -> (key, record batch of ``kbsource.records.Page``). Applied to a pipeline.

    A chunk is a row group; the key is number of the file, number of the row group in it. Files are read by as many
    workers as there are, one row group of each in memory. ``kbsource.columns.rows_of`` gives the pages
    of a batch as records, where all columns are read.

    Args:
        release: folder of the release; local, or of a file system of Beam.
        columns: which ones, in that order; None for all.

    Raises:
        DataError: the manifest is damaged.
        SetupError: there is no release, or a file is missing or cut off.
    """

    def __init__(self, release: str, *, columns: Sequence[str] | None = None) -> None:
        release = absolute(release)
        entries = PAGES_RELEASE.read(release).tables["pages"]
        check_sizes(release, entries)
        super().__init__([join(release, entry.file) for entry in entries], columns, chunk_rows=1)


class CutPassages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, pages) -> passages, each with its exact place: consecutive whole sentences, or what the unit says.

    Pages are a ``BatchRef`` or a record batch with the columns ``page_id``, ``title`` and ``elements`` of the table
    ``pages``; of elements ``kind``, ``marker``, ``section`` and ``text`` are needed.
    ``mapping.passages.corpus.PAGE_COLUMNS`` names them for ``ReadPages``.

    Outputs, as those of ``GuardedMap``:
        ``chunks``: (key, ``BatchRef``) with a folder, else (key, record batch), of schema
            ``mapping.passages.corpus.PASSAGES``, in the order of the pages.
        ``counts``: (key, dict) of ``pages``, ``pages_without_text``, ``passages``, ``words`` and ``long_passages``;
            of the pages ``taken_over`` out of the base.
        ``rejected``: nothing.

    Args:
        lang: language of the wiki, by whose rules tokens are counted.
        base: files of an earlier corpus, cut in the same way, and of the pages that it is of: passages of a page whose
            text has stayed the same are taken over.
        folder: takes a file for each chunk; None for none.
        memory_bytes: memory that a working process may allocate; None for no limit.
        beats: local folder where the processes show how far they are; None for none.

    Raises:
        SetupError: a page is not built as such.
    """

    def __init__(
        self,
        options: CutOptions | None = None,
        *,
        lang: str = "en",
        base: Base | None = None,
        folder: str | None = None,
        memory_bytes: int | None = None,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        make = partial(PassageChunks, options or CutOptions(), lang, base)
        self._cut = GuardedMap(make, folder=folder, memory_bytes=memory_bytes, beats=beats)

    def expand(self, pages: Any) -> Any:
        return pages | self._cut
