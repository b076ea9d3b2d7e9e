"""What a build knows of all titles once they were read: title index, items, and where they were left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from kbsource.dump.rejects import DUPLICATE, check_rejects
from kbsource.dump.sql import read_page_props
from kbsource.errors import DataError
from kbsource.files import LocalStorage, ReadableStorage, read_json, write_json
from kbsource.index.page_props import CLAIMS_FILE, PagePropsReport, QidConflict, build_page_props
from kbsource.index.title_index import TitleIndex
from kbsource.index.title_index_build import DROPPED_FILE, TitleIndexReport, build_title_index
from kbsource.pages.page_items import Sitelinks
from kbsource.records import BadRecord
from kbsource.site import Site
from kbsource.wikidata.reader import WikidataTables

INDEXES_FILE = "indexes.json"


@dataclass(frozen=True, slots=True)
class Indexes:
    """What is known of all titles once they were read.

    Attributes:
        folder: local folder of the index files.
        titles: report of the title index.
        page_props: report of page_props and sitelinks; None without both.
        sitelinks: how many of Wikidata's sitelinks lead to redirects, and to pages that are missing; None without it.
        n_bad_props: rows of page_props that could not be read.
    """

    folder: str
    titles: TitleIndexReport
    page_props: PagePropsReport | None
    sitelinks: tuple[int, int] | None
    n_bad_props: int

    def write(self) -> None:
        """Writes into the folder what ``read`` gives back: it is the last file there, and says that all are whole."""
        props = self.page_props
        value = {
            "titles": asdict(self.titles),
            "page_props": None if props is None else {**asdict(props), "conflicts": list(map(tuple, props.conflicts))},
            "sitelinks": self.sitelinks,
            "n_bad_props": self.n_bad_props,
        }
        write_json(LocalStorage(), os.path.join(self.folder, INDEXES_FILE), value)

    @classmethod
    def read(cls, folder: str) -> Indexes:
        """Gives back what ``write`` wrote into a local folder."""
        value = read_json(LocalStorage(), os.path.join(folder, INDEXES_FILE))
        props, links = value["page_props"], value["sitelinks"]
        if props is not None:
            conflicts = tuple(QidConflict(*one) for one in props["conflicts"])
            claims_path = os.path.join(folder, CLAIMS_FILE)
            props = PagePropsReport(**{**props, "conflicts": conflicts, "claims_path": claims_path})
        return cls(folder, TitleIndexReport(**value["titles"]), props, links and tuple(links), value["n_bad_props"])


def build_indexes(
    titles: Iterable[pa.RecordBatch],
    *,
    folder: str,
    scratch: str,
    page_props: str | None,
    props_storage: ReadableStorage,
    wikidata: WikidataTables | None,
    site: Site,
    max_share: float,
) -> Indexes:
    """Builds title index and page_props index of a scanned dump.

    Args:
        titles: of schema ``TITLE_ROWS``, in order.
        folder: local folder for the index files.
        scratch: local folder for scratch files.
        page_props: SQL dump of that table, None without one.
        props_storage: where that is.
        wikidata: release of Wikidata, None without one.
        site: facts of the wiki.
        max_share: highest share of the titles that may be left out because their page ids are not unique.

    Raises:
        SetupError: page_props cannot be read.
        DataError: page_props is damaged, or too many pages come twice.
    """
    built = build_title_index(titles, folder, scratch=scratch)
    check_rejects(
        Counter({DUPLICATE: built.n_dropped}),
        built.n_titles + built.n_dropped,
        max_share=max_share,
        allow_truncated=True,
        what="titles",
    )
    os.replace(built.dropped_path, os.path.join(folder, DROPPED_FILE))
    props, links, n_bad = None, None, 0
    if page_props is not None or wikidata is not None:
        index = TitleIndex.open(folder)
        links = Sitelinks(wikidata, site, index) if wikidata is not None else None
        rows = _PropRows(page_props, props_storage)
        props = build_page_props(
            rows, folder, scratch=scratch, is_article=index.has_articles, sitelinks=() if links is None else links
        )
        os.replace(props.claims_path, os.path.join(folder, CLAIMS_FILE))
        n_bad = rows.n_bad
    found = None if links is None else (links.n_redirects, links.n_missing)
    indexes = Indexes(folder, built, props, found, n_bad)
    indexes.write()
    return indexes


class _PropRows:
    """The rows of page_props, none without a path; counts those that cannot be read, and stops at damage."""

    def __init__(self, path: str | None, storage: ReadableStorage) -> None:
        self._path = path
        self._storage = storage
        self.n_bad = 0

    def __iter__(self) -> Iterator[tuple[int, str, str]]:
        if self._path is None:
            return
        names = frozenset({"wikibase_item", "disambiguation"})
        for row in read_page_props(self._path, self._storage, names=names):
            if not isinstance(row, BadRecord):
                yield row
            elif row.reason == "malformed_row":
                self.n_bad += 1
            else:
                raise DataError(
                    f"{self._path}: {row.reason} at byte {row.offset}: {row.detail}. Fetch the file again, or build "
                    "without --page-props."
                )
