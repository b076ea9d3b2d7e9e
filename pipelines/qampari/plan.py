"""Settings shared by all steps of QAMPARI, and the rows passed between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.rows import Columns, Row
from kbsource.runtime.regroup import ByNumber
from mapping.qampari.classes import required
from mapping.qampari.evidence import CandidateSentence
from mapping.qampari.questions import FAMILY_BITS, QueryNumbers, Relations
from mapping.qampari.records import QueryRow, Question
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.page_texts import GroupedPagesPlan

ORDER_BUCKETS = 256
"""The table of queries is ordered by remainders modulo this number."""
FACT_BITS = 32
"""Bits of a fact's number for its position in its group."""
ANSWER_PAGE, ENTITY_PAGE, WORDS = 0, 1, 2
"""Which page is searched: the first entity's for the second, the second entity's for the first, or a page for words."""


_query_numbers = lru_cache(maxsize=1)(QueryNumbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class QampariPlan(GroupedPagesPlan):
    """Settings shared by all steps."""

    options: QampariOptions
    relations: Relations  # relations with their wording
    #: title of a list page, number of a table, and its key column, if these are given
    key_columns: tuple[tuple[str, int, int], ...]

    @property
    def numbers(self) -> QueryNumbers:
        """Returns the numbers of simple queries."""
        return _query_numbers(self.relations.wanted_types)

    @property
    def enabled(self) -> list[str]:
        """Returns the simple relations to ask about."""
        return [relation.property_id for relation in self.relations.simple.values() if relation.is_enabled]

    @property
    def composed(self) -> list[str]:
        """Returns the relations of values to ask about."""
        return [relation.property_id for relation in self.relations.composition.values() if relation.is_enabled]


def by_query(column: str, n_groups: int) -> ByNumber:
    """Returns the groups of rows by a column of simple-query numbers: remainders of the value, the same as for its
    facts."""
    return ByNumber(column, n_groups, FAMILY_BITS)


BY_FACT = ByNumber("fact", shift=FACT_BITS)
"""Returns the group of each row: the group that numbered its fact."""


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
"""Search terms for pages; ``page_id`` is the target of links that count as a mention."""
WANTED_ORDER = ("position", "fact", "direction")
_TYPES = {int: pa.int64(), str: pa.string()}
CANDIDATES = [
    pa.field(name, _TYPES[type_], nullable=False) for name, type_ in get_type_hints(CandidateSentence).items()
]
FOUND = pa.schema(
    [
        *required("fact"),
        *required("direction", of=pa.int8()),
        *required("number", of=pa.int32()),
        *CANDIDATES,
    ]
)
"""Sentences that may state a fact."""
FOUND_ORDER = ("fact", "direction", "number")
TRIED = pa.schema([*FOUND, pa.field("hypothesis", pa.string())])
"""Sentences of facts that a model should judge."""
PROOFS = pa.schema(
    [*required("fact"), pa.field("hypothesis", pa.string()), pa.field("entailment", pa.float64()), *CANDIDATES]
)
ORDER = ("order_kind", "order_first", "order_second")
"""Columns that rows of the release are sorted by."""
ORDERED_QUERIES = pa.schema([*required(*ORDER), *schema_of(QueryRow)])


class OrderedQuestion(Row):
    """A question with its sort key."""

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
"""Questions for the draw."""
OF_QUESTIONS: dict[str, Any] = {
    "queries": ORDERED_QUERIES,
    "questions": schema_of(OrderedQuestion),
    "candidates": ORDERED_CANDIDATES,
}
"""Outputs of functions that decide queries."""
ROWS_AT_ONCE = {"queries": 256, "questions": 16, "candidates": 256}
"""Rows of each file that are held in memory at the end."""
SORTED_BY = {"queries": len(ORDER)}
"""The outcomes of queries are determined in a different order from the release."""
ASKED = pa.schema([*required("query"), *required("subjects", of=pa.list_(pa.int64()))])
STAGED = pa.schema(
    [*required("query"), *required("subjects", "facts", of=pa.list_(pa.int64())), *required("n_with_page")]
)
SETTLED = pa.schema([*STAGED.remove(3), *required("is_validated", of=pa.list_(pa.bool_()))])
