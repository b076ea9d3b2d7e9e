"""Pages, cut into passages."""

from __future__ import annotations

from functools import partial
from typing import Any

import apache_beam as beam

from mapping.passages.corpus import Base, PassageChunks
from mapping.passages.cut import CutOptions
from pipelines.primitives.guarded_map import GuardedMap


class CutPassages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Cuts pages into passages with exact positions: consecutive whole sentences, or the unit in the options.

    (key, pages) -> (key, passages).

    Pages are a ``BatchRef`` or a record batch with the columns ``page_id``, ``title`` and ``elements`` of the table
    ``pages``. Elements need ``kind``, ``marker``, ``section`` and ``text``. ``mapping.passages.corpus.PAGE_COLUMNS``
    lists the columns for ``ReadPages``, and ``TABLE_COLUMNS`` lists those for the option ``tables``.

    Outputs, as in ``GuardedMap``:
        ``chunks``: (key, ``BatchRef``) with a folder, else (key, record batch), with the schema
            ``mapping.passages.corpus.PASSAGES``, in page order.
        ``counts``: (key, dict) of ``pages``, ``pages_without_text``, ``passages``, ``words`` and ``long_passages``;
            and of the pages ``taken_over`` from the base.
        ``rejected``: nothing.

    Args:
        lang: language of the wiki, whose rules are used to count tokens.
        base: files of an earlier corpus, cut with the same options, and of its pages. The passages of pages with
            unchanged text are copied from it.
        folder: a file per chunk is written to it; None for no files.
        memory_bytes: maximum memory of a worker process; None for no limit.
        beats: local folder where the processes report their progress; None for no reports.

    Raises:
        SetupError: a page does not have the expected structure.
    """

    def __init__(
        self,
        options: CutOptions | None = None,
        *,
        lang: str = "en",
        base: Base | None = None,
        folder: str | None = None,
        memory_bytes: int | None = None,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        make = partial(PassageChunks, options or CutOptions(), lang, base)
        self._cut = GuardedMap(make, folder=folder, memory_bytes=memory_bytes, beats=beats)

    def expand(self, pages: Any) -> Any:
        return pages | self._cut
