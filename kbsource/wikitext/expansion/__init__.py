"""Templates that no rule knows, worked out from their own definitions in the dump."""
