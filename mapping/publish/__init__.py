"""Writes a release as a folder to upload, with a dataset card, catalogue metadata and licence files."""
