"""What is looked up in all of a wiki while its pages are parsed, titles and definitions: built in one place and used in
all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import apache_beam as beam
import pyarrow as pa

from kbsource.dump.digests import CheckedStorage, read_hashes
from kbsource.errors import named_faults
from kbsource.files import CHUNK_BYTES, LocalStorage, ReadableStorage, atomic_write, base_name, is_local, join
from kbsource.index.definition_store import KEYS_FILE, build_definitions
from kbsource.pages.indexes import INDEXES_FILE, build_indexes
from kbsource.runtime.chunks import Key, Stored, read_stored
from kbsource.site import Site
from kbsource.wikidata.reader import WikidataTables
from pipelines.primitives.together import Together
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

Rows: TypeAlias = "Stored | pa.RecordBatch"


@dataclass(frozen=True, slots=True)
class Items:
    """Where it is said which page has which Wikidata item.

    Attributes:
        site: facts of the wiki.
        page_props: SQL dump of that table; None without.
        wikidata: folder of a release of Wikidata; None without.
        hashes: see ``Scanning``; for page_props.
    """

    site: Site
    page_props: str | None = None
    wikidata: str | None = None
    hashes: str | None = None


class BuildTitleIndex(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, titles) -> the folder of their index, one element: a side input of ``ParseWikitext``.

    The index says where each title leads, through all redirects, which titles lead to an article, and, with ``items``,
    which page has which Wikidata item. One worker builds it, in the order of the keys; memory grows by about 20 bytes a
    title. An index that is there already is taken.

    Args:
        folder: of the index; workers of other machines must reach it too.
        items: where to learn of items; None for no items.
        max_duplicates: highest share of the titles that may be left out because a newer row has their page id.
        after: collection that must have come to its end before, such as a check; None for none.

    Raises:
        DataError: there are more; or a table of items is damaged.
    """

    def __init__(
        self, folder: str, *, items: Items | None = None, max_duplicates: float = 1.0, after: Any = None
    ) -> None:
        super().__init__()
        self._build = _BuildIndex(folder, items, max_duplicates)
        self._after = () if after is None else (beam.pvalue.AsIter(after),)

    def expand(self, titles: Any) -> Any:
        return titles | "all titles" >> Together() | "build" >> beam.ParDo(self._build, *self._after)


class BuildDefinitions(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, templates and modules) -> the folder of their store, one element: a side input of ``ParseWikitext``.

    One worker builds it, in the order of the keys; memory grows by 40 bytes a page. A store that is there already is
    taken.

    Args:
        folder: of the store; workers of other machines must reach it too.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._build = _BuildStore(folder)

    def expand(self, definitions: Any) -> Any:
        return definitions | "all definitions" >> Together() | "build" >> beam.ParDo(self._build)


class _BuildFolder(WorkerDoFn):
    """Fills a folder with files that are looked into, the one that says that all are whole last."""

    last_file: str

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def process(self, element: list[tuple[Key, Rows]], *after: Any) -> Iterator[str]:
        storage = storage_for(self._folder)
        with named_faults(), tempfile.TemporaryDirectory(prefix="kbsource-") as scratch:
            if not storage.exists(join(self._folder, self.last_file)):
                # Scratch files are as large as the rows: where there is room for the files there is room for them.
                local = self._folder if is_local(self._folder) else os.path.join(scratch, "index")
                near = os.path.join(local, "scratch")
                self._build(_batches(rows for _, rows in element), local, near)
                LocalStorage().delete_tree(near)
                if local != self._folder:
                    for name in sorted(os.listdir(local), key=lambda name: (name == self.last_file, name)):
                        _copy(os.path.join(local, name), join(self._folder, name))
        yield self._folder

    def _build(self, batches: Iterator[pa.RecordBatch], folder: str, scratch: str) -> None:
        raise NotImplementedError


class _BuildStore(_BuildFolder):
    last_file = KEYS_FILE

    def _build(self, batches: Iterator[pa.RecordBatch], folder: str, scratch: str) -> None:
        build_definitions(batches, folder)


class _BuildIndex(_BuildFolder):
    last_file = INDEXES_FILE

    def __init__(self, folder: str, items: Items | None, max_duplicates: float) -> None:
        super().__init__(folder)
        self._items, self._max_duplicates = items, max_duplicates

    def _build(self, batches: Iterator[pa.RecordBatch], folder: str, scratch: str) -> None:
        items = self._items or Items(Site())
        props, wikidata = items.page_props, items.wikidata
        build_indexes(
            batches,
            folder=folder,
            scratch=scratch,
            page_props=props,
            props_storage=_checked(items),
            wikidata=None if wikidata is None else WikidataTables.open(wikidata, storage_for(wikidata)),
            site=items.site,
            max_share=self._max_duplicates,
        )


def _checked(items: Items) -> ReadableStorage:
    """Gives the storage of page_props."""
    storage = storage_for(*([items.page_props] if items.page_props else []))
    if items.hashes is None:
        return storage
    return CheckedStorage(storage, read_hashes(items.hashes, storage_for(items.hashes)))


def _batches(chunks: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
    for rows in chunks:
        if isinstance(rows, Stored):
            yield from read_stored(rows, storage_for(rows.path))
        else:
            yield rows


def _copy(source: str, target: str) -> None:
    with storage_for(source).open_read(source) as reader, atomic_write(storage_for(target), target) as writer:
        while block := reader.read(CHUNK_BYTES):
            writer.write(block)


def local_index(folder: str) -> str:
    """Gives a local folder with the files that ``BuildTitleIndex`` or ``BuildDefinitions`` made."""
    storage = storage_for(folder)
    return storage.local_copy(folder, [base_name(path) for path in storage.glob(join(folder, "*"))])


@contextmanager
def index_to_work_on(folder: str) -> Iterator[tuple[str, str]]:
    """Gives a local folder with the files of an index, to which files may be added, and one for scratch files."""
    if is_local(folder):
        yield folder, join(folder, "scratch")
        return
    storage = storage_for(folder)
    with tempfile.TemporaryDirectory(prefix="kbsource-") as local:
        for path in storage.glob(join(folder, "*")):
            _copy(path, os.path.join(local, base_name(path)))
        yield local, os.path.join(local, "scratch")
