"""What all transforms are made of: guarded chunks, checkpoints, the shuffle, groups, tables."""
