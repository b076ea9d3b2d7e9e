"""Entity-linking data out of the hyperlinks of a release: mentions with their contexts, and the alias table."""
