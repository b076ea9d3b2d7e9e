"""The corpus of passages: what retrievers index, cut out of the pages of a release with exact places."""
