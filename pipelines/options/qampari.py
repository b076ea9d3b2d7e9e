"""Options of ``kbsource qampari``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, ClassVar

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import SetupError
from kbsource.runtime.database import MEMORY_MB
from mapping.entail.signal import UsualModelOptions
from mapping.options import FLAT, AtLeast0, AtLeast1, Choices, File, Name, Release, check_choices, check_options
from mapping.qampari.evidence import LEAST_ENTAILMENT, N_BEFORE
from mapping.qampari.list_tables import LEAST_ROWS, KeyRule
from mapping.qampari.questions import RelationList
from mapping.qampari.selection import MOST_SUBJECTS, QAMPARI_CHOICES, AnswerFilter, CompositionBase, Mixed, SampleSizes
from mapping.qampari.table_questions import TableRows
from pipelines.options.shared import PLACES, USUAL_MEMORY, JoinMemory, Memory, Output, TakenAs


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """Inputs and options of the job."""

    CHOICES: ClassVar[Choices] = QAMPARI_CHOICES

    kb: Release
    """Release of pages that includes their Wikidata items: one built with --page-props or --wikidata, or from HTML."""
    wikidata: Release
    """Release of Wikidata made by kbsource wikidata."""
    _: KW_ONLY
    output: Output
    model: Annotated[UsualModelOptions | None, FLAT] = UsualModelOptions()
    """Model that judges the candidates. None: the first candidate is the proof."""
    as_: TakenAs | None = None
    relations: File | None = None
    """TOML file with relations and the wording of their questions; by default the package's own."""
    relation_list: RelationList = "corrected"
    """Which of the package's relations are used. corrected: all but P275, whose entry in the released code is a
    mistake. paper: those in the table of the paper's appendix. released: all those in the released code.
    """
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = LEAST_ENTAILMENT
    """A sentence proves a fact only if its entailment probability is above this value."""
    sentences_before: AtLeast0 = N_BEFORE
    """Number of sentences before the proof, from the same paragraph, that are included with it."""
    most_subjects: AtLeast1 = MOST_SUBJECTS
    """Maximum number of subjects. A property or value with more subjects is skipped."""
    composition_base: CompositionBase = "kept"
    """Simple queries from which compositions are made. kept: queries that passed the filter; all: all queries with
    enough answers, as in the paper.
    """
    most_specific_types: bool = False
    """If questions about one entity have the same answers and differ only in the type that they ask for, keep only the
    question with the most specific type.
    """
    all_proofs: bool = False
    """If several entities share a value, include the proofs of all of them."""
    has_tables: Annotated[bool, Parameter("--tables", negative="--no-tables")] = True
    """Also make questions from the tables of list pages."""
    least_rows: AtLeast1 = LEAST_ROWS
    """Minimum number of rows in a table."""
    table_rows: TableRows = "linked"
    """Rows of a table that --least-share counts. linked: only rows that link to a page, as in the released code; all:
    all rows, as in the paper.
    """
    key_rule: KeyRule = "any"
    """Columns from which the key of a table is chosen, if --key-columns does not name it. any: every column; not-last:
    every column but the last, as in the released code.
    """
    key_columns: File | None = None
    """JSON Lines file with the key column of each table, {title, table, column}. By default, a rule chooses the column.
    """
    redirect_aliases: bool = False
    """For an answer from a table, add the titles of redirects to its page to the aliases."""
    seed: Name = "qampari"
    """Seed for all random draws."""
    answer_filter: Annotated[AnswerFilter, FLAT] = AnswerFilter()
    sizes: Annotated[SampleSizes, FLAT] = SampleSizes()
    mixed: Mixed = "train"
    """What to do with intersections of a training relation and a test relation. train: use them for training; drop:
    skip them.
    """
    with_meta: bool = False
    """Add a field meta to the records, with relations, items, probabilities and positions."""
    is_released_case: Annotated[bool, Parameter("--released-case")] = False
    """Write proofs as in the published files, where each sentence is in lower case except for its first letter."""
    is_released_wording: Annotated[bool, Parameter("--released-wording")] = False
    """Write compositions as in the published questions, whose verbs do not agree: persons that works for X."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    memory: JoinMemory = MEMORY_MB

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if options exclude each other."""
        check_options(self)
        if self.most_subjects < self.answer_filter.least:
            raise SetupError(
                f"--most-subjects is {self.most_subjects}, less than the minimum number of answers; give "
                f"at least {self.answer_filter.least}."
            )
        if self.relations is not None and self.relation_list != "corrected":
            raise SetupError(
                f"--relation-list {self.relation_list} chooses one of the package's lists, and --relations "
                f"{self.relations} replaces that list; leave one of the two out. To leave a relation out of your "
                f"file, set enabled = false."
            )
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        left_out = PLACES | {"model", "worker_memory_bytes", "memory", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}
