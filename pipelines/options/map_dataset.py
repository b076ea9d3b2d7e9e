"""Options of ``kbsource map``: for aligning any dataset, for aligning one dataset, and for verifying the spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import SetupError
from kbsource.files import base_name
from mapping.acceptance import read_rule
from mapping.decide import THRESHOLD
from mapping.entail.signal import ModelOptions
from mapping.options import (
    FLAT,
    AtLeast0,
    AtLeast1,
    Bleu,
    Checked,
    File,
    Files,
    FolderPath,
    Name,
    Release,
    Rule,
    Seconds,
    Share,
    check_options,
    name_like,
)
from mapping.search.numbering import Numbering
from mapping.sources import all_sources, source_of_file
from mapping.sources.source import HypothesisKind, Policy, SourceOptions, Split
from pipelines.options.shared import USUAL_MEMORY, Memory, Output

if TYPE_CHECKING:
    from mapping.search.page_search import SearchSettings

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions(Checked):
    """Options for verifying alignments with an NLI model."""

    model: Annotated[ModelOptions, FLAT]
    hypothesis: HypothesisKind | None = None
    """Hypothesis that the model judges. The default depends on the dataset."""
    candidate_sentences: Annotated[AtLeast0, Parameter("--candidate-sentences")] = 0
    """If BLEU is low, take the N sentences of the page that share the most words with the hypothesis, and choose the
    one that most probably entails it. 100 is a good value; 0 turns this off.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions:
    """Options for aligning the evidence of any dataset."""

    inputs: Annotated[Files, Parameter("--input")]
    """Files of the dataset, in order; they may be compressed (.bz2, .gz, .xz, .zst)."""
    split: Split | None = None
    """Split whose filter rules apply. By default, the split is taken from the file names, or is dev if they contain
    none.
    """
    threshold: Bleu = THRESHOLD
    """Minimum BLEU score of an accepted span."""
    max_elements: AtLeast1 = 1
    """Maximum number of paragraphs in a span."""
    title_map: File | None = None
    """File of known page moves, one per line: old title, tab, new title or page id."""
    accept_fuzzy: Annotated[float | None, Parameter(metavar="SCORE", validator=Number(gte=60, lte=100))] = None
    """If no page has the title, use the most similar title, provided that the similarity is at least SCORE (60 to 100).
    """
    numbering: Numbering = "kilt"
    """How paragraphs are numbered: as in KILT, or by the elements of the release."""
    strips_section: Annotated[bool, Parameter("--strip-section")] = False
    """Write sections without the newline at the end."""
    stem: Annotated[Name | None, Parameter(validator=name_like)] = None
    """Start of the output file's name; by default the dataset's name."""
    max_rejects: Share = 0.01
    """Maximum share of records that may be rejected."""
    chunk_records: AtLeast1 = 5_000
    """Number of records in each table file."""
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Maximum time for one piece of evidence. A search that takes longer is repeated once; if it takes too long again,
    the evidence is skipped.
    """
    verify: Annotated[VerifyOptions | None, FLAT] = None
    accept: Rule | None = None
    """Rule for accepting spans, instead of --threshold: "bleu>=0.5", "bleu>=0.5 and entailment>=0.5". The signals are
    bleu, entailment, neutral and contradiction; combine them with and, or, not and brackets.
    """
    scratch: FolderPath | None = None
    """Folder for temporary indexes; by default the system's temporary folder."""


@dataclass(frozen=True, slots=True)
class MapCommandOptions:
    """Options of the commands of all datasets."""

    kb: Release
    """Folder of the release."""
    _: KW_ONLY
    alignment: Annotated[AlignmentOptions, FLAT]
    output: Output
    worker_memory_bytes: Memory = USUAL_MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions(AlignmentOptions):
    """Options for aligning one dataset of ``mapping.sources.all_sources()``, including the options of that dataset.

    All steps of an alignment take these options: the reader, the search, and the filter and writer of the records.
    """

    dataset: str
    split: Split = "dev"
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions | None = None

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if options exclude each other."""
        if self.dataset not in all_sources():
            raise SetupError(f"There is no dataset {self.dataset!r}. Choose one of: {', '.join(all_sources())}.")
        if self.labels and self.split != "test":
            raise SetupError(
                f"--labels is for the test split, whose records have no answers; {self.split} has its own answers, so "
                f"leave --labels out."
            )
        check_options(self)
        self._check_acceptance()

    def _check_acceptance(self) -> None:
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := signals - {"bleu"}):
            names = ", ".join(sorted(unknown))
            raise SetupError(f"--accept {self.accept!r}: only a model computes {names}; name one with --model MODEL.")
        if (
            self.verify is not None
            and self.verify.candidate_sentences
            and not signals & {"entailment", "contradiction"}
        ):
            raise SetupError(
                "--candidate-sentences chooses sentences whose BLEU is low, and this rule rejects all of them. "
                'Use a rule like --accept "bleu>=0.5 or entailment>=0.9"'
            )

    @property
    def choices(self) -> SourceOptions:
        """Options of the dataset's reader; its defaults if none are set."""
        return self.source or all_sources()[self.dataset].options_type()

    @property
    def policy_name(self) -> str:
        """Name of the dataset whose policies apply; for KILT files, the dataset that they contain."""
        return source_of_file(base_name(self.inputs[0])).name if self.dataset == "kilt" else self.dataset

    @property
    def policies(self) -> Mapping[Split, Policy]:
        """Policies of the dataset, by split."""
        return all_sources()[self.policy_name].policies

    @property
    def hypothesis(self) -> HypothesisKind | None:
        """Hypothesis for the model; None without a model."""
        if self.verify is None:
            return None
        return self.verify.hypothesis or all_sources()[self.policy_name].hypothesis

    @property
    def search(self) -> SearchSettings:
        """Settings of the search for the evidence."""
        from mapping.search.page_search import SearchSettings  # imports RapidFuzz

        return SearchSettings(
            max_elements=self.max_elements,
            numbering=self.numbering,
            locates_empty=self.choices.locates_empty,
            accept_fuzzy=self.accept_fuzzy,
            candidate_sentences=0 if self.verify is None else self.verify.candidate_sentences,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(DatasetOptions):
    """Options of the job that aligns one dataset."""

    kb: Release = field(kw_only=False)
    output: Output
    worker_memory_bytes: Memory = USUAL_MEMORY

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _DECIDING}
        if self.accept is not None:
            values["accept"] = self.accept
        if self.verify is not None:
            values["verify"] = asdict(self.verify)
            del values["verify"]["model"]
        return {**values, "source": asdict(self.choices), "title_map": self.title_map is not None}


class PlannedAlignment(NamedTuple):
    """One alignment of a job that makes several."""

    name: str  # name of the dataset
    options: MapOptions  # Its ``output`` is the path ``name/split`` in the folder of all alignments.
    where: str  # The place in the configuration that requests the alignment, for messages.

    @property
    def folder(self) -> str:
        """Folder of the alignment, relative to the folder of all alignments."""
        return f"{self.name}/{self.options.split}"
