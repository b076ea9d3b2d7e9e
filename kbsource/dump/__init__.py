"""Reads a Wikipedia dump in any of its published forms into ``RawPage`` records."""
