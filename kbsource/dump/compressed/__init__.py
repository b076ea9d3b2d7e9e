"""Reads compressed files as decompressed bytes, from any position: bzip2 block by block, gzip and plain."""
