"""Arrow schema of every released table, with the meaning of each column.

Column descriptions are field metadata under ``description``; docs/tables.md is generated from them.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1


def field(name: str, type_: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    """Gives a column with its meaning."""
    return pa.field(name, type_, nullable=nullable, metadata={"description": description})


LINK = pa.struct(
    [
        field("start", pa.int32(), "first code point of the link in the text"),
        field("end", pa.int32(), "one past its last code point"),
        field("target_title", pa.string(), "title after redirects, else normalised as written"),
        field("target_fragment", pa.string(), "section of the target", nullable=True),
        field("target_page_id", pa.int64(), "id of the article; null when the dump has none", nullable=True),
    ]
)

ELEMENT = pa.struct(
    [
        field("kind", pa.string(), "title | heading | paragraph | list_item"),
        field("level", pa.int8(), "1 title, 1-6 heading, 0 paragraph, depth from 1 for items"),
        field("ordinal", pa.int32(), "number of a numbered item", nullable=True),
        field("marker", pa.string(), "list prefix as written, else empty"),
        field("section", pa.list_(pa.string()), "headings above it, outermost first; a heading ends its own path"),
        field("text", pa.string(), "the text, without newlines"),
    ]
)

ANCHOR = pa.struct(
    [
        field("element", pa.int32(), "index into elements"),
        field("start", pa.int32(), "first code point in elements[element].text"),
        field("end", pa.int32(), "one past the last code point"),
        field("text", pa.string(), "elements[element].text[start:end], exactly"),
        field("target_title", pa.string(), "title after redirects, else normalised as written"),
        field("target_fragment", pa.string(), "section of the target, from the link or the redirect", nullable=True),
        field("target_page_id", pa.int64(), "id of the article; null when the dump has none", nullable=True),
        field("written_target", pa.string(), "the target as written, fragment included"),
        field("from_template", pa.bool_(), "a template made the link; no editor of the page wrote it"),
    ]
)

CELL = pa.struct(
    [
        field("text", pa.string(), "text of the cell"),
        field("is_header", pa.bool_(), "written with !"),
        field("colspan", pa.int32(), "columns covered, at least 1"),
        field("rowspan", pa.int32(), "rows covered, at least 1"),
        field("links", pa.list_(LINK), "links, offsets in the cell's text"),
    ]
)

TABLE = pa.struct(
    [
        field("element", pa.int32(), "index of the element the table follows"),
        field("caption", pa.string(), "caption", nullable=True),
        field("header", pa.list_(pa.string()), "texts of the first row if all its cells are header cells"),
        field("rows", pa.list_(pa.list_(CELL)), "the remaining rows"),
    ]
)

INFOBOX = pa.struct(
    [
        field("element", pa.int32(), "index of the element the infobox follows"),
        field("name", pa.string(), "template name"),
        field(
            "fields",
            pa.list_(
                pa.struct(
                    [
                        field("name", pa.string(), "parameter name"),
                        field("text", pa.string(), "its value as text"),
                        field("links", pa.list_(LINK), "links, offsets in the value's text"),
                    ]
                )
            ),
            "named, non-empty parameters in order",
        ),
    ]
)

TEMPLATE_USE = pa.struct(
    [
        field("name", pa.string(), "normalised template name"),
        field("outcome", pa.string(), "rendered | dropped | expanded | invoked | bound | unknown; see templates"),
        field("uses", pa.int32(), "uses on the page"),
    ]
)

LOSS = pa.struct(
    [
        field("kind", pa.string(), "kind of piece, see docs/tables.md"),
        field("pieces", pa.int32(), "pieces not carried over"),
    ]
)

PAGES = pa.schema(
    [
        field("page_id", pa.int64(), "MediaWiki page id; unique"),
        field("title", pa.string(), "title with spaces"),
        field("qid", pa.string(), "Wikidata item; at most one page has it", nullable=True),
        field("is_disambiguation", pa.bool_(), "by page_props, __DISAMBIG__ or template family"),
        field("revision_id", pa.int64(), "revision the text is of"),
        field("parent_revision_id", pa.int64(), "revision before it", nullable=True),
        field("timestamp", pa.timestamp("ms", tz="UTC"), "when that revision was saved"),
        field("url", pa.string(), "permanent link to the revision"),
        field("elements", pa.list_(ELEMENT), "title, headings, paragraphs and list items in order"),
        field("anchors", pa.list_(ANCHOR), "internal links, ordered by element and start"),
        field("categories", pa.list_(pa.string()), "category names without prefix, in order of first use"),
        field(
            "template_categories", pa.list_(pa.string()), "those of them that only templates give, in the same order"
        ),
        field("redirects", pa.list_(pa.string()), "titles that lead here, sorted"),
        field("tables", pa.list_(TABLE), "tables in order"),
        field("infoboxes", pa.list_(INFOBOX), "infoboxes in order"),
        field("templates", pa.list_(TEMPLATE_USE), "templates by name and outcome, sorted"),
        field("losses", pa.list_(LOSS), "what was not carried over, sorted by kind"),
        field("parse_status", pa.string(), "ok | fallback_timeout | fallback_crash | fallback_error"),
    ]
)

REDIRECTS = pa.schema(
    [
        field("page_id", pa.int64(), "page id of the redirect"),
        field("title", pa.string(), "title of the redirect"),
        field("target_title", pa.string(), "normalised target as written"),
        field("fragment", pa.string(), "section of the target", nullable=True),
        field("final_title", pa.string(), "article at the end of the chain", nullable=True),
        field("final_page_id", pa.int64(), "its page id", nullable=True),
        field("hops", pa.int32(), "redirects followed, this one included"),
        field("status", pa.string(), "ok | double | loop | missing_target | cross_namespace"),
    ]
)

REJECTED = pa.schema(
    [
        field("stage", pa.string(), "step that rejected it"),
        field("key", pa.string(), "page id, title or ordinal; empty when unknown"),
        field("reason", pa.string(), "slug"),
        field("detail", pa.string(), "what was seen"),
        field("file", pa.string(), "base name of the input file"),
        field("offset", pa.int64(), "byte offset (bzip2: of the compressed block), -1 when unknown"),
    ]
)

TEMPLATES = pa.schema(
    [
        field("name", pa.string(), "normalised template name"),
        field("outcome", pa.string(), "rendered | dropped | expanded | invoked | bound | unknown"),
        field("uses", pa.int64(), "uses in all articles"),
        field("pages", pa.int64(), "articles that use it"),
        field("shown_chars", pa.int64(), "visible characters that its uses outside of other templates show"),
        field("lost_chars", pa.int64(), "visible characters of its arguments that were not carried over"),
        field("example_title", pa.string(), "first article that loses some", nullable=True),
        field("example", pa.string(), "the use there, shortened", nullable=True),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "pages": PAGES,
    "redirects": REDIRECTS,
    "rejected": REJECTED,
    "templates": TEMPLATES,
}
"""Every table of a release, by folder name."""

PAGE_ITEMS = pa.schema(
    [
        field("page_id", pa.int64(), "the page; unique"),
        field("qid", pa.string(), "its item, as in pages; null where another page has it", nullable=True),
        field("wikidata_qid", pa.string(), "item whose sitelink leads to the page", nullable=True),
        field("page_props_qid", pa.string(), "item that page_props gives the page", nullable=True),
        field("agreement", pa.string(), "same | differ | only_wikidata | only_page_props"),
        field("label", pa.string(), "label of the item", nullable=True),
        field("description", pa.string(), "its description", nullable=True),
        field("aliases", pa.list_(pa.string()), "its aliases in the chosen languages, each once"),
    ]
)

OPTIONAL_TABLES: dict[str, pa.Schema] = {"page_items": PAGE_ITEMS}
"""Tables that a release has when what they are made of was given."""

_TERM = pa.struct([field("language", pa.string(), "language code"), field("text", pa.string(), "the text")])


def _terms(what: str) -> list[pa.Field]:
    """Gives the columns that items and properties share, after the first one."""
    return [
        field("label", pa.string(), "label in the first chosen language that has one, else in mul", nullable=True),
        field("label_language", pa.string(), "language of the label", nullable=True),
        field("labels", pa.list_(_TERM), "labels in the chosen languages, their variants and mul, as dumped"),
        field("descriptions", pa.list_(_TERM), "descriptions, likewise"),
        field("aliases", pa.list_(_TERM), "aliases, likewise, several a language"),
        field("n_statements", pa.int32(), f"rows of statements that are about the {what}"),
        field("revision_id", pa.int64(), "revision that was dumped", nullable=True),
    ]


VALUE: list[pa.Field] = [
    field("snak", pa.string(), "value | somevalue (unknown) | novalue (none)"),
    field("datatype", pa.string(), "of the property, as dumped; old dumps lack it", nullable=True),
    field(
        "value_type",
        pa.string(),
        "entity | string | time | quantity | monolingualtext | globecoordinate | other; null unless snak is value",
        nullable=True,
    ),
    field(
        "value",
        pa.string(),
        "entity: id; time: as dumped; quantity: amount without +; globecoordinate: latitude,longitude; string and "
        "monolingualtext: the text; other: the datavalue as JSON",
        nullable=True,
    ),
    field("language", pa.string(), "of a monolingualtext", nullable=True),
    field("unit", pa.string(), "item of a quantity's unit; null for none", nullable=True),
    field("lower", pa.string(), "lower bound of a quantity", nullable=True),
    field("upper", pa.string(), "upper bound of a quantity", nullable=True),
    field("year", pa.int64(), "of a time; -44 is 44 BC", nullable=True),
    field("month", pa.int8(), "of a time; null when the precision does not reach it", nullable=True),
    field("day", pa.int8(), "of a time; null when the precision does not reach it", nullable=True),
    field(
        "precision", pa.int8(), "of a time: 11 day, 10 month, 9 year, 8 decade, 7 century, 6 millennium", nullable=True
    ),
    field("calendar", pa.string(), "of a time: gregorian | julian | id of the item", nullable=True),
    field("latitude", pa.float64(), "degrees", nullable=True),
    field("longitude", pa.float64(), "degrees", nullable=True),
    field("globe", pa.string(), "item of the globe; Q2 is the Earth", nullable=True),
]
"""Columns of a value, of statements and qualifiers alike."""

ITEMS = pa.schema(
    [
        field("item_id", pa.string(), "Q42; unique"),
        *_terms("item"),
        field("n_sitelinks", pa.int32(), "sitelinks in the dump, of all wikis"),
    ]
)
PROPERTIES = pa.schema(
    [
        field("property_id", pa.string(), "P31; unique"),
        field("datatype", pa.string(), "type of its values: wikibase-item, time, …"),
        *_terms("property"),
    ]
)
SITELINKS = pa.schema(
    [
        field("item_id", pa.string(), "item that the page is about"),
        field("site", pa.string(), "wiki, as enwiki"),
        field("title", pa.string(), "title of the page, with spaces"),
    ]
)
STATEMENTS = pa.schema(
    [
        field("entity_id", pa.string(), "item or property that the statement is about"),
        field("property_id", pa.string(), "its property"),
        field("rank", pa.string(), "preferred | normal | deprecated"),
        *VALUE,
        field(
            "qualifiers",
            pa.list_(pa.struct([field("property_id", pa.string(), "property of the qualifier"), *VALUE])),
            "qualifiers with the chosen properties, as dumped",
        ),
    ]
)
CLASSES = pa.schema(
    [
        field("class_id", pa.string(), "an item that is a class: it has P279, or is a value of P279 or P31"),
        field("superclass_id", pa.string(), "the class itself, or one reached over P279"),
        field("distance", pa.int32(), "fewest P279 steps; 0 is the class itself"),
    ]
)

WIKIDATA_TABLES: dict[str, pa.Schema] = {
    "items": ITEMS,
    "properties": PROPERTIES,
    "sitelinks": SITELINKS,
    "statements": STATEMENTS,
    "classes": CLASSES,
    "rejected": REJECTED,
}
"""Every table of a release of Wikidata, by folder name."""

ALL_TABLES = {**TABLES, **OPTIONAL_TABLES, **WIKIDATA_TABLES}
"""Every table of any release; those of one name are alike."""
