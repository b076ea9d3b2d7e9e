"""Writes the results of an alignment as KILT lines, tables and reports, and checks KILT files."""
