"""AmbER sets as a pipeline: entities, names, sets, their alignment to the pages, and the release."""
