"""Which old page is which new page: joins of two releases' fingerprints in DuckDB, in bounded memory.

Every relation that is read has a total order, so the rows are the same with any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.runtime.sorted_runs import rebatched

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 1 << 16

# Ids of pages that have no partner yet.
_LEFT = """
create or replace table left_old as
    select page_id, title, qid from old_pages anti join pairs on page_id = old_id;
create or replace table left_new as
    select page_id, title, qid from new_pages anti join pairs on page_id = new_id;
"""
# Where a redirect that a page became, or came from, leads: by its id, else by its title.
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
_MATCH = (
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
    # Two pages may have one title: it stands for the page with the higher id.
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
"""Pages that are read: all whose text or title is another, and those of one release alone."""
PAGE_ROWS = """
select pages.old_page_id, new_page_id, origin_page_id, old_title, new_title, old_qid, new_qid, old_revision_id,
    new_revision_id, old_chars, new_chars, outcome, matched_by,
    case
        when pages.old_page_id is null then null
        when new_page_id is null then 0.0
        when not text_changed or old_chars = 0 then 1.0
        else n_kept / old_chars
    end as kept,
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
from pieces left join elsewhere using (text_hash)
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
select coalesce(old.title, new.title) as title, old.id as old_redirect_id, new.id as new_redirect_id,
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
"""Titles of old pages that do not lead to what the page is now, with the title that does."""


class Joins:
    """The tables of a diff in the making, in a database of their own. A context.

    Args:
        folder: local, for what does not fit into memory.
        memory_mb: that the database takes at most, in MB (10^6 bytes).
        threads: that it uses.

    Raises:
        SetupError: DuckDB is not installed.
    """

    def __init__(self, folder: str, *, memory_mb: int, threads: int) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise SetupError(
                "kbsource diff needs DuckDB, which is not installed: pip install 'kbsource[diff]'."
            ) from error
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(
            os.path.join(folder, "joins.duckdb"),
            config={
                "memory_limit": f"{memory_mb}MB",
                "threads": threads,
                "temp_directory": os.path.join(folder, "duckdb"),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )

    def __enter__(self) -> Joins:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, name: str, path: str) -> None:
        """Names a Parquet file as a relation."""
        self._connection.read_parquet(path).create_view(name)

    def match(self) -> None:
        """Says of every page what it is in the other release: the relation ``pages``.

        Needs ``old_pages``, ``old_redirects``, ``new_pages`` and ``new_redirects``.
        """
        for statement in _MATCH:
            self._connection.execute(statement)

    def batches(self, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Gives the rows of an ordered query, in batches that depend on the rows alone."""
        reader = self._connection.sql(query).to_arrow_reader(_BATCH_ROWS)
        return rebatched((batch.cast(schema) for batch in reader), _BATCH_ROWS)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Gives the rows of a query that has few."""
        result = self._connection.execute(query)
        return iter(result.fetchone, None)
