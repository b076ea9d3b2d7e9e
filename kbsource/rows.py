"""A table is declared once, as a class: its Arrow schema, its documentation and every conversion follow from that.

::

    class Redirect(Row):
        '''One row per redirect page, by title in code-point order.'''      # heads the table in docs/tables.md

        page_id: Annotated[int, "page id of the redirect"]                  # int64, with its meaning
        hops: Annotated[Int32, "redirects followed, this one included"]     # another Arrow type than int's own
        fragment: Annotated[str | None, "section of the target"]            # nullable
        links: Annotated[tuple[Link, ...], "links, by start"]               # a list of structs; Link is a Row too
        parts: Annotated[tuple[Part, ...], "parts", Numbered()]             # the structs have an ``index`` from 0 too
        old: Annotated[Place | None, Columns("old_", "old")]                # the columns of Place stand in the table,
                                                                            # old_start, …; all null where it is None

    schema_of(Redirect)               the Arrow schema; the meaning of a column is its metadata ``description``
    batch_of(rows, Redirect)          rows -> record batch
    rows_of(batch, Redirect)          record batch or table -> rows; where it has some of the columns, rows have these
                                      alone (and the methods of the class): a part of a table needs no declaration

The last three are in ``kbsource.columns``, which needs Arrow; to declare and to use rows does not. Tables that are no
part of a release need no descriptions: ``page_id: int``. A row is frozen, equal by value, and made as any class is;
``msgspec.structs.replace`` and ``astuple`` stand for those of dataclasses, ``msgspec.to_builtins`` and
``msgspec.convert`` turn it into JSON values and back, and check them.

Why msgspec.Struct (a row of nine fields, CPython 3.11): it is made in 0.1 µs, out of columns in 0.06, and pickled and
unpickled in 0.6, a NamedTuple in 0.3, 0.17 and 1.4, a frozen dataclass in 1.3, 1.3 and 4.9. JSON that is not ours stays
with orjson: the bytes of large floats and of integers beyond 64 bits differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, dataclass_transform

import msgspec

SCHEMA_VERSION = 2
"""Of the tables of releases, in their metadata and manifests."""


@dataclass_transform(frozen_default=True)
class Row(msgspec.Struct, frozen=True, gc=False):
    """A row of a table, or a struct in one. Rows hold values and rows alone, so the garbage collector leaves them."""


@dataclass(frozen=True, slots=True)
class ArrowType:
    """The Arrow type of a column, by the name of the function of ``pyarrow`` that makes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Marks a field that is itself a row as columns of the table; all are nullable where the field may be None.

    ``prefix`` goes before their names, ``word`` into their meanings, for ``{}``.
    """

    prefix: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Marks a list of rows whose structs have one column more, the last: their place in the list, from 0.

    Rows have no such field. It is there for joins: whoever unnests the list keeps the key.
    """

    name: str = "index"


Int8 = Annotated[int, ArrowType("int8")]
Int32 = Annotated[int, ArrowType("int32")]
