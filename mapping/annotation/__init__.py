"""Annotation tasks, and the annotators' answers."""
