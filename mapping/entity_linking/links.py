"""The links of some pages: which of them are taken, what they are sampled by, and what becomes of the chosen ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.runtime.chunks import rows_batch
from mapping.entity_linking.aliases import count_occurrences, mention_rows
from mapping.entity_linking.options import ContextOptions
from mapping.entity_linking.records import SKIPPED, SPLITS, ContextCutter, record_id, record_line
from mapping.entity_linking.sampling import Numbers, Sampling
from mapping.entity_linking.schema import KEYS, LINES, MENTIONS
from mapping.passages.cut import TITLE_KINDS
from mapping.sources.forms.mentions import END_TAG, START_TAG

_OF_LINKS = ("element", "start", "end", "target_title", "target_page_id")
COLUMNS = (
    "page_id",
    *(f"elements.list.element.{name}" for name in ("kind", "text")),
    *(f"anchors.list.element.{name}" for name in _OF_LINKS),
)
"""What of the table ``pages`` is needed."""

_TAKEN = len(SKIPPED)
_REASONS = tuple(SKIPPED)


class Targets:
    """The pages of a release that links may lead to, looked up in their sorted ids.

    Args:
        codes: of every page twice its id, and one more for a disambiguation page; ascending.
    """

    def __init__(self, codes: Numbers) -> None:
        self._codes = codes

    @staticmethod
    def code(page_ids: Numbers, is_disambiguation: Numbers) -> Numbers:
        """Gives the codes of pages."""
        return page_ids * 2 + is_disambiguation

    def find(self, page_ids: Numbers) -> tuple[Numbers, Numbers]:
        """Says of pages whether the release has them, and whether they are disambiguation pages."""
        if not len(self._codes):
            return (none := np.zeros(len(page_ids), np.bool_)), none
        found = self._codes[np.minimum(np.searchsorted(self._codes, page_ids * 2), len(self._codes) - 1)]
        is_there = found // 2 == page_ids
        return is_there, is_there & (found % 2 == 1)


class Scanned(NamedTuple):
    """What becomes of the links of some pages: rows of KEYS, of MENTIONS, and counts."""

    keys: pa.RecordBatch
    mentions: pa.RecordBatch
    counts: Counter[str]


class PageLinks:
    """The links of some pages, numbered in their order.

    Args:
        batch: ``COLUMNS`` of pages.
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

    def fates(self, targets: Targets) -> Numbers:
        """Gives of every link the number of the reason why it is not taken, as far as that hangs on no text."""
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
        """Gives the texts of all elements, null for titles and headings."""
        return pc.if_else(self._is_title, None, self.texts)


def _starts(lists: pa.ListArray) -> Numbers:
    offsets = lists.offsets.to_numpy()
    return offsets - offsets[0] if len(offsets) else np.zeros(1, np.int32)


def scan_links(
    batch: pa.RecordBatch, place: int, *, sampling: Sampling, targets: Targets, excluded: Numbers
) -> Scanned:
    """Gives what links are sampled and counted by.

    Args:
        batch: ``COLUMNS`` of pages.
        place: number of the batch in the order of the release.
        sampling: decides what their records say.
        targets: pages that links may lead to.
        excluded: ids of pages whose links are not taken.
    """
    is_out = np.isin(batch["page_id"].to_numpy(), excluded)
    counts = Counter(pages=len(batch), excluded_pages=int(is_out.sum()))
    links = PageLinks(batch)
    fates = links.fates(targets)
    is_in = ~is_out[links.pages]
    counts["links"] = int(is_in.sum())
    texts = links.running_texts().to_pylist()
    numbers = np.flatnonzero(is_in & (fates == _TAKEN))
    columns = (one[numbers].tolist() for one in (links.places, links.start, links.end, links.targets))
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
    return Scanned(
        pa.RecordBatch.from_arrays([pa.array(columns_of_key) for columns_of_key in columns_of_keys], schema=KEYS),
        rows_batch(_mention_rows(links, texts, own, mentions), MENTIONS),
        counts,
    )


def _mention_rows(
    links: PageLinks, texts: Sequence[str | None], taken: Numbers, mentions: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Gives rows of MENTIONS: those of the links that are taken, whose texts are given."""
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


def chosen_lines(
    batch: pa.RecordBatch, chosen: Mapping[str, Numbers], starts: Mapping[str, int], context: ContextOptions
) -> pa.RecordBatch:
    """Gives the records of chosen links, rows of LINES, in the order of the release.

    Args:
        batch: ``COLUMNS`` of pages.
        chosen: numbers of the links of each split, ascending.
        starts: number of the first of these records in its split.
        context: cuts their texts.
    """
    links = PageLinks(batch)
    named = [(number, split, starts[split] + n) for split in SPLITS for n, number in enumerate(chosen[split].tolist())]
    named.sort()
    own = np.array([number for number, _, _ in named], np.int64)
    texts, titles = (
        array.take(pa.array(at)).to_pylist() for array, at in ((links.texts, links.places[own]), (links.titles, own))
    )
    cut = ContextCutter(context).cut
    columns = (links.page_ids[links.pages], links.elements, links.start, links.end, links.targets)

    def rows() -> Iterator[tuple[Any, ...]]:
        places = zip(*(column[own].tolist() for column in columns), strict=True)
        for (_, split, n), text, title, place in zip(named, texts, titles, places, strict=True):
            _, _, start, end, target = place
            name = record_id(split, n)
            line = record_line(name, cut(text, start, end), page_id=target, title=title, max_tokens=context.max_tokens)
            yield name, *place, split == "dev", line

    return rows_batch(rows(), LINES)
