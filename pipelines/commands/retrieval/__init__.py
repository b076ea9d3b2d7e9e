"""Commands around retrieval: search, runs, data sets for BEIR."""
