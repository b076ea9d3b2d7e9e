"""Checks whether a dump is complete and undamaged. Every finding states its meaning and the remedy.

The names of dump files show which files are indexes, what kind of dump it is, and which page ids are in each part.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import CODECS, MAGIC_BYTES, UTF8, compression_of, iter_pieces, read_up_to
from kbsource.dump.dates import MOST_DAYS_LATER, day_of, two_days
from kbsource.dump.digests import HashedFile, PublishedFile, find_published, hash_file
from kbsource.dump.ranges import TAIL_BYTES, DumpRange, plan_ranges
from kbsource.dump.reader import describe_missing_end, read_range
from kbsource.dump.siteinfo import DumpHeader, read_header
from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import Folder, base_name, join
from kbsource.numerals import read_int, unescape
from kbsource.records import BadRecord, RawPage

Severity = Literal["error", "warning", "info"]

# Enough pages to distinguish a stubs dump from a dump that begins with a hidden page.
_SAMPLE_PAGES = 50
_ABSENT = frozenset(("text_missing", "text_deleted"))
_AGAIN = "Download it again."
_OTHER_INDEX = "Download the index and the dump again, from the same date."
_PAGES = re.compile(r"(?:[-.]|\A)p(\d+)p(\d+)(?=[.-]|\Z)")
_REVISIONS = re.compile(r"(?:[-.]|\A)p(\d+)r(\d+)r(\d+)(?=[.-]|\Z)")
_MULTISTREAM = re.compile(r"-multistream(\d*)\.xml((?:-p\d+p\d+)?)\.bz2\Z")
_CONTENT_EXPORT = re.compile(r"\A[a-z0-9_]+-\d{4}-\d\d-\d\d-p\d+[pr]\d+(?:r\d+)?\.xml")
_INDEX_LINE = re.compile(rb"(\d{1,18}):(\d{1,18}):(.+)")
_STREAM_START = re.compile(rb"BZh[1-9]1AY&SY")


@dataclass(frozen=True, slots=True)
class DumpFinding:
    """One result of a check."""

    #: ``error``: a release built from the dump would be wrong or incomplete; ``warning``: it might be wrong or
    #: incomplete; ``info``: a fact for users
    severity: Severity
    file: str  #: base name of the file; empty for the dump as a whole
    code: str  #: slug
    message: str  #: what was found and what it means
    remedy: str = ""  #: what to do; empty if there is nothing to do


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file of the dump, as the release manifest lists it."""

    path: str
    name: str
    hashed: HashedFile


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of ``dump_findings``."""

    findings: tuple[DumpFinding, ...]  #: in the order of the files; findings about the whole dump come last
    inputs: tuple[CheckedFile, ...]  #: the files with their hashes
    header: DumpHeader | None  #: header of the first file that could be read; None if none could be read

    @property
    def has_errors(self) -> bool:
        """True if at least one finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def dump_findings(
    paths: Sequence[str],
    *,
    deep: bool = False,
    allow_unknown_schema: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> CheckReport:
    """Checks the files of a dump, as listed by ``ranges.expand_inputs``, and returns the findings.

    Each file is hashed, and its beginning and end are read. With ``deep``, the whole content is read: it is decoded and
    compared with the index, its pages are counted, and damage is reported. ``on_progress`` receives the number of
    stored bytes read since its last call. All calls together cover each file once, or twice with ``deep``.
    """
    findings: list[DumpFinding] = []
    inputs: list[CheckedFile] = []
    headers: dict[str, DumpHeader] = {}
    for path in paths:
        name = base_name(path)
        if not Folder.of(path).exists():
            findings.append(DumpFinding("error", name, "missing_file", f"{path} does not exist.", "Check the path."))
            continue
        try:
            published = find_published(path)
        except SetupError as error:
            findings.append(DumpFinding("error", name, "bad_checksum_list", _finding_text(error, path)))
            hashed = hash_file(path, on_bytes=on_progress)
        else:
            found, hashed = _check_sums(path, published, on_progress)
            findings += found
        inputs.append(CheckedFile(path, name, hashed))
        try:
            header = read_header(path, allow_unknown_schema=allow_unknown_schema)
            dump_range = plan_ranges([path], range_bytes=1 << 62, allow_unknown_schema=allow_unknown_schema)[0]
        except SetupError as error:
            findings.append(DumpFinding("error", name, "unreadable", _finding_text(error, path)))
            continue
        headers[name] = header
        findings += _check_head(name, header, dump_range) if header.form == "xml" else _check_records(name, header)
        findings += _check_end(name, dump_range)
        candidates = (join(posixpath.dirname(path), name) for name in index_names(path))
        index_path = next((candidate for candidate in candidates if Folder.of(candidate).exists()), None)
        if index_path is not None:
            of_index = list(_check_index(name, path, index_path))
            findings += of_index
            if any(finding.severity == "error" for finding in of_index):
                index_path = None  # the index has errors, so the content is not compared with it
        if deep:
            findings += _check_content(dump_range, header, index_path, on_progress)
    findings += _check_agreement(headers)
    with suppress(SetupError):  # each file already has a finding about the invalid dumpstatus.json
        if said := two_days(paths):
            message = f"{said}, so the files do not belong to one dump."
            findings.append(DumpFinding("error", "", "mixed_dates", message, "Give files that have the same date."))
    findings += _check_parts(paths)
    return CheckReport(tuple(findings), tuple(inputs), next(iter(headers.values()), None))


def _finding_text(error: SetupError, path: str) -> str:
    """Returns the message of an error without the path of the file, which the finding names."""
    message = str(error)
    return f"It {message.removeprefix(path).lstrip()}" if message.startswith(f"{path} ") else message


def _check_sums(
    path: str, published: PublishedFile, on_progress: Callable[[int], None] | None
) -> tuple[list[DumpFinding], HashedFile]:
    name = base_name(path)
    further = {name: hashlib.new(name, usedforsecurity=False) for name, _, _ in published.digests}
    hashed = hash_file(path, further=further.values(), on_bytes=on_progress)
    found: list[DumpFinding] = []
    n_bytes = hashed.n_bytes
    if published.n_bytes not in (None, n_bytes):
        message = f"It has {n_bytes:,} bytes, and dumpstatus.json lists {published.n_bytes:,}; the file is incomplete."
        found.append(DumpFinding("error", name, "size_mismatch", message, _AGAIN))
    for algorithm, digest, list_name in published.digests:
        if (own := further[algorithm].hexdigest()) != digest:
            message = (
                f"Its {algorithm} is {own}, and {list_name} lists {digest}; the file is damaged or a different one."
            )
            found.append(DumpFinding("error", name, "checksum_mismatch", message, _AGAIN))
    if published.unfinished_job:
        message = f"dumpstatus.json says that the job that writes it is not finished ({published.unfinished_job})."
        found.append(DumpFinding("warning", name, "job_not_done", message, "Wait until the dump is complete."))
    if not published.digests:
        remedy = "To check the file, put the md5sums, sha1sums or SHA256SUMS of the dump into its folder."
        found.append(
            DumpFinding("info", name, "no_checksum", "The lists of checksums in its folder do not contain it.", remedy)
        )
    elif not found:
        lists = ", ".join(sorted({list_name for _, _, list_name in published.digests}))
        found.append(
            DumpFinding(
                "info", name, "checksum_ok", f"The file is the same as the published one, according to {lists}."
            )
        )
    if is_content_export(path) and not Folder.of(join(posixpath.dirname(path), "_SUCCESS")).exists():
        message = "Its folder has no file _SUCCESS, which is written when an export is complete."
        remedy = "Download _SUCCESS too. If it is not published yet, wait until it is."
        found.append(DumpFinding("warning", name, "no_success_marker", message, remedy))
    return found, hashed


def _check_head(name: str, header: DumpHeader, dump_range: DumpRange) -> Iterator[DumpFinding]:
    if not header.has_root:
        message = "It has no <mediawiki> root. It is a sequence of pages without a root, or its beginning is missing."
        yield DumpFinding("warning", name, "no_root", message, "Use the file as published.")
    if not header.has_siteinfo:
        site = header.site
        message = f"It has no <siteinfo>, so the namespaces of {site.dbname or site.lang} are used."
        yield DumpFinding("warning", name, "no_siteinfo", message, "Use the file as published, or check the language.")
    if header.schema_version is None:
        yield DumpFinding("info", name, "no_schema_version", "It does not name its export schema.")
    records = [
        record
        for record in islice(read_range(dump_range, header.site, text_namespaces=frozenset()), _SAMPLE_PAGES)
        if isinstance(record, BadRecord) or record.namespace == 0
    ]
    if records and all(isinstance(record, BadRecord) and record.reason == "text_missing" for record in records):
        message = "Its pages have no texts, so it is a stubs dump."
        yield DumpFinding("error", name, "stubs_dump", message, "Use pages-articles or pages-meta-current.")


def _check_records(name: str, header: DumpHeader) -> Iterator[DumpFinding]:
    what = "a tar archive of article records" if header.form == "tar" else "article records, one per line"
    message = f"It is a snapshot of HTML of {header.site.dbname or header.site.lang}: {what}."
    yield DumpFinding("info", name, "html_snapshot", message)


def _check_end(name: str, dump_range: DumpRange) -> Iterator[DumpFinding]:
    read_tail = CODECS[dump_range.compression].tail
    if read_tail is None or dump_range.encoding != UTF8:
        message = "It must be read completely to see whether it is complete."
        yield DumpFinding("info", name, "end_not_checked", message, "Use the deep check.")
        return
    with Folder.of(dump_range.path).open() as file:
        tail, damage = read_tail(file, dump_range.n_bytes, TAIL_BYTES)
    missing = describe_missing_end(tail, damage, dump_range)
    if missing:
        message = f"It is truncated: {missing}. Pages are missing."
        yield DumpFinding("error", name, "truncated_dump", message, f"{_AGAIN} Or allow truncated dumps.")
    elif damage is not None:
        yield DumpFinding("error", name, damage, "Its end cannot be decoded.", _AGAIN)


def _check_index(name: str, path: str, index_path: str) -> Iterator[DumpFinding]:
    """Checks that a bzip2 stream begins at every offset in the index, and that the index's page ids are ascending."""
    n_bytes = Folder.of(path).size()
    offset, page_id, n_entries = -1, 0, 0
    index_name = base_name(index_path)
    try:
        with Folder.of(path).open() as file:
            for entry in read_index(index_path):
                n_entries += 1
                if entry.page_id <= page_id or entry.offset < offset:
                    message = (
                        f"Its entry {n_entries} has the page id {entry.page_id}, which should be greater than "
                        f"{page_id}, the id before it."
                    )
                    yield DumpFinding("error", index_name, "index_order", message, _OTHER_INDEX)
                    return
                page_id = entry.page_id
                if entry.offset == offset:
                    continue
                offset = entry.offset
                if offset >= n_bytes:
                    message = (
                        f"It points to byte {offset:,} of {name}, which has {n_bytes:,} bytes; the dump is truncated."
                    )
                    yield DumpFinding("error", index_name, "index_beyond_end", message, _OTHER_INDEX)
                    return
                file.seek(offset)
                if not _STREAM_START.match(read_up_to(file, 10)):
                    message = (
                        f"It points to byte {offset:,} of {name}, where no stream begins; it is the index of another "
                        f"dump."
                    )
                    yield DumpFinding("error", index_name, "index_mismatch", message, _OTHER_INDEX)
                    return
    except (RecordError, SetupError) as error:
        yield DumpFinding("error", index_name, "unreadable_index", f"The index cannot be read: {error}", _OTHER_INDEX)
        return
    message = f"{counted(n_entries, 'entries')} checked against {name}: a stream begins at each."
    yield DumpFinding("info", index_name, "index_ok", message)


def _check_content(
    dump_range: DumpRange, header: DumpHeader, index_path: str | None, on_progress: Callable[[int], None] | None
) -> Iterator[DumpFinding]:
    """Reads and counts all pages, compares them with the index, and reports what cannot be read."""
    name = base_name(dump_range.path)
    n_pages: Counter[str] = Counter()
    rejects: dict[str, tuple[int, BadRecord]] = {}
    comparison = _IndexComparison(read_index(index_path) if index_path else iter(()))
    records = read_range(dump_range, header.site, text_namespaces=frozenset(), on_progress=on_progress)
    newest = ""
    for record in records:
        if isinstance(record, RawPage):
            newest = max(newest, record.timestamp)
            kind = "other" if record.namespace else "articles" if record.redirect_title is None else "redirects"
            n_pages[kind] += 1
            if record.page_id > 0:
                comparison.add(record.page_id, record.title)
        else:
            count, first = rejects.get(record.reason, (0, record))
            rejects[record.reason] = (count + 1, first)
            if (page_id := read_int(record.key)) is not None:
                comparison.add(page_id, None)
    comparison.finish()
    message = (
        f"{counted(n_pages.total(), 'pages')}: {counted(n_pages['articles'], 'articles')}, "
        f"{counted(n_pages['redirects'], 'redirects')}, "
        f"{n_pages['other']:,} of other namespaces."
    )
    yield DumpFinding("info", name, "content", message)
    yield from _check_newest(name, dump_range.path, newest)
    for reason, (count, first) in sorted(rejects.items()):
        if reason == "truncated_dump" and CODECS[dump_range.compression].is_splittable and dump_range.encoding == UTF8:
            continue  # _check_end has reported it
        severity: Severity = "warning" if reason in _ABSENT else "error"
        what = f", page {first.key}" if first.key else ""
        message = f"{count:,} × {reason}, the first at byte {first.offset:,}{what}: {first.detail}."
        yield DumpFinding(severity, name, reason, message, "" if reason in _ABSENT else _AGAIN)
    if index_path is not None:
        yield from comparison.findings(base_name(index_path), name)


def _check_newest(name: str, path: str, newest: str) -> Iterator[DumpFinding]:
    """Checks that the newest revision is not later than the date of the dump allows."""
    found = None
    with suppress(SetupError):  # as in ``dump_findings``
        found = day_of(path)
    if found is None or not newest:
        return
    day = date.fromisoformat(newest[:10])
    if day > found.day + MOST_DAYS_LATER:
        message = f"Its date is {found.day.isoformat()} (from {found.source}), but its newest revision is from {day}."
        yield DumpFinding(
            "error", name, "mixed_dates", message, "Give files that have the same date, under their original names."
        )


class _IndexComparison:
    """Compares pages with index entries while both are being read. Both must be in the order of page ids."""

    def __init__(self, entries: Iterator[IndexEntry]) -> None:
        self._entries = entries
        self._found: dict[str, list[int]] = {"not_read": [], "not_indexed": [], "retitled": []}
        self._counts = Counter[str]()
        self._waiting: IndexEntry | None = None

    def add(self, page_id: int, title: str | None) -> None:
        """Adds the next page. ``title`` is None if the page is unreadable."""
        entry = self._waiting or next(self._entries, None)
        while entry is not None and entry.page_id < page_id:
            self._note("not_read", entry.page_id)
            entry = next(self._entries, None)
        if entry is None or entry.page_id != page_id:
            self._note("not_indexed", page_id)
            self._waiting = entry
            return
        self._waiting = None
        if title is not None and title not in (entry.title, unescape(entry.title)):
            self._note("retitled", page_id)

    def finish(self) -> None:
        """Ends the comparison after the last page."""
        if self._waiting is not None:
            self._note("not_read", self._waiting.page_id)
        for entry in self._entries:
            self._note("not_read", entry.page_id)

    def _note(self, kind: str, page_id: int) -> None:
        self._counts[kind] += 1
        if len(self._found[kind]) < 5:
            self._found[kind].append(page_id)

    def findings(self, index_name: str, name: str) -> Iterator[DumpFinding]:
        """Returns the differences found."""
        words = {
            "not_read": f"of its pages are not in {name}",
            "not_indexed": f"pages of {name} are not in it",
            "retitled": f"of its pages have another title in {name}",
        }
        for kind, examples in self._found.items():
            if examples:
                first = ", ".join(map(str, examples))
                message = f"{self._counts[kind]:,} {words[kind]}, the first has the id {first}."
                yield DumpFinding("error", index_name, f"index_{kind}", message, _OTHER_INDEX)


def _check_agreement(headers: dict[str, DumpHeader]) -> Iterator[DumpFinding]:
    """Checks that all parts belong to the same wiki and were written by the same version of MediaWiki."""
    dumps = headers.values()
    remedy = "Give parts of the same dump."
    facts: tuple[tuple[Severity, str, str, set[str]], ...] = (
        ("error", "mixed_content", "kinds", {"XML" if dump.form == "xml" else "HTML" for dump in dumps}),
        ("error", "mixed_wikis", "wikis", {dump.site.dbname or dump.site.lang for dump in dumps}),
        ("warning", "mixed_schemas", "export schemas", {dump.schema_version or "none" for dump in dumps}),
        ("warning", "mixed_generators", "MediaWiki versions", {dump.site.generator for dump in dumps} - {""}),
    )
    for severity, code, what, values in facts:
        if len(values) > 1:
            message = f"The files are of different {what}: {', '.join(sorted(values))}."
            yield DumpFinding(severity, "", code, message, remedy)
    if len({tuple(sorted(dump.site.namespaces.items())) for dump in dumps if dump.has_siteinfo}) > 1:
        yield DumpFinding("warning", "", "mixed_namespaces", "The files have different names for namespaces.", remedy)


def _check_parts(paths: Sequence[str]) -> Iterator[DumpFinding]:
    parts = [part for part in map(part_of, paths) if part is not None]
    if len(paths) == 1 and parts:
        message = f"According to its name, it contains only the page ids {parts[0].first_id:,} to {parts[0].last_id:,}."
        yield DumpFinding("warning", parts[0].name, "single_part", message, "Give all parts for the whole wiki.")
        return
    gaps, overlaps = gaps_and_overlaps(parts)
    for gap in gaps:
        message = f"A part is missing: no file contains {gap}."
        yield DumpFinding("error", "", "part_missing", message, "Download the missing part, or give all parts.")
    for overlap in overlaps:
        message = f"{overlap} contain the same page ids, according to their names, so pages would appear twice."
        yield DumpFinding("error", "", "parts_overlap", message, "Give each part once, all from the same dump.")
    by_page = Counter(part.first_id for part in parts if part.first_revision is not None)
    for page_id, count in sorted(by_page.items()):
        if count > 1:
            message = (
                f"{count} files contain parts of the history of page {page_id}, so the page would appear {count} times."
            )
            yield DumpFinding("error", "", "page_in_parts", message, "Give only the file with its newest revisions.")


@dataclass(frozen=True, slots=True)
class DumpPart:
    """A part of a dump, with the range of its pages according to its name."""

    name: str  #: file name
    #: ``first_id``, ``last_id``: page ids, both inclusive
    first_id: int
    last_id: int
    #: ``first_revision``, ``last_revision``: ids of the revisions in the file, if a page is split over several files;
    #: otherwise None
    first_revision: int | None = None
    last_revision: int | None = None


def part_of(path: str) -> DumpPart | None:
    """Returns the part that a file name describes; None if the name describes none."""
    name = base_name(path)
    if found := _REVISIONS.search(name):
        page, first, last = map(int, found.groups())
        return DumpPart(name, page, page, first, last)
    if found := _PAGES.search(name):
        return DumpPart(name, int(found[1]), int(found[2]))
    return None


def is_content_export(path: str) -> bool:
    """Returns whether a file name has the form of a MediaWiki Content File Export."""
    return _CONTENT_EXPORT.match(base_name(path)) is not None


def index_names(path: str) -> tuple[str, ...]:
    """Returns the possible names of the index of a multistream file; empty for other files."""
    name = base_name(path)
    stem = _MULTISTREAM.sub(r"-multistream-index\1.txt\2", name)
    return () if stem == name else (f"{stem}.bz2", f"{stem}.gz", stem)


def gaps_and_overlaps(parts: Iterable[DumpPart]) -> tuple[list[str], list[str]]:
    """Returns two lists of descriptions: of the gaps between parts, and of the parts that overlap."""
    ordered = sorted(parts, key=lambda part: (part.first_id, part.last_id, part.first_revision or 0))
    gaps: list[str] = []
    overlaps: list[str] = []
    if ordered and ordered[0].first_id > 1:
        gaps.append(f"page ids 1 to {ordered[0].first_id - 1}")
    for before, after in pairwise(ordered):
        if before.last_revision is not None and after.first_revision is not None and before.first_id == after.first_id:
            if after.first_revision <= before.last_revision:
                overlaps.append(f"{before.name} and {after.name}")
        elif after.first_id <= before.last_id:
            overlaps.append(f"{before.name} and {after.name}")
        elif after.first_id > before.last_id + 1:
            gaps.append(f"page ids {before.last_id + 1} to {after.first_id - 1}")
    return gaps, overlaps


class IndexEntry(NamedTuple):
    """A line of the index of a multistream dump: the byte offset of the stream that contains the page, the page id, and
    the title as written in XML.
    """

    offset: int
    page_id: int
    title: str


def read_index(path: str) -> Iterator[IndexEntry]:
    """Reads the lines of an index, compressed or not, in order.

    Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format#Multistream_dumps

    Raises:
        RecordError: ``malformed_index`` (a line has another form) or ``damaged_index`` (the file cannot be decoded
            completely).
    """
    rest = b""
    with Folder.of(path).open() as file:
        head = read_up_to(file, MAGIC_BYTES)
        for piece in iter_pieces(file, compression=compression_of(head, path)):
            if isinstance(piece, Damage):
                raise RecordError("damaged_index", piece.detail)
            *lines, rest = (rest + piece.data).split(b"\n")
            for line in lines:
                yield _index_entry(line)
    if rest:
        yield _index_entry(rest)


def _index_entry(line: bytes) -> IndexEntry:
    found = _INDEX_LINE.fullmatch(line)
    if found is None:
        raise RecordError("malformed_index", f"{line[:200]!r} does not have the form offset:page_id:title")
    return IndexEntry(int(found[1]), int(found[2]), found[3].decode("utf-8", "replace"))
