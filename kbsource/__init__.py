"""Reads Wikipedia dumps, turns wikitext into text with exact offsets, and writes and reads releases."""

from kbsource.telemetry import switch_off

__version__ = "0.1.0"

switch_off()  # before anything imports ONNX Runtime, which reads this switch only at import
