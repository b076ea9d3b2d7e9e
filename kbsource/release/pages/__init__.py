"""The release of pages: its kind, its invariants, and how pages are located and read."""
