"""Verifies spans with models for natural-language inference (NLI): hypotheses, premises and verdicts."""
