-- The references of a release that was built with --references, as macros of DuckDB: `.read references.sql`, then
-- `from kb_cited_sentences('releases/enwiki-20261001')`. docs/references.md shows each.

-- One row per marker and source: the page, the sentence that contains the marker or that it follows, and the reference with
-- its source. Further sources have a source_number above 0; a cleanup tag has no reference. A shortened note has the
-- address of the source that it names.
create or replace macro kb_cited_sentences(kb) as table
    select use.page_id, page.title as page, use.element, use."offset", use.section, use.cleanup_tag, use.pages, use.ref,
        substring(page.element.text, use.sentence_start + 1, use.sentence_end - use.sentence_start) as sentence,
        own.source_number, own.text as reference, coalesce(source.kind, own.kind) as kind, coalesce(source.url, own.url) as url,
        coalesce(source.doi, own.doi) as doi
    from read_parquet(kb || '/ref_uses/*.parquet') as use
    join (select page_id, title, unnest(elements) as element from read_parquet(kb || '/pages/*.parquet')) as page
        on page.page_id = use.page_id and page.element.index = use.element
    left join read_parquet(kb || '/refs/*.parquet') as own on own.page_id = use.page_id and own.ref = use.ref
    left join read_parquet(kb || '/refs/*.parquet') as source
        on source.page_id = own.page_id and source.ref = own.source and source.source_number = 0;

-- One row per passage of `kbsource passages`, marker in it, and source.
create or replace macro kb_passage_references(kb, passages) as table
    select passage_id, use.ref, use.cleanup_tag, use.element, use."offset", own.source_number, own.text as reference, own.url
    from (select passage_id, page_id, unnest(spans) as span from read_parquet(passages || '/passages/*.parquet')) as passage
    join read_parquet(kb || '/ref_uses/*.parquet') as use
        on use.page_id = passage.page_id and use.element = span.element
        and use."offset" > span.start_char and use."offset" <= span.end_char
    left join read_parquet(kb || '/refs/*.parquet') as own on own.page_id = use.page_id and own.ref = use.ref;

-- One row per piece of evidence of `kbsource map`, marker of a sentence that it covers at least in part, and source.
-- `output` is the position in the record's outputs, from 0.
create or replace macro kb_evidence_references(kb, alignment) as table
    select example_id, output, evidence, place.page_id, use.ref, use.cleanup_tag, use.element, use."offset",
        own.source_number, own.text as reference, own.url
    from (from read_parquet(alignment || '/alignments/*.parquet') where start_element is not null) as place
    join read_parquet(kb || '/ref_uses/*.parquet') as use
        on use.page_id = place.page_id
        and (use.element, use.sentence_end) > (start_element, start_char)
        and (use.element, use.sentence_start) < (end_element, end_char)
    left join read_parquet(kb || '/refs/*.parquet') as own on own.page_id = use.page_id and own.ref = use.ref;

-- Paragraphs without a reference.
create or replace macro kb_uncited_paragraphs(kb) as table
    select page_id, title, element.index as element, element.section, element.text
    from (select page_id, title, unnest(elements) as element from read_parquet(kb || '/pages/*.parquet')) as page
    anti join (from read_parquet(kb || '/ref_uses/*.parquet') where ref is not null) as use
        on use.page_id = page.page_id and use.element = page.element.index
    where element.kind = 'paragraph';
