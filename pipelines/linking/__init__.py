"""The steps of entity-linking data."""
