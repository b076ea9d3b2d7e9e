"""Releases of all kinds that were tampered with, as one table: what was changed, and what ``verify`` must find.

Each module of this folder has the groups of a kind in ``GROUPS``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.support.tampered.edits import Group

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in ("edits", "table"))
GROUPS: dict[str, Group] = {
    name: group
    for module in MODULES
    for name, group in import_module(f"tests.support.tampered.{module}").GROUPS.items()
}
"""The table, by name of a release."""
