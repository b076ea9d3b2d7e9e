"""What value-preserving templates show: pure functions from a template use to wikitext."""
