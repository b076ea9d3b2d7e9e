"""Measures kbsource and the tools it is compared with; see benchmarks/README.md."""
