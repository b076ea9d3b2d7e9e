"""The metrics of KILT: downstream scores, provenance, and both together."""
