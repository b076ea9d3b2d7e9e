"""Options of ``kbsource qampari``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, ClassVar

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import SetupError
from mapping.entail.signal import UsualModelOptions
from mapping.options import FLAT, AtLeast0, AtLeast1, Choices, File, Name, Release, check_choices, check_options
from mapping.qampari.evidence import LEAST_ENTAILMENT, N_BEFORE
from mapping.qampari.list_tables import LEAST_ROWS, KeyRule
from mapping.qampari.questions import RelationList
from mapping.qampari.selection import MOST_SUBJECTS, QAMPARI_CHOICES, AnswerFilter, CompositionBase, Mixed, SampleSizes
from mapping.qampari.table_questions import TableRows
from pipelines.options.shared import PLACES, USUAL_MEMORY, Memory, Output, TakenAs


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """Inputs and options of the job."""

    CHOICES: ClassVar[Choices] = QAMPARI_CHOICES

    kb: Release
    """Release of pages, built with the Wikidata items of its pages."""
    wikidata: Release
    """Release of Wikidata made by kbsource wikidata."""
    _: KW_ONLY
    output: Output
    model: Annotated[UsualModelOptions | None, FLAT] = UsualModelOptions()
    """The model that judges candidates; None: the first candidate is the proof."""
    as_: TakenAs | None = None
    relations: File | None = None
    """TOML file with relations and their wording; by default the package's own."""
    relation_list: RelationList = "corrected"
    """The package's relations to ask about: corrected: all but P275, whose released entry is a mistake; paper: the
    relations in the table of the paper's appendix; released: all relations of the released code."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = LEAST_ENTAILMENT
    """A sentence proves a fact if its entailment probability is above this."""
    sentences_before: AtLeast0 = N_BEFORE
    """Number of preceding sentences of the same paragraph that a proof includes."""
    most_subjects: AtLeast1 = MOST_SUBJECTS
    """Maximum number of subjects; properties and values with more subjects are skipped."""
    composition_base: CompositionBase = "kept"
    """Simple queries that compositions are made from: kept: queries that passed the filter; all: all queries with
    enough answers, as in the paper."""
    most_specific_types: bool = False
    """If several questions about the same entity differ only in the type that they ask for, and have the same answers,
    keep only the one with the most specific type."""
    all_proofs: bool = False
    """If several things share a value, include the proofs of all of them."""
    has_tables: Annotated[bool, Parameter("--tables", negative="--no-tables")] = True
    """Make questions about the tables of list pages."""
    least_rows: AtLeast1 = LEAST_ROWS
    """Minimum number of rows in a table."""
    table_rows: TableRows = "linked"
    """Rows of a table that count for --least-share: linked: only rows that link to a page, as in the released
    code; all: all rows, as in the paper."""
    key_rule: KeyRule = "any"
    """Columns that the rule may choose as a table's key: any: all columns; not-last: all but the last, as in the
    released code."""
    key_columns: File | None = None
    """JSON Lines file of tables' key columns, {title, table, column}; by default, a rule finds them."""
    redirect_aliases: bool = False
    """Count the titles of redirects to the page of a table's answer as aliases."""
    seed: Name = "qampari"
    """Seed of every draw."""
    answer_filter: Annotated[AnswerFilter, FLAT] = AnswerFilter()
    sizes: Annotated[SampleSizes, FLAT] = SampleSizes()
    mixed: Mixed = "train"
    """Intersections of a training relation and a test relation: train: use them for training; drop: skip them."""
    with_meta: bool = False
    """Add a field meta to the records: relations, items, probabilities, positions."""
    is_released_case: Annotated[bool, Parameter("--released-case")] = False
    """Write proofs as in the published files: each sentence in lower case except for its first letter."""
    is_released_wording: Annotated[bool, Parameter("--released-wording")] = False
    """Leave the verbs of compositions as in the published questions: persons that works for X."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if self.most_subjects < self.answer_filter.least:
            raise SetupError(f"--most-subjects is {self.most_subjects}; give at least {self.answer_filter.least}.")
        if self.relations is not None and self.relation_list != "corrected":
            raise SetupError(
                f"--relation-list {self.relation_list} is one of the package's lists, and --relations {self.relations} "
                "replaces it: leave one out. In a file, enabled = false leaves a relation out."
            )
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        left_out = PLACES | {"model", "worker_memory_bytes", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}
