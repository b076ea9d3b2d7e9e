"""Options of ``kbsource passages``, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.passages.corpus import CutOptions
from mapping.passages.forms import FORMS
from pipelines.options.checks import check_worker_memory


@dataclass(frozen=True, slots=True)
class PassagesOptions:
    """Options of ``kbsource passages``; docs/commands.md has their meaning.

    Attributes:
        kb: folder of the release of pages.
        output: folder of the corpus.
        cut: how pages are cut.
        formats: forms of lines that are written beside the table, each once.
        worker_memory_bytes: memory that a working process may allocate.
    """

    kb: str
    output: str
    cut: CutOptions = field(default_factory=CutOptions)
    formats: tuple[str, ...] = ()
    worker_memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if unknown := sorted(set(self.formats) - set(FORMS)):
            raise SetupError(f"--format {unknown[0]}: choose one of {', '.join(FORMS)}.")
        if len(set(self.formats)) < len(self.formats):
            raise SetupError(f"--format is {', '.join(self.formats)}; give each form once.")
        check_worker_memory(self.worker_memory_bytes)

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}
