"""One module for each benchmark that ``kbsource evaluate`` knows."""
