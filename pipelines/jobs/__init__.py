"""One module per job, each with ``run``."""
