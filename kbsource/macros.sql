-- Common queries of a release of pages, as macros of DuckDB: `.read macros.sql`, then
-- `from kb_text('releases/enwiki-20261001') where title = 'Alan Turing'`. docs/recipes.md shows each. Offsets count
-- code points from 0, `end` is exclusive; elements and anchors have their position in their lists as `index`.

-- One row per page, with all columns.
create or replace macro kb_pages(kb) as table
    from read_parquet(kb || '/pages/*.parquet');

-- The whole text of each page, with an empty line between elements; headings and list items are marked as in Markdown.
create or replace macro kb_text(kb) as table
    select page_id, title, array_to_string([
        case element.kind
            when 'title' then '# ' || element.text
            when 'heading' then repeat('#', greatest(element.level, 2)) || ' ' || element.text
            when 'list_item' then repeat('    ', element.level - 1) || coalesce(element.ordinal || '. ', '- ') || element.text
            else element.text
        end for element in elements], chr(10) || chr(10)) as text
    from read_parquet(kb || '/pages/*.parquet');

-- One row per element: index, kind, level, ordinal, marker, section, text.
create or replace macro kb_elements(kb) as table
    select page_id, title, unnest(elements, max_depth := 2) from read_parquet(kb || '/pages/*.parquet');

-- One row per paragraph, with its section.
create or replace macro kb_paragraphs(kb) as table
    select page_id, title, element.index as element, element.section, element.text
    from (select page_id, title, unnest(elements) as element from read_parquet(kb || '/pages/*.parquet'))
    where element.kind = 'paragraph';

-- One row per link in the text, with the text of its element as context:
-- substring(context, "start" + 1, "end" - "start") = text.
create or replace macro kb_links(kb) as table
    select page_id, title, unnest(anchor), elements[anchor.element + 1].text as context
    from (select page_id, title, elements, unnest(anchors) as anchor from read_parquet(kb || '/pages/*.parquet'));

-- One row per row of a table on a page, with the texts of its cells.
create or replace macro kb_table_rows(kb) as table
    select page_id, title, number as table_number, data.caption, data.header, generate_subscripts(data.rows, 1) - 1 as row,
        unnest([[cell.text for cell in cells] for cells in data.rows]) as cells
    from (
        select page_id, title, generate_subscripts(tables, 1) - 1 as number, unnest(tables) as data
        from read_parquet(kb || '/pages/*.parquet')
    );

-- One row per value of an infobox.
create or replace macro kb_infobox_values(kb) as table
    select page_id, title, box.name as infobox, field.name as name, field.text as value
    from (
        select page_id, title, box, unnest(box.fields) as field
        from (select page_id, title, unnest(infoboxes) as box from read_parquet(kb || '/pages/*.parquet'))
    );

-- Redirects that resolve to an article, directly or through further redirects.
create or replace macro kb_redirects(kb) as table
    select title, final_title, final_page_id, fragment, hops
    from read_parquet(kb || '/redirects/*.parquet') where final_page_id is not null;

-- Pages of a category, by its name as the pages write it, without those of its subcategories.
create or replace macro kb_category(kb, category) as table
    select page_id, title from read_parquet(kb || '/pages/*.parquet') where list_contains(categories, category);

-- A number from 0 to 99 for each page, the same in every release of the wiki: use `where bucket < 90` for training.
create or replace macro kb_buckets(kb) as table
    select page_id, title, (('0x' || substring(sha256(page_id::varchar), 1, 8))::bigint % 100)::int as bucket
    from read_parquet(kb || '/pages/*.parquet');

-- A sample of n_pages pages, the same every time.
create or replace macro kb_sample(kb, n_pages) as table
    from read_parquet(kb || '/pages/*.parquet') order by sha256(page_id::varchar) limit n_pages;
