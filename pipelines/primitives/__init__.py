"""Building blocks of all transforms: guarded chunks, checkpoints, the shuffle, groups, tables."""
