"""Key columns of tables, as a classifier or a person names them in a file."""

from __future__ import annotations

import orjson

from kbsource.errors import SetupError
from kbsource.files import Storage
from mapping.sources.reading.files_in import iter_lines


def read_key_columns(path: str, storage: Storage) -> tuple[tuple[str, int, int], ...]:
    """Gives title of the page, number of the table and number of its key column, for each line of a file.

    Args:
        path: JSON Lines of ``{"title", "table", "column"}``, both numbers from 0 on.
        storage: of the file.

    Raises:
        SetupError: a line is not of this form, or names a table again; names file and line.
    """
    found: dict[tuple[str, int], int] = {}
    for raw in iter_lines(storage, path):
        try:
            value = orjson.loads(raw.data)
            title, table, column = value["title"], value["table"], value["column"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise SetupError(f"{path}, line {raw.line}: {error}; write {{title, table, column}} as JSON.") from error
        if not isinstance(title, str) or type(table) is not int or type(column) is not int or min(table, column) < 0:
            raise SetupError(
                f"{path}, line {raw.line}: title must be a text, table and column whole numbers from 0 on."
            )
        if (title, table) in found:
            raise SetupError(f"{path}, line {raw.line}: table {table} of {title!r} is named a second time.")
        found[title, table] = column
    return tuple((title, table, column) for (title, table), column in sorted(found.items()))
