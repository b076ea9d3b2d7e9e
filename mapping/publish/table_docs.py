"""What tables and their columns mean, as text: for docs/tables.md and for the card of a published release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import pyarrow as pa

Known = dict[tuple[str, str, str], str]
"""Where a column of that name, type and meaning is described."""

TABLE_HEADS = {
    "pages": "One row per article: main namespace, not a redirect; disambiguation and list pages included. In the "
    "order of the dump. Spans are half-open `[start, end)` in Unicode code points.",
    "redirects": "One row per redirect page of the main namespace, by title in code-point order.",
    "rejected": "One row per page, or damaged place of a file, that could not be used.",
    "templates": "How often each template is used, by outcome, sorted by name.",
    "page_items": "Only with `--wikidata`. One row per page that a sitelink or page_props gives an item, by page id.",
    "items": "One row per item, in the order of the dump. A chosen language takes in its variants (`en-gb` with `en`).",
    "properties": "One row per property, in the order of the dump.",
    "sitelinks": "One row per sitelink to a chosen wiki, in the order of the dump.",
    "statements": "One row per statement of an item or property, in the order of the dump; references are left out. "
    "The columns from `snak` to `globe` stand in the qualifiers again.",
    "pageviews": "One row per title and page of the main namespace that has views, by title in code-point order, then "
    "page id, null first.",
    "sets": "Every AmbER set, one row each, by collection and name.",
    "tuples": "Every property that tells an entity of a set apart, one row each, in the order of the sets.",
    "set_queries": "Every query about an entity of a set, one row each, in the order of the sets, by task.",
    "names": "Every name that several entities share, one of the collection among them, and what became of it; by "
    "collection and name.",
    "questions": "Every question that passed the filter, one row each: simple ones, compositions, intersections, then "
    "questions about tables.",
    "queries": "Every query that was considered, one row each, by kind.",
    "records": "One row per record that was read: what became of it.",
    "alignments": "One row per evidence that was looked for in its page, in the order of the data set.",
    "misses": "One row per evidence that was looked for nowhere, in the order of the data set: its page is missing, or "
    "it has no text.",
    "crosswalk": "Only for KILT files. One row per span: where it stood, and where it stands.",
    "passages": "One row per passage, in the order of the release that they are cut from.",
    "aliases": "One row per mention and page that links with this text lead to: by mention in code-point order, the "
    "most frequent page first, then by page id.",
    "links": "One row per record, in the order of the release: where its link stands.",
    "classes": "For every class all classes above it over P279 (subclass of), by number of the class, then of the "
    "superclass. Deprecated statements are left out. To say whether an item is a film: join its P31 values with "
    "`class_id` where `superclass_id` is Q11424.",
}


def column_rows(fields: Iterable[pa.Field], known: Known, place: str, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Gives the rows of fields; several in a row that are like others further up stand in one, which names these."""
    described = [(known.get(_said(field)), field) for field in fields]
    for origin, run in groupby(described, key=lambda one: one[0]):
        group = [field for _, field in run]
        if origin is not None and len(group) > 1:
            yield path + ", ".join(f"`{field.name}`" for field in group), "", f"as in {origin}"
            continue
        for field in group:
            name, type_, meaning = _said(field)
            known[name, type_, meaning] = place
            yield f"{path}`{name}`", type_, meaning
            inner = field.type
            while pa.types.is_list(inner):
                inner = inner.value_type
            if pa.types.is_struct(inner):
                yield from column_rows(inner, known, f"{place} › {field.name}", f"{path}{field.name} › ")


def _said(field: pa.Field) -> tuple[str, str, str]:
    """Gives name, type and meaning of a column."""
    meaning = (field.metadata or {})[b"description"].decode().replace("|", "\\|")
    return field.name, _type_name(field.type) + (", or null" if field.nullable else ""), meaning


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "struct" if pa.types.is_struct(type_) else str(type_)


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
