"""Cuts the pages of a release into passages, which retrievers index, and records where each passage stands."""
