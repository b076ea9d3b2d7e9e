"""The stages of an alignment: what `kbsource map` does between a dataset and the aligned release."""
