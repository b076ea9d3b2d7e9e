"""Reuses the pages of an earlier release, the base, that do not depend on anything that has changed since.

The recorded dependencies of a page are a hash of its own data, and names of templates, modules and titles that it used,
among them the redirects in its links. The other targets of its links are in the page itself. A page can be reused if
its hash is the same, and if none of these names and targets has changed its meaning. ``write_changes`` finds the
changes between the two snapshots once, from their indexes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of, struct_of
from kbsource.files import join
from kbsource.identity import title_hash
from kbsource.index.definition_store import KEYS_FILE
from kbsource.index.mapped_files import MappedFile, read_index_file, title_keys, write_index_file
from kbsource.index.title_index import ARTICLE, TITLES_FILE, TITLES_SCHEMA
from kbsource.records import Page, PageDependencies
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import PAGES_FILE, QIDS_FILE, Locations, index_folder
from kbsource.release.pages.reading import PagesReader
from kbsource.release.pages.writing import BatchRow
from kbsource.release.reader import row_groups
from kbsource.wikitext.dependencies import GENERATOR, source_name
from kbsource.wikitext.reference_rows import PageWithReferences

CHANGES_FILE = "changes.arrow"
CHANGES_SCHEMA = pa.schema([pa.field("key", pa.uint64(), nullable=False), pa.field("title", pa.string())])
"""Hashes of names whose meaning has changed since the base. ``title`` is true for page titles, false for
definitions.
"""


class RecordedPage(PageWithReferences):
    """A page with its rows in all tables."""

    dependencies: PageDependencies


_WINDOW_ROWS = 1 << 16
_DEFINITION = np.dtype([("key", np.uint64), ("text_hash", np.uint64)])
_Keys = npt.NDArray[np.uint64]
_Flags = npt.NDArray[np.bool_]


def write_changes(folder: str, base: str, *, definitions: str | None, generator: str) -> None:
    """Writes a file of the changes since a release next to a title index. It contains titles that resolve differently,
    appeared or disappeared, and changed definitions.

    Memory: 16 bytes per title and definition of both snapshots, and the changes.

    Args:
        folder: local folder of the index.
        base: folder of the release.
        definitions: local folder of the definitions; None without definitions.
        generator: software that wrote the dump.
    """
    manifest = PAGES_RELEASE.read(base)
    titles = sorted(_changed_titles(folder, index_folder(base, manifest, files=[TITLES_FILE])))
    others = [_changed_definitions(base, manifest, definitions)]
    if generator != manifest.site.generator:
        others.append(np.array([title_hash(GENERATOR)], np.uint64))
    column = pa.array(titles, pa.string())
    keys = np.concatenate([title_keys(column), *others]) if titles else np.concatenate(others)
    rest = pa.nulls(len(keys) - len(titles), pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.concat_arrays([column, rest])], schema=CHANGES_SCHEMA)
    write_index_file(os.path.join(folder, CHANGES_FILE), CHANGES_SCHEMA, [batch])


def _changed_titles(folder: str, base_folder: str) -> set[str]:
    tables = [
        pa.Table.from_batches(
            MappedFile(os.path.join(titles_folder, TITLES_FILE), TITLES_SCHEMA).whole(), TITLES_SCHEMA
        )
        for titles_folder in (base_folder, folder)
    ]
    keys: list[_Keys] = [table["key"].to_numpy() for table in tables]
    n_windows = max(map(len, tables)) // _WINDOW_ROWS + 1
    bounds = [np.uint64(number * ((1 << 64) // n_windows)) for number in range(n_windows)]
    places = [[*np.searchsorted(own, bounds).tolist(), len(own)] for own in keys]
    changed: set[str] = set()
    for number in range(n_windows):
        old, new = (
            _meanings(table.slice(at[number], at[number + 1] - at[number]))
            for table, at in zip(tables, places, strict=True)
        )
        changed.update(str(title) for title, *_ in old ^ new)
    # Redirects to changed titles have changed too, and so have redirects to such redirects.
    more = changed
    while more:
        wanted = pa.array(sorted(more), pa.string())
        found: set[str] = set()
        for batch in tables[1].to_batches():
            found.update(batch["title"].filter(pc.is_in(batch["target_title"], wanted)).to_pylist())
        more = found - changed
        changed |= more
    return changed


def _meanings(titles: pa.Table) -> set[tuple[object, ...]]:
    """Returns the direct meaning of each title: the page id of an article, or the target of a redirect."""
    page_id = pc.if_else(pc.equal(titles["status"], ARTICLE), titles["page_id"], None)
    columns = titles["title"], page_id, titles["target_title"], titles["fragment"]
    return set(zip(*(column.to_pylist() for column in columns), strict=True))


def _changed_definitions(base: str, manifest: PagesManifest, folder: str | None) -> _Keys:
    old = [
        batch
        for entry in manifest.tables.get("definitions", ())
        for group in row_groups(join(base, entry.file))
        for batch in group.to_batches()
    ]
    new = [] if folder is None else list(read_index_file(os.path.join(folder, KEYS_FILE)))
    pairs = np.setxor1d(_pairs(old), _pairs(new))
    sources = [title_hash(source_name(text_hash)) for text_hash in np.unique(pairs["text_hash"]).tolist()]
    return np.unique(np.concatenate([pairs["key"], np.array(sources, np.uint64)]))


def _pairs(batches: Sequence[pa.RecordBatch]) -> npt.NDArray[np.void]:
    pairs = np.empty(sum(map(len, batches)), _DEFINITION)
    for name in _DEFINITION.names or ():
        columns = (batch[name].to_numpy().view(np.uint64) for batch in batches)
        pairs[name] = np.concatenate([np.empty(0, np.uint64), *columns])
    return pairs


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group of the base release."""

    shard: int
    first_row: int
    batch: pa.RecordBatch  # pages with their dependencies and references
    input_hashes: list[bytes | None]  # hash of each page that depends on no change; None for other pages
    n_chars: list[int]  # number of code points in the elements of each page


class BaseRelease:
    """The pages of an earlier release, as rows of ``RecordedPage``.

    Args:
        path: folder of the release.
        index: local folder of the index of the new snapshot, with ``CHANGES_FILE``.
    """

    def __init__(self, path: str, index: str) -> None:
        manifest = PAGES_RELEASE.read(path)
        self._locations = Locations(index_folder(path, manifest, files=[PAGES_FILE, QIDS_FILE]))
        tables = {"pages", "dependencies", "refs", "ref_uses"} & manifest.tables.keys()
        self._readers = {
            table: PagesReader(path, (entry.file for entry in manifest.tables[table])) for table in sorted(tables)
        }
        changes = pa.Table.from_batches(read_index_file(os.path.join(index, CHANGES_FILE)), CHANGES_SCHEMA)
        self._keys = changes["key"].to_numpy().view(np.int64)
        self._titles = changes["title"].drop_null().combine_chunks()
        self._group: _Group | None = None
        self._ids = lru_cache(2)(partial(_page_ids, path, manifest))

    def find(self, page_ids: Sequence[int], hashes: Sequence[bytes]) -> dict[int, tuple[BatchRow, int]]:
        """Returns the pages that can be reused, by index in ``page_ids``, each with the number of code points in its
        elements.
        """
        located = [(self._locations.page(page_id), place) for place, page_id in enumerate(page_ids)]
        found = {}
        for where, place in sorted((where, place) for where, place in located if where is not None):
            shard, row = where
            group = self._group
            if group is None or shard != group.shard or not 0 <= row - group.first_row < len(group.batch):
                group = self._group = self._read(shard, row)
            at = row - group.first_row
            if group.input_hashes[at] == hashes[place]:
                found[place] = BatchRow(group.batch, at), group.n_chars[at]
        return found

    def _read(self, shard: int, row: int) -> _Group:
        pages, first = self._readers["pages"].group(shard, row)
        (dependencies,) = self._rows("dependencies", shard, first, first + len(pages)).to_batches()
        (batch,) = pages.to_batches()
        own = {name: batch[name] for name in schema_of(Page).names}
        for table in ("refs", "ref_uses"):
            type_ = schema_of(PageWithReferences).field(table).type
            own[table] = pa.array([[]] * len(batch), type_)
            if table in self._readers:
                own[table] = self._lists(table, type_, shard, batch["page_id"].to_numpy())
        structs = pa.StructArray.from_arrays(dependencies.columns, fields=[*struct_of(PageDependencies)])
        names = dependencies["name_hashes"]
        is_changed = _any_in_lists(names, np.isin(names.flatten(), self._keys))
        if len(self._titles):
            for name in ("anchors", "tables", "infoboxes"):
                is_changed |= _leads_to(batch[name], self._titles)
        hashes = zip(dependencies["input_hash"].to_pylist(), is_changed.tolist(), strict=True)
        elements = batch["elements"]
        texts = pc.utf8_length(pc.struct_field(elements.flatten(), "text")).to_numpy()
        sums = np.concatenate([[0], np.cumsum(texts, dtype=np.int64)])[_offsets(elements)]
        return _Group(
            shard,
            first,
            pa.RecordBatch.from_arrays([*own.values(), structs], schema=schema_of(RecordedPage)),
            [None if changed else input_hash for input_hash, changed in hashes],
            np.diff(sums).tolist(),
        )

    def _rows(self, table: str, shard: int, start: int, end: int) -> pa.Table:
        """Returns the rows ``[start, end)`` of a table's file."""
        pieces = []
        while start < end:
            group, first = self._readers[table].group(shard, start)
            pieces.append(group.slice(start - first, end - start))
            start += len(pieces[-1])
        return pa.concat_tables(pieces).combine_chunks()

    def _lists(self, table: str, type_: pa.ListType, shard: int, page_ids: npt.NDArray[np.int64]) -> pa.Array:
        """Returns the rows of a table that belong to these pages, as one list per page. The pages must be in the order
        of the table.
        """
        ids = self._ids(table, shard)
        rows = np.flatnonzero(np.isin(ids, page_ids))
        if not len(rows):
            return pa.array([[]] * len(page_ids), type_)
        counts = dict(zip(*(column.tolist() for column in np.unique(ids[rows], return_counts=True)), strict=True))
        offsets = np.cumsum([0, *(counts.get(page_id, 0) for page_id in page_ids.tolist())], dtype=np.int32)
        (batch,) = self._rows(table, shard, int(rows[0]), int(rows[-1]) + 1).to_batches()
        structs = pa.StructArray.from_arrays(batch.columns, fields=list(type_.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets), structs, type=type_)


def _page_ids(path: str, manifest: PagesManifest, table: str, shard: int) -> npt.NDArray[np.int64]:
    """Returns the page ids of a table's file."""
    groups = row_groups(join(path, manifest.tables[table][shard].file), ["page_id"])
    return np.concatenate([np.empty(0, np.int64), *(group["page_id"].to_numpy() for group in groups)])


def _offsets(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Returns the offsets of the lists in the array of their values: where each begins, and where the last ends."""
    offsets: npt.NDArray[np.int64] = lists.offsets.to_numpy().astype(np.int64)
    offsets -= offsets[0]
    return offsets


def _any_in_lists(lists: pa.Array, flags: _Flags) -> _Flags:
    """Returns for each list whether the flag of at least one of its values is set."""
    sums = np.concatenate([[0], np.cumsum(flags)])[_offsets(lists)]
    is_any: _Flags = sums[1:] > sums[:-1]
    return is_any


def _leads_to(array: pa.Array, titles: pa.Array) -> _Flags:
    """Returns for each value whether it contains, at any depth, a link to one of these titles."""
    if pa.types.is_list(array.type):
        return _any_in_lists(array, _leads_to(array.flatten(), titles))
    is_found = np.zeros(len(array), np.bool_)
    for field in array.type if pa.types.is_struct(array.type) else ():
        if field.name == "target_title":
            is_found |= pc.is_in(pc.struct_field(array, field.name), titles).to_numpy(zero_copy_only=False)
        elif pa.types.is_list(field.type):
            is_found |= _leads_to(pc.struct_field(array, field.name), titles)
    return is_found
