"""What all steps of AmbER sets share, and the rows that go from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.files import join
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.runtime.regroup import MOST_GROUPS
from mapping.amber.records import Collection
from mapping.qampari.facts.names import ItemPages
from pipelines.options.amber import AmberJobOptions
from pipelines.stores.storage import storage_for

Numbers = npt.NDArray[np.int64]
SET_BITS = 32
"""Of a set's number: its place in its group."""
_BUCKET_PAGES = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """What all steps share.

    Attributes:
        options: what is made.
        collections: with labels of their properties.
        kb: folder of the knowledge source, from the root.
        kb_sha256: of its manifest.
        site: database name of its wiki, which sitelinks go by.
        lang: language of its texts.
        pages: paths of its pages files in it, in order.
        page_rows: pages in each of them.
        staging: folder for what lies between the steps.
        output: folder of the release that is made.
        n_groups: groups of rows that are worked on together.
    """

    options: AmberJobOptions
    collections: tuple[Collection, ...]
    kb: str
    kb_sha256: str
    site: str
    lang: str
    pages: tuple[str, ...]
    page_rows: tuple[int, ...]
    staging: str
    output: str
    n_groups: int

    def folder(self, *names: str) -> str:
        """Gives a folder of a step."""
        return join(self.staging, *names)

    def item_pages(self) -> ItemPages:
        """Opens the pages that items have, once a process."""
        return _item_pages(self.kb, self.kb_sha256)


@lru_cache(maxsize=1)
def _item_pages(kb: str, sha256: str) -> ItemPages:
    return ItemPages(kb, PAGES_RELEASE.read(kb, storage_for(kb)), storage_for(kb))


def groups_by_text(batch: pa.RecordBatch, column: str, n_groups: int) -> Numbers:
    """Gives the groups of rows by a column of texts."""
    return np.array([crc32(text.encode()) % n_groups for text in batch[column].to_pylist()], np.int64)


def groups_of_names(batch: pa.RecordBatch, n_groups: int) -> Numbers:
    """Gives the groups of rows of NAMES."""
    groups: Numbers = (batch["first"].to_numpy() & 0xFFFF_FFFF) % n_groups
    return groups


def groups_of_sets(batch: pa.RecordBatch) -> Numbers:
    """Gives the groups that sets were numbered in."""
    groups: Numbers = batch["set"].to_numpy() >> SET_BITS
    return groups


def buckets_of_pages(batch: pa.RecordBatch, n_pages: int) -> Numbers:
    """Gives the groups of pages that are read together."""
    buckets: Numbers = batch["position"].to_numpy() * min(n_pages // _BUCKET_PAGES + 1, MOST_GROUPS) // n_pages
    return buckets


def _numbers(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in names]


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string(), nullable=False) for name in names]


KEYED = pa.schema([*_texts("key"), *_numbers("number", "page_id")])
"""Views of a page, or the item of one; keys are ``#`` and page id, or a title that the release does not know."""
VIEWED = pa.schema(_numbers("item", "page_id", "views"))
"""Items with a sitelink and views; page -1 for none."""
TERMS = pa.schema([*_numbers("item"), *_texts("text")])
FACTS = pa.schema(
    [*_numbers("item", "property", "kind"), pa.field("value", pa.string()), pa.field("unit", pa.string())]
)
"""Statements; kinds 0: neither item nor quantity, 1: item, 2: quantity."""
ENTITIES = pa.schema(
    [
        *_numbers("item", "page_id", "views"),
        pa.field("aliases", pa.list_(pa.string()), nullable=False),
        pa.field("facts", pa.list_(pa.struct(list(FACTS)[1:])), nullable=False),
    ]
)
NAMES = pa.schema([*_numbers("first", "second", "order", "item", "members"), *_texts("name")])
"""Names of entities. First and second: hash of the name; order: views, negative; members: a bit a collection."""
NAME_ORDER = ("first", "second", "order", "item")
USED = pa.schema([*_numbers("property", "kind"), *_texts("value"), *_numbers("n")])
"""How many entities have a value."""
MEMBERS = pa.schema([*_numbers("collection", "set"), *_texts("name"), *_numbers("item", "is_head")])
OUTCOMES = pa.schema([*_numbers("collection"), *_texts("name", "outcome"), *_numbers("n_bearers", "n_members")])
"""What became of names; the outcome is empty for one that goes on."""
WANTED = pa.schema(
    [*_numbers("position", "set", "item", "collection"), *_texts("name"), pa.field("entity", pa.binary())]
)
"""Entities of sets, on their way to their pages and back."""
WANTED_ORDER, SET_ORDER = ("position", "set", "item"), ("set", "item")
SIGNALS = pa.schema(
    [
        *_numbers("set", "item", "property", "is_found"),
        pa.field("bleu", pa.float64()),
        *(pa.field(name, pa.int64()) for name in ("start_element", "start_char", "end_element", "end_char")),
        *(pa.field(name, pa.string()) for name in ("text", "premise", "hypothesis")),
        *_numbers("core_start", "core_end"),
    ]
)
"""What the page says of a tuple beside naming a value."""
ANSWERS = pa.schema(
    [
        *_numbers("set", "item", "property"),
        *(pa.field(name, pa.float64()) for name in ("entailment", "neutral", "contradiction")),
    ]
)
SETS = pa.schema([*_numbers("collection"), *_texts("name"), pa.field("entities", pa.binary())])
TUPLES = pa.schema([*_numbers("collection"), *_texts("name", "amber_id"), pa.field("signals", pa.binary())])
