"""Side-by-side measurements of kbsource and its peers; see benchmarks/README.md."""
