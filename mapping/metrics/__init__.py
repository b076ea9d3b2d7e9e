"""Metrics of benchmarks: what a system answered or retrieved beside the gold answers."""
