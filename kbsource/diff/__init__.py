"""What became of every page, section and span of one release of pages in another."""
