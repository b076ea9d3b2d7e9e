"""Arrow schema of every released table, with the meaning of each column.

Column descriptions are field metadata under ``description``; docs/tables.md is generated from them.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1


def _field(name: str, type_: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"description": description})


LINK = pa.struct(
    [
        _field("start", pa.int32(), "first code point of the link in the text"),
        _field("end", pa.int32(), "one past its last code point"),
        _field("target_title", pa.string(), "title after redirects, else normalised as written"),
        _field("target_fragment", pa.string(), "section of the target", nullable=True),
        _field("target_page_id", pa.int64(), "id of the article; null when the dump has none", nullable=True),
    ]
)

ELEMENT = pa.struct(
    [
        _field("kind", pa.string(), "title | heading | paragraph | list_item"),
        _field("level", pa.int8(), "1 title, 1-6 heading, 0 paragraph, depth from 1 for items"),
        _field("ordinal", pa.int32(), "number of a numbered item", nullable=True),
        _field("marker", pa.string(), "list prefix as written, else empty"),
        _field("section", pa.list_(pa.string()), "headings above it, outermost first; a heading ends its own path"),
        _field("text", pa.string(), "the text, without newlines"),
    ]
)

ANCHOR = pa.struct(
    [
        _field("element", pa.int32(), "index into elements"),
        _field("start", pa.int32(), "first code point in elements[element].text"),
        _field("end", pa.int32(), "one past the last code point"),
        _field("text", pa.string(), "elements[element].text[start:end], exactly"),
        _field("target_title", pa.string(), "title after redirects, else normalised as written"),
        _field("target_fragment", pa.string(), "section of the target, from the link or the redirect", nullable=True),
        _field("target_page_id", pa.int64(), "id of the article; null when the dump has none", nullable=True),
        _field("written_target", pa.string(), "the target as written, fragment included"),
    ]
)

CELL = pa.struct(
    [
        _field("text", pa.string(), "text of the cell"),
        _field("is_header", pa.bool_(), "written with !"),
        _field("colspan", pa.int32(), "columns covered, at least 1"),
        _field("rowspan", pa.int32(), "rows covered, at least 1"),
        _field("links", pa.list_(LINK), "links, offsets in the cell's text"),
    ]
)

TABLE = pa.struct(
    [
        _field("element", pa.int32(), "index of the element the table follows"),
        _field("caption", pa.string(), "caption", nullable=True),
        _field("header", pa.list_(pa.string()), "texts of the first row if all its cells are header cells"),
        _field("rows", pa.list_(pa.list_(CELL)), "the remaining rows"),
    ]
)

INFOBOX = pa.struct(
    [
        _field("element", pa.int32(), "index of the element the infobox follows"),
        _field("name", pa.string(), "template name"),
        _field(
            "fields",
            pa.list_(
                pa.struct(
                    [
                        _field("name", pa.string(), "parameter name"),
                        _field("text", pa.string(), "its value as text"),
                        _field("links", pa.list_(LINK), "links, offsets in the value's text"),
                    ]
                )
            ),
            "named, non-empty parameters in order",
        ),
    ]
)

TEMPLATE_USE = pa.struct(
    [
        _field("name", pa.string(), "normalised template name"),
        _field("outcome", pa.string(), "rendered | dropped | unknown"),
        _field("uses", pa.int32(), "uses on the page"),
    ]
)

LOSS = pa.struct(
    [
        _field("kind", pa.string(), "kind of piece, see docs/tables.md"),
        _field("pieces", pa.int32(), "pieces not carried over"),
    ]
)

PAGES = pa.schema(
    [
        _field("page_id", pa.int64(), "MediaWiki page id; unique"),
        _field("title", pa.string(), "title with spaces"),
        _field("qid", pa.string(), "Wikidata item; at most one page has it", nullable=True),
        _field("is_disambiguation", pa.bool_(), "by page_props, __DISAMBIG__ or template family"),
        _field("revision_id", pa.int64(), "revision the text is of"),
        _field("parent_revision_id", pa.int64(), "revision before it", nullable=True),
        _field("timestamp", pa.timestamp("ms", tz="UTC"), "when that revision was saved"),
        _field("url", pa.string(), "permanent link to the revision"),
        _field("elements", pa.list_(ELEMENT), "title, headings, paragraphs and list items in order"),
        _field("anchors", pa.list_(ANCHOR), "internal links, ordered by element and start"),
        _field("categories", pa.list_(pa.string()), "category names without prefix, in order of first use"),
        _field("redirects", pa.list_(pa.string()), "titles that lead here, sorted"),
        _field("tables", pa.list_(TABLE), "tables in order"),
        _field("infoboxes", pa.list_(INFOBOX), "infoboxes in order"),
        _field("templates", pa.list_(TEMPLATE_USE), "templates by name and outcome, sorted"),
        _field("losses", pa.list_(LOSS), "what was not carried over, sorted by kind"),
        _field("parse_status", pa.string(), "ok | fallback_timeout | fallback_crash | fallback_error"),
    ]
)

REDIRECTS = pa.schema(
    [
        _field("page_id", pa.int64(), "page id of the redirect"),
        _field("title", pa.string(), "title of the redirect"),
        _field("target_title", pa.string(), "normalised target as written"),
        _field("fragment", pa.string(), "section of the target", nullable=True),
        _field("final_title", pa.string(), "article at the end of the chain", nullable=True),
        _field("final_page_id", pa.int64(), "its page id", nullable=True),
        _field("hops", pa.int32(), "redirects followed, this one included"),
        _field("status", pa.string(), "ok | double | loop | missing_target | cross_namespace"),
    ]
)

REJECTED = pa.schema(
    [
        _field("stage", pa.string(), "step that rejected it"),
        _field("key", pa.string(), "page id, title or ordinal; empty when unknown"),
        _field("reason", pa.string(), "slug"),
        _field("detail", pa.string(), "what was seen"),
        _field("file", pa.string(), "base name of the input file"),
        _field("offset", pa.int64(), "byte offset (bzip2: of the compressed block), -1 when unknown"),
    ]
)

TEMPLATES = pa.schema(
    [
        _field("name", pa.string(), "normalised template name"),
        _field("outcome", pa.string(), "rendered | dropped | unknown"),
        _field("uses", pa.int64(), "uses in all articles"),
        _field("pages", pa.int64(), "articles that use it"),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "pages": PAGES,
    "redirects": REDIRECTS,
    "rejected": REJECTED,
    "templates": TEMPLATES,
}
"""Every table of a release, by folder name."""
