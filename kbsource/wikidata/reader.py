"""Reading the tables of a release of Wikidata, a row group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.release.layout import MANIFEST
from kbsource.release.reader import row_groups
from kbsource.wikidata.kind import WIKIDATA_RELEASE, WikidataManifest


@dataclass(frozen=True, slots=True)
class WikidataTables:
    """A release of Wikidata, to be read table by table.

    Attributes:
        path: folder of the release.
        manifest: of the release.
        storage: of the folder.
        on_rows: is told of rows as they are read, by their number.
    """

    path: str
    manifest: WikidataManifest
    storage: Storage
    on_rows: Callable[[int], None] | None = None

    @classmethod
    def open(cls, path: str, storage: Storage) -> WikidataTables:
        """Opens a release.

        Raises:
            SetupError: the folder holds no finished release of Wikidata.
        """
        return cls(path, WIKIDATA_RELEASE.read(path, storage), storage)

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Gives rows of a table in its order; memory holds one row group."""
        for entry in self.manifest.tables[table]:
            for group in row_groups(join(self.path, entry.file), self.storage, columns):
                yield from group.combine_chunks().to_batches()
                if self.on_rows is not None:
                    self.on_rows(group.num_rows)

    def n_rows(self, table: str) -> int:
        """Gives the number of rows of a table."""
        return self.manifest.n_rows(table)

    @property
    def manifest_path(self) -> str:
        """The file that stands for all others."""
        return join(self.path, MANIFEST)
