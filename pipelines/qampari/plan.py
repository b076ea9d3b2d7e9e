"""What all steps of QAMPARI share, and the rows that go from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.rows import Columns, Row
from kbsource.runtime.regroup import ByNumber
from mapping.qampari.classes import required
from mapping.qampari.evidence import Candidate
from mapping.qampari.questions import FAMILY_BITS, QueryNumbers, Relations
from mapping.qampari.records import QueryRow, Question
from pipelines.options import QampariOptions
from pipelines.primitives.page_texts import PagesPlan

ORDER_BUCKETS = 256
"""The order of the table of queries goes by remainders of this."""
FACT_BITS = 32
"""Of a fact's number: its place in its group."""
ANSWER_PAGE, ENTITY_PAGE, WORDS = 0, 1, 2
"""Which page is searched: the first thing's for the second, the second thing's for the first; or a page for words."""


_query_numbers = lru_cache(maxsize=1)(QueryNumbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(PagesPlan):
    """What all steps share."""

    options: QampariOptions
    relations: Relations  # hold the words
    #: title of a list page, number of a table, and its key column, where these are given
    key_columns: tuple[tuple[str, int, int], ...]

    @property
    def numbers(self) -> QueryNumbers:
        """Numbers of simple queries."""
        return _query_numbers(self.relations.wanted_types)

    @property
    def enabled(self) -> list[str]:
        """Simple relations that are asked for."""
        return [relation.property_id for relation in self.relations.simple.values() if relation.is_enabled]

    @property
    def composed(self) -> list[str]:
        """Relations of values that are asked for."""
        return [relation.property_id for relation in self.relations.composition.values() if relation.is_enabled]


def by_query(column: str, n_groups: int) -> ByNumber:
    """The groups of rows by a column of numbers of simple queries: remainders of the value, as those of its facts."""
    return ByNumber(column, n_groups, FAMILY_BITS)


BY_FACT = ByNumber("fact", shift=FACT_BITS)
"""The groups that the facts of rows were numbered in."""


ITEMS = pa.schema(required("item"))
FACT_NUMBERS = pa.schema(required("fact"))
FACT_ROWS = pa.schema([*required("fact"), pa.field("hypothesis", pa.string())])
WANTED = pa.schema(
    [
        *required("position", "fact"),
        *required("direction", of=pa.int8()),
        *required("names", of=pa.list_(pa.string())),
        pa.field("page_id", pa.int64()),
    ]
)
"""What pages are searched for; ``page_id``: where links lead that stand for a name."""
WANTED_ORDER = ("position", "fact", "direction")
_TYPES = {int: pa.int64(), str: pa.string()}
CANDIDATES = [pa.field(name, _TYPES[type_], nullable=False) for name, type_ in get_type_hints(Candidate).items()]
FOUND = pa.schema(
    [
        *required("fact"),
        *required("direction", of=pa.int8()),
        *required("number", of=pa.int32()),
        *CANDIDATES,
    ]
)
"""Sentences that may say a fact."""
FOUND_ORDER = ("fact", "direction", "number")
TRIED = pa.schema([*FOUND, pa.field("hypothesis", pa.string())])
"""Those of facts that are worth a model's time."""
PROOFS = pa.schema(
    [*required("fact"), pa.field("hypothesis", pa.string()), pa.field("entailment", pa.float64()), *CANDIDATES]
)
ORDER = ("order_kind", "order_first", "order_second")
"""Columns that rows of the release are ordered by."""
ORDERED_QUERIES = pa.schema([*required(*ORDER), *schema_of(QueryRow)])


class OrderedQuestion(Row):
    """A question with what all are ordered by."""

    order_kind: int
    order_first: int
    order_second: int
    question: Annotated[Question, Columns()]


ORDERED_CANDIDATES = pa.schema(
    [
        *required(*ORDER),
        *required("key", of=pa.string()),
        *required("subset", of=pa.string()),
        *required("property_ids", of=pa.list_(pa.string())),
    ]
)
"""Questions as they may be drawn."""
OF_QUESTIONS: dict[str, Any] = {
    "queries": ORDERED_QUERIES,
    "questions": schema_of(OrderedQuestion),
    "candidates": ORDERED_CANDIDATES,
}
"""Outputs of what settles queries."""
ROWS_AT_ONCE = {"queries": 256, "questions": 16, "candidates": 256}
"""So many rows are held of each file at the end."""
SORTED_BY = {"queries": len(ORDER)}
"""What becomes of queries is known in another order than that of the release."""
ASKED = pa.schema([*required("query"), *required("subjects", of=pa.list_(pa.int64()))])
STAGED = pa.schema(
    [*required("query"), *required("subjects", "facts", of=pa.list_(pa.int64())), *required("n_with_page")]
)
SETTLED = pa.schema([*STAGED.remove(3), *required("is_validated", of=pa.list_(pa.bool_()))])
