"""Settings shared by all steps of QAMPARI, and the rows passed between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import get_type_hints

import pyarrow as pa

from mapping.qampari.classes import required
from mapping.qampari.evidence import CandidateSentence
from mapping.qampari.joins import JoinRules
from mapping.qampari.questions import QueryNumbers, Relations
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.page_texts import PagesPlan

FACT_BITS = 32
"""Bits of a fact's number for its position in its group."""
ANSWER_PAGE, ENTITY_PAGE, WORDS = 0, 1, 2
"""The three kinds of search: the first entity's page for the second entity, the second entity's page for the first
entity, and a page for words.
"""


_query_numbers = lru_cache(maxsize=1)(QueryNumbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class QampariPlan(PagesPlan):
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
    def rules(self) -> JoinRules:
        """Returns the options that the joins depend on."""
        options = self.options
        return JoinRules(options.answer_filter, options.most_subjects, options.composition_base == "all")

    @property
    def enabled(self) -> list[str]:
        """Returns the simple relations to ask about."""
        return [relation.property_id for relation in self.relations.simple.values() if relation.is_enabled]

    @property
    def composed(self) -> list[str]:
        """Returns the relations of values to ask about."""
        return [relation.property_id for relation in self.relations.composition.values() if relation.is_enabled]


ITEMS = pa.schema(required("item"))
WANTED = pa.schema(
    [
        *required("position", "fact"),
        *required("direction", of=pa.int8()),
        *required("names", of=pa.list_(pa.string())),
        pa.field("page_id", pa.int64()),
    ]
)
"""Search terms for pages; ``page_id`` is the target of links that count as a mention."""
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
TRIED = pa.schema([*FOUND, pa.field("hypothesis", pa.string())])
"""Sentences of facts that a model should judge."""
PROOFS = pa.schema(
    [*required("fact"), pa.field("hypothesis", pa.string()), pa.field("entailment", pa.float64()), *CANDIDATES]
)
