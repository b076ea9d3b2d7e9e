"""AmbER sets: names shared by several entities, with queries that each fit only one of them."""
