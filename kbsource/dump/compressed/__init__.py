"""Compressed files as the bytes in them, from any place on: bzip2 block by block, gzip and plain."""
