"""Processes the articles of a snapshot of HTML, each with its HTML and wikitext, in a guarded process. If a page makes
the process hang, crash or run out of memory, only this page is lost.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from kbsource.dump.article_records import ArticleRecord, check_article_record, redirect_of
from kbsource.dump.ranges import plan_ranges
from kbsource.dump.rejects import SHOWN
from kbsource.dump.siteinfo import read_header
from kbsource.dump.snapshots import read_records
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name
from kbsource.records import BadRecord
from kbsource.runtime.beat import Beat
from kbsource.runtime.guard import Guard, WorkerDiedError
from kbsource.site import Site
from kbsource.temporary import TemporaryFolder
from kbsource.wikitext.parse import PAGE_FAULTS

T = TypeVar("T")

PAGE_TIMEOUT_S, MEMORY_BYTES = 60.0, 4 << 30
_TRIES = 2  # the first failure may be due to other processes on the machine
_DETAIL_CHARS = 1000


class PairedPage(msgspec.Struct, frozen=True):
    """A page with its rendered HTML and the wikitext of the same revision. The wikitext may be empty."""

    title: str
    timestamp: str  #: time of the revision, in the form of ``records.RawPage``
    html: str
    wikitext: str


@dataclass(slots=True)
class RecordCounts:
    """Counts of the records of a snapshot by outcome."""

    records: int = 0  #: number of records that were read and not rejected
    pages: int = 0  #: number of pages that were processed
    skipped: Counter[str] = field(default_factory=Counter)  #: number of skipped records, by reason
    rejected: Counter[str] = field(default_factory=Counter)  #: number of rejected records, by reason
    first_rejected: list[BadRecord] = field(default_factory=list)  #: the first ``SHOWN`` of them

    def reject(self, bad: BadRecord) -> None:
        """Counts a record that cannot be used. The first ones are kept."""
        self.rejected[bad.reason] += 1
        if len(self.first_rejected) < SHOWN:
            self.first_rejected.append(bad)


def process_pairs(
    paths: Sequence[str],
    function: str,
    result: type[T],
    *,
    counts: RecordCounts,
    needs_wikitext: bool = True,
    page_timeout_s: float | None = PAGE_TIMEOUT_S,
    memory_bytes: int | None = MEMORY_BYTES,
    on_progress: Callable[[int], None] | None = None,
) -> Iterator[T]:
    """Yields the results of a function for every article in the files of a snapshot, in order.

    A page is skipped if it is not an article, has no HTML, or has no wikitext although ``needs_wikitext`` is set. A
    record that cannot be used is rejected.

    Args:
        function: ``module:name`` of a function with the arguments task and Beat, which calls ``processed``.
        result: type of the function's results, to which ``msgspec.convert`` converts them.
        counts: receives the counts of the records.
        needs_wikitext: skip pages without wikitext.
        page_timeout_s: maximum seconds per page; None for no limit.
        memory_bytes: maximum memory of the process; None for no limit.
        on_progress: receives the number of bytes read.

    Raises:
        SetupError: a file is not a snapshot of HTML, or the files are of different wikis.
    """
    site = msgspec.json.encode(_site_of(paths)).decode()
    with (
        TemporaryFolder() as scratch,
        Guard(
            function,
            beat_path=os.path.join(scratch, "pages.beat"),
            scratch=scratch,
            page_timeout_s=page_timeout_s,
            memory_bytes=memory_bytes,
        ) as guard,
    ):
        for part in plan_ranges(paths, range_bytes=1 << 62):
            for found in read_records(part, files=Folder.of, on_progress=on_progress):
                if isinstance(found, BadRecord):
                    counts.reject(found)
                    continue
                record, offset = found
                try:
                    page = _pair_of(record, counts, needs_wikitext=needs_wikitext)
                    made = None if page is None else _guarded(guard, {"site": site, "page": msgspec.to_builtins(page)})
                except RecordError as error:
                    detail = error.detail[:_DETAIL_CHARS]
                    counts.reject(BadRecord("compare", record.name, error.reason, detail, base_name(part.path), offset))
                    continue
                counts.records += 1
                if page is not None:
                    counts.pages += 1
                    yield msgspec.convert(made, result)


def _site_of(paths: Sequence[str]) -> Site:
    headers = {path: read_header(path) for path in paths}
    for path, header in headers.items():
        if header.form == "xml":
            raise SetupError(
                f"{path} is a dump of wikitext, which has no HTML to compare with; give a snapshot of article records."
            )
    wikis = sorted({header.site.dbname or header.site.lang for header in headers.values()})
    if len(wikis) > 1:
        raise SetupError(f"The files are of different wikis: {', '.join(wikis)}. Give files of one snapshot.")
    return headers[paths[0]].site


def _pair_of(record: ArticleRecord, counts: RecordCounts, *, needs_wikitext: bool) -> PairedPage | None:
    """Returns the page of a record; None if the record is skipped, and counts it.

    Raises:
        RecordError: as for ``check_article_record`` and ``redirect_of``; ``invalid_field`` if its time cannot be read.
    """
    body = record.article_body
    if record.namespace.identifier:
        counts.skipped["other_namespace"] += 1
    elif not body.html.strip() or (needs_wikitext and not body.wikitext.strip()):
        counts.skipped["no_wikitext" if body.html.strip() else "no_html"] += 1
    else:
        check_article_record(record)
        if redirect_of(record) == (None, None):
            return PairedPage(record.name, record.timestamp, body.html, body.wikitext)
        counts.skipped["redirect"] += 1
    return None


def _guarded(guard: Guard, task: dict[str, Any]) -> Any:
    """Returns the result for a page from the guarded process.

    Raises:
        RecordError: the function rejected the page, or the page ended the process: ``page_timeout``, ``page_crash`` or
            ``page_error``.
    """
    for number in range(_TRIES):
        try:
            answer = guard.run(task)
            break
        except WorkerDiedError as death:
            if number == _TRIES - 1:
                *_, last = ["", *death.detail.splitlines()]
                raise RecordError(f"page_{death.kind}", last) from death
    if "reason" in answer:
        raise RecordError(answer["reason"], answer["detail"])
    return answer["made"]


def processed(task: dict[str, Any], beat: Beat, make: Callable[[Site], Callable[[PairedPage], object]]) -> Any:
    """Returns the result of a function for the page in a task of ``process_pairs``, or the reason for its rejection.

    Args:
        make: a function that returns the function for a wiki; called once per process.
    """
    function = _function(make, task["site"])
    page = msgspec.convert(task["page"], PairedPage)
    beat.enter(1)
    try:
        made = function(page)
    except RecordError as error:
        return {"reason": error.reason, "detail": error.detail}
    except PAGE_FAULTS as error:
        return {"reason": "page_error", "detail": f"{type(error).__name__}: {error}"}
    finally:
        beat.leave()
    return {"made": msgspec.to_builtins(made)}


@lru_cache(maxsize=1)
def _function(make: Callable[[Site], Callable[[PairedPage], T]], site: str) -> Callable[[PairedPage], T]:
    return make(msgspec.json.decode(site, type=Site))
