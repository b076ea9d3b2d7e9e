"""The pipeline of AmbER sets: entities, names, sets, their alignment to pages, and the release."""
