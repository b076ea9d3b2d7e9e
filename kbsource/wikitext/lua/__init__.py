"""Lua modules of a wiki (Scribunto), run in a sandbox by the optional extra ``kbsource[lua]``."""
