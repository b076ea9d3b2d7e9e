"""The second signal: a natural-language-inference model's judgement of a span, and the hypotheses and premises it is
given."""
