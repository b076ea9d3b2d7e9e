"""Benchmark examples and where their answers stand in a knowledge source."""
