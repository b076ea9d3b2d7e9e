"""The laws of a corpus of passages, checked in its files: passages are built as such, every form says the same, and all
of it is what the pages give when they are cut again."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.intact import check_hashes
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest
from kbsource.release.verify import Checking
from mapping.passages.corpus import COUNTS, TABLE, line_path, read_page_texts, read_pages, read_passages
from mapping.passages.cut import CutOptions, PageText, Passage, passage_id
from mapping.passages.forms import KiltPages, LineForm, line_forms
from mapping.write.kind import source_of


@dataclass(slots=True)
class _Lines:
    form: LineForm
    file: str
    opened: BinaryIO
    n_lines: int = 0


def check_corpus(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every law of a corpus and gives the number of passages; None where its files do not allow it."""
    pages, lang = None, ""
    if (kb := checking.sources.get("kb")) is not None:
        with source_of(checking) as source:
            assert source is not None
            given, lang = source.manifest.tables["pages"], source.manifest.site.lang
        check_hashes(kb, given, checking.storage)
        pages = [join(kb, entry.file) for entry in given]
    return _CorpusChecks(checking, pages, lang).run()


class _CorpusChecks:
    """Checks of one corpus, whose files are what was written. Memory: a row group, and eight bytes a page.

    Args:
        checking: of the corpus.
        pages: paths of the files of pages that it was made from, in order; None cuts no page again.
        lang: language of them.
    """

    def __init__(self, checking: Checking[ListingManifest], pages: Sequence[str] | None, lang: str) -> None:
        self._checking, self._found, self._pages, self._lang = checking, checking.found, pages, lang
        self._path, self._storage = checking.path, checking.storage
        self._counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
        self._page_ids = array("q")
        self._broken: set[str] = set()

    def run(self) -> Mapping[str, int] | None:
        """Checks every law and gives the number of passages."""
        facts = self._checking.manifest.facts
        files = [entry.file for entry in self._checking.manifest.tables.get(TABLE, ())]
        try:
            options = CutOptions(*(facts["options"][name] for name in ("max_words", "split_long", "unit")))
            forms = line_forms(facts["options"]["formats"])
            claimed = {name: int(facts["counts"][name]) for name in COUNTS}
        except (KeyError, TypeError, ValueError, SetupError):
            self._found.add(MANIFEST, "manifest", "options and counts are not those of a corpus of passages")
            return None
        if not self._checking.has_files(self._needed(files, forms), exactly=True):
            return None
        cut = None if self._pages is None else options.cutter(self._lang)
        compared = [form for form in forms if self._pages is not None or not form.needs_pages]
        with ExitStack() as stack:
            joined = [self._open(form, 0, 1, stack) for form in compared if form.is_joined]
            for lines in joined:
                self._compare(lines, lines.form.head)
            for number, file in enumerate(files):
                with ExitStack() as inner:
                    own = [self._open(form, number, len(files), inner) for form in compared if not form.is_joined]
                    pages = "" if self._pages is None else self._pages[number]
                    wanted = None if cut is None else self._cut_again(pages, options, cut)
                    records = KiltPages(read_pages(pages, self._storage), pages)
                    self._check_table(file, wanted, records, options, own + joined)
                    self._close(own)
                self._checking.done(file)
            self._close(joined)
        self._check_counts(claimed)
        return {"passages": self._counts["passages"]}

    def _needed(self, files: Sequence[str], forms: Sequence[LineForm]) -> Iterator[str]:
        numbers = range(max(len(files) if self._pages is None else len(self._pages), 1))
        yield from (shard_path(TABLE, number, len(numbers)) for number in numbers)
        for form in forms:
            parts = range(1) if form.is_joined else numbers
            yield from (line_path(form, number, len(numbers)) for number in parts)

    def _open(self, form: LineForm, number: int, n_files: int, stack: ExitStack) -> _Lines:
        file = line_path(form, number, n_files)
        return _Lines(form, file, stack.enter_context(self._storage.open_read(join(self._path, file))))

    def _check_table(
        self,
        file: str,
        wanted: Iterator[Passage] | None,
        pages: KiltPages,
        options: CutOptions,
        forms: Sequence[_Lines],
    ) -> None:
        before: Passage | None = None
        for one in read_passages(join(self._path, file), self._storage):
            for fault in _faults(one, before, options):
                self._found.add(file, "passage_law", f"{one.passage_id}: {fault}")
            if before is None or before.page_id != one.page_id:
                self._page_ids.append(one.page_id)
            for lines in forms:
                if lines.file not in self._broken and (line := lines.form.line(one, pages)):
                    self._compare(lines, lines.form.numbered(lines.n_lines, line) if lines.form.numbered else line)
                    lines.n_lines += 1
            if wanted is not None and (given := next(wanted, None)) != one:
                cut = "nothing" if given is None else given.passage_id
                self._found.add(
                    file, "passage_differs", f"{one.passage_id}: the pages give {cut} with another text or place"
                )
            self._counts["passages"] += 1
            self._counts["words"] += one.n_words
            self._counts["long_passages"] += one.n_words > options.limit
            before = one
        for form_name in wanted or ():
            self._found.add(file, "passage_differs", f"{form_name.passage_id} of the pages is not there")

    def _cut_again(self, path: str, options: CutOptions, cut: Callable[[PageText], list[Passage]]) -> Iterator[Passage]:
        for page in read_page_texts(path, self._storage, options):
            passages = cut(page)
            self._counts["pages"] += 1
            self._counts["pages_without_text"] += not passages
            yield from passages

    def _compare(self, lines: _Lines, wanted: bytes) -> None:
        if lines.file in self._broken or lines.opened.read(len(wanted)) == wanted:
            return
        self._broken.add(lines.file)  # what follows has lost its place
        self._found.add(lines.file, "line_differs", f"instead of {wanted[:120].decode('utf-8', 'replace')}")

    def _close(self, forms: Sequence[_Lines]) -> None:
        for lines in forms:
            self._compare(lines, lines.form.tail)
            if lines.file not in self._broken and lines.opened.read(1):
                self._found.add(lines.file, "line_differs", "lines behind the last passage")
            self._checking.done(lines.file)

    def _check_counts(self, claimed: Mapping[str, int]) -> None:
        page_ids, times = np.unique(np.frombuffer(self._page_ids, np.int64), return_counts=True)
        if len(twice := page_ids[times > 1]):
            self._found.add(MANIFEST, "duplicate_page", f"page {twice[0]}", len(twice))
        counted = dict(self._counts)
        if self._pages is None:  # a page without passages is seen in the pages alone
            counted["pages"], counted["pages_without_text"] = claimed["pages"], claimed["pages"] - len(page_ids)
        for name in COUNTS:
            if counted[name] != claimed[name]:
                self._found.add(MANIFEST, "counts", f"{name}: {counted[name]} counted, {claimed[name]} written")


def _faults(passage: Passage, before: Passage | None, options: CutOptions) -> Iterator[str]:
    if before is not None and before.page_id != passage.page_id:
        before = None
    if passage.passage_id != passage_id(passage.page_id, passage.number):
        yield f"number {passage.number} of page {passage.page_id}"
    if passage.number != (0 if before is None else before.number + 1):
        yield "not behind the passage before it"
    if before is not None and before.title != passage.title:
        yield f"its page is {before.title!r} and {passage.title!r}"
    if not passage.spans or sum(end - start for _, start, end in passage.spans) + len(passage.spans) - 1 != len(
        passage.text
    ):
        yield "of another length than its spans"
    last = () if before is None else before.spans[-1:]
    if any(earlier[::2] > later[:2] for earlier, later in pairwise((*last, *passage.spans))):
        yield "its spans are out of order"
    if passage.n_words > options.limit and not options.may_be_longer(len(passage.spans)):
        yield f"{passage.n_words} words"
