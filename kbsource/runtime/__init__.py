"""Processing in chunks: files of rows, sorting on disk, and processes that may fail at a row without losing others."""
