"""The output of templates that carry values: pure functions from a template use to wikitext."""
