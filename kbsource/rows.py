"""Declares a table once, as a class. Its Arrow schema, its documentation and all conversions follow from the class.

::

    class Redirect(Row):
        '''One row per redirect page, by title in code-point order.'''      # heads the table in docs/tables.md
        page_id: Annotated[int, "page id of the redirect"]                  # int64, with its description
        hops: Annotated[Int32, "redirects followed, this one included"]     # another Arrow type than int's default
        fragment: Annotated[str | None, "section of the target"]            # nullable
        links: Annotated[tuple[Link, ...], "links, by start"]               # a list of structs; Link is a Row too
        parts: Annotated[tuple[Part, ...], "parts", Numbered()]             # the structs also have an ``index`` from 0
        old: Annotated[Place | None, Columns("old_", "old")]                # the table has the columns of Place,
                                                                            # old_start, …; all null for None

    schema_of(Redirect)               the Arrow schema; the metadata ``description`` of a column is its meaning
    batch_of(rows, Redirect)          rows -> record batch
    rows_of(batch, Redirect)          record batch or table -> rows. If the batch has only some of the columns, the
                                      rows have only these fields (and the methods of the class), so part of a table
                                      needs no declaration

These three functions are in ``kbsource.columns``, which needs Arrow; declaring and using rows does not. Tables that are
not part of a release need no descriptions: ``page_id: int``. A row is frozen, compares by value, and is constructed
like any class. Use ``msgspec.structs.replace`` and ``astuple`` in place of the functions of ``dataclasses``.
``msgspec.to_builtins`` and ``msgspec.convert`` convert a row to JSON values and back, with validation.

Why msgspec.Struct: for a row of nine fields on CPython 3.11, construction takes 0.1 µs, reading it from columns 0.06
µs, and pickling plus unpickling 0.6 µs. A NamedTuple takes 0.3, 0.17 and 1.4 µs, a frozen dataclass 1.3, 1.3 and 4.9
µs. JSON that others read stays with orjson, because the two libraries write different bytes for large floats and for
integers beyond 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, dataclass_transform

import msgspec

SCHEMA_VERSION = 2
"""Schema version of the tables of releases, in their metadata and manifests."""


@dataclass_transform(frozen_default=True)
class Row(msgspec.Struct, frozen=True, gc=False):
    """A row of a table, or a struct in a row. Rows contain only values and other rows, so the garbage collector ignores
    them.
    """


@dataclass(frozen=True, slots=True)
class ArrowType:
    """The Arrow type of a column, as the name of the ``pyarrow`` function that creates it."""

    name: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Marks a field whose type is a row: its fields become columns of the table, all nullable if the field may be None.

    ``prefix`` is put before the column names, and ``word`` replaces ``{}`` in their descriptions.
    """

    prefix: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Marks a list of rows whose structs have one more column at the end: the index in the list, from 0.

    The rows themselves have no such field. It is there for joins, so that an unnested list keeps its key.
    """

    name: str = "index"


Int8 = Annotated[int, ArrowType("int8")]
Int32 = Annotated[int, ArrowType("int32")]
