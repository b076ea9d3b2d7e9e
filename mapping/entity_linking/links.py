"""Selects links of pages, chooses some of them as records, and writes these records.

Records are drawn by hashes of their content. No page has links in both splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import DataError, RecordError
from kbsource.identity import stable_sha256
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord
from kbsource.runtime.chunks import rows_batch
from mapping.entity_linking.aliases import count_occurrences, mention_rows
from mapping.entity_linking.records import (
    KEYS,
    LINES,
    MENTIONS,
    SKIPPED,
    ContextCutter,
    ContextOptions,
    MentionContext,
    link_line,
    record_id,
)
from mapping.passages.cut import TITLE_KINDS
from mapping.sources.mentions import END_TAG, START_TAG
from mapping.sources.raw_records import RawRecord, iter_lines

Numbers = npt.NDArray[Any]
N_BUCKETS = 1 << 10
"""Buckets that pages are divided into. The dev split has at least one bucket, about a thousandth of the pages."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Rules that select the links for the records of a split."""

    train: int  # number of training records to draw
    dev: int
    seed: str  # seed of the draw
    context: ContextOptions  # options by which contexts are cut

    def bucket(self, page_id: int) -> int:
        """Returns the bucket of a page: a hash below ``N_BUCKETS``. The first buckets belong to dev."""
        return int(stable_sha256(self.seed, "page", str(page_id))[:8], 16) * N_BUCKETS >> 32

    def key(self, context: MentionContext, target: int) -> bytes:
        """Returns the 16-byte key that decides the draw: the smallest keys are drawn first. Equal records have equal
        keys."""
        return sha256("\x1f".join((self.seed, *context, str(target))).encode()).digest()[:16]


DISTINCT_KEYS = """
create table distinct_keys as
    select hash, more_hash, place, link, bucket from keys
    qualify row_number() over (partition by hash, more_hash order by place, link) = 1
"""
"""The first link of each record, from all rows of KEYS in the table ``keys``."""
KEYS_OF_BUCKETS = "select bucket, count(*) as n from distinct_keys group by bucket order by bucket"
CHOSEN_LINKS = """
with
    split as (select hash, more_hash, place, link, bucket < {n_dev_buckets} as is_dev from distinct_keys),
    drawn as (
        (select place, link, is_dev from split where not is_dev order by hash, more_hash limit {train})
        union all (select place, link, is_dev from split where is_dev order by hash, more_hash limit {dev})
    )
select place, link, is_dev, row_number() over (partition by is_dev order by place, link) - 1 as number from drawn
order by place, link
"""
"""Rows of CHOSEN: of each split the links with the smallest hashes, numbered in the order of the release."""


def dev_buckets(of_buckets: Mapping[int, int], sampling: Sampling) -> int:
    """Returns the number of buckets of pages that belong to dev, which matches dev's share of all records.

    Args:
        of_buckets: number of distinct records by bucket.

    >>> dev_buckets({0: 1, 1: 1, 2: 3, 3: 1}, Sampling(2, 1, "kilt", ContextOptions()))
    2
    """
    total = np.zeros(N_BUCKETS, np.int64)
    for bucket, n_records in of_buckets.items():
        total[bucket] = n_records
    least = -(-sampling.dev * int(total.sum()) // max(1, sampling.train + sampling.dev))
    return int(np.searchsorted(np.append(0, np.cumsum(total)), least))


_OF_LINKS = ("element", "start", "end", "target_title", "target_page_id")
COLUMNS = (
    "page_id",
    *(f"elements.list.element.{name}" for name in ("kind", "text")),
    *(f"anchors.list.element.{name}" for name in _OF_LINKS),
)
"""Columns of the table ``pages`` that are read."""

_TAKEN = len(SKIPPED)
_REASONS = tuple(SKIPPED)


class Targets:
    """The pages of a release that links may point to, looked up in their sorted ids.

    Args:
        codes: for every page twice its id, plus one for a disambiguation page; ascending.
    """

    def __init__(self, codes: Numbers) -> None:
        self._codes = codes

    @staticmethod
    def code(page_ids: Numbers, is_disambiguation: Numbers) -> Numbers:
        """Returns the codes of pages."""
        return page_ids * 2 + is_disambiguation

    def find(self, page_ids: Numbers) -> tuple[Numbers, Numbers]:
        """Returns two masks over pages: whether the release has the page, and whether it is a disambiguation page."""
        if not len(self._codes):
            return (none := np.zeros(len(page_ids), np.bool_)), none
        found = self._codes[np.minimum(np.searchsorted(self._codes, page_ids * 2), len(self._codes) - 1)]
        is_there = found // 2 == page_ids
        return is_there, is_there & (found % 2 == 1)


class ScannedLinks(NamedTuple):
    """Result of scanning the links of some pages: rows of KEYS, rows of MENTIONS, and counts."""

    keys: pa.RecordBatch
    mentions: pa.RecordBatch
    counts: Counter[str]


class PageLinks:
    """The links of some pages, numbered in their order.

    Args:
        batch: ``COLUMNS`` of pages.

    Raises:
        DataError: a link is in an element that its page does not have.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        elements, anchors = batch["elements"], batch["anchors"]
        self.page_ids: Numbers = batch["page_id"].to_numpy()
        self.first_elements = _starts(elements)
        kinds, self.texts = (elements.flatten().field(name) for name in ("kind", "text"))
        self._is_title = pc.is_in(kinds, pa.array(sorted(TITLE_KINDS)))
        element, start, end, titles, targets = (anchors.flatten().field(name) for name in _OF_LINKS)
        self.pages = np.repeat(np.arange(len(batch)), np.diff(_starts(anchors)))
        self.elements, self.start, self.end = element.to_numpy(), start.to_numpy(), end.to_numpy()
        self.titles, self.targets = titles, pc.fill_null(targets, -1).to_numpy()
        self.places = self.first_elements[self.pages] + self.elements
        is_wrong = (self.elements < 0) | (self.elements >= np.diff(self.first_elements)[self.pages])
        if is_wrong.any():
            page_id = self.page_ids[self.pages[is_wrong][0]]
            raise DataError(
                f"page {page_id}: a link is in an element that the page does not have; download the release again."
            )

    def fates(self, targets: Targets) -> Numbers:
        """Returns, for each link, the number of the reason why it is not selected. Only reasons that do not depend on
        the text are tested here."""
        is_there, is_disambiguation = targets.find(self.targets)
        broken = (
            self._is_title.to_numpy(zero_copy_only=False)[self.places],
            self.targets < 0,
            ~is_there,
            is_disambiguation,
            self.targets == self.page_ids[self.pages],
        )
        return np.select(broken, range(len(broken)), _TAKEN)

    def running_texts(self) -> pa.Array:
        """Returns the texts of all elements, null for titles and headings."""
        return pc.if_else(self._is_title, None, self.texts)


def _starts(lists: pa.ListArray) -> Numbers:
    offsets = lists.offsets.to_numpy()
    return offsets - offsets[0] if len(offsets) else np.zeros(1, np.int32)


def scan_links(
    batch: pa.RecordBatch, place: int, *, sampling: Sampling, targets: Targets, excluded: Numbers
) -> ScannedLinks:
    """Returns the rows that are used to sample and count links.

    Args:
        batch: ``COLUMNS`` of pages.
        place: number of the batch in the order of the release.
        excluded: ids of pages whose links are not selected.
    """
    is_out = np.isin(batch["page_id"].to_numpy(), excluded)
    counts = Counter(pages=len(batch), excluded_pages=int(is_out.sum()))
    links = PageLinks(batch)
    fates = links.fates(targets)
    is_in = ~is_out[links.pages]
    counts["links"] = int(is_in.sum())
    texts = links.running_texts().to_pylist()
    numbers = np.flatnonzero(is_in & (fates == _TAKEN))
    columns = (column[numbers].tolist() for column in (links.places, links.start, links.end, links.targets))
    taken, keys, mentions, cut = [], [], [], ContextCutter(sampling.context).cut
    for number, element, start, end, target in zip(numbers.tolist(), *columns, strict=True):
        text = texts[element]
        context = cut(text, start, end)
        if not context.mention:
            fates[number] = _REASONS.index("empty_mention")
        elif "_ENT]" in text and (START_TAG in text or END_TAG in text):
            fates[number] = _REASONS.index("tag_in_text")
        else:
            taken.append(number)
            keys.append(sampling.key(context, target))
            mentions.append(context.mention)
    n_of = np.bincount(fates[is_in], minlength=_TAKEN).tolist()
    counts.update(dict(zip(SKIPPED, n_of, strict=False)))
    counts["taken"] = len(taken)
    buckets = np.array([sampling.bucket(page_id) for page_id in links.page_ids.tolist()], np.int16)
    hashes = (np.frombuffer(b"".join(keys), ">u8") >> np.uint64(1)).astype(np.int64).reshape(-1, 2)
    own = np.array(taken, np.int32)
    columns_of_keys = (hashes[:, 0], hashes[:, 1], np.full(len(own), place), own, buckets[links.pages[own]])
    return ScannedLinks(
        pa.RecordBatch.from_arrays([pa.array(columns_of_key) for columns_of_key in columns_of_keys], schema=KEYS),
        rows_batch(_mention_rows(links, texts, own, mentions), MENTIONS),
        counts,
    )


def _mention_rows(
    links: PageLinks, texts: Sequence[str | None], taken: Numbers, mentions: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Builds rows of ``MENTIONS`` for the selected links. ``texts`` are the texts of their elements."""
    pages, targets = links.pages[taken], links.targets[taken].tolist()
    titles = dict(zip(targets, links.titles.take(pa.array(taken)).to_pylist(), strict=True))
    occurrences: Counter[str] = Counter()
    edges = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(taken)]
    for start, end in pairwise(edges) if len(taken) else ():
        of_page = Counter(mentions[start:end])
        first, last = links.first_elements[pages[start] : pages[start] + 2]
        found = count_occurrences(filter(None, texts[first:last]), of_page)
        occurrences.update({mention: max(n_links, found[mention]) for mention, n_links in of_page.items()})
    return mention_rows(Counter(zip(mentions, targets, strict=True)), titles, occurrences)


def chosen_lines(batch: pa.RecordBatch, chosen: pa.RecordBatch, context: ContextOptions) -> pa.RecordBatch:
    """Returns the records of chosen links, as rows of LINES, in the order of the release.

    Args:
        batch: ``COLUMNS`` of pages.
        chosen: rows of CHOSEN for these pages, by link.
    """
    links = PageLinks(batch)
    own = chosen["link"].to_numpy()
    texts, titles = (
        array.take(pa.array(at)).to_pylist() for array, at in ((links.texts, links.places[own]), (links.titles, own))
    )
    cut = ContextCutter(context).cut
    columns = (links.page_ids[links.pages], links.elements, links.start, links.end, links.targets)

    def rows() -> Iterator[tuple[Any, ...]]:
        places = zip(*(column[own].tolist() for column in columns), strict=True)
        named = zip(chosen["is_dev"].to_pylist(), chosen["number"].to_pylist(), strict=True)
        for (is_dev, number), text, title, place in zip(named, texts, titles, places, strict=True):
            _, _, start, end, target = place
            name = record_id("dev" if is_dev else "train", number)
            line = link_line(name, cut(text, start, end), page_id=target, title=title, max_tokens=context.max_tokens)
            yield name, *place, is_dev, line

    return rows_batch(rows(), LINES)


class Exclusion(NamedTuple):
    """Content of an exclusion list: distinct page ids, ascending; the number of lines; and lines that name no page."""

    page_ids: tuple[int, ...] = ()
    n_lines: int = 0
    rejected: tuple[BadRecord, ...] = ()


def read_exclusion(path: str, source: KnowledgeSource) -> Exclusion:
    """Reads an exclusion list with one title or page id per line. Redirects are followed."""
    found = [_page(raw, source) for raw in iter_lines(path)]
    page_ids = sorted({row for row in found if isinstance(row, int)})
    return Exclusion(tuple(page_ids), len(found), tuple(row for row in found if isinstance(row, BadRecord)))


def _page(raw: RawRecord, source: KnowledgeSource) -> int | BadRecord:
    name = raw.data.decode("utf-8", "replace").strip()[:1_000]
    try:
        page_id = source.resolve(raw.text().strip()).page_id
        if page_id is None:
            raise RecordError("unknown_page", "the release has no such page")
        return page_id
    except RecordError as error:
        return BadRecord("exclude", name, error.reason, error.detail, raw.file, raw.offset)
