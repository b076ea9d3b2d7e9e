"""Pages cut into passages."""

from __future__ import annotations

from functools import partial
from typing import Any

import apache_beam as beam

from mapping.passages.corpus import PassageChunks
from mapping.passages.cut import CutOptions
from pipelines.primitives.guarded_map import GuardedMap


class CutPassages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, pages) -> passages, each with its exact place: consecutive whole sentences, or what the unit says.

    Pages are a ``Stored`` or a record batch with the columns ``page_id``, ``title`` and ``elements`` of the table
    ``pages``; of elements ``kind``, ``marker``, ``section`` and ``text`` are needed.
    ``mapping.passages.corpus.PAGE_COLUMNS`` names them for ``ReadPages``.

    Outputs, as those of ``GuardedMap``:
        ``chunks``: (Key, ``Stored``) with a folder, else (Key, record batch), of schema
            ``mapping.passages.schema.PASSAGES``, in the order of the pages.
        ``counts``: (Key, dict) of ``pages``, ``pages_without_text``, ``passages``, ``words`` and ``long_passages``.
        ``rejected``: nothing.

    Args:
        options: how pages are cut.
        lang: language of the wiki, by whose rules tokens are counted.
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
        folder: str | None = None,
        memory_bytes: int | None = None,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        make = partial(PassageChunks, options or CutOptions(), lang)
        self._cut = GuardedMap(make, folder=folder, memory_bytes=memory_bytes, beats=beats)

    def expand(self, pages: Any) -> Any:
        return pages | self._cut
