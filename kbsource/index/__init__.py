"""Memory-mapped tables that are looked up by title or page id: titles and redirects, Wikidata items, ``page_props``."""
