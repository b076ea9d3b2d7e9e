"""Turns the articles of a dump into the pages of a release: staged, parsed, written to files, checked and committed."""
