"""Reads the lines of a Wikidata dump that contain its entities, from byte ranges.

The dump is a JSON array with one entity per line, or has the same lines without the array (ndjson). The JSON of an
entity contains no newline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from kbsource.dump import lines
from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import MAGIC_BYTES, Compression, compression_of, iter_pieces, read_up_to
from kbsource.dump.lines import AROUND, Line, LineRange
from kbsource.errors import SetupError
from kbsource.files import Files, Folder
from kbsource.records import BadRecord
from kbsource.wikidata.entity import entity_key

MAX_LINE_BYTES = 32 << 20
"""Maximum length of a line in bytes. The longest line of Wikidata has about 5 MB."""
READ_AHEAD_BYTES = 2 << 20
_BAD_RECORD_BYTES = 1 << 11  # rough upper bound of the size in memory


def plan_entities(paths: Sequence[str], *, range_bytes: int, files: Files = Folder.of) -> list[LineRange]:
    """Returns the ranges of the files of a dump, as ``kbsource.dump.lines.plan_lines`` does.

    Raises:
        SetupError: a file is not a JSON dump.
    """
    return lines.plan_lines(paths, range_bytes=range_bytes, files=files, form=_form)


def _form(path: str, files: Files) -> tuple[Compression, bool]:
    """Returns the compression of a file, and whether its content is a JSON array."""
    with files(path).open() as file:
        compression = compression_of(read_up_to(file, MAGIC_BYTES), path)
        begin = b""
        for piece in iter_pieces(file, compression=compression):
            if isinstance(piece, Damage):
                raise SetupError(f"{path} is damaged at the beginning ({piece.detail}). Download it again.")
            begin = piece.data.lstrip(AROUND)
            if begin:
                break
    if begin[:1] not in (b"[", b"{"):
        raise SetupError(
            f"{path} is not a JSON dump of Wikidata: it begins with {begin[:20]!r}, not with [ or "
            f"{{. Download wikidata-YYYYMMDD-all.json.bz2 from https://dumps.wikimedia.org/wikidatawiki/entities/."
        )
    return compression, begin[:1] == b"["


def read_entities(
    line_range: LineRange,
    *,
    files: Files = Folder.of,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    max_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Line | BadRecord]:
    """Reads the entities of a range like ``kbsource.dump.lines.read_lines``, without the commas and brackets of the
    array.
    """
    for line in lines.read_lines(
        line_range, files=files, on_progress=on_progress, on_damage=on_damage, max_bytes=max_bytes, key_of=entity_key
    ):
        if isinstance(line, BadRecord):
            yield line
            continue
        data = line.data.strip(AROUND)
        # Some writers put the array's brackets on the lines of the first and the last entity.
        if data[:1] == b"[":
            data = data[1:].lstrip(AROUND)
        if data[-1:] == b"]":
            data = data[:-1].rstrip(AROUND)
        if data:
            yield Line(line.offset, data)


def read_ahead(lines: Iterable[Line | BadRecord], *, ahead_bytes: int = READ_AHEAD_BYTES) -> Iterator[Line | BadRecord]:
    """Yields lines unchanged, but reads about ``ahead_bytes`` before it yields the first one.

    Decompression and parsing both use the processor's caches, so switching between them at every line would be slower.
    """
    waiting: deque[Line | BadRecord] = deque()
    n_bytes = 0
    for line in lines:
        waiting.append(line)
        n_bytes += len(line.data) if isinstance(line, Line) else _BAD_RECORD_BYTES
        if n_bytes >= ahead_bytes:
            n_bytes = 0
            while waiting:
                yield waiting.popleft()
    yield from waiting
