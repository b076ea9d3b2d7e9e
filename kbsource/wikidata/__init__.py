"""Wikidata: a JSON dump of entities becomes a release of tables."""
