"""Commands of the first ten minutes: a tour of what there is, and what the shell can do."""
