"""The commands of entity linking."""
