"""Views of what is made from pages: alignments, QAMPARI releases, AmbER sets."""
