"""Runs pipelines: presets, clusters, worker processes, and the end of a run."""
