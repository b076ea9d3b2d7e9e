"""Checks the files of entity-linking data.

The alias table has to be in order, and its probabilities have to follow from its counts. Records have to be
well-formed, and splits have to be disjoint. If the pages are given, records have to agree with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from kbsource.columns import rows_of
from kbsource.files import join
from kbsource.identity import title_hash
from kbsource.release.invariants import Checking
from kbsource.release.layout import shard_path
from kbsource.release.manifest import ListingManifest
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import row_groups
from mapping.entity_linking.links import COLUMNS, PageLinks
from mapping.entity_linking.records import (
    SPLITS,
    ContextOptions,
    MentionContext,
    StoredLink,
    cut_context,
    lines_path,
    link_line,
    record_id,
)


def check_linking(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Compares records with their links and with the pages; None if the files are too damaged.

    Memory: one row group, and 8 bytes per record.
    """
    if not checking.has_files([*map(lines_path, SPLITS), shard_path("links", 0, 1)]):
        return None
    _RecordChecks(checking).run()
    return {}


class _RecordChecks:
    """The checks of the records of a release."""

    def __init__(self, checking: Checking[ListingManifest]) -> None:
        self._checking, self._found = checking, checking.found
        given = checking.manifest.facts["options"]
        self._options = ContextOptions(given["context_tokens"], given["context_chars"], given["max_tokens"])
        self._n: dict[str, int] = dict.fromkeys(SPLITS, 0)
        self._hashes: list[int] = []

    def run(self) -> None:
        """Checks every record."""
        with ExitStack() as stack:
            lines = {split: stack.enter_context(closing(self._checking.lines(lines_path(split)))) for split in SPLITS}
            records = self._records(lines)
            if (kb := self._checking.sources.get("kb")) is None:
                for _ in records:
                    pass
            else:
                pages = PAGES_RELEASE.read(kb).tables["pages"]
                self._check_with([join(kb, entry.file) for entry in pages], records)
        hashes, times = np.unique(np.array(self._hashes, np.uint64), return_counts=True)
        if n_twice := int((times > 1).sum()):
            self._found.add(shard_path("links", 0, 1), "duplicate_record", f"{n_twice} of {len(hashes)}", n_twice)

    def _records(self, lines: Mapping[str, Iterator[bytes]]) -> Iterator[tuple[StoredLink, MentionContext]]:
        """Reads links with the contexts from their records, and compares each link with its line. Records that are too
        damaged to be compared are skipped."""
        for _, batch in self._checking.batches("links"):
            for link in rows_of(batch, StoredLink):
                split = "dev" if link.record_id.startswith(record_id("dev", 0)[:-1]) else "train"
                line = next(lines[split], b"")
                context = self._checked(link, split, line)
                self._n[split] += 1
                if context is not None:
                    self._hashes.append(title_hash("\x1f".join((*context, str(link.target_page_id)))))
                    yield link, context

    def _checked(self, link: StoredLink, split: str, line: bytes) -> MentionContext | None:
        try:
            record = json.loads(line)
            context = MentionContext(
                *(str(record["meta"][name]) for name in ("left_context", "mention", "right_context"))
            )
            title = str(record["output"][0]["answer"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self._found.add(lines_path(split), "invalid_record", f"{link.record_id}: {error!r}")
            return None
        name = record_id(split, self._n[split])
        wanted = link_line(name, context, page_id=link.target_page_id, title=title, max_tokens=self._options.max_tokens)
        if line != wanted or name != link.record_id or not context.mention:
            self._found.add(lines_path(split), "invalid_record", f"{link.record_id}: not {wanted[:120].decode()}")
        return context

    def _check_with(self, pages: Sequence[str], records: Iterator[tuple[StoredLink, MentionContext]]) -> None:
        waiting = next(records, None)
        for path in pages:
            for group in row_groups(path, COLUMNS):
                batch = group.combine_chunks().to_batches()[0]
                rows = {page_id: row for row, page_id in enumerate(batch["page_id"].to_pylist())}
                known: _Known | None = None
                while waiting is not None and waiting[0].page_id in rows:
                    known = known or _Known(PageLinks(batch))
                    self._compare(known, rows[waiting[0].page_id], *waiting)
                    waiting = next(records, None)
        while waiting is not None:
            self._differs(waiting[0], "its page is missing, or out of order")
            waiting = next(records, None)

    def _compare(self, known: _Known, row: int, link: StoredLink, context: MentionContext) -> None:
        if (row, link.element, link.start_char, link.end_char, link.target_page_id) not in known.links:
            self._differs(link, "the page has no such link")
            return
        text = known.texts[known.first_elements[row] + link.element].as_py()
        cut = cut_context(text, link.start_char, link.end_char, self._options)
        if cut != context:
            self._differs(link, f"the page says {cut.left[-40:]!r}, {cut.mention!r}, {cut.right[:40]!r}")

    def _differs(self, link: StoredLink, how: str) -> None:
        self._found.add(shard_path("links", 0, 1), "record_differs", f"{link.record_id}: {how}")


class _Known:
    """Links of some pages by row, element, start, end and target, and the texts of these pages."""

    def __init__(self, links: PageLinks) -> None:
        columns: Any = (links.pages, links.elements, links.start, links.end, links.targets)
        self.links = set(zip(*(column.tolist() for column in columns), strict=True))
        self.texts, self.first_elements = links.texts, links.first_elements
