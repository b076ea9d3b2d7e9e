"""The release of pages: its kind, its laws, and how pages are found in it and read."""
