"""Reads compressed files as decompressed bytes, from any position if the compression allows it."""
