"""Benchmark examples, and the location of their answers in a release."""

import kbsource as _kbsource  # noqa: F401  # switches telemetry off before any model library is imported
