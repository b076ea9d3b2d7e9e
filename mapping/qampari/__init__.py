"""Builds QAMPARI: questions with many answers, from Wikidata and Wikipedia."""
