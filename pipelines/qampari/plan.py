"""What all steps of QAMPARI share, and the rows that go from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.files import join
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.runtime.regroup import MOST_GROUPS
from mapping.qampari.facts.evidence import Candidate
from mapping.qampari.facts.names import ItemPages
from mapping.qampari.questions import FAMILY_BITS, QueryNumbers
from mapping.qampari.relations import Relations
from mapping.qampari.schema import QUERIES, QUESTIONS
from pipelines.options.qampari import QampariOptions
from pipelines.stores.storage import storage_for

_BUCKET_PAGES = 256
ORDER_BUCKETS = 256
"""The order of the table of queries goes by remainders of this."""
FACT_BITS = 32
"""Of a fact's number: its place in its group."""
ANSWER_PAGE, ENTITY_PAGE, WORDS = 0, 1, 2
"""Which page is searched: the first thing's for the second, the second thing's for the first; or a page for words."""

Groups = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What all steps share.

    Attributes:
        options: what is made.
        kb: folder of the release, from the root.
        kb_sha256: of its manifest.
        pages: paths of its pages files in it, in order.
        page_rows: pages in each of them.
        relations: hold the words.
        key_columns: title of a list page, number of a table, and its key column, where these are given.
        staging: folder for what lies between the steps.
        output: folder of the release that is made.
        n_groups: groups of rows that are worked on together, see ``groups_for``.
    """

    options: QampariOptions
    kb: str
    kb_sha256: str
    pages: tuple[str, ...]
    page_rows: tuple[int, ...]
    relations: Relations
    key_columns: tuple[tuple[str, int, int], ...]
    staging: str
    output: str
    n_groups: int

    @property
    def n_pages(self) -> int:
        """Pages of the release."""
        return sum(self.page_rows)

    @property
    def n_buckets(self) -> int:
        """Groups of pages that are searched together."""
        return min(max(self.n_pages // _BUCKET_PAGES, 1), MOST_GROUPS)

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

    def folder(self, *names: str) -> str:
        """Gives a folder of a step."""
        return join(self.staging, *names)

    def item_pages(self) -> ItemPages:
        """Opens the pages that items have, once a process."""
        return _item_pages(self.kb, self.kb_sha256)


@lru_cache(maxsize=1)
def _query_numbers(labels: tuple[str, ...]) -> QueryNumbers:
    return QueryNumbers(labels)


@lru_cache(maxsize=1)
def _item_pages(kb: str, sha256: str) -> ItemPages:
    return ItemPages(kb, PAGES_RELEASE.read(kb, storage_for(kb)), storage_for(kb))


def groups_of_queries(queries: Groups, n_groups: int) -> Groups:
    """Gives the groups of simple queries by their numbers: the remainder of the value, as those of its facts."""
    groups: Groups = (queries >> FAMILY_BITS) % n_groups
    return groups


def groups_by_query(batch: pa.RecordBatch, column: str, n_groups: int) -> Groups:
    """Gives the groups of rows by a column of numbers of simple queries."""
    return groups_of_queries(batch[column].to_numpy(), n_groups)


def _numbers(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in names]


def _lists(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.list_(pa.int64()), nullable=False) for name in names]


ITEMS = pa.schema(_numbers("item"))
FACT_NUMBERS = pa.schema(_numbers("fact"))
FACT_ROWS = pa.schema([*_numbers("fact"), pa.field("hypothesis", pa.string())])
WANTED = pa.schema(
    [
        *_numbers("position", "fact"),
        pa.field("direction", pa.int8(), nullable=False),
        pa.field("names", pa.list_(pa.string()), nullable=False),
        pa.field("page_id", pa.int64()),
    ]
)
"""What pages are searched for; ``page_id``: where links lead that stand for a name."""
WANTED_ORDER = ("position", "fact", "direction")
_CANDIDATE_TYPES: dict[str, pa.DataType] = {"text": pa.string(), "found": pa.string(), "is_link": pa.bool_()}
_CANDIDATES = [pa.field(name, _CANDIDATE_TYPES.get(name, pa.int64()), nullable=False) for name in Candidate._fields]
CANDIDATES = [*_CANDIDATES, pa.field("title", pa.string(), nullable=False)]
FOUND = pa.schema(
    [
        *_numbers("fact"),
        pa.field("direction", pa.int8(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        *CANDIDATES,
    ]
)
"""Sentences that may say a fact."""
FOUND_ORDER = ("fact", "direction", "number")
TRIED = pa.schema([*FOUND, pa.field("hypothesis", pa.string())])
"""Those of facts that are worth a model's time."""
PROOFS = pa.schema(
    [*_numbers("fact"), pa.field("hypothesis", pa.string()), pa.field("entailment", pa.float64()), *CANDIDATES]
)
ORDER = ("order_kind", "order_first", "order_second")
"""Columns that rows of the release are ordered by."""
ORDERED_QUERIES = pa.schema([*_numbers(*ORDER), *QUERIES])
ORDERED_QUESTIONS = pa.schema([*_numbers(*ORDER), *QUESTIONS])
ORDERED_CANDIDATES = pa.schema(
    [
        *_numbers(*ORDER),
        pa.field("key", pa.string(), nullable=False),
        pa.field("subset", pa.string(), nullable=False),
        pa.field("property_ids", pa.list_(pa.string()), nullable=False),
    ]
)
"""Questions as they may be drawn."""
OF_QUESTIONS: dict[str, Any] = {
    "queries": ORDERED_QUERIES,
    "questions": ORDERED_QUESTIONS,
    "candidates": ORDERED_CANDIDATES,
}
"""Outputs of what settles queries."""
ROWS_AT_ONCE = {"queries": 256, "questions": 16, "candidates": 256}
"""So many rows are held of each file at the end."""
SORTED_BY = {"queries": len(ORDER)}
"""What becomes of queries is known in another order than that of the release."""
ASKED = pa.schema([*_numbers("query"), *_lists("subjects")])
STAGED = pa.schema([*_numbers("query"), *_lists("subjects", "facts"), *_numbers("n_with_page")])
KEPT = pa.schema([*STAGED.remove(3), pa.field("is_validated", pa.list_(pa.bool_()), nullable=False)])
