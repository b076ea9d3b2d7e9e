"""A reader of entities whose process is killed over one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kbsource.wikidata.entity import Entity, EntityReader


class MoodyReader(EntityReader):
    """Kills its process where a line holds ``at``; once only where the file ``mark`` can take note of it."""

    def __init__(self, at: bytes, mark: str | None, **options: Any) -> None:
        super().__init__(**options)
        self._at, self._mark = at, mark

    def read(self, line: bytes) -> Entity:
        """Gives the entity of a line, or does not."""
        if self._at in line and not (self._mark is not None and Path(self._mark).exists()):
            if self._mark is not None:
                Path(self._mark).touch()
            os.kill(os.getpid(), 9)
        return super().read(line)
