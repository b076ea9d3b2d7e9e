"""Campaigns in which people judge passages: candidates, what was said of them, agreement."""
