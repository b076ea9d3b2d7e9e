"""How work is done in chunks: files of rows, sorting on disk, and processes that may fail at a row without loss."""
