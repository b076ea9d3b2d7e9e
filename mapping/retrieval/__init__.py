"""Retrieval over passages: BM25, runs of systems, and data sets in the forms that retrieval is evaluated with."""
