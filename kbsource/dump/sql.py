"""Reads rows of a wiki's page_props table from its SQL dump.

MediaWiki versions add and remove columns, so rows are read by the column names of the CREATE TABLE, never by position.

Source: https://www.mediawiki.org/wiki/Manual:Database_layout
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import MAGIC_BYTES, compression_of, iter_pieces, read_up_to
from kbsource.errors import SetupError
from kbsource.files import Files, Folder, base_name
from kbsource.records import BadRecord

_COLUMNS = (b"pp_page", b"pp_propname", b"pp_value")

_Pick = Callable[[tuple[bytes, ...]], tuple[bytes, ...]]

# The longest value in the table is a blob of 65,535 bytes; escaping may double its length.
_MAX_ROW_BYTES = 1 << 20

_MIN_WINDOW_BYTES = 1 << 9
_MAX_WINDOW_BYTES = 1 << 20

_STRING = rb"(?:_binary\s+)?'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'"
_VALUE = rb"(?:-?\d[\d.]*+(?:[eE][-+]?\d+)?|NULL|" + _STRING + rb"|0x[0-9A-Fa-f]+)"
_CREATE = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?`([^`]+)` \((.*?)^\)", re.DOTALL | re.MULTILINE)
_COLUMN = re.compile(rb"^\s*`([^`]+)`\s", re.MULTILINE)
_STATEMENT = re.compile(rb"^(?:(CREATE) TABLE\b|(?:INSERT|REPLACE)[ A-Z]* INTO `)", re.MULTILINE)
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)[ A-Z]* INTO `([^`]+)`\s*(?:\(([^)]*)\)\s*)?VALUES\s*", re.DOTALL | re.IGNORECASE
)
_DATABASE = re.compile(rb"^-- Host: .*?\bDatabase: (\S+)\s*$", re.MULTILINE)
# Source: the heads of published dumps, which have 1 to 3 KB including the CREATE TABLE.
_HEAD_BYTES = 1 << 16
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
# Source: table "Special Character Escape Sequences" of https://dev.mysql.com/doc/refman/8.0/en/string-literals.html
_ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
# Where a row may begin after a broken row.
_NEXT_ROW = re.compile(rb"\)\s*(?:,\s*(?=\()|;\s*$)", re.MULTILINE)


def page_props_database(path: str) -> str | None:
    """Returns the database from which a dump of page_props was made, such as ``enwiki``; None if the head of the dump
    does not name the database. Only the head is read.

    Raises:
        SetupError: the file is not a dump of this table.
    """
    return _SqlReader(path).read_database()


def read_page_props(
    path: str, *, names: frozenset[str] | None = None, files: Files = Folder.of
) -> Iterator[tuple[int, str, str] | BadRecord]:
    """Yields (page_id, name, value) from a ``.sql`` file, plain or compressed, in the order of the file.

    Also yields BadRecords (stage ``read``): ``malformed_row`` or ``invalid_field`` for a row that cannot be read,
    ``truncated_sql`` for a truncated file, and one of ``DAMAGES`` for damage. Their offsets are in the decompressed
    bytes; that of ``invalid_field`` is unknown.

    ``names`` selects properties (``wikibase_item``, ``disambiguation``, …); None selects all. Some properties have
    binary values, in which bytes that are not valid UTF-8 become surrogates.

    Raises:
        SetupError: the file is not a dump of a single table, or the table lacks one of these columns.
    """
    known: dict[bytes, str | None] = {}  # name as written -> name; None for unwanted names
    for rows in _SqlReader(path, files).batches():
        if isinstance(rows, BadRecord):
            yield rows
            continue
        for written_id, written_name, written_value in rows:
            if written_name not in known:
                found = _literal_text(written_name)
                known[written_name] = found if names is None or found in names else None
            name = known[written_name]
            if name is None and names is not None:
                continue
            value = _literal_text(written_value)
            if name is not None and value is not None and written_id.isdigit():
                yield int(written_id), name, value
            else:
                detail = f"page {written_id!r}, property {written_name!r}, value {written_value!r}"
                yield BadRecord("read", "", "invalid_field", detail[:1000], base_name(path), -1)


class _SqlReader:
    """Reads a file. The buffer contains the decompressed bytes from the current statement or row on."""

    def __init__(self, path: str, files: Files = Folder.of) -> None:
        self._path = path
        self._file_name = base_name(path)
        self._buffer = b""
        self._dropped = 0
        self._position = 0
        self._is_at_end = False
        self._damage: Damage | None = None
        self._table: bytes | None = None
        self._table_columns: list[bytes] = []
        self._window = _MIN_WINDOW_BYTES  # number of bytes that are searched for rows at once; small after broken rows
        self._file = files(path).open()
        self._pieces = iter_pieces(self._file, compression=compression_of(read_up_to(self._file, MAGIC_BYTES), path))

    def batches(self) -> Iterator[Iterable[tuple[bytes, ...]] | BadRecord]:
        """Yields batches of rows, each row with the wanted values as written."""
        with self._file:
            while statement := self._next_statement():
                self._position = statement.start()
                if statement[1]:
                    self._read_create()
                else:
                    yield from self._read_insert()
        if self._damage is not None and self._damage.reason != "truncated":
            yield self._reject(self._damage.reason, self._damage.detail)
        elif self._damage is not None:
            yield self._reject("truncated_sql", self._damage.detail)
        if self._table is None:
            raise self._is_no_dump()

    def read_database(self) -> str | None:
        """Returns the name of the database in the head; None if there is none.

        Raises:
            SetupError: no statement about a table follows, or its table lacks a wanted column.
        """
        with self._file:
            while len(self._buffer) < _HEAD_BYTES and self._more():
                pass
            statement = _STATEMENT.search(self._buffer)
            if statement is None:
                raise self._is_no_dump()
            database = _DATABASE.search(self._buffer, 0, statement.start())
            self._position = statement.start()
            if statement[1]:
                self._read_create()
        return database[1].decode("utf-8", "replace") if database else None

    def _is_no_dump(self) -> SetupError:
        return SetupError(f"{self._path} is not an SQL dump of a table: it has no CREATE TABLE. Download it again.")

    def _reject(self, reason: str, detail: str) -> BadRecord:
        return BadRecord("read", "", reason, detail[:1000], self._file_name, self._dropped + self._position)

    def _more(self) -> bool:
        """Drops the bytes that were read from the buffer, and appends more. Returns False at the end of the decodable
        content.
        """
        if self._is_at_end:
            return False
        piece = next(self._pieces, None)
        if piece is None or isinstance(piece, Damage):
            self._is_at_end = True
            self._damage = piece
            return False
        self._buffer = self._buffer[self._position :] + piece.data
        self._dropped += self._position
        self._position = 0
        return True

    def _next_statement(self) -> re.Match[bytes] | None:
        while True:
            found = _STATEMENT.search(self._buffer, self._position)
            if found:
                return found
            # A statement begins at the beginning of a line, so none begins in the dropped lines. The last line may be
            # incomplete.
            self._position = max(self._position, self._buffer.rfind(b"\n") + 1)
            if not self._more():
                return None

    def _match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Matches a pattern at the current position. Reads more bytes if needed, as many as a row may have."""
        while (found := pattern.match(self._buffer, self._position)) is None:
            if len(self._buffer) - self._position > _MAX_ROW_BYTES or not self._more():
                return None
        return found

    def _read_create(self) -> None:
        found = self._match(_CREATE)
        if found is None:
            raise SetupError(f"{self._path}: the CREATE TABLE is not complete. Download the file again.")
        if self._table not in (None, found[1]):
            raise SetupError(f"{self._path} contains more than one table. Give the dump of a single table.")
        self._table = found[1]
        self._table_columns = _COLUMN.findall(found[2])
        self._row_pattern(self._table_columns)  # raises an error if a column is missing, even if there are no rows
        self._position = found.end()

    def _row_pattern(self, columns: list[bytes]) -> tuple[re.Pattern[bytes], _Pick]:
        """Returns the pattern of a row, and a function that selects the wanted columns from its groups.

        The first group is the whole row with the ``,`` or ``;`` after it. The other groups are the wanted columns.
        """
        table = (self._table or b"").decode("utf-8", "replace")
        missing = [column for column in _COLUMNS if column not in columns]
        if missing:
            raise SetupError(
                f"{self._path}: table {table} has no column {missing[0].decode()}; "
                f"it has {', '.join(column.decode('utf-8', 'replace') for column in columns)}."
            )
        wanted = sorted(map(columns.index, _COLUMNS))
        values = [b"(" + _VALUE + b")" if index in wanted else _VALUE for index in range(len(columns))]
        row = rb"(\s*\(\s*" + rb"\s*,\s*".join(values) + rb"\s*\)\s*[,;])"
        return re.compile(row, re.DOTALL), itemgetter(*(1 + wanted.index(columns.index(column)) for column in _COLUMNS))

    def _read_insert(self) -> Iterator[Iterable[tuple[bytes, ...]] | BadRecord]:
        opening = self._match(_INSERT)
        if opening is None:
            yield self._reject("malformed_row", "an INSERT in an unknown form")
            self._position += len(b"INSERT")
            if self._is_at_end and b"\n" not in self._buffer[self._position :].rstrip():
                self._note_end()
            return
        if opening[2] is None and self._table is None:
            raise SetupError(f"{self._path}: there are rows before any CREATE TABLE. Download the file again.")
        if self._table not in (None, opening[1]):
            raise SetupError(f"{self._path} contains more than one table. Give the dump of a single table.")
        self._table = opening[1]
        named = [name.strip(b" `\r\n\t") for name in opening[2].split(b",")] if opening[2] else self._table_columns
        pattern, pick = self._row_pattern(named)
        self._position = opening.end()
        while True:
            rows = self._take_rows(pattern)
            yield map(pick, rows)
            if rows and rows[-1][0].endswith(b";"):
                return
            if rows:
                continue
            if self._is_at_end and _NEXT_ROW.search(self._buffer, self._position) is None:
                self._note_end()
                return
            shown = self._buffer[self._position : self._position + 200].decode("utf-8", "replace")
            yield self._reject("malformed_row", shown)
            if not self._skip_row():
                return

    def _take_rows(self, pattern: re.Pattern[bytes]) -> Sequence[tuple[bytes, ...]]:
        """Returns the groups of the statement's next rows; empty if the next row cannot be read."""
        end = min(self._buffer.find(b";\n", self._position) + 1 or len(self._buffer), self._position + self._window)
        found = pattern.findall(self._buffer, self._position, end)
        taken = b"".join([row[0] for row in found])
        if not self._buffer.startswith(taken, self._position):
            # There are gaps between the rows, so only those before the first gap are used.
            found = list(self._following_on(found))
            taken = b"".join([row[0] for row in found])
        self._window = min(2 * self._window, _MAX_WINDOW_BYTES) if found else _MIN_WINDOW_BYTES
        if not found and (single := self._match(pattern)):
            found = [single.groups()]
            taken = single[0]
        self._position += len(taken)
        return found

    def _following_on(self, rows: list[tuple[bytes, ...]]) -> Iterator[tuple[bytes, ...]]:
        position = self._position
        for row in rows:
            if not self._buffer.startswith(row[0], position):
                return
            position += len(row[0])
            yield row

    def _skip_row(self) -> bool:
        """Skips a broken row. Returns False if the statement ends with it."""
        while (following := _NEXT_ROW.search(self._buffer, self._position)) is None:
            keep = len(self._buffer) - 2 * len(b"),(")
            self._position = max(self._position, keep)
            if not self._more():
                self._note_end()
                return False
        self._position = following.end()
        return b";" not in following[0]

    def _note_end(self) -> None:
        """Records that the file ends inside an INSERT, unless damage at its end is already recorded."""
        if self._damage is None:
            self._damage = Damage(0, 0, "truncated", "the file ends inside an INSERT")


def _literal_text(written: bytes) -> str | None:
    """Returns the text of a string literal; None if it is not a string."""
    if written[0] == 95:  # _binary '…'
        written = written[written.index(b"'") :]
    if written[0] == 39:  # '
        text = written[1:-1]
        if b"\\" in text or b"''" in text:
            text = _ESCAPE.sub(_unescaped, text)
    elif written[:2] == b"0x":
        digits = written[2:].decode("ascii")
        text = bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    else:
        return None
    return text.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    character: bytes | None = found[1]
    return b"'" if character is None else _ESCAPES.get(character, character)
