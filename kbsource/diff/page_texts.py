"""Reads the texts of pages for comparing two releases."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple, Self

from kbsource.errors import DataError, SetupError
from kbsource.release.layout import MANIFEST
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.pages.reading import PagesReader

_COLUMNS = tuple(f"elements.list.element.{name}" for name in ("kind", "section", "text"))
_CACHED = 64


class ComparedPage(NamedTuple):
    """The compared data of a page, one item per element."""

    texts: list[str]
    sections: list[list[str]]  #: headings above each element, outermost first; a heading's own text comes last
    is_heading: list[bool]


class ComparedPages:
    """Texts of a release's pages. Use it as a context manager, which closes the files. Memory: a few row groups.

    Args:
        sha256: checksum of its manifest; None to accept any release.

    Raises:
        SetupError: there is no release, or it is not the expected one.
    """

    def __init__(self, path: str, *, sha256: str | None = None) -> None:
        self.manifest: PagesManifest = PAGES_RELEASE.read(path)
        if sha256 not in (None, self.manifest.sha256):
            raise SetupError(
                f"{path} is not the release that the diff was made from; give the release whose manifest has the "
                f"SHA-256 {sha256}."
            )
        self._locations = Locations(index_folder(path, self.manifest))
        self._reader = PagesReader(path, (entry.file for entry in self.manifest.tables["pages"]), columns=_COLUMNS)
        #: returns the page in a row of a file, by the numbers of both; raises DataError if the file has fewer rows
        self.at = lru_cache(_CACHED)(partial(_page_text, path, self._reader))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def by_id(self, page_id: int) -> ComparedPage | None:
        """Returns the page with this id, or None."""
        location = self._locations.page(page_id)
        return None if location is None else self.at(*location)


def _page_text(path: str, reader: PagesReader, shard: int, row: int) -> ComparedPage:
    batch = reader.row(shard, row)
    if batch is None:
        raise DataError(f"{path}/{MANIFEST}: file {shard} of pages has no row {row}; download the release again.")
    elements = batch["elements"].flatten()
    kinds, sections, texts = (elements.field(name).to_pylist() for name in ("kind", "section", "text"))
    return ComparedPage(texts, sections, [kind == "heading" for kind in kinds])
