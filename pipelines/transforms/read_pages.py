"""The pages of a release, wherever it lies."""

from __future__ import annotations

from collections.abc import Sequence

from kbsource.files import join
from kbsource.release.intact import check_sizes
from kbsource.release.pages.kind import PAGES_RELEASE
from pipelines.stores.storage import absolute, storage_for
from pipelines.transforms.read_table import ReadTable


class ReadPages(ReadTable):
    """The pages of a release -> (Key, record batch of schema ``kbsource.schema.PAGES``). Applied to a pipeline.

    A chunk is a row group; the key is number of the file, number of the row group in it. Files are read by as many
    workers as there are, one row group of each in memory. ``kbsource.release.columns.batch_to_pages`` gives the pages
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
        storage = storage_for(release)
        entries = PAGES_RELEASE.read(release, storage).tables["pages"]
        check_sizes(release, entries, storage)
        super().__init__([join(release, entry.file) for entry in entries], columns, chunk_rows=1)
