"""Cuts the pages of a release into passages, which retrievers index, and records the location of each passage."""
