"""What Wikipedia says: dumps read, wikitext turned into text with exact offsets, releases written and read."""

from kbsource.telemetry import switch_off

__version__ = "0.1.0"

switch_off()  # before anything imports ONNX Runtime, which reads its switch only then
