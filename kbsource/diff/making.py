"""Makes a diff of two releases of pages: the outcome of every page, section and span, and a report.

Pages are joined by queries over the hashes of their texts. The queries determine the order of all rows that are read,
so the rows are the same with any number of threads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.columns import rows_of, schema_of
from kbsource.diff.kind import (
    PAGE_OUTCOMES,
    REDIRECT_OUTCOMES,
    RELEASE_DIFF,
    REPORT,
    SECTION_OUTCOMES,
    SPAN_OUTCOMES,
    TABLES,
    TEXT_REPORT,
    TITLE_MAP_FILE,
    SectionChange,
    SpanChange,
    doubts,
    side_facts,
)
from kbsource.diff.matching import MovedSegment, gone_elements, match_elements, match_sections
from kbsource.diff.page_texts import ComparedPages
from kbsource.errors import SetupError, counted
from kbsource.files import is_local
from kbsource.release.manifest import canonical_json, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_hashes
from kbsource.release.sql import MEMORY_MB, add_release, connected, with_counts
from kbsource.release.writer import GROUP_ROWS, write_batches, write_lines
from kbsource.rows import Int32, Row
from kbsource.runtime.chunks import rows_batch
from kbsource.runtime.database import insert, ordered_batches

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


FINGERPRINTS = """
create table {side}_pages as
    select page_id, title, qid, revision_id, is_disambiguation, _file_number as shard, _row::integer as row,
        coalesce(list_sum(sizes), 0)::bigint as chars,
        md5_number(sizes::varchar || array_to_string(texts, '')) as text_hash
    from (
        select *, [element.text for element in elements[2:]] as texts, [length(text) for text in texts] as sizes
        from {side}.pages
    );
create table {side}_redirects as
    select coalesce(page_id, 0) as page_id, title, final_page_id from {side}.redirects;
"""
"""The file and row of each page of a release, the number of code points in its elements after the title, and the hash
of their texts.
"""
# Pages that are not yet matched.
_LEFT = """
create or replace table left_old as
    select page_id, title, qid from old_pages anti join pairs on page_id = old_id;
create or replace table left_new as
    select page_id, title, qid from new_pages anti join pairs on page_id = new_id;
"""
# For a page that became a redirect, or was one: the page to which the redirect resolves. The redirect is found by its
# id, else by its title.
_LED = """
create table {name} as
    select page.page_id, coalesce(by_id.final_page_id, by_title.final_page_id) as target
    from left_{side} page
    left join (
        select page_id, max(final_page_id) as final_page_id from {other}_redirects
        semi join {other}_pages target on target.page_id = final_page_id group by page_id
    ) by_id on by_id.page_id = page.page_id
    left join (
        select title, arg_max(final_page_id, page_id) as final_page_id from {other}_redirects
        semi join {other}_pages target on target.page_id = final_page_id group by title
    ) by_title on by_title.title = page.title
    where coalesce(by_id.final_page_id, by_title.final_page_id) is not null;
"""
MATCH = (
    """
create table pairs as
    select page_id as old_id, page_id as new_id, 'page_id' as matched_by from old_pages
    semi join new_pages using (page_id);
""",
    _LEFT,
    """
insert into pairs
    select old.page_id, new.page_id, 'qid' from left_old old join left_new new on old.qid = new.qid;
""",
    _LEFT,
    # If two pages have the same title, it belongs to the page with the higher id.
    """
insert into pairs
    select max(old.page_id), max(new.page_id), 'title' from left_old old join left_new new on old.title = new.title
    group by old.title;
""",
    _LEFT,
    _LED.format(name="merged", side="old", other="new"),
    _LED.format(name="split", side="new", other="old"),
    """
create table matched as
    select old_id, new_id, null::bigint as origin_id, matched_by from pairs
    union all select page_id, target, null, 'redirect' from merged
    union all select page_id, null, null, null from left_old anti join merged using (page_id)
    union all select null, page_id, target, 'redirect' from split
    union all select null, page_id, null, null from left_new anti join split using (page_id);
create table pages as
    select
        old_id as old_page_id, new_id as new_page_id, origin_id as origin_page_id,
        old.title as old_title, new.title as new_title, old.qid as old_qid, new.qid as new_qid,
        old.revision_id as old_revision_id, new.revision_id as new_revision_id,
        old.chars as old_chars, new.chars as new_chars,
        case
            when origin_id is not null then 'split'
            when old_id is null then 'added'
            when new_id is null then 'gone'
            when matched_by = 'redirect' then 'merged'
            when new.is_disambiguation and not old.is_disambiguation then 'disambiguation'
            when matched_by <> 'page_id' then 'recreated'
            when old.title <> new.title then 'renamed'
            when old.text_hash <> new.text_hash then 'changed'
            else 'unchanged'
        end as outcome,
        matched_by,
        old.text_hash <> new.text_hash as text_changed,
        old.title <> new.title as title_changed,
        holder.page_id is not null and holder.page_id is distinct from new_id as qid_moved,
        holder.page_id as qid_page_id,
        old.shard as old_shard, old.row as old_row, new.shard as new_shard, new.row as new_row
    from matched
    left join old_pages old on old.page_id = old_id
    left join new_pages new on new.page_id = new_id
    left join new_pages holder on holder.qid = old.qid;
""",
)
COMPARED = """
select old_page_id, new_page_id, outcome, text_changed, old_shard, old_row, new_shard, new_row from pages
where coalesce(text_changed or title_changed, true)
order by old_shard nulls last, old_row, new_shard, new_row
"""
"""Pages whose elements are compared: those whose text or title changed, and those in only one release."""
PAGE_ROWS = """
select pages.old_page_id, new_page_id, origin_page_id, old_title, new_title, old_qid, new_qid, old_revision_id,
    new_revision_id, old_chars, new_chars, outcome, matched_by,
    case
        when pages.old_page_id is null then null
        when new_page_id is null then 0.0
        when not text_changed or old_chars = 0 then 1.0
        else n_kept / old_chars
    end as kept_share,
    text_changed, title_changed, qid_moved, qid_page_id
from pages left join kept on kept.old_page_id = pages.old_page_id
order by pages.old_page_id nulls last, new_page_id
"""
SPAN_ROWS = """
with elsewhere as (
    select text_hash, min({'page_id': page_id, 'element': element}) as place from unclaimed group by text_hash
)
select old_page_id, old_element, old_start, old_end,
    coalesce(new_page_id, place.page_id) as new_page_id, coalesce(new_element, place.element) as new_element,
    coalesce(new_start, case when place is not null then 0 end)::integer as new_start,
    coalesce(new_end, case when place is not null then old_end - old_start end)::integer as new_end,
    case when place is not null then 'other_page' else outcome end as outcome,
    coalesce(score, case when place is not null then 1.0::double end) as score
from segments left join elsewhere using (text_hash)
order by old_page_id, old_element, old_start
"""
SECTION_ROWS = "select * from sections order by old_page_id, old_number nulls last, new_number"
REDIRECT_ROWS = """
with
    old as (
        select title, max(page_id) as id, arg_max_null(final_page_id, page_id) as target
        from old_redirects group by title
    ),
    new as (
        select title, max(page_id) as id, arg_max_null(final_page_id, page_id) as target
        from new_redirects group by title
    )
select coalesce(old.title, new.title) as title, nullif(old.id, 0) as old_redirect_id,
    nullif(new.id, 0) as new_redirect_id,
    old.target as old_target_page_id, new.target as new_target_page_id,
    case
        when old.id is not null and new.id is not null then 'retargeted'
        when old.id is not null then case when is_new.title is null then 'gone' else 'now_article' end
        else case when is_old.title is null then 'added' else 'was_article' end
    end as outcome
from old full join new using (title)
left join pages place on place.old_page_id = old.target
left join (select distinct title from old_pages) is_old on is_old.title = coalesce(old.title, new.title)
left join (select distinct title from new_pages) is_new on is_new.title = coalesce(old.title, new.title)
where old.id is null or new.id is null or new.target is distinct from place.new_page_id
    or (old.target is not null and new.target is null)
order by 1
"""
TITLE_MAP = """
select old_title, max_by(new_title, old_page_id)
from pages
left join (select title, max(page_id) as page_id from new_pages group by title) article on article.title = old_title
left join (
    select title, arg_max(final_page_id, page_id) as page_id from new_redirects group by title
) redirect on redirect.title = old_title
where title_changed and coalesce(article.page_id, redirect.page_id) is distinct from new_page_id
group by old_title order by old_title
"""
"""Titles of old pages that no longer resolve to the same page, each with the page's new title."""


MOST_CHANGED = 20
FLAGS = """
select count_if(text_changed), count_if(title_changed), count_if(qid_moved),
    coalesce(sum(pages.old_chars), 0)::bigint,
    coalesce(
        sum(case when new_page_id is null then 0 when text_changed then n_kept else pages.old_chars end), 0
    )::bigint
from pages left join kept on kept.old_page_id = pages.old_page_id where pages.old_page_id is not null
"""
"""The number of pages with a changed text, with a changed title, and with an item that now belongs to another page; the
number of code points in all old pages, and how many of them are kept.
"""
MOST_CHANGED_PAGES = f"""
select new_title, pages.old_page_id, outcome, pages.old_chars, new_chars, n_kept
from pages join kept on kept.old_page_id = pages.old_page_id
where outcome <> 'merged' and n_kept < pages.old_chars
order by pages.old_chars - n_kept desc, pages.old_page_id limit {MOST_CHANGED}
"""


LONG_CHARS = 80
"""Minimum length of a text, in code points, to search for it in other pages. Shorter texts may be equal by chance.
"""
_HASH = pa.field("text_hash", pa.binary())
STAGED: dict[str, pa.Schema] = {
    "segments": pa.schema([*schema_of(SpanChange), _HASH]),
    "unclaimed": pa.schema([("page_id", pa.int64()), ("element", pa.int32()), _HASH]),
    "kept": pa.schema([("old_page_id", pa.int64()), ("n_kept", pa.int64())]),
    "sections": schema_of(SectionChange),
}
"""Tables that ``compare_pages`` fills: segments of old elements (with the hash of the text if the element is gone and
long enough), new elements to which no segment points, the number of code points kept of each page, and sections.
"""


class PagePair(Row):
    """A pair of an old and a new page to compare: a row of ``COMPARED``."""

    old_page_id: int | None
    new_page_id: int | None
    outcome: str
    text_changed: bool | None
    old_shard: Int32 | None
    old_row: Int32 | None
    new_shard: Int32 | None
    new_row: Int32 | None


def compare_pages(
    db: DuckDBPyConnection,
    pages: Iterable[PagePair],
    old: ComparedPages,
    new: ComparedPages,
    on_page: Callable[[], None],
) -> None:
    """Compares pages and fills the tables of ``STAGED``. Memory: a few row groups of pages.

    Args:
        pages: in the order of the old release, followed by those that are only in the new one.
    """
    waiting: dict[str, list[tuple[Any, ...]]] = {table: [] for table in STAGED}

    def flush(least: int) -> None:
        for table, rows in waiting.items():
            if len(rows) >= least:
                insert(db, table, [rows_batch(rows, STAGED[table])], STAGED[table])
                rows.clear()

    for page in pages:
        for table, rows in _rows(page, old, new):
            waiting[table] += rows
        flush(GROUP_ROWS)
        on_page()
    flush(0)


def _rows(page: PagePair, old: ComparedPages, new: ComparedPages) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Iterates over the rows of a page, by table."""
    before = None if page.old_shard is None or page.old_row is None else old.at(page.old_shard, page.old_row)
    after = None if page.new_shard is None or page.new_row is None else new.at(page.new_shard, page.new_row)
    if before is None:
        assert after is not None
        yield "unclaimed", _long_texts(page.new_page_id, after.texts, range(1, len(after.texts)))
    elif after is None:
        yield "segments", _segment_rows(page, before.texts, gone_elements(before.texts))
    elif not page.text_changed:
        yield "segments", _segment_rows(page, before.texts, match_elements(before.texts[:1], after.texts[:1]).segments)
    else:
        segments, unclaimed = match_elements(before.texts, after.texts)
        yield "segments", _segment_rows(page, before.texts, segments)
        n_kept = sum(segment.n_kept for segment in segments if segment.old_element)
        yield "kept", [(page.old_page_id, n_kept)]
        if page.outcome != "merged":
            yield "unclaimed", _long_texts(page.new_page_id, after.texts, unclaimed)
            yield (
                "sections",
                (
                    (page.old_page_id, *change[:2], page.new_page_id, *change[2:])
                    for change in match_sections(before, after, segments)
                ),
            )


def _segment_rows(page: PagePair, texts: Sequence[str], segments: Iterable[MovedSegment]) -> Iterator[tuple[Any, ...]]:
    for segment in segments:
        number, start, end = segment[:3]
        is_sought = segment.new_element is None and number and end - start >= LONG_CHARS
        new_page_id = None if segment.new_element is None else page.new_page_id
        sought = text_hash(texts[number][start:end]) if is_sought else None
        yield (page.old_page_id, number, start, end, new_page_id, *segment[3:8], sought)


def text_hash(text: str) -> bytes:
    """Returns the hash of an element's text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _long_texts(page_id: int | None, texts: Sequence[str], elements: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    return ((page_id, number, text_hash(texts[number])) for number in elements if len(texts[number]) >= LONG_CHARS)


_READ = ("pages", "redirects")
_QUERIES = {
    "page_changes": (PAGE_ROWS, "Pages", PAGE_OUTCOMES),
    "section_changes": (SECTION_ROWS, "Sections of pages whose text changed", SECTION_OUTCOMES),
    "span_changes": (SPAN_ROWS, "Segments of the elements of changed pages", SPAN_OUTCOMES),
    "redirect_changes": (REDIRECT_ROWS, "Redirects", REDIRECT_OUTCOMES),
}
"""Query, heading in the report, and outcomes of each table."""


def make_diff(
    old: str,
    new: str,
    output: str,
    *,
    memory_mb: int = MEMORY_MB,
    threads: int = 2,
    reverse: bool = False,
    on_step: Callable[[str, int, int], None] = lambda unit, done, total: None,
) -> dict[str, Any]:
    """Compares two releases of the same wiki, writes the diff, and returns the JSON values of the report. ``memory_mb``
    and ``threads`` do not change the output.

    Memory: a few row groups, and ``memory_mb`` for the joins. The staging folder takes 100 bytes per page, and the
    positions of the texts of changed pages.

    Args:
        old, new: folders of the releases, whose files are hashed first.
        output: local folder, which is created.
        reverse: true if ``old`` has the later date.
        on_step: receives the unit of work, the number done, and the total.

    Raises:
        SetupError: a release has changed, the two are not of the same wiki, or the folder cannot be written.
    """
    if not is_local(output):
        raise SetupError(
            f"--output {output}: a diff is written to a local disk; name a local folder, and copy the "
            f"result afterwards."
        )
    with ComparedPages(old) as before, ComparedPages(new) as after:
        sides = {"old": (old, before), "new": (new, after)}
        facts = {name: side_facts(texts.manifest) for name, (_, texts) in sides.items()}
        if (first := facts["old"]["wiki"]) != (second := facts["new"]["wiki"]):
            raise SetupError(
                f"{old} is a release of {first} and {new} of {second}; name two releases of the same wiki."
            )
        days = [(facts[name]["dump_date"] or "").replace("-", "") for name in sides]
        if all(days) and days[0] != days[1] and (days[0] > days[1]) != reverse:
            order = "earlier" if reverse else "later"
            remedy = "leave --reverse out" if reverse else "name the older one first, or add --reverse"
            raise SetupError(f"{old} is of {days[0]}, which is {order} than {new} of {days[1]}; {remedy}.")
        with ReleaseFolder(os.path.abspath(output), kind=RELEASE_DIFF) as out:
            os.makedirs(out.staging, exist_ok=True)
            with connected(reads=[old, new], memory_mb=memory_mb, threads=threads, scratch=out.staging) as db:
                for number, (name, (path, texts)) in enumerate(sides.items()):
                    on_step("releases", number, len(sides))
                    for table in _READ:
                        check_hashes(path, texts.manifest.tables[table])
                    add_release(db, PAGES_RELEASE, path, schema=name, places=True)
                    db.execute(FINGERPRINTS.format(side=name))
                for statement in MATCH:
                    db.execute(statement)
                _compare(db, before, after, on_step)
                entries = [
                    write_batches(ordered_batches(db, query, TABLES[table]), table, TABLES[table], output=out.folder)
                    for table, (query, _, _) in _QUERIES.items()
                ]
                titles = iter(db.execute(TITLE_MAP).fetchone, None)
                moved = (f"{old_title}\t{new_title}\n".encode() for old_title, new_title in titles)
                entries.append(write_lines(moved, TITLE_MAP_FILE, output=out.folder))
                figures = _figures(db)
            facts = with_counts(RELEASE_DIFF, entries, facts, out.folder)
            report = {**facts, **figures}
            for file, content in ((REPORT, canonical_json(report)), (TEXT_REPORT, diff_report_text(report).encode())):
                entries.append(write_lines(content.splitlines(keepends=True), file, output=out.folder))
            commit(RELEASE_DIFF, RELEASE_DIFF.listing(entries, {**facts, "code": code_facts()}), out.folder)
    return report


def _compare(
    db: DuckDBPyConnection, before: ComparedPages, after: ComparedPages, on_step: Callable[[str, int, int], None]
) -> None:
    [(n_pages,)] = db.execute(f"select count(*) from ({COMPARED})").fetchall()
    n_done = 0

    def see() -> None:
        nonlocal n_done
        n_done += 1
        on_step("pages", n_done, n_pages)

    with db.cursor() as reading:  # a second cursor, because the first one writes
        rows = (
            page
            for batch in ordered_batches(reading, COMPARED, schema_of(PagePair))
            for page in rows_of(batch, PagePair)
        )
        compare_pages(db, rows, before, after, see)


def _figures(db: DuckDBPyConnection) -> dict[str, Any]:
    """Returns the figures of a report other than the counts by outcome."""
    [flags] = db.execute(FLAGS).fetchall()
    text_changed, title_changed, qid_moved, old_chars, kept_chars = (n or 0 for n in flags)  # null without pages
    names = ("title", "old_page_id", "outcome", "old_chars", "new_chars", "kept_chars")
    most_changed = [dict(zip(names, row, strict=True)) for row in db.execute(MOST_CHANGED_PAGES).fetchall()]
    return {
        "flags": {"text_changed": text_changed, "title_changed": title_changed, "qid_moved": qid_moved},
        "text": {
            "old_chars": old_chars,
            "kept_chars": kept_chars,
            "kept_share": unchanged_share(kept_chars, old_chars),
        },
        "most_changed": [
            {**row, "kept_share": unchanged_share(row["kept_chars"], row["old_chars"])} for row in most_changed
        ],
    }


def unchanged_share(part: int, whole: int) -> float:
    """Returns a share; 1.0 if the whole is 0."""
    return part / whole if whole else 1.0


def diff_report_text(report: Mapping[str, Any]) -> str:
    """Returns the report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    old, new = report["old"], report["new"]
    yield f"# {old['wiki']}: {old['dump_date'] or 'unknown date'} and {new['dump_date'] or 'unknown date'}"
    yield from (f"\n**{doubt}**" for doubt in doubts(report))
    text, flags = report["text"], report["flags"]
    kept = f"{text['kept_chars']:,} of {text['old_chars']:,} characters"
    yield f"\n{100 * text['kept_share']:.2f} % of the old text is kept: {kept}."
    yield f"Text changed on {counted(flags['text_changed'], 'pages')}, title on {flags['title_changed']:,};"
    yield f"items that now belong to other pages: {flags['qid_moved']:,}."
    for table, (_, head, meanings) in _QUERIES.items():
        yield f"\n## {head}\n\n| outcome | number | meaning |\n| --- | ---: | --- |"
        yield from (f"| {name} | {n:,} | {meanings[name]} |" for name, n in report["counts"][table].items())
    yield "\n## Pages that lost the most text\n\n| page | id | outcome | characters | now | kept |"
    yield "| --- | ---: | --- | ---: | ---: | ---: |"
    for page in report["most_changed"]:
        yield (
            f"| {_cell(page['title'])} | {page['old_page_id']} | {page['outcome']} | {page['old_chars']:,} | "
            f"{page['new_chars']:,} | {100 * page['kept_share']:.1f} % |"
        )


def _cell(text: str) -> str:
    r"""Returns text as a table cell of Markdown, with its markup escaped.

    >>> _cell("A|B *C* <D>")
    'A\\|B \\*C\\* \\<D\\>'
    """
    return "".join(f"\\{char}" if char in "\\|*_`[]<>&#~" else char for char in text)
