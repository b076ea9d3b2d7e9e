"""Which bytes of which files are read together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kbsource.dump.compressed.streams import UTF8, Compression
from kbsource.dump.siteinfo import read_header
from kbsource.errors import SetupError
from kbsource.files import ReadableStorage, Storage, base_name

_NUMBERS = re.compile(r"(\d+)")
# Files that stand beside dumps and match the same patterns.
_COMPANION = re.compile(
    r"-multistream-index\d*\.txt|sums\.txt\Z|\A(?:SHA\d+SUMS|_SUCCESS)\Z|\.(?:txt|json|html|sql|md5|sha1|sha256|asc|sig)"
    r"(?:\.(?:gz|bz2))?\Z|\.tmp\Z|\.part\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DumpRange:
    """A part of a dump file that one worker reads.

    Attributes:
        index: place in the order of all ranges of all files.
        path: the file.
        start, end: stored bytes [start, end); the pages that begin there belong to the range.
        compression: ``bzip2``, ``gzip`` or ``none``.
        encoding: of the XML.
        n_bytes: size of the file; the range that reaches it is the last one.
        has_root: the file has a ``<mediawiki>`` root, which must be closed at its end.
        prefix: namespace prefix of the elements.
    """

    index: int
    path: str
    start: int
    end: int
    compression: Compression
    encoding: str
    n_bytes: int
    has_root: bool = True
    prefix: str = ""

    @property
    def is_last(self) -> bool:
        """The range reaches the end of its file."""
        return self.end >= self.n_bytes


def plan_ranges(
    paths: Sequence[str], storage: ReadableStorage, *, range_bytes: int, allow_unknown_schema: bool = False
) -> list[DumpRange]:
    """Gives the ranges of the files, in the given order of the files and from front to back.

    gzip files and files in another encoding than UTF-8 cannot be entered in the middle: they are one range.

    Args:
        paths: dump files.
        storage: where they are.
        range_bytes: stored bytes of a range; the last one of a file may have fewer.
        allow_unknown_schema: as for ``read_header``.

    Raises:
        SetupError: a file cannot be read as a dump, or ``range_bytes`` is below 1.
    """
    if range_bytes < 1:
        raise SetupError(f"A range must have at least 1 byte, not {range_bytes}.")
    ranges: list[DumpRange] = []
    for path in paths:
        header = read_header(path, storage, allow_unknown_schema=allow_unknown_schema)
        n_bytes = storage.size(path)
        is_splittable = header.compression != "gzip" and header.encoding == UTF8
        step = range_bytes if is_splittable else n_bytes
        for start in range(0, n_bytes, step):
            ranges.append(
                DumpRange(
                    index=len(ranges),
                    path=path,
                    start=start,
                    end=min(start + step, n_bytes),
                    compression=header.compression,
                    encoding=header.encoding,
                    n_bytes=n_bytes,
                    has_root=header.has_root,
                    prefix=header.prefix,
                )
            )
    return ranges


def expand_inputs(patterns: Sequence[str], storage: Storage) -> list[str]:
    """Gives the dump files that the patterns name, each once, parts in the order of their numbers.

    Indexes, checksums, SQL and other files that stand beside dumps are left out where a pattern with a wildcard
    matches them.

    Raises:
        SetupError: a pattern matches no dump file.
    """
    paths: dict[str, None] = {}
    for pattern in patterns:
        if storage.exists(pattern):
            found = [pattern]
        else:
            found = [path for path in storage.glob(pattern) if not _COMPANION.search(base_name(path))]
        if not found:
            raise SetupError(f"No dump file matches {pattern!r}. Check the path; quote patterns in the shell.")
        paths.update(dict.fromkeys(sorted(found, key=natural_key)))
    return list(paths)


def natural_key(path: str) -> tuple[tuple[int, int | str], ...]:
    """Gives a key that sorts part 2 before part 10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _NUMBERS.split(path) if part)
