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

PAGE_ITEMS = pa.schema(
    [
        _field("page_id", pa.int64(), "the page; unique"),
        _field("qid", pa.string(), "its item, as in pages; null where another page has it", nullable=True),
        _field("wikidata_qid", pa.string(), "item whose sitelink leads to the page", nullable=True),
        _field("page_props_qid", pa.string(), "item that page_props gives the page", nullable=True),
        _field("agreement", pa.string(), "same | differ | only_wikidata | only_page_props"),
        _field("label", pa.string(), "label of the item", nullable=True),
        _field("description", pa.string(), "its description", nullable=True),
        _field("aliases", pa.list_(pa.string()), "its aliases in the chosen languages, each once"),
    ]
)

OPTIONAL_TABLES: dict[str, pa.Schema] = {"page_items": PAGE_ITEMS}
"""Tables that a release has when what they are made of was given."""

_TERM = pa.struct([_field("language", pa.string(), "language code"), _field("text", pa.string(), "the text")])


def _terms(what: str) -> list[pa.Field]:
    """Gives the columns that items and properties share, after the first one."""
    return [
        _field("label", pa.string(), "label in the first chosen language that has one, else in mul", nullable=True),
        _field("label_language", pa.string(), "language of the label", nullable=True),
        _field("labels", pa.list_(_TERM), "labels in the chosen languages, their variants and mul, as dumped"),
        _field("descriptions", pa.list_(_TERM), "descriptions, likewise"),
        _field("aliases", pa.list_(_TERM), "aliases, likewise, several a language"),
        _field("n_statements", pa.int32(), f"rows of statements that are about the {what}"),
        _field("revision_id", pa.int64(), "revision that was dumped", nullable=True),
    ]


VALUE: list[pa.Field] = [
    _field("snak", pa.string(), "value | somevalue (unknown) | novalue (none)"),
    _field("datatype", pa.string(), "of the property, as dumped; old dumps lack it", nullable=True),
    _field(
        "value_type",
        pa.string(),
        "entity | string | time | quantity | monolingualtext | globecoordinate | other; null unless snak is value",
        nullable=True,
    ),
    _field(
        "value",
        pa.string(),
        "entity: id; time: as dumped; quantity: amount without +; globecoordinate: latitude,longitude; string and "
        "monolingualtext: the text; other: the datavalue as JSON",
        nullable=True,
    ),
    _field("language", pa.string(), "of a monolingualtext", nullable=True),
    _field("unit", pa.string(), "item of a quantity's unit; null for none", nullable=True),
    _field("lower", pa.string(), "lower bound of a quantity", nullable=True),
    _field("upper", pa.string(), "upper bound of a quantity", nullable=True),
    _field("year", pa.int64(), "of a time; -44 is 44 BC", nullable=True),
    _field("month", pa.int8(), "of a time; null when the precision does not reach it", nullable=True),
    _field("day", pa.int8(), "of a time; null when the precision does not reach it", nullable=True),
    _field(
        "precision", pa.int8(), "of a time: 11 day, 10 month, 9 year, 8 decade, 7 century, 6 millennium", nullable=True
    ),
    _field("calendar", pa.string(), "of a time: gregorian | julian | id of the item", nullable=True),
    _field("latitude", pa.float64(), "degrees", nullable=True),
    _field("longitude", pa.float64(), "degrees", nullable=True),
    _field("globe", pa.string(), "item of the globe; Q2 is the Earth", nullable=True),
]
"""Columns of a value, of statements and qualifiers alike."""

ITEMS = pa.schema(
    [
        _field("item_id", pa.string(), "Q42; unique"),
        *_terms("item"),
        _field("n_sitelinks", pa.int32(), "sitelinks in the dump, of all wikis"),
    ]
)
PROPERTIES = pa.schema(
    [
        _field("property_id", pa.string(), "P31; unique"),
        _field("datatype", pa.string(), "type of its values: wikibase-item, time, …"),
        *_terms("property"),
    ]
)
SITELINKS = pa.schema(
    [
        _field("item_id", pa.string(), "item that the page is about"),
        _field("site", pa.string(), "wiki, as enwiki"),
        _field("title", pa.string(), "title of the page, with spaces"),
    ]
)
STATEMENTS = pa.schema(
    [
        _field("entity_id", pa.string(), "item or property that the statement is about"),
        _field("property_id", pa.string(), "its property"),
        _field("rank", pa.string(), "preferred | normal | deprecated"),
        *VALUE,
        _field(
            "qualifiers",
            pa.list_(pa.struct([_field("property_id", pa.string(), "property of the qualifier"), *VALUE])),
            "qualifiers with the chosen properties, as dumped",
        ),
    ]
)
CLASSES = pa.schema(
    [
        _field("class_id", pa.string(), "an item that is a class: it has P279, or is a value of P279 or P31"),
        _field("superclass_id", pa.string(), "the class itself, or one reached over P279"),
        _field("distance", pa.int32(), "fewest P279 steps; 0 is the class itself"),
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
