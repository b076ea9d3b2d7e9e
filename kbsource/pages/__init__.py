"""Makes a release of pages from a dump: reads, parses, checks and writes the articles, and commits the release."""
