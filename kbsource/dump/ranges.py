"""Divides files into byte ranges for reading, and observes how far each range has been read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from kbsource.dump.article_records import Form
from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import CODECS, UTF8, Compression, Piece
from kbsource.dump.siteinfo import read_header
from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, base_name, glob

MAX_RANGE_BYTES = 32 << 20
"""Size of the largest range by default. 32 MiB of bzip2 are about 400 MB of Wikidata's JSON."""
MIN_RANGE_BYTES = 1 << 20
RANGES_WANTED = 32
MOST_RANGES = 10_000
"""Number of ranges for a dump of medium size. It is enough for a few workers to finish at about the same time."""

# Number of bytes at the end of a file that are searched for its end tag or bracket.
TAIL_BYTES = 1 << 14
BROKEN_ENDS = {
    "truncated": "the compressed file ends in the middle",
    **{
        codec.damage: "" if codec.is_splittable else "nothing after the damage can be decoded"
        for codec in CODECS.values()
        if codec.damage
    },
}
"""Descriptions of how truncated content ends, by the damage at its end. An empty string means that the damage is
reported separately.
"""
_NUMBERS = re.compile(r"(\d+)")
# Files that are published beside dumps and match the same patterns.
_COMPANION = re.compile(
    r"-multistream-index\d*\.txt|sums\.txt\Z|\A(?:SHA\d+SUMS|_SUCCESS)\Z|\.(?:txt|json|html|sql|md5|sha1|sha256|asc|sig)"
    r"(?:\.(?:gz|bz2|zst|xz))?\Z|\.tmp\Z|\.part\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of a file that one worker reads."""

    index: int  #: index among the ranges of all files
    path: str
    start: int  #: stored bytes [start, end)
    end: int
    compression: Compression
    n_bytes: int  #: size of the file

    @property
    def is_last(self) -> bool:
        """True if the range reaches the end of its file."""
        return self.end >= self.n_bytes

    @property
    def content_end(self) -> int:
        """The offset from which content belongs to the next range; infinite for the last range."""
        return 1 << 62 if self.is_last else self.end


@dataclass(frozen=True, slots=True)
class DumpRange(FileRange):
    """A range of a dump of pages. The pages that begin in the range belong to it."""

    encoding: str = UTF8  #: character encoding of the XML
    has_root: bool = True  #: true if the file has a ``<mediawiki>`` root, which must be closed at its end
    prefix: str = ""  #: namespace prefix of the elements
    form: Form = "xml"  #: how the content is written


def plan_ranges(paths: Sequence[str], *, range_bytes: int, allow_unknown_schema: bool = False) -> list[DumpRange]:
    """Returns the ranges of dump files, in the given order of the files and from start to end.

    A file is a single range if its compression is not splittable, its encoding is not UTF-8, or it is an archive.

    Raises:
        SetupError: a file cannot be read as a dump, or ``range_bytes`` is below 1.
    """
    if range_bytes < 1:
        raise SetupError(f"A range must have at least 1 byte, not {range_bytes}.")
    ranges: list[DumpRange] = []
    for path in paths:
        header = read_header(path, allow_unknown_schema=allow_unknown_schema)
        facts = header.encoding, header.has_root, header.prefix, header.form
        n_bytes = Folder.of(path).size()
        is_whole = not CODECS[header.compression].is_splittable or header.encoding != UTF8 or header.form == "tar"
        for start, end in cuts(n_bytes, n_bytes if is_whole else range_bytes):
            ranges.append(DumpRange(len(ranges), path, start, end, header.compression, n_bytes, *facts))
    return ranges


def cuts(n_bytes: int, range_bytes: int) -> Iterator[tuple[int, int]]:
    """Returns the start and end of each range of a file; the last range may be shorter."""
    for start in range(0, n_bytes, range_bytes):
        yield start, min(start + range_bytes, n_bytes)


def expand_inputs(patterns: Sequence[str]) -> list[str]:
    """Returns the dump files that the patterns match, without duplicates, with parts ordered by number.

    Indexes, checksums, SQL and other files published beside dumps are skipped if a pattern with a wildcard matches
    them.

    Raises:
        SetupError: a pattern matches no dump file.
    """
    return expand_paths(patterns, "dump file", is_companion=lambda path: _COMPANION.search(base_name(path)) is not None)


def expand_paths(
    patterns: Sequence[str], what: str = "file", *, is_companion: Callable[[str], bool] = lambda path: False
) -> list[str]:
    """Returns the files that the patterns match, without duplicates, with parts ordered by number.

    Raises:
        SetupError: a pattern matches no file.
    """
    paths: dict[str, None] = {}
    for pattern in patterns:
        is_file = Folder.of(pattern).exists()
        found = [pattern] if is_file else [path for path in glob(pattern) if not is_companion(path)]
        if not found:
            raise SetupError(f"No {what} matches {pattern!r}. Check the path; quote patterns in the shell.")
        paths.update(dict.fromkeys(sorted(found, key=natural_key)))
    return list(paths)


def from_root(paths: Sequence[str]) -> list[str]:
    """Returns the files with absolute paths, for workers that run in other folders. File names must be unique, because
    counts are listed by file name.

    Raises:
        SetupError: two files have the same name.
    """
    repeated = [name for name, count in Counter(map(base_name, paths)).items() if count > 1]
    if repeated:
        raise SetupError(
            f"two files are called {repeated[0]}, but inputs are listed by file name; rename one of the files."
        )
    return [absolute(path) for path in paths]


def range_size(n_bytes: int, wanted: int | None = None) -> int:
    """Returns the number of bytes per range: ``wanted``, or if it is None a size that depends only on the size of the
    dump.

    Raises:
        SetupError: with ``wanted``, there would be so many ranges that their overhead exceeds the time for reading.
    """
    if wanted is not None:
        if (n_ranges := -(-n_bytes // wanted)) > MOST_RANGES:
            raise SetupError(
                f"--range-bytes is {wanted}, which splits {n_bytes:,} bytes into {n_ranges:,} ranges. Give at least "
                f"{-(-n_bytes // MOST_RANGES)}, or leave the option out."
            )
        return wanted
    return min(MAX_RANGE_BYTES, max(MIN_RANGE_BYTES, -(-n_bytes // RANGES_WANTED)))


def size_of(paths: Sequence[str]) -> int:
    """Returns the total stored size of files in bytes."""
    return sum(Folder.of(path).size() for path in paths)


def natural_key(path: str) -> tuple[tuple[int, int | str], ...]:
    """Returns a sort key that sorts part 2 before part 10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _NUMBERS.split(path) if part)


class RangeReading:
    """Reports how much of a range has been read, and records how its content ends."""

    def __init__(self, of: FileRange, on_progress: Callable[[int], None] | None, *, encoding: str = UTF8) -> None:
        self._of, self._on_progress = of, on_progress
        self._codec = CODECS[of.compression]
        self._is_streamed = not self._codec.is_splittable or encoding != UTF8
        self._done = of.start
        self._tail, self._offset = b"", 0
        self._damage: str | None = None

    def watch(self, items: Iterable[Piece | Damage]) -> Iterator[Piece | Damage]:
        """Yields the items unchanged, and observes them."""
        for item in items:
            if isinstance(item, Damage):
                self._damage = item.reason
            else:
                self._reach(item.position)
                self._damage = None
                self._offset = item.offset + len(item.data)
                if self._is_streamed:
                    self._tail = (self._tail + item.data[-TAIL_BYTES:])[-TAIL_BYTES:]
            yield item

    def finish(self) -> None:
        """Reports the rest of the range as read."""
        self._reach(self._of.end)

    def end(self, file: BinaryIO) -> tuple[bytes, str | None, int]:
        """Returns the last bytes of the file's content, the reason of damage at its end (or None), and the offset of
        the end.
        """
        of = self._of
        if self._is_streamed or self._codec.tail is None:
            return self._tail, self._damage, of.n_bytes if self._codec.is_splittable else self._offset
        return *self._codec.tail(file, of.n_bytes, TAIL_BYTES), of.n_bytes

    def _reach(self, position: int) -> None:
        position = min(position, self._of.end)
        if self._on_progress is not None and position > self._done:
            self._on_progress(position - self._done)
            self._done = position
