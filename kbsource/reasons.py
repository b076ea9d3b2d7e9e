"""Why records are rejected: every reason that stands in the ``rejected`` table, and what it means."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "bad_text": "the text of the page is not Unicode (a lone surrogate)",
    "bad_timestamp": "the revision's time is not one",
    "content_model": "a page of the main namespace that is not wikitext; the detail names its model",
    "damaged_block": "a block of a bzip2 file cannot be decoded; the pages that touch it are lost",
    "damaged_gzip": "a gzip file cannot be decoded from here on",
    "duplicate_entity": "another line has the entity in a newer revision, or had it first",
    "duplicate_page_id": "the page id was there before, or comes again with a newer revision; the newest is kept",
    "entity_crash": "reading the entity ended the process by a crash or its memory limit",
    "entity_error": "reading the entity ended the process by an error",
    "entity_redirect": "a merged entity that only names another one",
    "invalid_characters": "characters that XML forbids",
    "invalid_field": "an id, a namespace or a time that is not one, a field of an entity that has another form",
    "invalid_title": "a page whose title is empty in normal form, or holds control characters",
    "line_cut": "a line of a Wikidata dump is broken off by damage of the file",
    "line_too_large": "a line, of a Wikidata dump or of page views, without an end in sight",
    "malformed_json": "a line of a Wikidata dump that is not JSON, or not an object",
    "malformed_statement": "an entity with a statement that lacks what every statement has",
    "malformed_xml": "tags that do not match",
    "missing_field": "a page without title, id or revision, an entity without id or type, a property without datatype",
    "offset_law": "a span that does not hold what it claims",
    "page_crash": "neither the parser nor the simplest extraction survived the page",
    "page_cut": "the page has no end: the file, or a readable part of it, ends first",
    "page_error": "the parser and the simplest extraction both failed on the page",
    "page_law": "a page that is not built as pages are",
    "page_timeout": "neither the parser nor the simplest extraction came to an end within the time for a page",
    "page_too_large": "a page without an end in sight",
    "text_deleted": "the text of the revision was hidden by the wiki",
    "text_missing": "the dump holds no text for the revision",
    "trailing_garbage": "bytes after the end of a compressed stream that are no further stream",
    "truncated_dump": "the file breaks off before the end of the dump",
    "xml_entity": "the page uses an entity or a document type, which are never expanded",
}
"""Reason -> meaning. Damage of a file counts as one page read and one rejected."""

FALLBACKS: dict[str, str] = {
    "ok": "parsed",
    "fallback_error": "the parser raised an error; extracted in the simplest way",
    "fallback_timeout": "the parser took longer than --page-timeout; extracted in the simplest way",
    "fallback_crash": "the parser's process crashed or met its memory limit; extracted in the simplest way",
}
"""Value of ``parse_status`` -> meaning."""
