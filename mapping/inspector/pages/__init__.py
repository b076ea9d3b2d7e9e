"""The views of a release of pages: one page as a person reads it, and the ways to find it."""
