"""What Wikipedia says: dumps read, wikitext turned into text with exact offsets, releases written and read."""

__version__ = "0.1.0"
