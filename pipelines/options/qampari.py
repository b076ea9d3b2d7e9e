"""Options of ``kbsource qampari``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.entail.signal import ModelOptions
from mapping.options import check_options, option, path_option
from mapping.qampari.facts.evidence import N_BEFORE
from mapping.qampari.facts.validation import LEAST_ENTAILMENT
from mapping.qampari.lists.list_tables import LEAST_ROWS
from mapping.qampari.selection import MOST_SUBJECTS, AnswerFilter, Mixed, SampleSizes
from pipelines.options.fields import memory_option, output_option


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """What is made, and how.

    Attributes:
        model: that judges candidates; None: the first candidate is the proof.
    """

    kb: str = option(help="knowledge source, built with the items of its pages", metavar="RELEASE")
    wikidata: str = option(help="release of Wikidata, see kbsource wikidata", metavar="RELEASE")
    output: str = output_option("what is made")
    model: ModelOptions | None = None
    relations: str | None = path_option("relations and their words, TOML (default: those of the package)")
    least_entailment: float = option(
        LEAST_ENTAILMENT,
        "a sentence proves a fact when its probability of entailment is above this",
        metavar="P",
        lowest=0,
        below=1,
        remedy="give a probability from 0 to below 1",
    )
    sentences_before: int = option(N_BEFORE, "sentences of the same paragraph that a proof begins with", lowest=0)
    most_subjects: int = option(MOST_SUBJECTS, "properties and values with more subjects are passed over")
    most_specific_types: bool = option(
        False, "of typed questions about one thing with the same answers keep the one with the most specific type"
    )
    all_proofs: bool = option(False, "of a value that several things have, the proofs of all of them")
    has_tables: bool = option(True, "make no questions about the tables of list pages", flag="--no-tables")
    least_rows: int = option(LEAST_ROWS, "rows that a table needs", lowest=1)
    key_columns: str | None = path_option(
        "key columns of tables, JSON Lines of {title, table, column} (default: a rule finds them)"
    )
    redirect_aliases: bool = option(False, "titles that lead to the page of a table's answer are aliases")
    seed: str = option("qampari", "of every draw", metavar="TEXT")
    answer_filter: AnswerFilter = field(default_factory=AnswerFilter)
    sizes: SampleSizes = field(default_factory=SampleSizes)
    mixed: Mixed = option("train", "intersections of a training with a test relation")
    with_meta: bool = option(False, "give records a field meta: relations, items, probabilities, places")
    is_released_case: bool = option(
        False,
        "write proofs as the published files have them, each sentence in lower case but for its first letter",
        flag="--released-case",
    )
    is_released_wording: bool = option(
        False,
        "leave the verbs of compositions as the published questions have them: persons that works for X",
        flag="--released-wording",
    )
    worker_memory_bytes: int = memory_option()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for options that do not go together."""
        check_options(self)
        if self.most_subjects < self.answer_filter.least:
            raise SetupError(f"--most-subjects is {self.most_subjects}; give at least {self.answer_filter.least}.")

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes, as JSON values for the manifest."""
        values = asdict(self)
        for name in ("kb", "wikidata", "output", "model", "relations", "key_columns", "worker_memory_bytes"):
            del values[name]
        return values
