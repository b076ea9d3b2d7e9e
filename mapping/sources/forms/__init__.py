"""Forms that datasets are published in: documents, facts, annotations and their tokens."""
