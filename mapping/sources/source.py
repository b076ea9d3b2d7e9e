"""The base class of every dataset, ``Source``, and its parts: inputs, options, rules, counts and published figures."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from cyclopts import Parameter

from kbsource.errors import SetupError
from kbsource.files import base_name
from kbsource.records import BadRecord
from mapping.options import Checked, path_like
from mapping.records import Example, RecordFate, iter_evidence
from mapping.sources.raw_records import FAULTS

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
SPLIT_WORDS: dict[str, Split] = {
    **{split: split for split in SPLITS},
    **dict.fromkeys(("val", "valid", "validation"), "dev"),
}
"""Words that name the split of a file."""
EVIDENCE_SPAN = "evidence_span"
"""Key in the ``meta`` of evidence that annotators chose: a list of their highlights."""
PARTIAL_EVIDENCE = "partial_evidence"
"""Key in the ``meta`` of a record: spans that contain part of the evidence."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Input paths of one run; compressed files are decompressed while reading."""

    records: tuple[str, ...]  # the dataset's own files, in reading order
    references: tuple[str, ...] = ()  # files with the evidence texts, if they are separate
    labels: tuple[str, ...] = ()  # answers of a test split without answers, see ``mapping.sources.examples``
    scratch: str | None = None  # existing folder for temporary indexes on disk; None for the system's


@dataclass(frozen=True, slots=True)
class SourceOptions(Checked):
    """Options of a reader. A dataset with further options defines a subclass next to it.

    The defaults are the correct rules. Quirks of released code or data can be requested by options.
    """

    @property
    def sample_records(self) -> int | None:
        """Number of records that dev and test each get from the records that pass the filter, see ``mapping.decide``.
        None if the dataset has its own splits.
        """
        return None

    @property
    def locates_empty(self) -> bool:
        """True if evidence without text is located before the title."""
        return False


def references_option(flag: str, help: str, metavar: str = "PATH") -> Parameter:
    """Returns the parameter for the files with a dataset's evidence texts; ``PATH`` is a file or a folder."""
    return Parameter(flag, help=help, metavar=metavar, validator=path_like)


Options = TypeVar("Options", bound=SourceOptions)


@dataclass(slots=True)
class Tally:
    """Counts of a pass over a dataset; skipped records are counted by reason."""

    records: int = 0  # records in the inputs: lines, array elements or mentions of the split
    examples: int = 0
    excluded: Counter[str] = field(default_factory=Counter)  # number of excluded records, by rule of the dataset
    rejected: Counter[str] = field(default_factory=Counter)  # records that cannot be used
    merged: int = 0  # merged into another record, which is counted as the example
    evidences: int = 0  # pieces of evidence of the examples
    lost_evidences: Counter[str] = field(default_factory=Counter)  # pieces whose text is not in the references
    references: int = 0
    rejected_references: Counter[str] = field(default_factory=Counter)
    statistics: Counter[str] = field(default_factory=Counter)  # further counts of a dataset

    def count_example(self, example: Example) -> Example:
        """Counts an example and returns it."""
        self.examples += 1
        self.evidences += sum(1 for _ in iter_evidence(example))
        return example

    def count_skipped(self, left: RecordFate) -> None:
        """Counts a record that was skipped: excluded, rejected or merged."""
        if left.reason is None:
            self.merged += 1
        else:
            (self.excluded if left.outcome == "excluded" else self.rejected)[left.reason] += 1


Fate = Literal["drop_output", "drop_record", "keep_answer"]
"""What happens to an output whose evidence is lost: the output is dropped, the whole record is dropped, or the answer
of the output, if it has one, is kept without provenance.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """The treatment of outputs and records whose evidence was not found, was found badly, or is on a missing page.

    Each split of a dataset has one policy. In the KILT datasets, an output of dev and test is dropped if the BLEU of
    any of its spans is below 0.5; entity linking is not filtered. In train every record is kept: if a span of an
    evidence set is weak or has no location, the answer is kept without provenance. Source: section 4 of the KILT paper,
    and the published files.
    """

    #: A span with a score strictly below the threshold makes its output weak.
    has_threshold: bool = True
    #: What happens to an output that is weak, or has a span without a location (page missing or ambiguous, evidence
    #: empty, no match).
    lost: Fate = "drop_output"
    #: A record is dropped if no output with provenance is left ...
    needs_provenance: bool = True
    #: ... unless it never had any.
    keeps_bare: bool = False
    #: A record is dropped if none of its evidence pages exists, even if it needs no provenance.
    needs_page: bool = False
    #: The answer is the title of the page in the snapshot (entity linking).
    answer_is_title: bool = False
    #: Keys of the record's ``meta`` that files without answers keep; all other keys reveal answers.
    input_meta: tuple[str, ...] = ()
    #: How evidence that annotators highlighted (``meta.evidence_span``) is written. ``offsets``: with its paragraphs
    #: and characters; only with its paragraphs if its score is below the threshold and not 0, or if it is partial
    #: evidence. ``paragraphs``: only with its paragraphs. None: like other evidence. Records that were read from a KILT
    #: file keep their form.
    highlights: Literal["offsets", "paragraphs"] | None = None
    #: True if the outputs are many names of one answer, each searched for on each page. If one of the names is found
    #: verbatim, the names that are not found verbatim get no provenance; a name on a page with two titles counts once.
    #: Records that were read from a KILT file keep their provenance.
    prefers_exact: bool = False
    #: Answers with provenance are written first, then answers without provenance, then provenance without answer.
    found_first: bool = False
    #: ``section`` of a span follows its title, as in the published T-REx files.
    has_section_third: bool = False


ANSWERS_STAY = Policy(lost="keep_answer")


def by_split(held_out: Policy, *, train: Policy | None = None) -> dict[Split, Policy]:
    """Returns one policy for dev and test, and one for train. By default train has the same policy but keeps every
    answer."""
    keeps = replace(held_out, lost="keep_answer", needs_provenance=False)
    return {"train": train or keeps, "dev": held_out, "test": held_out}


HypothesisKind = Literal["claim", "answer", "triple", "evidence"]
"""The source of the hypothesis that a model judges evidence against: the record's input; question and answer as a
sentence; subject, relation and object as a sentence; the text that the dataset quotes."""

Metric = Literal["accuracy", "em", "f1", "rougel"]


class Averages(NamedTuple):
    """Averages over a dataset: spans per set, sets and distinct pages per record with evidence, answers per record."""

    spans: float | None
    sets: float | None
    pages: float | None
    answers: float | None


class EvidenceShares(NamedTuple):
    """Shares of the records with evidence sets: records with several sets, records whose sets all have several spans,
    and records whose sets all have spans on several pages.
    """

    several_sets: float
    several_spans: float
    several_pages: float


class PublishedFigures(NamedTuple):
    """Published figures about a dataset's files in KILT (2021), by split."""

    #: Lines of the published files (T-REx, ELI5 and Wizard of Wikipedia in their latest release).
    records: Mapping[Split, int] = {}
    #: Over all splits. Source: the KILT paper, table 6.
    averages: Averages | None = None
    #: Records that the threshold drops, as a number and as a percentage. Source: the KILT paper, figure 5.
    dropped: Mapping[Split, tuple[int, float]] = {}
    #: Over all splits. Source: the KILT paper, section 5 and appendix.
    shares: EvidenceShares | None = None
    #: Further counts of the dataset, by their name in ``Tally.statistics``.
    statistics: Mapping[str, int] = {}


class LabelForm(NamedTuple):
    """The files with the answers of a test split, if they are separate: name of the dataset, and keys of the
    records.
    """

    of: str  # name of the dataset for messages
    id_field: str
    fields: tuple[str, ...]  # keys that are copied into the record; the first is required
    array: str | None = None  # key of the array, if a file is one object


class Ownership(NamedTuple):
    """The owner and licence of a dataset's records."""

    title: str
    holder: str  # name of the owner to credit
    url: str  # URL of the page that states the licence
    licence: str | None = None  # SPDX identifier; None if the owners name no licence
    note: str = ""


class Source(ABC, Generic[Options]):
    """Base class of the readers of datasets. A class contains everything that is specific to a dataset; an instance
    reads one split.
    """

    name: ClassVar[str]  # on the command line, and at the beginning of output file names
    summary: ClassVar[str]
    splits: ClassVar[tuple[Split, ...]] = SPLITS
    options_type: type[Options]
    references: ClassVar[Parameter | None] = None  # files with the evidence texts, if they are separate
    labels: ClassVar[LabelForm | None] = None  # answers of a test split that may be in separate files
    policies: ClassVar[Mapping[Split, Policy]] = by_split(Policy())
    hypothesis: ClassVar[HypothesisKind] = "evidence"
    metric: ClassVar[Metric | None] = None  # the metric that KILT reports. Source: the KILT paper, table 1
    published: ClassVar[PublishedFigures] = PublishedFigures()
    ownership: ClassVar[Ownership | None] = None
    evidence_date: ClassVar[str | None] = None  # snapshot of Wikipedia, if all evidence is from one

    def __init__(self, inputs: Inputs, split: Split, options: Options, *, tally: Tally | None = None) -> None:
        self.inputs, self.split, self.options = inputs, split, options
        self.tally = tally or Tally()

    def check(self) -> None:
        """Checks the beginning of every input before anything is read.

        Raises:
            SetupError: a file is missing, empty or not of the expected kind, or the split does not exist.
        """
        if self.split not in self.splits:
            raise SetupError(f"{self.name} has no split {self.split!r}. Choose one of: {', '.join(self.splits)}.")
        self.check_inputs()

    @abstractmethod
    def check_inputs(self) -> None:
        """Checks the inputs of an existing split."""

    @abstractmethod
    def read(self) -> Iterator[Example | BadRecord]:
        """Reads every record once, in input order. Yields an example, or a ``BadRecord`` with the reason why the record
        cannot be used.

        The stage of a ``BadRecord`` is ``source`` for a record of the dataset, ``reference`` for a record of the
        references, and ``evidence`` for a piece of evidence whose text cannot be looked up. The last precedes its
        example, in which this evidence is missing or has an empty text. Excluded and merged records are only counted in
        ``tally``, which is complete when the iterator has ended.

        Raises:
            SetupError: an input cannot be read to its end.
        """


def check_names(paths: Iterable[str], split: Split) -> None:
    """Raises SetupError if the name of a file contains only words for other splits, such as "train" in a file given for
    dev.
    """
    for path in paths:
        check_words(path, re.split("[^a-z]+", base_name(path).lower()), split)


def check_words(path: str, words: Iterable[str], split: Split) -> None:
    """Raises SetupError for a file if the words that name its split name only other splits."""
    named = sorted({SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS})
    if named and split not in named:
        raise SetupError(
            f"according to its name, {path} belongs to the split {named[0]}, not to {split}: give a file of {split}, "
            f"or --split {named[0]}. If it is your own file, rename it."
        )


REJECTED: dict[str, str] = {
    **FAULTS,
    "ambiguous_page": "a piece of evidence in the project's own format that names its page in more than one way",
    "ambiguous_text": "a piece of evidence in the project's own format that has its text under more than one key",
    "bad_tag": "a line of a TSV whose second column is neither B nor I",
    "conflicting_label": "a judgement that contradicts the annotator's earlier judgement of the passage",
    "duplicate_id": "the id occurred before",
    "empty_output": "a KILT record whose list of outputs is empty",
    "malformed_docstart": "a line that starts a document without naming it",
    "malformed_xml": "a document that is not well-formed, or uses entities or a document type",
    "missing_column": "an annotated line of a TSV with too few columns",
    "missing_label": "a test record without an answer in the given labels",
    "missing_raw_text": "the text of an annotated document is not in the RawText folder",
    "no_document": "an annotated line before the first document",
    "no_highlight": "a record of a campaign whose passages lie in another knowledge source and have no text",
    "no_title": "a sentence chosen by a wizard without a page",
    "offset_mismatch": "the text does not have the mention at the annotated position",
    "token_range": "an answer of Natural Questions at tokens that its page does not have",
    "uneven_lists": "the number of answers in a thread differs from the number of scores",
    "unknown_field": "a field that the project's own format does not have, such as a misspelled field",
    "unknown_label": "a label that the dataset does not have",
    "unknown_passage": "a judgement of a passage that is not among the passages of its campaign",
    "unknown_sentence": "a triple of T-REx in a sentence that its document does not have",
    "unknown_speaker": "a turn of a dialogue that neither wizard nor apprentice speaks",
    "unknown_uri": "a URL of T-REx that is not the URL of an item or property of Wikidata",
}
"""Reason -> meaning, for stages ``source`` and ``reference``."""

LOST_EVIDENCE: dict[str, str] = {
    "null_page": "a piece of evidence of FEVER that names no page",
    "offsets_out_of_range": "a KILT span that is outside its paragraph",
    "unknown_page": "the page is not among the references",
    "unknown_sentence": "the page has no sentence of this number",
}
"""Reason -> meaning, for stage ``evidence``: the text cannot be looked up."""

EXCLUDED: dict[str, str] = {
    "first_turn": "a turn of a wizard with no turn before it",
    "long_short_answers": "a question of Natural Questions whose short answers all have more than five tokens",
    "negative": "a line of Zero-Shot RE whose sentence does not answer its question",
    "no_accepted_passage": "a question whose annotators found no passage",
    "no_answer": "a question or turn whose answers have no text",
    "no_evidence": "a supported or refuted claim without any evidence",
    "no_object_label": "a triple of T-REx whose object has no English label in Wikidata",
    "no_page": "a question of TriviaQA without a page",
    "no_passages_used": "a turn that the wizard marked as using no passage",
    "no_relation_label": "a triple of T-REx whose relation has no English label in Wikidata",
    "no_sentence": "a triple of T-REx that no sentence states",
    "no_short_answer": "a question of Natural Questions without a short answer by any annotator",
    "no_subject_label": "a triple of T-REx whose subject has no English label in Wikidata",
    "no_wizard": "a dialogue without a wizard's turn",
    "not_annotated": "a question that the annotation campaign does not have",
    "not_enough_info": "a claim of FEVER that is neither supported nor refuted",
    "not_in_kb": "a mention annotated as having no page",
    "nothing_checked": "a turn without a sentence chosen by the wizard",
    "other_split": "a record that does not belong to this split",
    "rare_relation": "a triple of T-REx whose relation has too few facts",
    "too_many_provenances": "a triple of T-REx whose fact is stated by too many sentences",
    "yes_no_only": "a question of Natural Questions that is answered only by yes or no",
}
"""Reason -> meaning, for records that the rules of their dataset exclude."""
