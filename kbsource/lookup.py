"""Looks up pages of a finished release by id, title, URL and Wikidata item."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kbsource.catalogue import find_release
from kbsource.errors import DataError, SetupError, named_faults
from kbsource.files import Folder
from kbsource.index.title_index import TitleIndex
from kbsource.records import Page
from kbsource.release.pages.kind import OPTIONAL_TABLES, PAGES_RELEASE, TABLES, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.pages.reading import PageReferences, PagesReader, page_references, pages_of
from kbsource.release.reader import opened_table
from kbsource.site import Site
from kbsource.titles import UrlParser, normalise_title

if TYPE_CHECKING:
    from polars import DataFrame
    from pyarrow.compute import Expression

    from kbsource.release.side_index import OrderedRows, SideIndex


class LookupResult(NamedTuple):
    """The result of ``KnowledgeSource.resolve``: how a page was found, or why it was not."""

    by: str  #: ``id``, ``title`` or ``url``
    requested: str  #: the requested id, or the requested title in normal form
    title: str | None  #: title of the page; None if there is no page, and so is its id
    page_id: int | None
    fragment: str | None  #: section, from the URL or from a redirect
    hops: int  #: number of redirects followed
    #: ``article`` without redirects; ``ok`` for one redirect, ``double`` for several; ``loop``, ``missing_target`` or
    #: ``cross_namespace`` for redirects that reach no article; ``unknown`` if the dump has no such title;
    #: ``not_released`` if the article was rejected
    status: str


class KnowledgeSource:
    """A finished release of pages; use ``open`` to open one.

    Memory use is constant: the index is memory-mapped, and caches and open files are bounded. Iteration yields the
    pages in the order of the release. Threads may share a source; they read pages one at a time.
    """

    def __init__(self, manifest: PagesManifest, *, folder: Folder, index: TitleIndex, locations: Locations) -> None:
        self.manifest = manifest
        self.site: Site = manifest.site
        self._parse_url = UrlParser(self.site).parse
        self._index = index
        self._locations = locations
        self._folder = folder
        self._reader = PagesReader(folder, (entry.file for entry in manifest.tables["pages"]))
        self._inlinks: SideIndex[OrderedRows] | None = None
        self._turn = RLock()

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Folder) -> KnowledgeSource:
        """Opens a release: the folder that ``kbsource build`` wrote, or its name (see ``catalogue.find_release``).

        Raises:
            SetupError: the folder contains no finished release, the release has another version, or its store does not
                answer.
        """
        folder = Folder.of(find_release(path) if isinstance(path, str) else path)
        path = folder.url
        manifest = PAGES_RELEASE.read(path)
        index = index_folder(path, manifest)
        return cls(manifest, folder=folder, index=TitleIndex.open(index), locations=Locations(index))

    def __repr__(self) -> str:
        named = " ".join(filter(None, (self.site.dbname, self.manifest.dump.date)))
        return f"<KnowledgeSource {named or self._folder.url}: {len(self):,} pages>"

    def __enter__(self) -> KnowledgeSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files. The source can still be used afterwards, and then opens them again."""
        self._reader.close()
        with self._turn:
            if self._inlinks is not None:
                self._inlinks.close()
                self._inlinks = None

    def linking(self, page_id: int) -> list[int]:
        """Returns the ids of the pages that link to a page, in ascending order; empty if the release does not contain
        the page.

        The first call reads all links and writes an index to the cache folder (``XDG_CACHE_HOME``). Later calls and the
        inspector use this index. Needs pip install 'kbsource[verify]'.

        Raises:
            SetupError: the index cannot be written, or a file of the release is damaged.
        """
        from kbsource.release.pages.inlinks import inlinks_index, linking_ids  # slow imports, because of DuckDB

        with self._turn:
            if self._inlinks is None:
                self._inlinks = inlinks_index(self._folder.url, self.manifest)
            index = self._inlinks.wait()
            if index is None:
                raise SetupError(f"the links of {self._folder.url} cannot be indexed: {self._inlinks.fault}")
            return linking_ids(index, page_id)

    def __len__(self) -> int:
        """The number of pages."""
        return self.manifest.totals.articles

    def __iter__(self) -> Iterator[Page]:
        """Iterates over all pages in the order of the release.

        Raises:
            SetupError: a file is damaged.
        """
        return self.pages()

    def pages(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Expression | None = None,
        files: Sequence[int] | None = None,
    ) -> Iterator[Page]:
        """Iterates over all or some of the pages in the order of the release, with all or some of their columns.

        Args:
            columns: columns of the table ``pages``; a page then has no other fields.
            where: a condition on these columns, such as ``pyarrow.compute.field("is_disambiguation")``.
            files: numbers of the table's files to read, from 0.

        Raises:
            SetupError: a file is damaged, or there is no such column or file.
        """
        batches = self.batches("pages", columns=columns, where=where, files=files)
        return chain.from_iterable(pages_of(batch, columns) for batch in batches)

    def batches(
        self,
        table: str = "pages",
        *,
        columns: Sequence[str] | None = None,
        where: Expression | None = None,
        files: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Reads a table of the release in its order, as record batches. Memory: one row group. The arguments are the
        same as for ``pages``.
        """
        entries = self.manifest.tables.get(table)
        if entries is None:
            raise SetupError(f"the release has no table {table!r}; it has {', '.join(self.manifest.tables)}.")
        if columns is not None and not columns:
            raise SetupError(
                "columns is empty; name at least one column, or leave the argument out to get all columns."
            )
        schema = (TABLES | OPTIONAL_TABLES)[table]
        if unknown := [name for name in columns or () if name not in schema.names]:
            raise SetupError(f"{table} has no column {unknown[0]!r}; it has {', '.join(schema.names)}.")
        if unheld := [number for number in files or () if not 0 <= number < len(entries)]:
            raise SetupError(f"{table} has no file {unheld[0]}; its files are numbered 0 to {len(entries) - 1}.")
        if where is not None:
            empty = schema.empty_table()
            try:
                (empty if columns is None else empty.select([*columns])).filter(where)
            except (pa.ArrowException, TypeError) as error:
                raise SetupError(f"where {where}: not a condition on these columns of {table} ({error}).") from error
        own = entries if files is None else [entries[number] for number in files]
        return self._batches([entry.file for entry in own], columns, where)

    def _batches(
        self, files: Sequence[str], columns: Sequence[str] | None, where: Expression | None
    ) -> Iterator[pa.RecordBatch]:
        with named_faults():
            for path in files:
                with opened_table(self._folder / path) as file:
                    for group in range(file.metadata.num_row_groups):
                        rows = file.read_row_group(group, columns=columns and [*columns], use_threads=False)
                        yield from (rows if where is None else rows.filter(where)).to_batches()

    def to_arrow(
        self, table: str = "pages", *, columns: Sequence[str] | None = None, where: Expression | None = None
    ) -> pa.Table:
        """Returns a table of the release, or a part of it, in memory. The arguments are the same as for ``pages``."""
        schema = (TABLES | OPTIONAL_TABLES).get(table, pa.schema([]))
        batches = list(self.batches(table, columns=columns, where=where))
        own = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(batches, batches[0].schema if batches else own)

    def to_polars(
        self, table: str = "pages", *, columns: Sequence[str] | None = None, where: Expression | None = None
    ) -> DataFrame:
        """Returns a table of the release, or a part of it, as a Polars data frame. The arguments are the same as for
        ``to_arrow``.

        Raises:
            SetupError: Polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError as error:
            if error.name != "polars":
                raise
            raise SetupError("Polars is not installed: run pip install polars, or use to_arrow.") from error

        frame = polars.from_arrow(self.to_arrow(table, columns=columns, where=where))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __getitem__(self, wanted: int | str) -> Page:
        """Returns the page that ``get`` returns.

        Raises:
            KeyError: there is no such page; the message contains the reason.
        """
        found = self.resolve(wanted)
        page = self._page(found)
        if page is None:
            raise KeyError(f"{wanted!r}: {found.status}")
        return page

    def __contains__(self, wanted: object) -> bool:
        """Returns whether ``get`` returns a page for an id, a title or a URL."""
        return isinstance(wanted, int | str) and self.resolve(wanted).page_id is not None

    def by_id(self, page_id: int) -> Page | None:
        """Returns the page with a MediaWiki page id; None if the release does not contain it.

        Raises:
            SetupError: the file of the page is damaged, or is not the file that the index was made for.
        """
        with self._turn, named_faults():
            location = self._locations.page(page_id)
            page = None if location is None else self._reader.page(*location)
        if location is not None and (page is None or page.page_id != page_id):
            file = self.manifest.tables["pages"][location[0]].file
            raise DataError(
                f"{file}: row {location[1]} does not contain page {page_id}, so the index was made for a different "
                f"file. kbsource verify reports the differences; download the release again."
            )
        return page

    def references(self, page_id: int) -> PageReferences:
        """Returns the references of a page with their uses; both are empty if the release does not contain the page.

        Raises:
            DataError: the release was built without ``--references``.
        """
        with self._turn, named_faults():
            location = self._locations.page(page_id)
            shard = 0 if location is None else location[0]
            return page_references(self._folder, self.manifest, shard, page_id)

    def by_title(self, title: str) -> Page | None:
        """Returns the page that a title resolves to, after normalisation and redirects; None if there is none."""
        with self._turn:
            return self._page(self._resolve_title(title, "title"))

    def by_url(self, url: str) -> Page | None:
        """Returns the page that a URL of the wiki resolves to; None if there is none."""
        with self._turn:
            return self._page(self._resolve_url(url))

    def by_qid(self, qid: str) -> Page | None:
        """Returns the page that has a Wikidata item (``Q42``); None if no page has it."""
        with self._turn:
            page_id = self._locations.page_of_qid(qid)
        return None if page_id is None else self.by_id(page_id)

    def resolve(self, wanted: int | str) -> LookupResult:
        """Finds a page by id, title or URL without reading it. The result reports how it was found.

        A string that contains ``://`` is a URL. A string of digits is a title if such a title exists (``1984``),
        otherwise an id.
        """
        with self._turn:
            if isinstance(wanted, int):
                return self._resolve_id(wanted)
            if "://" in wanted:
                return self._resolve_url(wanted)
            found = self._resolve_title(wanted, "title")
            if found.status == "unknown" and wanted.isascii() and wanted.isdecimal():
                return self._resolve_id(int(wanted))
            return found

    def get(self, wanted: int | str) -> Page | None:
        """Returns the page that ``resolve`` finds; None if it finds none."""
        return self._page(self.resolve(wanted))

    def _page(self, found: LookupResult) -> Page | None:
        return None if found.page_id is None else self.by_id(found.page_id)

    def _resolve_id(self, page_id: int) -> LookupResult:
        if self._locations.page(page_id) is None:
            status = "unknown" if self._index.article_title(page_id) is None else "not_released"
            return LookupResult("id", str(page_id), None, None, None, 0, status)
        return LookupResult("id", str(page_id), self._index.article_title(page_id), page_id, None, 0, "article")

    def _resolve_url(self, url: str) -> LookupResult:
        address = self._parse_url(url)
        if address is None:
            return LookupResult("url", url, None, None, None, 0, "unknown")
        if address.page_id is not None:
            return self._resolve_id(address.page_id)
        if address.title is None:
            return LookupResult("url", url, None, None, None, 0, "unknown")
        found = self._resolve_title(address.title, "url")
        return found._replace(fragment=address.fragment or found.fragment)

    def _resolve_title(self, title: str, by: str) -> LookupResult:
        requested = normalise_title(title, self.site)
        found = self._index.resolve(requested)
        if found.page_id is None:
            return LookupResult(by, requested, None, None, None, found.hops, found.status)
        if self._locations.page(found.page_id) is None:
            return LookupResult(by, requested, None, None, None, found.hops, "not_released")
        return LookupResult(by, requested, found.title, found.page_id, found.fragment, found.hops, found.status)
