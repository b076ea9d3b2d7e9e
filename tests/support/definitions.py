"""Definitions of templates and modules in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping


class Dictionary:
    """Definitions by name; counts how often each was asked for."""

    def __init__(self, templates: Mapping[str, str], modules: Mapping[str, str] | None = None) -> None:
        self._templates = templates
        self._modules = modules or {}
        self.asked: list[str] = []

    def source(self, name: str) -> str | None:
        self.asked.append(name)
        return self._templates.get(name)

    def module(self, name: str) -> str | None:
        return self._modules.get(name)
