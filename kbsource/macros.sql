-- What everyone asks of a release of pages, as macros of DuckDB: `.read macros.sql`, then
-- `from kb_text('releases/enwiki-20261001') where title = 'Alan Turing'`. docs/recipes.md shows each. Offsets count
-- code points from 0, `end` exclusive; elements and anchors have their place in their lists as `index`.

-- A row a page, with all columns.
create or replace macro kb_pages(kb) as table
    from read_parquet(kb || '/pages/*.parquet');

-- The text of a page in one piece, a blank line between two elements; headings and items with marks of Markdown.
create or replace macro kb_text(kb) as table
    select page_id, title, array_to_string([
        case element.kind
            when 'title' then '# ' || element.text
            when 'heading' then repeat('#', greatest(element.level, 2)) || ' ' || element.text
            when 'list_item' then repeat('    ', element.level - 1) || coalesce(element.ordinal || '. ', '- ') || element.text
            else element.text
        end for element in elements], chr(10) || chr(10)) as text
    from read_parquet(kb || '/pages/*.parquet');

-- A row an element: index, kind, level, ordinal, marker, section, text.
create or replace macro kb_elements(kb) as table
    select page_id, title, unnest(elements, max_depth := 2) from read_parquet(kb || '/pages/*.parquet');

-- A row a paragraph, with its section.
create or replace macro kb_paragraphs(kb) as table
    select page_id, title, element.index as element, element.section, element.text
    from (select page_id, title, unnest(elements) as element from read_parquet(kb || '/pages/*.parquet'))
    where element.kind = 'paragraph';

-- A row a link in the text, with the element that it stands in as context:
-- substring(context, "start" + 1, "end" - "start") = text.
create or replace macro kb_links(kb) as table
    select page_id, title, unnest(anchor), elements[anchor.element + 1].text as context
    from (select page_id, title, elements, unnest(anchors) as anchor from read_parquet(kb || '/pages/*.parquet'));

-- A row a row of a table, with the texts of its cells.
create or replace macro kb_table_rows(kb) as table
    select page_id, title, number as table_number, data.caption, data.header, generate_subscripts(data.rows, 1) - 1 as row,
        unnest([[cell.text for cell in cells] for cells in data.rows]) as cells
    from (
        select page_id, title, generate_subscripts(tables, 1) - 1 as number, unnest(tables) as data
        from read_parquet(kb || '/pages/*.parquet')
    );

-- A row a value of an infobox.
create or replace macro kb_infobox_values(kb) as table
    select page_id, title, box.name as infobox, field.name as name, field.text as value
    from (
        select page_id, title, box, unnest(box.fields) as field
        from (select page_id, title, unnest(infoboxes) as box from read_parquet(kb || '/pages/*.parquet'))
    );

-- Redirects that lead to an article, over others too.
create or replace macro kb_redirects(kb) as table
    select title, final_title, final_page_id, fragment, hops
    from read_parquet(kb || '/redirects/*.parquet') where final_page_id is not null;

-- Pages of a category, as their text names it; its subcategories are not followed.
create or replace macro kb_category(kb, category) as table
    select page_id, title from read_parquet(kb || '/pages/*.parquet') where list_contains(categories, category);

-- A number from 0 to 99 of every page, the same for it in every release of the wiki: `where bucket < 90` is for training.
create or replace macro kb_buckets(kb) as table
    select page_id, title, (('0x' || substring(sha256(page_id::varchar), 1, 8))::bigint % 100)::int as bucket
    from read_parquet(kb || '/pages/*.parquet');

-- So many pages, the same every time.
create or replace macro kb_sample(kb, n_pages) as table
    from read_parquet(kb || '/pages/*.parquet') order by sha256(page_id::varchar) limit n_pages;
