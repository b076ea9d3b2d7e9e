"""Options of the alignment of a dataset, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.places import Numbering
from mapping.policy import THRESHOLD
from mapping.sources import SOURCES
from mapping.sources.base import SourceOptions, Split


@dataclass(frozen=True, slots=True)
class MapOptions:
    """Options of ``kbsource map``; docs/commands.md has their meaning.

    Attributes:
        dataset: name in ``mapping.sources.SOURCES``.
        kb: local folder of the release.
        inputs: the dataset's files.
        output: folder that is written.
        split: ``train``, ``dev`` or ``test``.
        references: where the evidence texts stand, when that is elsewhere.
        source: choices of the dataset's reader.
        threshold: lowest score of a near match, and of a span that is kept.
        max_elements: elements of a page that a span may cross.
        title_map: file of known moves; None without.
        accept_fuzzy: lowest likeness, 0 to 100, of a title that is taken for a missing one; None for never.
        numbering: of the paragraphs in the file that is written.
        strips_section: sections without the newline.
        stem: begins the names of the files; None for the dataset's.
        max_rejects: highest share of the records that may be rejected.
        worker_memory_bytes: memory that a working process may allocate.
        chunk_records: records worked on together; decides how many files the tables have.
    """

    dataset: str
    kb: str
    inputs: tuple[str, ...]
    output: str
    split: Split
    references: tuple[str, ...] = ()
    source: SourceOptions = field(default_factory=SourceOptions)
    threshold: float = THRESHOLD
    max_elements: int = 1
    title_map: str | None = None
    accept_fuzzy: float | None = None
    numbering: Numbering = "kilt"
    strips_section: bool = False
    stem: str | None = None
    max_rejects: float = 0.5
    worker_memory_bytes: int = 4 << 30
    chunk_records: int = 5_000

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if self.dataset not in SOURCES:
            raise SetupError(f"No dataset {self.dataset!r}. Choose one of: {', '.join(SOURCES)}.")
        if not 0 <= self.threshold <= 1:
            raise SetupError(f"--threshold is {self.threshold:g}; give a score between 0 and 1.")
        if self.max_elements < 1:
            raise SetupError(f"--max-elements is {self.max_elements}; give at least 1.")
        if self.accept_fuzzy is not None and not 60 <= self.accept_fuzzy <= 100:
            raise SetupError(f"--accept-fuzzy is {self.accept_fuzzy:g}; give a likeness between 60 and 100.")
        if not 0 <= self.max_rejects <= 1:
            raise SetupError(f"--max-rejects is {self.max_rejects:g}; give a share of the records between 0 and 1.")
        if self.worker_memory_bytes < 1 << 28:
            raise SetupError(f"--worker-memory is {self.worker_memory_bytes >> 20} MB; a worker needs at least 256 MB.")
        if self.chunk_records < 1:
            raise SetupError(f"--chunk-records is {self.chunk_records}; give at least 1.")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        source = asdict(self.source)
        del source["scratch"]
        return {
            "source": source,
            "threshold": self.threshold,
            "max_elements": self.max_elements,
            "title_map": self.title_map is not None,
            "accept_fuzzy": self.accept_fuzzy,
            "numbering": self.numbering,
            "strips_section": self.strips_section,
            "max_rejects": self.max_rejects,
            "chunk_records": self.chunk_records,
        }
