"""Pages that MediaWiki has rendered."""
