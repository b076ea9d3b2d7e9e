"""What of two releases is compared: the texts of pages."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Self

import pyarrow as pa

from kbsource.errors import DataError, SetupError
from kbsource.release.layout import MANIFEST
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.pages.reading import PagesReader

_COLUMNS = tuple(f"elements.list.element.{name}" for name in ("kind", "section", "text"))
_CACHED = 64


class PageText(NamedTuple):
    """What of a page is compared, an item an element."""

    texts: list[str]
    sections: list[list[str]]  #: headings that each stands under, outermost first; a heading's own comes last
    is_heading: list[bool]


class PageTexts:
    """Texts of the pages of one release. A context: the files are closed behind it. Memory: a few row groups.

    Args:
        sha256: of its manifest; None where any release will do.

    Raises:
        SetupError: there is no release, or it is another one.
    """

    def __init__(self, path: str, *, sha256: str | None = None) -> None:
        self.manifest: PagesManifest = PAGES_RELEASE.read(path)
        if sha256 not in (None, self.manifest.sha256):
            raise SetupError(
                f"{path} is another release than the diff was made from: give the one with manifest {sha256}."
            )
        self._path = path
        self._locations = Locations(index_folder(path, self.manifest))
        self._reader = PagesReader(path, self.manifest, columns=_COLUMNS)
        self._cached: OrderedDict[tuple[int, int], PageText] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def by_id(self, page_id: int) -> PageText | None:
        """The page with an id; None where there is none."""
        location = self._locations.page(page_id)
        return None if location is None else self.at(*location)

    def at(self, shard: int, row: int) -> PageText:
        """The page in a row of a file.

        Raises:
            DataError: the file has fewer rows.
        """
        found = self._cached.pop((shard, row), None)
        if found is None:
            batch = self._reader.row(shard, row)
            if batch is None:
                raise DataError(
                    f"{self._path}/{MANIFEST}: file {shard} of pages has no row {row}; get the release again."
                )
            found = _page_text(batch)
            if len(self._cached) == _CACHED:
                self._cached.popitem(last=False)
        self._cached[shard, row] = found
        return found


def _page_text(batch: pa.RecordBatch) -> PageText:
    elements = batch["elements"].flatten()
    kinds, sections, texts = (elements.field(name).to_pylist() for name in ("kind", "section", "text"))
    return PageText(texts, sections, [kind == "heading" for kind in kinds])
