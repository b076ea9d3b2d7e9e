"""Describes tables and columns, from the schemas that declare them, for people who read or query a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby

import pyarrow as pa

from mapping.kinds import KINDS

Known = dict[tuple[str, str, str], str]
"""The place where a column of that name, type and meaning is described."""

_HEADS = {
    "records": "One row per record of the dataset, with its outcome.",
    "alignments": "One row per piece of evidence that was searched for in its page, in the order of the dataset.",
    "misses": "One row per piece of evidence that could not be searched for, because its page is missing or it has no "
    "text, in the order of the dataset.",
    "crosswalk": "Only for KILT files. One row per span: its position in the file and in the release.",
}


@cache
def table_head(table: str) -> str:
    """Returns a description of a table's rows and their order; an empty string if no kind of release has the table."""
    schemas = (kind.tables[table] for kind in KINDS if table in kind.tables)
    said = next((schema.metadata[b"description"].decode() for schema in schemas if schema.metadata), "")
    return _HEADS.get(table, said)


def column_rows(fields: Iterable[pa.Field], known: Known, place: str, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Builds the rows that describe columns. Adjacent columns that were described before share one row, which refers to
    that description."""
    described = [(known.get(_column_texts(field)), field) for field in fields]
    for origin, run in groupby(described, key=lambda row: row[0]):
        group = [field for _, field in run]
        if origin is not None and len(group) > 1:
            yield path + ", ".join(f"`{field.name}`" for field in group), "", f"as in {origin}"
            continue
        for field in group:
            name, type_, meaning = _column_texts(field)
            known[name, type_, meaning] = place
            yield f"{path}`{name}`", type_, meaning
            inner = field.type
            while pa.types.is_list(inner):
                inner = inner.value_type
            if pa.types.is_struct(inner):
                yield from column_rows(inner, known, f"{place} › {field.name}", f"{path}{field.name} › ")


def _column_texts(field: pa.Field) -> tuple[str, str, str]:
    """Returns name, type and meaning of a column."""
    meaning = (field.metadata or {})[b"description"].decode().replace("|", "\\|")
    return field.name, _type_name(field.type) + (", or null" if field.nullable else ""), meaning


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "struct" if pa.types.is_struct(type_) else str(type_)
