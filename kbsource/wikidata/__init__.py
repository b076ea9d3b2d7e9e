"""Turns a JSON dump of Wikidata's entities into a release of tables."""
