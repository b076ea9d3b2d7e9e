"""Beam jobs, runner presets and the ``kbsource`` command line."""

import kbsource as _kbsource  # noqa: F401  # switches telemetry off before Beam or any model library is imported
