"""Pages whose links are not taken, by a list of titles or page ids: those that an evaluation is about."""

from __future__ import annotations

from typing import NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord
from mapping.sources.reading.files_in import RawRecord, iter_lines


class Exclusion(NamedTuple):
    """What a list excludes: ids of pages, each once, ascending; its number of lines; and lines that name no page."""

    page_ids: tuple[int, ...] = ()
    n_lines: int = 0
    rejected: tuple[BadRecord, ...] = ()


def read_exclusion(path: str, source: KnowledgeSource, storage: Storage) -> Exclusion:
    """Reads a list, a title or a page id a line; redirects are followed.

    Args:
        path: of the list.
        source: the release.
        storage: of the list.
    """
    found = [_page(raw, source) for raw in iter_lines(storage, path)]
    page_ids = sorted({row for row in found if isinstance(row, int)})
    return Exclusion(tuple(page_ids), len(found), tuple(row for row in found if isinstance(row, BadRecord)))


def _page(raw: RawRecord, source: KnowledgeSource) -> int | BadRecord:
    name = raw.data.decode("utf-8", "replace").strip()[:1_000]
    try:
        page_id = source.resolve(raw.text().strip()).page_id
        if page_id is None:
            raise RecordError("unknown_page", "the release has no such page")
        return page_id
    except RecordError as error:
        return BadRecord("exclude", name, error.reason, error.detail, raw.file, raw.offset)
