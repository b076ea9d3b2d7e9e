"""How the work is spread: Beam jobs, runner presets and the ``kbsource`` command line."""
