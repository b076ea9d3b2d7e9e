"""Shows releases as web pages for people. The server is local, read-only, and works without a network.

Each kind of release has its own ``KindViews``. ``app`` serves the views of each release under one URL.
"""
