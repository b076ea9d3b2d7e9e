"""The second signal: what a model of natural-language inference says of a span, and what it is asked."""
