"""What people are asked about a QAMPARI release, and what becomes of it by their answers."""
