"""Finds evidence in pages: tokens, BLEU, the best span; and resolves page names."""
