"""Where pipelines run: presets, clusters, worker processes, and how a run ends."""
