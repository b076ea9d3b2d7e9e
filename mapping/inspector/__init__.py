"""Releases as web pages that a person reads: local, read only, and usable without a network.

Each kind of release has its own ``Views``, which ``app`` puts below one address a release.
"""
