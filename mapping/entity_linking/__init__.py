"""Builds entity-linking data from the hyperlinks of a release: mentions with their contexts, and the alias table."""
