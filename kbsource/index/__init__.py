"""Tables that lead to pages: titles and redirects, Wikidata items, marks of ``page_props``; memory-mapped."""
