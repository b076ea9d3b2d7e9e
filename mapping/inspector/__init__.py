"""Shows releases as web pages for people. The server is local, read-only, and works without a network.

Each kind of release has its own ``Views``. ``app`` serves those of each release under one URL.
"""
