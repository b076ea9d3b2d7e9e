"""What an alignment writes: KILT lines, tables, reports; and the checks of what was written."""
