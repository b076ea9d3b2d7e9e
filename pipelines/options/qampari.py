"""Options of ``kbsource qampari``, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.entail.signal import ModelOptions
from mapping.qampari.facts.evidence import N_BEFORE
from mapping.qampari.facts.joins import MOST_SUBJECTS
from mapping.qampari.facts.validation import LEAST_ENTAILMENT
from mapping.qampari.lists.list_tables import LEAST_ROWS
from mapping.qampari.selection import AnswerFilter, Mixed, SampleSizes
from pipelines.options.checks import check_worker_memory


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """Options of ``kbsource qampari``; docs/commands.md has their meaning.

    Attributes:
        kb: folder of the knowledge source.
        wikidata: folder of the release of Wikidata.
        output: folder of what is made.
        model: that judges candidates; None: the first candidate is the proof.
        relations: file of relations; None for those of the package.
        key_columns: file that names key columns of tables; None for a rule alone.
        seed: of every draw.
        answer_filter: which questions are kept.
        sizes: how many are drawn.
        mixed: what becomes of intersections of a training with a test relation.
        most_subjects: that property and value may have.
        sentences_before: before the one that names something.
        least_entailment: probability that an accepted candidate is above.
        most_specific_types: of typed questions about one thing with the same answers one is kept.
        least_rows: rows that a table needs.
        has_tables: questions are made of tables too.
        all_proofs: of a value that several subjects have, the proofs of all of them.
        redirect_aliases: titles that lead to a page are aliases of table answers.
        with_meta: records have ``meta``.
        is_released_case: proofs are written as in the released files.
        is_released_wording: questions of compositions have the verbs of the released ones.
        worker_memory_bytes: memory that a working process may allocate.
    """

    kb: str
    wikidata: str
    output: str
    model: ModelOptions | None
    relations: str | None = None
    key_columns: str | None = None
    seed: str = "qampari"
    answer_filter: AnswerFilter = field(default_factory=AnswerFilter)
    sizes: SampleSizes = field(default_factory=SampleSizes)
    mixed: Mixed = "train"
    most_subjects: int = MOST_SUBJECTS
    sentences_before: int = N_BEFORE
    least_entailment: float = LEAST_ENTAILMENT
    most_specific_types: bool = False
    least_rows: int = LEAST_ROWS
    has_tables: bool = True
    all_proofs: bool = False
    redirect_aliases: bool = False
    with_meta: bool = False
    is_released_case: bool = False
    is_released_wording: bool = False
    worker_memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        for option, value, least in (
            ("--most-subjects", self.most_subjects, self.answer_filter.least),
            ("--sentences-before", self.sentences_before, 0),
            ("--least-rows", self.least_rows, 1),
        ):
            if value < least:
                raise SetupError(f"{option} is {value}; give at least {least}.")
        if not 0 <= self.least_entailment < 1:
            raise SetupError(f"--least-entailment is {self.least_entailment}; give a probability from 0 to below 1.")
        check_worker_memory(self.worker_memory_bytes)

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        values = asdict(self)
        for name in ("kb", "wikidata", "output", "model", "relations", "key_columns", "worker_memory_bytes"):
            del values[name]
        return values
