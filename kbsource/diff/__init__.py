"""Compares two releases of pages: the outcome of every page, section and span."""
