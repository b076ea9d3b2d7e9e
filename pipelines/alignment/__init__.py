"""The stages of an alignment, from a dataset to its aligned release, for `kbsource map`."""
