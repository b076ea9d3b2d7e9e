"""Transforms that several jobs use."""
