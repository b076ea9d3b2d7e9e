"""Is a dump complete and sound? Every finding says what it means and what to do."""

from __future__ import annotations

import hashlib
import html
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from kbsource.dump.checksums import Published, find_published
from kbsource.dump.compressed.streams import UTF8, read_tail, read_up_to
from kbsource.dump.digests import HashedFile, hash_file
from kbsource.dump.multistream_index import STREAM_START, IndexEntry, read_index
from kbsource.dump.parts import gaps_and_overlaps, index_names, is_content_export, part_of
from kbsource.dump.ranges import DumpRange, plan_ranges
from kbsource.dump.reader import TAIL_BYTES, describe_missing_end, read_range
from kbsource.dump.siteinfo import DumpHeader, read_header
from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import Storage, base_name, join
from kbsource.records import BadRecord, RawPage

Severity = Literal["error", "warning", "info"]

# Enough to tell a stubs dump from one that happens to begin with a hidden page.
_SAMPLE_PAGES = 50
_ABSENT = frozenset(("text_missing", "text_deleted"))
_AGAIN = "Download it again."


@dataclass(frozen=True, slots=True)
class DumpFinding:
    """One result of a check.

    Attributes:
        severity: ``error``: what is built from the dump would be wrong or incomplete; ``warning``: it may be;
            ``info``: good to know.
        file: base name of the file; empty for the dump as a whole.
        code: slug.
        message: what was seen and what it means.
        remedy: what to do; empty when there is nothing to do.
    """

    severity: Severity
    file: str
    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file of the dump, as the release manifest names it."""

    path: str
    name: str
    hashed: HashedFile


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What ``check_dump`` found.

    Attributes:
        findings: in the order of the files, those of the dump as a whole last.
        inputs: the files, hashed.
        header: of the first file that could be read; None when none could.
    """

    findings: tuple[DumpFinding, ...]
    inputs: tuple[CheckedFile, ...]
    header: DumpHeader | None

    @property
    def has_errors(self) -> bool:
        """At least one finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def check_dump(
    paths: Sequence[str],
    storage: Storage,
    *,
    deep: bool = False,
    allow_unknown_schema: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> CheckReport:
    """Checks the files of one dump.

    Each file is hashed, its head and its end are read; with ``deep`` all of it is read.

    Args:
        paths: from ``ranges.expand_inputs``.
        storage: where they are.
        deep: decode everything, compare it with the index, count pages, report damage.
        allow_unknown_schema: as for ``siteinfo.read_header``.
        on_progress: told how many further stored bytes were read: of all files once, with ``deep`` twice.
    """
    findings: list[DumpFinding] = []
    inputs: list[CheckedFile] = []
    headers: dict[str, DumpHeader] = {}
    for path in paths:
        name = base_name(path)
        if not storage.exists(path):
            findings.append(DumpFinding("error", name, "missing_file", f"{path} does not exist.", "Check the path."))
            continue
        try:
            published = find_published(path, storage)
        except SetupError as error:
            findings.append(DumpFinding("error", name, "bad_checksum_list", _said(error, path)))
            hashed = hash_file(path, storage, on_bytes=on_progress)
        else:
            found, hashed = _check_sums(path, published, storage, on_progress)
            findings += found
        inputs.append(CheckedFile(path, name, hashed))
        try:
            header = read_header(path, storage, allow_unknown_schema=allow_unknown_schema)
            dump_range = plan_ranges([path], storage, range_bytes=1 << 62, allow_unknown_schema=allow_unknown_schema)[0]
        except SetupError as error:
            findings.append(DumpFinding("error", name, "unreadable", _said(error, path)))
            continue
        headers[name] = header
        findings += _check_head(name, header, dump_range, storage)
        findings += _check_end(name, dump_range, storage)
        index_path = _index_path(path, storage)
        if index_path is not None:
            of_index = list(_check_index(name, path, index_path, storage))
            findings += of_index
            if any(finding.severity == "error" for finding in of_index):
                index_path = None  # nothing to compare the content with
        if deep:
            findings += _check_content(dump_range, storage, header, index_path, on_progress)
    findings += _check_agreement(headers)
    findings += _check_parts(paths)
    return CheckReport(tuple(findings), tuple(inputs), next(iter(headers.values()), None))


def _said(error: SetupError, path: str) -> str:
    """Gives what is wrong with a file that the finding names anyway."""
    message = str(error)
    return f"It {message.removeprefix(path).lstrip()}" if message.startswith(f"{path} ") else message


def _check_sums(
    path: str, published: Published, storage: Storage, on_progress: Callable[[int], None] | None
) -> tuple[list[DumpFinding], HashedFile]:
    name = base_name(path)
    further = {name: hashlib.new(name, usedforsecurity=False) for name, _, _ in published.digests}
    hashed = hash_file(path, storage, further=further.values(), on_bytes=on_progress)
    found: list[DumpFinding] = []
    n_bytes = hashed.n_bytes
    if published.n_bytes not in (None, n_bytes):
        message = f"It has {n_bytes:,} bytes, dumpstatus.json says {published.n_bytes:,}: it is not all there."
        found.append(DumpFinding("error", name, "size_mismatch", message, _AGAIN))
    for algorithm, digest, list_name in published.digests:
        if (own := further[algorithm].hexdigest()) != digest:
            message = f"Its {algorithm} is {own}, {list_name} says {digest}: it is another file."
            found.append(DumpFinding("error", name, "checksum_mismatch", message, _AGAIN))
    if published.unfinished_job:
        message = f"By dumpstatus.json the job that writes it is not done ({published.unfinished_job})."
        found.append(DumpFinding("warning", name, "job_not_done", message, "Wait until the dump is complete."))
    if not published.digests:
        remedy = "Put the md5sums, sha1sums or SHA256SUMS of the dump beside it to have it checked."
        found.append(DumpFinding("info", name, "no_checksum", "No list of checksums beside it names it.", remedy))
    elif not found:
        lists = ", ".join(sorted({list_name for _, _, list_name in published.digests}))
        found.append(DumpFinding("info", name, "checksum_ok", f"It is the published file by {lists}."))
    if is_content_export(path) and not storage.exists(join(posixpath.dirname(path), "_SUCCESS")):
        message = "No _SUCCESS beside it: that file is written when an export is complete."
        remedy = "Download _SUCCESS too; where it is not published, wait until it is."
        found.append(DumpFinding("warning", name, "no_success_marker", message, remedy))
    return found, hashed


def _check_head(name: str, header: DumpHeader, dump_range: DumpRange, storage: Storage) -> Iterator[DumpFinding]:
    if not header.has_root:
        message = "It has no <mediawiki> root: a bare sequence of pages, or its beginning is missing."
        yield DumpFinding("warning", name, "no_root", message, "Use the file as published.")
    if not header.has_siteinfo:
        site = header.site
        message = f"It has no <siteinfo>: namespaces are taken to be those of {site.dbname or site.lang}."
        yield DumpFinding("warning", name, "no_siteinfo", message, "Use the file as published, or check the language.")
    if header.schema_version is None:
        yield DumpFinding("info", name, "no_schema_version", "It does not say which export schema it is of.")
    records = [
        record
        for record in islice(read_range(dump_range, storage, header.site, text_namespaces=frozenset()), _SAMPLE_PAGES)
        if isinstance(record, BadRecord) or record.namespace == 0
    ]
    if records and all(isinstance(record, BadRecord) and record.reason == "text_missing" for record in records):
        message = "Its pages have no texts: it is a stubs dump."
        yield DumpFinding("error", name, "stubs_dump", message, "Use pages-articles or pages-meta-current.")


def _check_end(name: str, dump_range: DumpRange, storage: Storage) -> Iterator[DumpFinding]:
    if dump_range.compression == "gzip" or dump_range.encoding != UTF8:
        message = "How it ends shows only when all of it is read."
        yield DumpFinding("info", name, "end_not_checked", message, "Use the deep check.")
        return
    with storage.open_read(dump_range.path) as file:
        tail, damage = read_tail(file, compression=dump_range.compression, size=dump_range.n_bytes, count=TAIL_BYTES)
    missing = describe_missing_end(tail, damage, has_root=dump_range.has_root, prefix=dump_range.prefix)
    if missing:
        message = f"It is truncated: {missing}. Pages are missing."
        yield DumpFinding("error", name, "truncated_dump", message, f"{_AGAIN} Or allow truncated dumps.")
    elif damage is not None:
        yield DumpFinding("error", name, damage, "Its end cannot be decoded.", _AGAIN)


def _index_path(path: str, storage: Storage) -> str | None:
    candidates = [join(posixpath.dirname(path), name) for name in index_names(path)]
    return next((candidate for candidate in candidates if storage.exists(candidate)), None)


def _check_index(name: str, path: str, index_path: str, storage: Storage) -> Iterator[DumpFinding]:
    """Checks that every offset of the index is the beginning of a stream, and that the ids go up."""
    n_bytes = storage.size(path)
    offset, page_id, n_entries = -1, 0, 0
    index_name = base_name(index_path)
    remedy = "Download the index and the dump again, from the same date."
    try:
        with storage.open_read(path) as file:
            for entry in read_index(index_path, storage):
                n_entries += 1
                if entry.page_id <= page_id or entry.offset < offset:
                    message = f"Its entry {n_entries} ({entry.page_id}) does not come after {page_id}."
                    yield DumpFinding("error", index_name, "index_order", message, remedy)
                    return
                page_id = entry.page_id
                if entry.offset == offset:
                    continue
                offset = entry.offset
                if offset >= n_bytes:
                    message = f"It points to byte {offset:,} of {name}, which has {n_bytes:,}: the dump is truncated."
                    yield DumpFinding("error", index_name, "index_beyond_end", message, remedy)
                    return
                file.seek(offset)
                if not STREAM_START.match(read_up_to(file, 10)):
                    message = f"It points to byte {offset:,} of {name}, where no stream begins: another dump's index."
                    yield DumpFinding("error", index_name, "index_mismatch", message, remedy)
                    return
    except (RecordError, SetupError) as error:
        yield DumpFinding("error", index_name, "unreadable_index", f"The index cannot be read: {error}", remedy)
        return
    message = f"{counted(n_entries, 'entries')} checked against {name}: a stream begins at each."
    yield DumpFinding("info", index_name, "index_ok", message)


def _check_content(
    dump_range: DumpRange,
    storage: Storage,
    header: DumpHeader,
    index_path: str | None,
    on_progress: Callable[[int], None] | None,
) -> Iterator[DumpFinding]:
    """Reads all pages; counts them, reports what cannot be read, compares them with the index."""
    name = base_name(dump_range.path)
    n_pages: Counter[str] = Counter()
    rejects: dict[str, tuple[int, BadRecord]] = {}
    comparison = _IndexComparison(read_index(index_path, storage) if index_path else iter(()))
    records = read_range(dump_range, storage, header.site, text_namespaces=frozenset(), on_progress=on_progress)
    for record in records:
        if isinstance(record, RawPage):
            kind = "other" if record.namespace else "articles" if record.redirect_title is None else "redirects"
            n_pages[kind] += 1
            comparison.add(record.page_id, record.title)
        else:
            count, first = rejects.get(record.reason, (0, record))
            rejects[record.reason] = (count + 1, first)
            if record.key.isdigit():
                comparison.add(int(record.key), None)
    comparison.finish()
    message = (
        f"{counted(n_pages.total(), 'pages')}: {counted(n_pages['articles'], 'articles')}, "
        f"{counted(n_pages['redirects'], 'redirects')}, "
        f"{n_pages['other']:,} of other namespaces."
    )
    yield DumpFinding("info", name, "content", message)
    for reason, (count, first) in sorted(rejects.items()):
        if reason == "truncated_dump" and dump_range.compression != "gzip" and dump_range.encoding == UTF8:
            continue  # found by _check_end
        severity: Severity = "warning" if reason in _ABSENT else "error"
        what = f", page {first.key}" if first.key else ""
        message = f"{count:,} × {reason}, the first at byte {first.offset:,}{what}: {first.detail}."
        yield DumpFinding(severity, name, reason, message, "" if reason in _ABSENT else _AGAIN)
    if index_path is not None:
        yield from comparison.findings(base_name(index_path), name)


class _IndexComparison:
    """Compares pages with index entries while both go by; both come in the order of their ids."""

    def __init__(self, entries: Iterator[IndexEntry]) -> None:
        self._entries = entries
        self._not_read: list[int] = []
        self._not_indexed: list[int] = []
        self._retitled: list[int] = []
        self._counts = Counter[str]()
        self._waiting: IndexEntry | None = None

    def add(self, page_id: int, title: str | None) -> None:
        """Takes the next page; its title is None when it could not be read."""
        entry = self._waiting or next(self._entries, None)
        while entry is not None and entry.page_id < page_id:
            self._note("not_read", entry.page_id)
            entry = next(self._entries, None)
        if entry is None or entry.page_id != page_id:
            self._note("not_indexed", page_id)
            self._waiting = entry
            return
        self._waiting = None
        if title is not None and title not in (entry.title, html.unescape(entry.title)):
            self._note("retitled", page_id)

    def finish(self) -> None:
        """Takes the end of the pages."""
        if self._waiting is not None:
            self._note("not_read", self._waiting.page_id)
        for entry in self._entries:
            self._note("not_read", entry.page_id)

    def _note(self, kind: str, page_id: int) -> None:
        self._counts[kind] += 1
        examples = {"not_read": self._not_read, "not_indexed": self._not_indexed, "retitled": self._retitled}[kind]
        if len(examples) < 5:
            examples.append(page_id)

    def findings(self, index_name: str, name: str) -> Iterator[DumpFinding]:
        """Yields what differs."""
        for kind, examples, words in (
            ("not_read", self._not_read, f"of its pages are not in {name}"),
            ("not_indexed", self._not_indexed, f"pages of {name} are not in it"),
            ("retitled", self._retitled, f"of its pages have another title in {name}"),
        ):
            if self._counts[kind]:
                message = f"{self._counts[kind]:,} {words}, the first with id {', '.join(map(str, examples))}."
                remedy = "Download the index and the dump again, from the same date."
                yield DumpFinding("error", index_name, f"index_{kind}", message, remedy)


def _check_agreement(headers: dict[str, DumpHeader]) -> Iterator[DumpFinding]:
    """Checks that all parts are of the same wiki and were written by the same program."""
    for code, severity, what, values in (
        ("mixed_wikis", "error", "wikis", {h.site.dbname or h.site.lang for h in headers.values()}),
        (
            "mixed_schemas",
            "warning",
            "export schemas",
            {h.schema_version or "none" for h in headers.values()},
        ),
        (
            "mixed_generators",
            "warning",
            "MediaWiki versions",
            {h.site.generator for h in headers.values()} - {""},
        ),
    ):
        if len(values) > 1:
            message = f"The files are of different {what}: {', '.join(sorted(values))}."
            yield DumpFinding(
                "error" if severity == "error" else "warning",
                "",
                code,
                message,
                "Give the parts of one dump.",
            )
    namespaces = {tuple(sorted(h.site.namespaces.items())) for h in headers.values() if h.has_siteinfo}
    if len(namespaces) > 1:
        message = "The files name namespaces differently."
        yield DumpFinding("warning", "", "mixed_namespaces", message, "Give the parts of one dump.")


def _check_parts(paths: Sequence[str]) -> Iterator[DumpFinding]:
    parts = [part for part in map(part_of, paths) if part is not None]
    if len(paths) == 1 and parts:
        message = f"By its name it holds the page ids {parts[0].first_id:,} to {parts[0].last_id:,} only."
        yield DumpFinding("warning", parts[0].name, "single_part", message, "Give all parts for the whole wiki.")
        return
    gaps, overlaps = gaps_and_overlaps(parts)
    for gap in gaps:
        message = f"No file is given for {gap}: a part is missing."
        yield DumpFinding("error", "", "part_missing", message, "Download the missing part, or give all parts.")
    for overlap in overlaps:
        message = f"{overlap} hold the same page ids by their names: pages would come twice."
        yield DumpFinding("error", "", "parts_overlap", message, "Give each part once, all of one dump.")
    by_page = Counter(part.first_id for part in parts if part.first_revision is not None)
    for page_id, count in sorted(by_page.items()):
        if count > 1:
            message = f"The history of page {page_id} is in {count} files: the page would come {count} times."
            yield DumpFinding("error", "", "page_in_parts", message, "Give the file with its newest revisions only.")
