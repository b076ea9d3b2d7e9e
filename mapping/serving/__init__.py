"""A release for programs and agents: one table of operations, asked by HTTP in several shapes and by MCP."""
