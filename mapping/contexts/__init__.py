"""Builds training data for retrievers and readers from QAMPARI: questions with the passages that prove their
answers."""
