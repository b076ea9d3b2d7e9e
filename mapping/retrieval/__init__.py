"""Retrieval over passages: BM25, runs of systems, and data sets in the formats used to evaluate retrieval."""
