"""Parses wikitext into elements, anchors, tables and infoboxes with exact character offsets."""
