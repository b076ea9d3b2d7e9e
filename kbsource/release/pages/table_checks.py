"""The part of a verification that reads tables and index and compares them with each other."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.index.redirects import redirect_rows
from kbsource.index.title_index import ARTICLES_FILE, TITLES_FILE, TitleIndex
from kbsource.release.layout import MANIFEST, index_path
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.index_checks import index_faults
from kbsource.release.pages.locations import PAGES_FILE, QIDS_FILE, Locations, index_folder
from kbsource.release.pages.page_checks import check_pages, uses_by_outcome
from kbsource.schema import TABLES

if TYPE_CHECKING:
    from kbsource.release.pages.kind import PagesManifest
    from kbsource.release.verify import Checking

# Steps after the title index was built: a page rejected there is known to the index, and links may lead to
# it.
_LATE_STAGES = pa.array(["parse", "resolve"])

_SHOWING = pa.array(["rendered", "expanded", "invoked"])
"""Outcomes of templates that may show text."""

Ids = npt.NDArray[np.int64]


def check_tables(checking: Checking[PagesManifest]) -> Mapping[str, int]:
    """Checks every law of a release of pages and gives how much was checked. Memory: about 50 bytes a page."""
    checks = _TableChecks(checking)
    for entry in checking.manifest.tables["pages"]:
        checks.check_pages_file(entry)
    checks.check_other_tables()
    checks.check_whole()
    return {"pages": checks.n_pages, "anchors": checks.n_anchors, "redirects": checks.n_redirects}


class _TableChecks:
    """Checks of one release; only files that are ``intact`` are read."""

    def __init__(self, checking: Checking[PagesManifest]) -> None:
        self._checking, self._manifest, self._found = checking, checking.manifest, checking.found
        self._intact, self._is_intact = checking.intact, checking.is_intact
        self._index = self._open_index()
        self._page_ids: list[Ids] = []
        self._qids: list[Any] = []
        self._statuses: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()
        self._counted_uses: Counter[str] = Counter()
        self._late_ids: Ids = np.empty(0, np.int64)
        self.n_pages = self.n_anchors = self.n_redirects = 0

    def _open_index(self) -> TitleIndex | None:
        files = [index_path(file) for file in (TITLES_FILE, ARTICLES_FILE)]
        if not self._intact.issuperset(files):
            return None  # the damaged file is already named
        try:
            index = TitleIndex.open(self._titles_folder(), cache_size=0)
        except SetupError as error:
            self._found.add(files[0], "unreadable", str(error))
            return None
        faults = index_faults(index)
        for file, fault in faults:
            self._found.add(file, "index_disagrees", fault)
        return None if faults else index

    def _titles_folder(self) -> str:
        """Gives a local folder with the files of the title index."""
        return self._index_files(TITLES_FILE, ARTICLES_FILE)

    def _index_files(self, *names: str) -> str:
        return index_folder(self._checking.path, self._manifest, self._checking.storage, files=names)

    def check_pages_file(self, entry: FileEntry) -> None:
        """Checks one shard; call it for every shard in order."""
        ids: list[Ids] = [np.empty(0, np.int64)]
        qids = [pa.array([], pa.string())]

        def fault(rule: str, example: str, n_cases: int) -> None:
            self._found.add(entry.file, rule, example, n_cases)

        for batch in self._checking.file_batches(entry):
            columns = check_pages(batch, self._index, fault)
            ids.append(columns.page_ids)
            qids.append(columns.qids)
            self._statuses.update(columns.parse_statuses)
            self._uses.update(columns.template_uses)
            self.n_anchors += columns.n_anchors
        page_ids = np.concatenate(ids)
        self._page_ids.append(page_ids)
        self._qids.append(_qid_numbers(pa.concat_arrays(qids)))
        self.n_pages += len(page_ids)
        if self._manifest.page_order == "by_page_id" and np.any(page_ids[1:] <= page_ids[:-1]):
            self._found.add(entry.file, "page_order", "page ids do not ascend")

    def check_other_tables(self) -> None:
        """Checks redirects against the index, and the rejected against the counts."""
        self._check_redirects()
        self._check_templates()
        reasons: Counter[str] = Counter()
        late = []
        for _, batch in self._checking.batches("rejected"):
            reasons.update(batch["reason"].to_pylist())
            keys = batch["key"].filter(pc.is_in(batch["stage"], _LATE_STAGES)).to_pylist()
            late += [int(key) for key in keys if key.isascii() and key.isdecimal()]
        self._late_ids = np.array(late, np.int64)
        expected = {reason: n for reason, n in self._manifest.totals.rejected.items() if n}
        if self._is_intact("rejected") and dict(reasons) != expected:
            self._found.add(MANIFEST, "counts", f"rejected by reason: {dict(reasons)}, expected {expected}")

    def _check_templates(self) -> None:
        """Counts the uses that the table tells, and checks that only what shows something has shown text."""
        for entry, batch in self._checking.batches("templates"):
            self._counted_uses.update(uses_by_outcome(batch))
            is_silent = pc.invert(pc.is_in(batch["outcome"], _SHOWING))
            wrong = batch.filter(pc.and_(is_silent, pc.not_equal(batch["shown_chars"], 0)))
            if wrong.num_rows:
                self._found.add(entry.file, "templates_disagree", f"{wrong['name'][0]} shows text", wrong.num_rows)

    def _check_redirects(self) -> None:
        """Compares the table with the index row by row, where both are intact."""
        can_compare = self._index is not None and self._is_intact("redirects")
        names = TABLES["redirects"].names
        with tempfile.TemporaryDirectory(prefix="kbsource-") as scratch:
            expected = redirect_rows(self._titles_folder(), scratch=scratch) if can_compare else iter(())
            for entry, batch in self._checking.batches("redirects"):
                self.n_redirects += batch.num_rows
                if not can_compare:
                    continue
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    wanted = next(expected, None)
                    if wanted is None or row != tuple(getattr(wanted, name) for name in names):
                        title = None if wanted is None else wanted.title
                        self._found.add(entry.file, "redirects_disagree", f"{row[1]!r}, not {title!r}")
            if next(expected, None) is not None:
                last = self._manifest.tables["redirects"][-1].file
                self._found.add(last, "redirects_disagree", "the index has more redirects")

    def check_whole(self) -> None:
        """Checks what only all shards together can show; call it last."""
        page_ids = np.concatenate([*self._page_ids, np.empty(0, np.int64)])
        self._check_unique(self._page_ids, "duplicate_page_id", "page id ")
        self._check_unique([qids[qids >= 0] for qids in self._qids], "duplicate_qid", "Wikidata item Q")
        if not self._is_intact("pages"):
            return
        expected = {status: n for status, n in self._manifest.parse_statuses.items() if n}
        if dict(self._statuses) != expected:
            self._found.add(MANIFEST, "counts", f"by parse status: {dict(self._statuses)}, expected {expected}")
        if self._is_intact("templates") and self._uses != self._counted_uses:
            told = f"uses by outcome: {dict(self._counted_uses)}, the pages have {dict(self._uses)}"
            self._found.add(self._manifest.tables["templates"][-1].file, "templates_disagree", told)
        self._check_locations(page_ids)
        if "page_items" in self._manifest.tables:
            self._check_page_items(page_ids)
        if self._index is not None and self._is_intact("rejected"):
            self._check_articles(self._index, page_ids)

    def _check_unique(self, shards: list[Ids], rule: str, what: str) -> None:
        values = np.concatenate([*shards, np.empty(0, np.int64)])
        order = np.argsort(values, kind="stable")
        again = order[1:][values[order[1:]] == values[order[:-1]]]
        ends = np.cumsum([len(shard) for shard in shards])
        for position in again.tolist():
            entry = self._manifest.tables["pages"][int(np.searchsorted(ends, position, side="right"))]
            self._found.add(entry.file, rule, f"{what}{values[position]}")

    def _check_locations(self, page_ids: Ids) -> None:
        """Compares both files of locations with the pages."""
        files = [index_path(file) for file in (PAGES_FILE, QIDS_FILE)]
        if not self._intact.issuperset(files):
            return
        try:
            locations = Locations(self._index_files(PAGES_FILE, QIDS_FILE))
        except SetupError as error:
            self._found.add(files[0], "unreadable", str(error))
            return
        sizes = [len(ids) for ids in self._page_ids]
        shards = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.concatenate([*map(np.arange, sizes), np.empty(0, np.int64)])
        order = np.argsort(page_ids, kind="stable")
        if not _is_same(locations.pages(), [page_ids[order], shards[order], rows[order]]):
            self._found.add(files[0], "index_disagrees", "other pages or places than the pages files have")
        qids = np.concatenate([*self._qids, np.empty(0, np.int64)])
        having = np.flatnonzero(qids >= 0)
        having = having[np.argsort(qids[having], kind="stable")]
        if not _is_same(locations.qids(), [qids[having], page_ids[having]]):
            self._found.add(files[1], "index_disagrees", "other Wikidata items than the pages have")

    def _check_page_items(self, page_ids: Ids) -> None:
        """Checks that every page has in the table the item that it has itself."""
        qids = np.concatenate([*self._qids, np.empty(0, np.int64)])
        order = np.argsort(page_ids, kind="stable")
        own, own_qids = page_ids[order], qids[order]
        n_items, last = 0, 0
        for entry, batch in self._checking.batches("page_items"):
            ids, found = batch["page_id"].to_numpy(), _qid_numbers(batch["qid"])
            n_items += int(np.count_nonzero(found >= 0))
            at = np.minimum(np.searchsorted(own, ids), max(len(own) - 1, 0))
            is_wrong = (own[at] != ids) | (own_qids[at] != found) if len(own) else np.ones(len(ids), np.bool_)
            is_wrong |= np.diff(ids, prepend=last) <= 0
            if is_wrong.any():
                example = f"page {ids[int(np.argmax(is_wrong))]}"
                self._found.add(entry.file, "items_disagree", example, int(np.count_nonzero(is_wrong)))
            last = int(ids[-1])
        if self._is_intact("page_items") and n_items != np.count_nonzero(qids >= 0):
            file = self._manifest.tables["page_items"][-1].file
            self._found.add(file, "items_disagree", f"{n_items} pages with an item, pages has another number")

    def _check_articles(self, index: TitleIndex, page_ids: Ids) -> None:
        """Checks that every article of the index is a page, or was rejected after the index was built."""
        for batch in index.article_batches():
            own = batch["page_id"].to_numpy()
            lost = own[~np.isin(own, page_ids) & ~np.isin(own, self._late_ids)]
            if len(lost):
                example = f"page {lost[0]} is in the index, but neither in pages nor in rejected"
                self._found.add(index_path(ARTICLES_FILE), "index_disagrees", example, len(lost))


def _qid_numbers(qids: pa.Array) -> Ids:
    """Gives the number of each item, -1 for none."""
    numbers = pc.fill_null(pc.utf8_slice_codeunits(qids, 1).cast(pa.int64()), -1)
    found: Ids = numbers.to_numpy(zero_copy_only=False)
    return found


def _is_same(batches: Iterator[pa.RecordBatch], columns: list[Ids]) -> bool:
    """Says whether batches hold exactly these columns."""
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        for stored, wanted in zip(batch.columns, columns, strict=True):
            if not np.array_equal(stored.to_numpy(), wanted[start:stop]):
                return False
        start = stop
    return start == len(columns[0])
