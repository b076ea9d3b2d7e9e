"""One module per command of ``kbsource``: its arguments, and what it prints."""
