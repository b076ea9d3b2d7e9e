"""Options of the alignment of a dataset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kbsource.errors import SetupError
from mapping.decide.acceptance import read_rule
from mapping.decide.policy import THRESHOLD
from mapping.entail.hypotheses import HypothesisKind
from mapping.entail.signal import ModelOptions
from mapping.options import Checked, between, check_options, option, path_option
from mapping.search.numbering import Numbering
from mapping.sources import SOURCES, usual_choices
from mapping.sources.reading.base import SourceOptions, Split
from pipelines.options.fields import memory_option, output_option, rejects_option

RESCUE_SENTENCES = 100
_DECIDING = (
    "threshold",
    "max_elements",
    "accept_fuzzy",
    "numbering",
    "strips_section",
    "max_rejects",
    "chunk_records",
    "evidence_timeout_s",
    "worker_memory_bytes",
)


@dataclass(frozen=True, slots=True)
class VerifyOptions(Checked):
    """How alignments are verified.

    Attributes:
        model: that judges them.
        hypothesis: what it judges; None for what goes with the dataset.
        rescue_sentences: sentences of the page that are tried where BLEU is weak; 0 for none.
    """

    model: ModelOptions
    hypothesis: HypothesisKind | None = option(
        None, "with --verify: what the model judges (default: what goes with the dataset)"
    )
    rescue_sentences: int = option(
        0,
        "with --verify: where BLEU is weak, take the sentence of the page that the model finds most likely to say it, "
        f"of the N that share most of its words (default: {RESCUE_SENTENCES})",
        flag="--rescue",
        bare=RESCUE_SENTENCES,
        lowest=0,
    )


@dataclass(frozen=True, slots=True)
class MapOptions:
    """What is aligned, and how.

    Attributes:
        dataset: name in ``mapping.sources.SOURCES``.
        references: where the evidence texts stand, when that is elsewhere.
        labels: answers of a test split whose records have none.
        source: choices of the dataset's reader; None for the usual ones.
        verify: an NLI model is asked about every span; None for none.
    """

    dataset: str
    kb: str = option(help="folder of the release", metavar="RELEASE")
    inputs: tuple[str, ...] = option(
        help="files of the dataset, in order; .gz and .bz2 too", flag="--input", metavar="FILE"
    )
    output: str = output_option("the alignment")
    split: Split = option(help="rules that records are filtered by (default: as the files' names say, else dev)")
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions | None = None
    threshold: float = between(0, 1, THRESHOLD, "lowest score that is kept", of="a score", metavar="BLEU")
    max_elements: int = option(1, "paragraphs a span may cross", lowest=1)
    title_map: str | None = path_option("known moves: a line each, old title, tab, new title or page id")
    accept_fuzzy: float | None = between(
        60, 100, None, "take the most similar title for a missing one, from 60 to 100", of="a likeness", metavar="SCORE"
    )
    numbering: Numbering = option("kilt", "of paragraphs")
    strips_section: bool = option(False, "section without the newline at its end", flag="--strip-section")
    stem: str | None = option(
        None, "begins the name of the file that is written (default: the dataset's)", metavar="NAME"
    )
    max_rejects: float = rejects_option(0.01, of="records")
    worker_memory_bytes: int = memory_option()
    chunk_records: int = option(5_000, "records of a file of a table", lowest=1)
    evidence_timeout_s: float = option(
        60.0,
        "longest time for one piece of evidence, which is then tried once more and given up",
        flag="--evidence-timeout",
        metavar="SECONDS",
        above=0,
        remedy="give seconds above 0",
    )
    verify: VerifyOptions | None = None
    accept: str | None = option(
        None,
        'spans that are kept, in place of --threshold: "bleu>=0.5", "bleu>=0.5 and entailment>=0.5"; signals bleu, '
        "entailment, neutral, contradiction, with and, or, not and brackets",
        metavar="RULE",
    )
    scratch: str | None = path_option("folder for temporary indexes (default: the system's)", "DIR")

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for options that do not go together."""
        if self.dataset not in SOURCES:
            raise SetupError(f"No dataset {self.dataset!r}. Choose one of: {', '.join(SOURCES)}.")
        if self.labels and self.split != "test":
            raise SetupError(
                f"--labels is for the test split, whose records have no answers; {self.split} has its own."
            )
        check_options(self)
        if self.stem is not None and ("/" in self.stem or not self.stem.strip(". ")):
            raise SetupError(f"--stem is {self.stem!r}; give what a file's name may begin with, without a slash.")
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

    @property
    def choices(self) -> SourceOptions:
        """Choices of the dataset's reader."""
        return self.source or usual_choices(self.dataset)

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _DECIDING}
        if self.accept is not None:
            values["accept"] = self.accept
        if self.verify is not None:
            values["verify"] = asdict(self.verify)
            del values["verify"]["model"]
        return {**values, "source": asdict(self.choices), "title_map": self.title_map is not None}
