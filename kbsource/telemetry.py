"""Switches off the telemetry of the libraries that kbsource uses.

ONNX Runtime reads its switch when it is imported. Without the switch, it stores a device id and events in the user's
cache and a session file in the temporary folder, and sends them. Every command, worker and guarded process begins with
``import kbsource``, so this import sets all switches at once and replaces earlier values. Child processes inherit them.

Sources: onnxruntime 1.31, ``core/platform/posix/telemetry_1ds.cc``; huggingface_hub 1.x, ``constants.py``; hf_xet 1.8;
https://donottrack.sh, 2026-11-26.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

OFF: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_XET_TELEMETRY_ENABLED": "0",
}
"""Environment variables that switch telemetry off, with their values; docker/Dockerfile sets the same."""


def switch_off() -> None:
    """Switches telemetry off in this process and its child processes."""
    os.environ.update(OFF)
