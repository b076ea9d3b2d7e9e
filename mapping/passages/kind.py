"""The kinds of release for passages. The invariants of a corpus: passages are well-formed, all formats have the same
content, and cutting the pages again produces the same corpus.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Annotated

from msgspec import Meta

from kbsource.columns import schema_of
from kbsource.files import join
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant, Remade
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import Count, ListingManifest, SourceFacts, counts_shape, shape
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.passages.corpus import TABLE, line_path, read_page_texts, read_pages, read_passages
from mapping.passages.cut import CutOptions, Passage
from mapping.passages.forms import FORMS, KiltPages, LineForm, line_forms

TABLES = {"passages": schema_of(Passage)}
"""All tables that only a corpus of passages has, by folder name."""
INVARIANTS = (
    Invariant(
        "invalid_passage",
        "a passage is malformed, or out of order",
        """[passage_id || ': ' || fault for fault in [
            case when passage_id <> page_id || '__' || number then format('number {} of page {}', number, page_id) end,
            case when (len(spans) = 0) = (len(cells) = 0) then 'must have either spans or cells' end,
            case when len(spans) > 0 and length(text) - list_sum([span.end_char - span.start_char for span in spans])
                not between len(spans) - 1 and (len(spans) - 1) * (select n from settings where name = 'separator')
                then 'its text and its spans differ in length' end,
            case when len([0 for span, place in spans if place > 1 and (span.element, span.start_char)
                < (spans[place - 1].element, spans[place - 1].end_char)]) > 0 then 'its spans are out of order' end,
            case when len([0 for cell, place in cells if cell.table <> cells[1].table or cell.passage_start_char < 0
                or cell.passage_start_char + cell.end_char - cell.start_char > length(text)
                or place > 1 and cell.passage_start_char < cells[place - 1].passage_start_char
                    + cells[place - 1].end_char - cells[place - 1].start_char
                ]) > 0 then 'its cells are out of order' end,
            case when n_words > (select n from settings where name = 'limit')
                and ((select n from settings where name = 'sentences may be longer') = 0 or len(spans) > 1)
                then n_words || ' words' end] if fault is not null]""",
        table=TABLE,
    ),
    Invariant(
        "invalid_passage",
        "",
        """select _file, passage_id || ': ' || fault from (
            select _file, passage_id, case
                when page_id is distinct from before[1]
                    then case when number <> 0 then 'the first passage of a page must have number 0' end
                when number <> before[2] + 1 then 'its number does not follow that of the previous passage'
                when title <> before[3] then format('its page has two titles, ''{}'' and ''{}''', before[3], title)
                when before[6] > first_table or before[6] is not null and first is not null
                    then 'its table is out of order'
                when (before[4], before[5]) > (first.element, first.start_char) then 'its spans are out of order'
            end as fault
            from (select *, spans[1] as first, cells[1].table as first_table,
                lag((page_id, number, title, spans[-1].element, spans[-1].end_char, cells[1].table))
                over (partition by _file order by _row) as before from passages)
        ) where fault is not null""",
    ),
    Invariant(
        "duplicate_page",
        "the passages of a page are not consecutive",
        """select null, 'page ' || page_id from (
            select page_id, lag(page_id) over (partition by _file order by _row) as before from passages
        ) where page_id is distinct from before group by page_id having count(*) > 1""",
    ),
    Invariant("passage_differs", "a passage does not match its page"),
    Invariant("line_differs", "a line of a file does not match its row in the table"),
    Invariant(
        "counts",
        "",
        f"""select '{MANIFEST}', format('counts.pages: {{}} counted, {{}} written', pages, n::bigint)
        from (select count(*) as pages from kb.pages), settings where name = 'pages' and n <> pages""",
        needs=("kb",),
    ),
)


def _options(manifest: ListingManifest) -> tuple[CutOptions, Sequence[LineForm]]:
    given = manifest.facts["options"]
    return CutOptions(*(given[name] for name in ("max_words", "split_long", "unit", "tables"))), line_forms(
        given["formats"]
    )


def _settings(manifest: ListingManifest) -> dict[str, int]:
    options, _ = _options(manifest)
    return {
        "limit": options.limit,
        "sentences may be longer": options.has_lists and not options.split_long,
        "separator": 2 if options.is_by_sentence else 1,
        "pages": int(manifest.facts["counts"]["pages"]),
    }


def check_corpus(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Recomputes the files of lines from the table and, if pages are given, the table. Returns None if files are
    missing.

    Memory: one row group.
    """
    path, kb = checking.path, checking.sources.get("kb")
    options, forms = _options(checking.manifest)
    files = [entry.file for entry in checking.manifest.tables.get(TABLE, ())]
    release = None if kb is None else PAGES_RELEASE.read(kb)
    pages = [] if kb is None or release is None else [join(kb, entry.file) for entry in release.tables["pages"]]
    numbers = range(max(len(pages or files), 1))
    tables = {shard_path(TABLE, number, len(numbers)) for number in numbers}
    lines = {
        line_path(form, number, len(numbers)) for form in forms for number in numbers[: 1 if form.is_joined else None]
    }
    if not checking.has_files(tables | lines, exactly=True):
        return None
    cut = None if release is None else options.cutter(release.site.lang)
    compared = [form for form in forms if pages or not form.needs_pages]
    with ExitStack() as joined:
        whole = [_Again(form, checking, joined, 0, 1) for form in compared if form.is_joined]
        for number, file in enumerate(files):
            with ExitStack() as own:
                parts = [_Again(form, checking, own, number, len(files)) for form in compared if not form.is_joined]
                page_file = pages[number] if pages else ""
                known = KiltPages(read_pages(page_file) if pages else (), page_file)
                stored = _written(read_passages(join(path, file)), [*parts, *whole], known)
                if cut is None:
                    deque(stored, maxlen=0)
                else:
                    wanted = chain.from_iterable(map(cut, read_page_texts(page_file, options)))
                    checking.same(file, "passage_differs", stored, wanted, lambda passage: passage.passage_id)
        for again in whole:
            again.end()
    return {}


class _Again:
    """A file of lines whose content is recomputed from the table."""

    def __init__(
        self, form: LineForm, checking: Checking[ListingManifest], stack: ExitStack, number: int, n_files: int
    ) -> None:
        self._form, self._n_lines = form, 0
        self._file: Remade = stack.enter_context(checking.remade(line_path(form, number, n_files), "line_differs"))
        self._file.write(form.head)

    def write(self, passage: Passage, pages: KiltPages) -> None:
        if line := self._form.line(passage, pages):
            numbered = self._form.numbered
            self._file.write(numbered(self._n_lines, line) if numbered else line, passage.passage_id)
            self._n_lines += 1

    def end(self) -> None:
        self._file.write(self._form.tail)


def _written(passages: Iterator[Passage], files: Sequence[_Again], pages: KiltPages) -> Iterator[Passage]:
    """Serialises passages as they are written to files."""
    for passage in passages:
        for file in files:
            file.write(passage, pages)
        yield passage


_Form = Annotated[str, Meta(pattern=f"^({'|'.join(map(re.escape, FORMS))})$")]
PASSAGES_CORPUS = ListingKind(
    name="corpus of passages",
    format="kbsource-passages-5",
    facts=shape(
        "facts",
        options=shape("options", max_words=Count, split_long=bool, unit=str, tables=bool, formats=list[_Form]),
        counts=counts_shape("pages"),
    ),
    made_by="kbsource passages",
    card=CardText(
        title="Passages of Wikipedia",
        summary="Pages of a release cut into passages, each with its position in the page.",
        main="passages",
        holds=("wikipedia",),
        tasks=("text-retrieval",),
        tags=("wikipedia", "retrieval"),
        limits=("Tables and infoboxes are not cut into passages.",),
    ),
    queries=(
        (
            "passages of a page",
            "select passage_id, section, text from passages where title = (select min(title) from passages) "
            "order by number",
        ),
        ("length of passages", "select n_words, count(*) as passages from passages group by all order by n_words"),
    ),
    made_from_pages=True,
    shown_by=(("passages", "passage_id"), ("passages", "page_id"), ("passages", "title")),
    tables=TABLES,
    required=tuple(TABLES),
    files=tuple(dict.fromkeys(form.folder for form in line_forms(FORMS))),
    counts=(
        TableCount("counts.passages", "select count(*) from passages", summary="passages"),
        TableCount("counts.words", "select sum(n_words) from passages"),
        TableCount(
            "counts.long_passages",
            "select count(*) from passages where n_words > (select n from settings where name = 'limit')",
        ),
        TableCount(
            "counts.pages_without_text",
            "select (select n from settings where name = 'pages') - count(distinct page_id) from passages",
        ),
    ),
    invariants=INVARIANTS,
    settings=_settings,
    check=check_corpus,
    made_from={"kb": MadeFrom(PAGES_RELEASE, "release", ("pages",))},
)

ENGINE = "tantivy"
PASSAGES_INDEX = ListingKind(
    name="index of passages",
    format="kbsource-index-3",
    facts=shape("facts", passages=SourceFacts, counts=counts_shape("passages")),
    made_by="kbsource search",
    card=CardText(
        title="Index of passages",
        summary="A BM25 index of passages for kbsource search, which also needs the passages.",
        holds=("wikipedia",),
        tasks=("text-retrieval",),
        tags=("wikipedia", "retrieval"),
        limits=("Only the version of the search engine that wrote the index can read it.",),
    ),
    tables={},
    files=(ENGINE,),
)

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
BEIR_DATASET = ListingKind(
    name="data set for BEIR",
    format="kbsource-beir-1",
    facts=shape("facts", passages=SourceFacts, alignment=SourceFacts),
    made_by="kbsource beir",
    card=CardText(
        title="Data set for BEIR",
        summary="Queries of an aligned benchmark, passages of Wikipedia, and which of these are relevant.",
        main="corpus",
        holds=("wikipedia", "dataset"),
        tasks=("text-retrieval",),
        tags=("wikipedia", "BEIR", "retrieval"),
        limits=("Passages without a judgement count as not relevant.",),
    ),
    tables={},
    files=(CORPUS, QUERIES, QRELS),
)
