"""The laws of entity-linking data, checked in their files: the alias table is in order and its probabilities are those
of its counts, records are built as such, splits are disjoint, and with the pages records say what these say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from kbsource.files import join
from kbsource.identity import title_hash
from kbsource.release.intact import check_hashes
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import row_groups
from kbsource.release.verify import Checking
from mapping.entity_linking.kind import count_faults
from mapping.entity_linking.links import COLUMNS, PageLinks
from mapping.entity_linking.options import ContextOptions
from mapping.entity_linking.records import SPLITS, Context, cut_context, lines_path, record_id, record_line
from mapping.write.kind import source_of


class _Link(NamedTuple):
    """A row of the table ``links``."""

    record_id: str
    page_id: int
    element: int
    start_char: int
    end_char: int
    target_page_id: int


def check_linking(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every law and gives the number of records; None where the files do not allow it.

    Memory: a row group, and 16 bytes a record.
    """
    if count_faults(checking.manifest):
        return None
    needed = [*map(lines_path, SPLITS), shard_path("links", 0, 1)]
    if not checking.has_files(needed) or not checking.is_intact("aliases"):
        return None
    _check_aliases(checking)
    return _RecordChecks(checking).run()


def _check_aliases(checking: Checking[ListingManifest]) -> None:
    counts, before, n_mentions, n_links = checking.manifest.facts["counts"], "", 0, 0
    rows = (
        (entry.file, *row)
        for entry, batch in checking.batches("aliases")
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for mention, run in groupby(rows, key=itemgetter(1)):
        own = list(run)
        file, total = own[0][0], sum(row[4] for row in own)
        order = [(-row[4], row[2]) for row in own]
        if mention <= before or order != sorted(set(order)):
            checking.found.add(file, "alias_law", f"{mention!r} is out of order")
        if any(row[5] != row[4] / total for row in own) or len({row[6] for row in own}) > 1 or not 0 < own[0][6] <= 1:
            checking.found.add(file, "alias_law", f"{mention!r}: priors are not the shares of its {total} links")
        before, n_mentions, n_links = mention, n_mentions + 1, n_links + total
    for name, found in (("mentions", n_mentions), ("taken", n_links)):
        if counts[name] != found:
            checking.found.add(MANIFEST, "counts", f"{name}: {found} counted in aliases, {counts[name]} written")


class _RecordChecks:
    """Checks of the records of one release."""

    def __init__(self, checking: Checking[ListingManifest]) -> None:
        self._checking, self._found = checking, checking.found
        given = checking.manifest.facts["options"]
        self._options = ContextOptions(given["context_tokens"], given["context_chars"], given["max_tokens"])
        self._n: dict[str, int] = dict.fromkeys(SPLITS, 0)
        self._pages: dict[str, list[int]] = {split: [] for split in SPLITS}
        self._hashes: list[int] = []

    def run(self) -> Mapping[str, int]:
        """Checks every law and gives the number of records."""
        with ExitStack() as stack:
            lines = {
                split: stack.enter_context(
                    self._checking.storage.open_read(join(self._checking.path, lines_path(split)))
                )
                for split in SPLITS
            }
            records = self._records(lines)
            with source_of(self._checking) as source:
                if source is None:
                    for _ in records:
                        pass
                else:
                    kb, entries = self._checking.sources["kb"], source.manifest.tables["pages"]
                    check_hashes(kb, entries, self._checking.storage)
                    self._check_with([join(kb, entry.file) for entry in entries], records)
        hashes, times = np.unique(np.array(self._hashes, np.uint64), return_counts=True)
        if n_twice := int((times > 1).sum()):
            self._found.add(shard_path("links", 0, 1), "duplicate_record", f"{n_twice} of {len(hashes)}", n_twice)
        if both := set(self._pages["train"]) & set(self._pages["dev"]):
            self._found.add(shard_path("links", 0, 1), "split_law", f"page {min(both)}", len(both))
        return {"records": len(self._hashes)}

    def _records(self, lines: Mapping[str, BinaryIO]) -> Iterator[tuple[_Link, Context]]:
        """Gives links with what their records say, each compared with its line; those of which it cannot be are left
        out."""
        for _, batch in self._checking.batches("links"):
            for link in map(_Link._make, zip(*(column.to_pylist() for column in batch.columns), strict=True)):
                split = "dev" if link.record_id.startswith(record_id("dev", 0)[:-1]) else "train"
                line = lines[split].readline()
                context = self._checked(link, split, line)
                self._n[split] += 1
                if not self._pages[split] or self._pages[split][-1] != link.page_id:
                    self._pages[split].append(link.page_id)
                if context is not None:
                    self._hashes.append(title_hash("\x1f".join((*context, str(link.target_page_id)))))
                    yield link, context

    def _checked(self, link: _Link, split: str, line: bytes) -> Context | None:
        try:
            record = json.loads(line)
            context = Context(*(str(record["meta"][name]) for name in ("left_context", "mention", "right_context")))
            title = str(record["output"][0]["answer"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self._found.add(lines_path(split), "record_law", f"{link.record_id}: {error!r}")
            return None
        name = record_id(split, self._n[split])
        wanted = record_line(
            name, context, page_id=link.target_page_id, title=title, max_tokens=self._options.max_tokens
        )
        if line != wanted or name != link.record_id or not context.mention:
            self._found.add(lines_path(split), "record_law", f"{link.record_id}: not {wanted[:120].decode()}")
        return context

    def _check_with(self, pages: Sequence[str], records: Iterator[tuple[_Link, Context]]) -> None:
        waiting = next(records, None)
        for path in pages:
            for group in row_groups(path, self._checking.storage, COLUMNS):
                batch = group.combine_chunks().to_batches()[0]
                rows = {page_id: row for row, page_id in enumerate(batch["page_id"].to_pylist())}
                known: _Known | None = None
                while waiting is not None and waiting[0].page_id in rows:
                    known = known or _Known(PageLinks(batch))
                    self._compare(known, rows[waiting[0].page_id], *waiting)
                    waiting = next(records, None)
        while waiting is not None:
            self._differs(waiting[0], "its page is not there, or stands before that of another record")
            waiting = next(records, None)

    def _compare(self, known: _Known, row: int, link: _Link, context: Context) -> None:
        place = (row, *link[2:])
        if place not in known.links:
            self._differs(link, "the page has no such link")
            return
        text = known.texts[known.first_elements[row] + link.element].as_py()
        cut = cut_context(text, link.start_char, link.end_char, self._options)
        if cut != context:
            self._differs(link, f"the page says {cut.left[-40:]!r}, {cut.mention!r}, {cut.right[:40]!r}")

    def _differs(self, link: _Link, how: str) -> None:
        self._found.add(shard_path("links", 0, 1), "record_differs", f"{link.record_id}: {how}")


class _Known:
    """What some pages say: their links by row, element, start, end and target, and their texts."""

    def __init__(self, links: PageLinks) -> None:
        columns: Any = (links.pages, links.elements, links.start, links.end, links.targets)
        self.links = set(zip(*(column.tolist() for column in columns), strict=True))
        self.texts, self.first_elements = links.texts, links.first_elements
