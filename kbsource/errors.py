"""The kinds of errors. A wrong set-up stops the job. A record that cannot be used becomes a BadRecord."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import walk_tb

REASONS: dict[str, str] = {
    "bad_text": "the text of the page is not Unicode (a lone surrogate)",
    "content_model": "a page of the main namespace that is not wikitext; the detail names its model",
    "damaged_block": "a block of a bzip2 file that cannot be decoded; the pages that overlap it are lost",
    "damaged_gzip": "a gzip file that cannot be decoded from this point on",
    "damaged_zstd": "a Zstandard file that cannot be decoded from this point on",
    "damaged_xz": "an xz file that cannot be decoded from this point on",
    "duplicate_entity": "another line has the same entity and is used, because its revision is newer or it comes first",
    "duplicate_page_id": "another page with the same id is used, because its revision is newer or it comes first",
    "entity_crash": "the process crashed or reached its memory limit while reading the entity",
    "entity_error": "the process ended with an error while reading the entity",
    "entity_redirect": "a merged entity, which only redirects to another",
    "html_empty": "a record without HTML, or whose HTML shows nothing",
    "html_too_deep": "HTML whose elements are nested too deeply; reported if the fallback fails too",
    "html_too_large": "HTML that exceeds the size limit; reported if the fallback fails too",
    "ids_disagree": "a record whose HTML belongs to another page or revision",
    "invalid_characters": "characters that XML forbids",
    "invalid_field": "an invalid id, namespace or time, or a field of an entity that has another form than Wikidata's",
    "invalid_title": "a page whose title is empty in normal form, or contains control characters",
    "line_cut": "a line (of a Wikidata dump, page views or a snapshot of HTML) that is cut off by damage to the file",
    "line_too_large": "a line (of a Wikidata dump, page views or a snapshot of HTML) that exceeds the size limit",
    "malformed_json": "a line of a Wikidata dump or a snapshot of HTML that is not JSON, or not an object",
    "malformed_line": "a line of page views in an unknown form",
    "malformed_statement": "an entity with a statement that lacks a required field",
    "malformed_tar": "an archive that cannot be read from this point on",
    "malformed_xml": "tags that do not match",
    "missing_field": "a page without title, id or revision, an entity without id or type, a property without datatype",
    "span_mismatch": "a span that does not match its text",
    "page_crash": "both the parser and the fallback crashed on the page",
    "page_cut": "the page has no beginning or no end, because the file, or a readable part of it, ends there",
    "page_error": "both the parser and the fallback failed on the page",
    "invalid_page": "a page that breaks an invariant of pages",
    "page_timeout": "neither the parser nor the fallback finished within the time limit for a page",
    "page_too_large": "a page that exceeds the size limit",
    "text_deleted": "the text of the revision was hidden by the wiki, or the page was deleted",
    "text_missing": "the dump contains no text for the revision",
    "trailing_garbage": "bytes after the end of a compressed stream that are not another stream",
    "truncated_dump": "the file ends before the end of the dump",
    "xml_entity": "the page uses an entity or a document type, which are never expanded",
}
"""Reasons of rejected records, with their meanings. Each damage to a file counts as one page read and one page
rejected.
"""

FALLBACKS: dict[str, str] = {
    "ok": "parsed",
    "fallback_error": "the parser raised an error; a simpler method extracted the page",
    "fallback_timeout": "the parser took longer than --page-timeout; a simpler method extracted the page",
    "fallback_crash": "the parser's process crashed or reached its memory limit; a simpler method extracted the page",
}
"""Values of ``parse_status``, with their meanings."""


_AGAIN = "and run the same command again: the remains of this run are removed first."
_REMEDIES = {
    errno.ENOSPC: f"The disk is full. Make room {_AGAIN}",
    errno.EDQUOT: f"The quota is used up. Make room {_AGAIN}",
    errno.EFBIG: f"The file exceeds the size limit. Raise the limit (ulimit -f) {_AGAIN}",
    errno.EROFS: f"The folder cannot be written to. Choose another one {_AGAIN}",
    errno.EACCES: f"Access is denied. Give the user who runs this read and write permission {_AGAIN}",
    errno.EPERM: f"Access is denied. Give the user who runs this read and write permission {_AGAIN}",
    errno.ENAMETOOLONG: f"The file name is too long. Choose a shorter name {_AGAIN}",
    errno.ELOOP: f"Symbolic links form a loop. Choose another folder {_AGAIN}",
    errno.ENOTDIR: f"There is a file where a folder is needed. Choose another folder {_AGAIN}",
    errno.EEXIST: f"There is a file where a folder is needed. Choose another folder {_AGAIN}",
    errno.EISDIR: "There is a folder where a file is needed. Name the file, or a pattern in quotes (DIR/*.bz2) "
    f"{_AGAIN}",
    errno.ENOENT: "Correct the name. If the file existed when the work began, put it back, make sure that all machines "
    f"have it under this name, {_AGAIN}",
}
# The messages of the C library and of SQLite: https://sqlite.org/rescode.html#full.
_SAID_OF: dict[int, tuple[str, ...]] = {code: (os.strerror(code),) for code in (errno.EDQUOT, errno.EFBIG, errno.EROFS)}
_SAID_OF[errno.ENOSPC] = (os.strerror(errno.ENOSPC), "database or disk is full")
# As worded by DuckDB, which spills rows to the disk:
# https://duckdb.org/docs/current/guides/performance/how_to_tune_workloads.
_OUT_OF_MEMORY = "Out of Memory Error: "
_OF_DATA, _OF_SETUP = "data", "set-up"
# Arrow's functions for reading, such as Reader.open and read_table.
_READS = re.compile(r"Reader|Dataset|Fragment|\bread|\bopen_")
# Functions of kbsource in which Arrow only reads. Mapped files are read when they are accessed.
_READERS = re.compile(r"(title_index|locations|pages/reading)\.py |kbsource/columns\.py (rows_of|_decode)")


class SetupError(Exception):
    """The job cannot run as requested, so it stops at once.

    The message names the wrong value (file, option, line or byte) and the remedy.
    """


class DataError(SetupError):
    """The set-up is correct, but the data cannot be used as requested."""


class StoreError(OSError):
    """A store, or the connection to it, still failed after all retries."""


class RecordError(Exception):
    """A record that can never be processed; the job continues without it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason  #: slug from a fixed set (lower case, underscores), by which rejected records are counted
        self.detail = detail  #: description for people


def shown_value(value: object) -> str:
    """Returns an input value for an error message: its first 80 characters."""
    try:
        return repr(str(value)[:80])
    except ValueError:  # Python does not convert numbers of more than 4,300 digits
        return "a number of thousands of digits"


def shown_name(name: str) -> str:
    r"""Returns a name, or the path of a value, for an error message, as ``shown_value`` but without quotes.

    >>> shown_name("datasets.a\nb")
    'datasets.a\\nb'
    """
    return shown_value(name)[1:-1]


def counted(n: int, things: str) -> str:
    """Returns a number and the name of the counted things. The name is passed in the plural.

    >>> counted(1, "pairs of classes"), counted(1, "entries"), counted(1200, "files")
    ('1 pair of classes', '1 entry', '1,200 files')
    """
    head, blank, rest = things.partition(" ")
    if n == 1:
        head = f"{head[:-3]}y" if head.endswith("ies") else head.removesuffix("s")
    return f"{n:,} {head}{blank}{rest}"


def fault_values(fault: SetupError) -> dict[str, str]:
    """Returns a fault as JSON values, so that another process can report it."""
    return {"of": _OF_DATA if isinstance(fault, DataError) else _OF_SETUP, "message": str(fault)}


def told_fault(values: Mapping[str, str]) -> SetupError:
    """Returns the error that ``fault_values`` described: a DataError or a SetupError.

    >>> told_fault(fault_values(DataError("2 of 3 pages rejected")))
    DataError('2 of 3 pages rejected')
    """
    return (DataError if values["of"] == _OF_DATA else SetupError)(values["message"])


@contextmanager
def named_faults() -> Iterator[None]:
    """A context that converts faults of the machine and of damaged tables into errors that name the remedy.

    Raises:
        SetupError: in place of an error for which ``lasting_fault`` returns one. Other errors propagate unchanged.
    """
    try:
        yield
    except (SetupError, RecordError):
        raise
    except Exception as error:
        fault = lasting_fault(error)
        if fault is None:
            raise
        raise fault from error


def lasting_fault(error: Exception) -> SetupError | None:
    """Returns an error with the remedy for a fault of the machine (a SetupError) or of a table (a DataError).

    Returns None for other faults, including those that may disappear after a retry.
    """
    if isinstance(error, StoreError):
        return SetupError(f"{error}. Make sure that the store answers {_AGAIN}")
    if getattr(error, "errno", None) is None and (fault := disk_fault(str(error))) is not None:
        return fault  # also while reading: DuckDB may sort, and write to the disk, when its rows are read
    if _is_damage(error):
        return DataError(
            f"A table has changed since it was written ({error}). Check the inputs: kbsource verify reports the file."
        )
    if _is_of_values(error):
        return DataError(
            f"A table contains a value with which a query fails ({value_fault(error)}). kbsource verify reports "
            "the damaged tables; get that release again."
        )
    remedy = _REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if remedy is None else SetupError(f"{error}. {remedy}")


def value_fault(error: Exception) -> str:
    """Returns DuckDB's message about a value of a table, without the query."""
    return str(error).partition("\n")[0]


def _is_of_values(error: Exception) -> bool:
    """Returns whether DuckDB failed on a value of a table, for example because a sum is too large for its type."""
    duckdb = sys.modules.get("duckdb")  # only if already imported, because the import is slow
    return duckdb is not None and isinstance(error, duckdb.DataError)


def disk_fault(report: str) -> SetupError | None:
    """Returns the error for a full or unwritable disk, from the message of a library or another process; None if the
    message is about something else.
    """
    for line in report.split("\n"):
        if _OUT_OF_MEMORY in line:
            return SetupError(f"{line.strip()}. Make room on the disk for temporary files {_AGAIN}")
        for code, said in _SAID_OF.items():
            if any(words in line for words in said):
                return SetupError(f"{line.strip()}. {_REMEDIES[code]}")
    return None


def _is_damage(error: Exception) -> bool:
    """Returns whether an error of any type means that Arrow failed to read a file. Failures to write do not count."""
    if isinstance(error, OSError) and error.errno is not None:
        return False
    codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    in_arrow = [code for code in codes if "pyarrow" in code.co_filename]
    is_read = any(_READERS.search(f"{code.co_filename} {code.co_name}") for code in codes)
    return any(is_read or _READS.search(code.co_name) for code in in_arrow)
