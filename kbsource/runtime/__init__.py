"""Processing in chunks: files of rows, sorting on disk, and guarded processes, in which a row that fails does not
affect other rows.
"""
