"""Benchmark examples and where their answers stand in a knowledge source."""

import kbsource as _kbsource  # noqa: F401  # switches telemetry off before any model library is imported
