"""Turns the articles of a dump into the pages of a release: reads, parses, writes and checks them, and commits the
release.
"""
