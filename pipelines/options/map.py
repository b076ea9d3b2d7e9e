"""Options of the alignment of a dataset, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.decide.acceptance import read_rule
from mapping.decide.policy import THRESHOLD
from mapping.entail.hypotheses import HypothesisKind
from mapping.entail.signal import ModelOptions
from mapping.search.numbering import Numbering
from mapping.sources import SOURCES
from mapping.sources.reading.base import SourceOptions, Split
from pipelines.options.checks import check_max_rejects, check_worker_memory


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How alignments are verified.

    Attributes:
        model: that judges them.
        hypothesis: what it judges; None for what goes with the dataset.
        rescue_sentences: sentences of the page that are tried where BLEU is weak; 0 for none.
    """

    model: ModelOptions
    hypothesis: HypothesisKind | None = None
    rescue_sentences: int = 0


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
        labels: answers of a test split whose records have none.
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
        evidence_timeout_s: seconds that the search for one piece of evidence may take.
        verify: an NLI model is asked about every span; None for none.
        accept: rule that says which spans are kept, in place of the threshold; None without.
    """

    dataset: str
    kb: str
    inputs: tuple[str, ...]
    output: str
    split: Split
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions = field(default_factory=SourceOptions)
    threshold: float = THRESHOLD
    max_elements: int = 1
    title_map: str | None = None
    accept_fuzzy: float | None = None
    numbering: Numbering = "kilt"
    strips_section: bool = False
    stem: str | None = None
    max_rejects: float = 0.01
    worker_memory_bytes: int = 4 << 30
    chunk_records: int = 5_000
    evidence_timeout_s: float = 60.0
    verify: VerifyOptions | None = None
    accept: str | None = None

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if self.dataset not in SOURCES:
            raise SetupError(f"No dataset {self.dataset!r}. Choose one of: {', '.join(SOURCES)}.")
        if self.labels and self.split != "test":
            raise SetupError(
                f"--labels is for the test split, whose records have no answers; {self.split} has its own."
            )
        self._check_source()
        if not 0 <= self.threshold <= 1:
            raise SetupError(f"--threshold is {self.threshold:g}; give a score between 0 and 1.")
        if self.max_elements < 1:
            raise SetupError(f"--max-elements is {self.max_elements}; give at least 1.")
        if self.accept_fuzzy is not None and not 60 <= self.accept_fuzzy <= 100:
            raise SetupError(f"--accept-fuzzy is {self.accept_fuzzy:g}; give a likeness between 60 and 100.")
        if self.stem is not None and ("/" in self.stem or not self.stem.strip(". ")):
            raise SetupError(f"--stem is {self.stem!r}; give what a file's name may begin with, without a slash.")
        check_max_rejects(self.max_rejects, of="records")
        check_worker_memory(self.worker_memory_bytes)
        if self.chunk_records < 1:
            raise SetupError(f"--chunk-records is {self.chunk_records}; give at least 1.")
        if self.evidence_timeout_s <= 0:
            raise SetupError(f"--evidence-timeout is {self.evidence_timeout_s:g}; give seconds above 0.")
        self._check_acceptance()

    def _check_acceptance(self) -> None:
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := signals - {"bleu"}):
            names = ", ".join(sorted(unknown))
            raise SetupError(f"--accept {self.accept!r}: {names} is only known with --verify MODEL.")
        if self.verify is not None and self.verify.rescue_sentences and not signals & {"entailment", "contradiction"}:
            raise SetupError(
                "--rescue names sentences whose BLEU is low, so a rule must take them: "
                '--accept "bleu>=0.5 or entailment>=0.9"'
            )

    def _check_source(self) -> None:
        source = self.source
        if source.min_facts < 1:
            raise SetupError(f"--min-facts is {source.min_facts}; give at least 1.")
        if source.sample < 0:
            raise SetupError(f"--sample is {source.sample}; give 0 or more.")
        if source.sample_pool < 2 * source.sample:
            raise SetupError(
                f"--sample-pool is {source.sample_pool}; for a --sample of {source.sample} give at least"
                f" {2 * source.sample}."
            )
        if not 0 <= source.fold <= 9:
            raise SetupError(f"--fold is {source.fold}; give 0 to 9.")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        source = asdict(self.source)
        del source["scratch"]
        chosen: dict[str, Any] = {}
        if self.accept is not None:
            chosen["accept"] = self.accept
        if self.verify is not None:
            chosen["verify"] = {
                "hypothesis": self.verify.hypothesis,
                "rescue_sentences": self.verify.rescue_sentences,
            }
        return {
            **chosen,
            "source": source,
            "threshold": self.threshold,
            "max_elements": self.max_elements,
            "title_map": self.title_map is not None,
            "accept_fuzzy": self.accept_fuzzy,
            "numbering": self.numbering,
            "strips_section": self.strips_section,
            "max_rejects": self.max_rejects,
            "chunk_records": self.chunk_records,
            "evidence_timeout_s": self.evidence_timeout_s,
            "worker_memory_bytes": self.worker_memory_bytes,
        }
