"""AmbER sets: names that several entities share, and queries that fit one of them each."""
