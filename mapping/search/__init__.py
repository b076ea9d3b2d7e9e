"""Where a text stands in a page: tokens, BLEU, the best span; and which page a name means."""
