"""Flags and printing that several commands share."""
