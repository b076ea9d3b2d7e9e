"""Metrics of benchmarks: compares a system's answers or retrieval results with the gold answers."""
