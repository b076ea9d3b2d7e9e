"""Reads the article records in a range of a snapshot of HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kbsource.dump.article_records import (
    MAX_RECORD_BYTES,
    ArticleRecord,
    check_article_record,
    read_article_record,
    redirect_of,
    unpacked,
)
from kbsource.dump.lines import LineRange, read_lines
from kbsource.dump.ranges import DumpRange
from kbsource.errors import RecordError
from kbsource.files import Files, base_name
from kbsource.identity import title_hash
from kbsource.records import BadRecord, RawPage
from kbsource.site import Site
from kbsource.titles import normalise_title, split_namespace

HTML = "html"
"""``RawPage.model`` of a page whose text is rendered HTML."""
_DETAIL_CHARS = 1000


def read_snapshot(
    dump_range: DumpRange,
    site: Site,
    *,
    files: Files,
    as_of: str | None = None,
    text_namespaces: frozenset[int] | None = None,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    max_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[RawPage | BadRecord]:
    """Reads the pages that begin in a range, in order, each followed by the redirects to it. Also yields a BadRecord
    for everything that cannot be read.

    The arguments are the same as for ``reader.read_range``, and the output of ranges can be joined in the same way. The
    redirects in the list of a record have no page ids, so they get numbers from ``listed_redirect_id``.

    Reasons of the BadRecords (stage ``read``): ``malformed_json``, ``missing_field``, ``invalid_field``,
    ``text_deleted``, ``html_empty``, ``ids_disagree``, ``no_revision_as_of``, and those of ``lines.read_lines``.
    """
    records = read_records(dump_range, files=files, on_progress=on_progress, on_damage=on_damage, max_bytes=max_bytes)
    file = base_name(dump_range.path)
    for found in records:
        if isinstance(found, BadRecord):
            yield found
            continue
        record, offset = found
        try:
            page = _page(record, site, text_namespaces, file=file, offset=offset)
            if as_of is not None and page.timestamp > as_of:
                raise RecordError("no_revision_as_of", f"the revision is from {page.timestamp}")
        except RecordError as error:
            yield bad_record("read", record, error, file=file, offset=offset)
            continue
        yield page
        if page.namespace == 0 and page.redirect_title is None:
            yield from _redirects(record, page, site)


def read_records(
    dump_range: DumpRange,
    *,
    files: Files,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    max_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[tuple[ArticleRecord, int] | BadRecord]:
    """Yields the records that begin in a range, in order, each with its offset. Also yields a BadRecord for every line
    that is not a record.

    Arguments and reasons are those of ``read_snapshot``.
    """
    of = dump_range
    lines = read_lines(
        LineRange(of.index, of.path, of.start, of.end, of.compression, of.n_bytes),
        files=files,
        on_progress=on_progress,
        on_damage=on_damage,
        max_bytes=max_bytes,
        unpack=unpacked if of.form == "tar" else iter,
    )
    file = base_name(of.path)
    for line in lines:
        if isinstance(line, BadRecord):
            yield line
        elif line.data.strip():
            try:
                yield read_article_record(line.data), line.offset
            except RecordError as error:
                yield bad_record("read", None, error, file=file, offset=line.offset)


def bad_record(stage: str, record: ArticleRecord | None, error: RecordError, *, file: str, offset: int) -> BadRecord:
    """Returns the BadRecord for a record that cannot be used. ``record`` is None if the line cannot be read."""
    key = "" if record is None else str(record.identifier or record.name)
    return BadRecord(stage, key, error.reason, error.detail[:_DETAIL_CHARS], file, offset)


def _page(
    record: ArticleRecord, site: Site, text_namespaces: frozenset[int] | None, *, file: str, offset: int
) -> RawPage:
    check_article_record(record)
    namespace = record.namespace.identifier
    target, words = redirect_of(record)
    text = words if words is not None else record.article_body.html
    if target is not None or (text_namespaces is not None and namespace not in text_namespaces):
        text = ""
    return RawPage(
        record.identifier,
        namespace,
        record.name,
        target,
        record.version.identifier,
        record.previous_version.identifier or None,
        record.timestamp,
        HTML,
        text,
        file,
        offset,
        record.main_entity.identifier or None,
    )


def _redirects(record: ArticleRecord, page: RawPage, site: Site) -> Iterator[RawPage]:
    """Yields the redirects in the list of a record."""
    for redirect in record.redirects:
        if not redirect.name:
            continue
        namespace, _ = split_namespace(redirect.name, site)
        page_id = listed_redirect_id(normalise_title(redirect.name, site))
        facts = page.revision_id, None, page.timestamp, HTML, "", page.file, page.offset
        yield RawPage(page_id, namespace, redirect.name, page.title, *facts)


def listed_redirect_id(title: str) -> int:
    """Returns a number for a redirect whose page id is unknown. It is negative, and depends only on the title.

    >>> listed_redirect_id("Ada") == listed_redirect_id("Ada") < 0
    True
    """
    return -(title_hash(title) >> 2) - 1
