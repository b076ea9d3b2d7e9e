"""Serves a release to programs and agents: one set of operations, available over HTTP in several formats and over
MCP."""
