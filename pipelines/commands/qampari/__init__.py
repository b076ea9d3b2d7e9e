"""The commands about QAMPARI."""
