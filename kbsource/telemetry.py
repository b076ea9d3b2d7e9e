"""Switches off what the libraries underneath would report to their makers.

ONNX Runtime reads its switch while it is imported; without it, it keeps a device id and a store of events in the user's
cache and a session file in the temporary folder, and sends them. So ``import kbsource``, which every command, worker
and guarded process begins with, sets all switches at once, whatever they were before, and processes that are started
inherit them.

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
"""Environment variables that switch telemetry off, with their values; docker/Dockerfile has the same."""


def switch_off() -> None:
    """Switches telemetry off in this process, and in those that it starts."""
    os.environ.update(OFF)
