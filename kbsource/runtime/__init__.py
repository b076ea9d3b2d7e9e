"""Processing in chunks: files of rows, sorting on disk, and guarded processes, which keep a failing row from affecting
other rows.
"""
