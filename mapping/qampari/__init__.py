"""The construction of QAMPARI: questions with many answers out of Wikidata and Wikipedia."""
