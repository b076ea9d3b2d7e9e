"""Diffs as a kind of release: the result of comparing two releases of pages, and its invariants.

::

    page_changes/       the outcome of every page of either release
    section_changes/    the outcome of the sections of pages whose text changed
    span_changes/       new positions of the elements of pages that changed
    redirect_changes/   redirects that have another target, are new or gone
    title_map.tsv       old titles that no longer resolve to their page, for ``kbsource map --title-map``
    report.json, report.md
    manifest.json       written last
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.dump.rejects import TRUNCATED
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import shard_path
from kbsource.release.manifest import Count, SourceFacts, shape
from kbsource.release.measures import Measure, ToRow, ToRows, binned, literals, meanings_table
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.rows import Int32, Row

PAGE_OUTCOMES = {
    "unchanged": "same id, same title, same text",
    "changed": "same id and title, different text",
    "renamed": "same id, different title",
    "recreated": "the id is gone; a new page has the same item, or else the same title",
    "disambiguation": "became a disambiguation page; if several outcomes apply, the first is given, in the order "
    "disambiguation, recreated, renamed, changed, unchanged",
    "merged": "its id, or else its title, now belongs to a redirect that resolves to a page",
    "gone": "no page of the new release matches: the page was deleted, the build rejected it, or its title now "
    "resolves to nothing or to an unrelated page",
    "split": "a new page whose id, or else whose title, belonged to a redirect to another page",
    "added": "any other new page",
}
"""Outcomes of a page. With every outcome except ``unchanged``, the text of a page in both releases may have changed."""

SPAN_OUTCOMES = {
    "same": "the same text, in the same order on the page",
    "moved": "the same text, in another place on the page",
    "part": "the same text, which became part of a longer element, or part of which became a separate element",
    "edited": "a similar element, with at least half of its words",
    "other_page": "the same text, in another page that did not have it before",
    "gone": "none of these",
}
"""Outcomes of a segment of an element. With every outcome except the last there is a new segment. It has the same text
as the old one, except if the outcome is ``edited``.
"""

SECTION_OUTCOMES = {
    "same": "same headings, same texts",
    "changed": "same headings, different texts",
    "moved": "in a different order, or under different parent headings",
    "renamed": "a different heading, with at least half of its text",
    "gone": "none of these",
    "added": "a section of the new page that matches no section of the old page",
}
"""Outcomes of a section. The texts of a moved or renamed section may have changed too."""

REDIRECT_OUTCOMES = {
    "retargeted": "resolves to another page than its old target, or the page that this has become",
    "added": "the title did not exist",
    "gone": "the title no longer exists",
    "now_article": "the title now belongs to an article",
    "was_article": "the title belonged to an article",
}
"""Outcomes of a redirect."""


def _values(meanings: dict[str, str]) -> str:
    return " | ".join(meanings) + "; see docs/diff.md"


class PageChange(Row):
    """One row per page of the old release, sorted by page id; then one per other page of the new release, sorted by
    page id.
    """

    old_page_id: Annotated[int | None, "page of the old release, unique; null for new pages"]
    new_page_id: Annotated[
        int | None,
        "page of the new release that the old page has become or was merged into; unique except for merged",
    ]
    origin_page_id: Annotated[int | None, "for split: the old page to which the redirect pointed"]
    old_title: Annotated[str | None, "title of the old page"]
    new_title: Annotated[str | None, "title of the new page"]
    old_qid: Annotated[str | None, "item of the old page"]
    new_qid: Annotated[str | None, "item of the new page"]
    old_revision_id: Annotated[int | None, "revision of the old page"]
    new_revision_id: Annotated[int | None, "revision of the new page"]
    old_chars: Annotated[int | None, "code points in all elements but the title of the old page"]
    new_chars: Annotated[int | None, "code points in all elements but the title of the new page"]
    outcome: Annotated[str, _values(PAGE_OUTCOMES)]
    matched_by: Annotated[str | None, "page_id | qid | title | redirect; null for gone and added"]
    kept_share: Annotated[float | None, "share of old_chars that is also in the new page; null for new pages"]
    text_changed: Annotated[
        bool | None, "true if the texts of the elements after the title differ; null if either page is missing"
    ]
    title_changed: Annotated[bool | None, "true if the titles differ; null if either page is missing"]
    qid_moved: Annotated[bool, "true if the item of the old page now belongs to another page"]
    qid_page_id: Annotated[int | None, "page of the new release that has the item of the old page"]


class SectionChange(Row):
    """One row per section of pages that are in both releases with different texts, sorted by old page and section
    number. The added sections of a page come last.
    """

    old_page_id: Annotated[int, "page id in the old release"]
    old_number: Annotated[Int32 | None, "number of the section in the old page, 0 for the lead"]
    old_section: Annotated[tuple[str, ...] | None, "headings above the section, then its own heading, outermost first"]
    new_page_id: Annotated[int, "page id in the new release"]
    new_number: Annotated[Int32 | None, "number of the section in the new page"]
    new_section: Annotated[tuple[str, ...] | None, "headings of the section in the new page"]
    outcome: Annotated[str, _values(SECTION_OUTCOMES)]
    kept_share: Annotated[float | None, "share of the old section that is also in the new one; null for added"]


class SpanChange(Row):
    """One row per segment of an element, for elements of old pages that were changed, gone or merged, and for titles
    that changed; sorted by page, element and start. All other elements have the same position in the new page.
    """

    old_page_id: Annotated[int, "page of the old release"]
    old_element: Annotated[Int32, "index of the element; its segments cover it in order"]
    old_start: Annotated[Int32, "first code point of the segment"]
    old_end: Annotated[Int32, "end of the span, one past its last code point"]
    new_page_id: Annotated[int | None, "page of the new release; null for gone"]
    new_element: Annotated[Int32 | None, "element of that page"]
    new_start: Annotated[Int32 | None, "first code point of the new segment"]
    new_end: Annotated[Int32 | None, "end of the span, one past its last code point"]
    outcome: Annotated[str, _values(SPAN_OUTCOMES)]
    score: Annotated[float | None, "similarity by words, 1.0 for the same text; null for gone"]


class RedirectChange(Row):
    """One row per redirect that has another target, is new or is gone, sorted by title in code-point order."""

    title: Annotated[str, "title of the redirect; unique"]
    old_redirect_id: Annotated[int | None, "page id of the redirect in the old release"]
    new_redirect_id: Annotated[int | None, "page id of the redirect in the new release"]
    old_target_page_id: Annotated[int | None, "page to which it resolved in the old release"]
    new_target_page_id: Annotated[int | None, "page to which it resolves in the new release"]
    outcome: Annotated[str, _values(REDIRECT_OUTCOMES)]


_LIMITS = ("limit_pages", "only_titles")
"""Options of a build that leave out pages."""


def side_facts(manifest: PagesManifest) -> dict[str, Any]:
    """Returns the facts about one of the two releases for the diff's manifest: its identity, and the pages that it
    lacks because of its dump or its options.
    """
    given = {name: manifest.options[name] for name in _LIMITS if manifest.options.get(name)}
    return {**manifest.facts(), "rejected": dict(sorted(manifest.totals.rejected.items())), "limits": given}


def doubts(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields warnings from the facts in a diff's manifest: reasons why pages may appear to be gone or added although
    they are not.
    """
    for side, taken_for in (("new", "gone or merged"), ("old", "added or split")):
        facts = values.get(side) or {}
        snapshot = f"{facts.get('wiki')} of {facts.get('dump_date') or 'unknown date'}"
        name = f"The {'newer' if side == 'new' else 'older'} release, {snapshot},"
        rejected = dict(facts.get("rejected") or {})
        if rejected.pop(TRUNCATED, 0):
            yield f"{name} was made from a truncated dump: the missing pages count as {taken_for}."
        if n_lost := sum(rejected.values()):
            pages = "1 record was rejected" if n_lost == 1 else f"{n_lost:,} records were rejected"
            yield f"{name} lacks pages: {pages}, and their pages count as {taken_for}."
        if limits := facts.get("limits"):
            said = ", ".join(f"{option}={value}" for option, value in limits.items())
            yield f"{name} was limited ({said}): pages that were left out count as {taken_for}."


TABLES: dict[str, pa.Schema] = {
    "page_changes": schema_of(PageChange),
    "section_changes": schema_of(SectionChange),
    "span_changes": schema_of(SpanChange),
    "redirect_changes": schema_of(RedirectChange),
}
"""Every table of a diff, by folder name."""


REPORT, TEXT_REPORT, TITLE_MAP_FILE = "report.json", "report.md", "title_map.tsv"
OUTCOMES_OF = dict(zip(TABLES, (PAGE_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES, REDIRECT_OUTCOMES), strict=True))
_PAGES, _SPANS = (shard_path(table, 0, 1) for table in ("page_changes", "span_changes"))
_SEGMENT = "format('page {}, element {}, [{}, {})', old_page_id, old_element, old_start, old_end)"
_ROW = "'pages ' || coalesce(old_page_id::varchar, 'none') || ' and ' || coalesce(new_page_id::varchar, 'none')"


_KEPT = ("none", "< 25 %", "25–50 %", "50–75 %", "75–100 %", "all")
_SIZES = ("below 1,000", "1,000–5,000", "5,000–20,000", "20,000 and more")
_WORST = _TOPICS = 20
_OLD_TEXT = """count(*) as pages, count_if(outcome = 'gone') as gone, count_if(text_changed) as "text changed",
    sum(old_chars * kept_share) / nullif(sum(old_chars), 0) as "share kept\""""


def _became(table: str) -> str:
    """Returns a query for the number of rows with each outcome in a table."""
    counts = f"(select outcome as name, count(*) as n from {table} group by all)"
    return f"""select name as outcome, coalesce(n, 0) as number, number / nullif(sum(number) over (), 0) as share,
            meaning, place as _place
        from {meanings_table(OUTCOMES_OF[table])} left join {counts} using (name) order by place"""


def _outcomes(table: str, caption: str, section: str, about: str = "") -> Measure:
    return Measure(
        f"{caption} by outcome",
        _became(table),
        section=section,
        about=about,
        links={"outcome": ToRows(table, {"outcome": "outcome"})},
        needs=(table,),
    )


_OF_PAGES, _BY_SIZE, _BY_KIND = "Outcomes of pages", "By size", "By kind of page"
MEASURES = (
    Measure(
        "Pages of the older release",
        """select count(old_page_id) as "pages of the older release",
            coalesce(sum(old_chars * kept_share), 0) / nullif(sum(old_chars), 0) as "of their text is kept",
            count_if(text_changed) as "pages whose text changed",
            count_if(qid_moved) as "items that another page has now",
            'true' as _true from page_changes""",
        section=_OF_PAGES,
        form="facts",
        shares=("of their text is kept",),
        links={
            "pages whose text changed": ToRows("page_changes", {"text_changed": "_true"}),
            "items that another page has now": ToRows("page_changes", {"qid_moved": "_true"}),
        },
        needs=("page_changes",),
    ),
    Measure(
        "Number of pages by outcome",
        f"""select replace(outcome, '_', ' ') as outcome, number as pages from ({_became("page_changes")})
        order by _place""",
        section=_OF_PAGES,
        chart="bars",
        about="Every page is counted once.",
        needs=("page_changes",),
    ),
    Measure(
        "Pages of the older release by the share of their text that is kept",
        f"""select name as "text kept", coalesce(n, 0) as pages
        from {literals("bins", ("place", "name"), enumerate(_KEPT))} left join (
            select {binned("kept_share", (1e-9, 0.25, 0.5, 0.75, 1), 0)} as place, count(*) as n from page_changes
            where old_page_id is not null group by all
        ) using (place) order by place""",
        section=_OF_PAGES,
        chart="columns",
        about="In an edited paragraph, the words that are in both versions count as kept.",
        needs=("page_changes",),
    ),
    _outcomes("page_changes", "Pages", _OF_PAGES),
    Measure(
        "Pages that lost the most text",
        f"""select coalesce(new_title, old_title) as page, old_page_id::varchar as id, outcome, old_chars as characters,
            new_chars as now, kept_share as kept, _file_number, _row
        from page_changes where kept_share < 1 and outcome <> 'merged'
        order by old_chars * (1 - kept_share) desc, old_page_id limit {_WORST}""",
        section=_OF_PAGES,
        shares=("kept",),
        links={"page": ToRow("page_changes")},
        needs=("page_changes",),
    ),
    _outcomes(
        "section_changes",
        "Sections",
        "Sections and segments",
        "Only pages that are in both releases and whose text changed are counted.",
    ),
    _outcomes("span_changes", "Segments of paragraphs, headings and items", "Sections and segments"),
    _outcomes("redirect_changes", "Redirects", "Redirects"),
    Measure(
        "Text kept by size of the older page",
        f"""select name as characters, {_OLD_TEXT} from page_changes
        join {literals("sizes", ("place", "name"), enumerate(_SIZES))}
            on place = {binned("old_chars", (1_000, 5_000, 20_000), 0)}
        where old_page_id is not null group by place, name order by place""",
        section=_BY_SIZE,
        page="measures",
        needs=("page_changes",),
    ),
    Measure(
        f"Text kept by first infobox, the {_TOPICS} most frequent ones",
        f"""select coalesce(name, 'none') as infobox, {_OLD_TEXT} from page_changes join (
            select page_id, infoboxes[1].name as name from "old.pages"
        ) on page_id = old_page_id group by name order by pages desc, infobox limit {_TOPICS}""",
        section=_BY_KIND,
        page="measures",
        needs=("page_changes", "old.pages"),
        if_missing="Open the older release too, to see the text kept by kind of page.",
    ),
)
"""All measures of a diff."""


def _texts(side: str) -> str:
    """Returns a query for the pages of a release: id, title, a hash of the texts after the title, and their code
    points.
    """
    return f"""(select page_id, title, hash([element.text for element in elements[2:]]) as texts,
        coalesce(list_sum([length(element.text) for element in elements[2:]]), 0)::bigint as chars from {side}.pages)"""


def _elements(side: str) -> str:
    return f"""(select page_id, unnest([element.text for element in elements]) as text,
        generate_subscripts(elements, 1) - 1 as number from {side}.pages)"""


INVARIANTS = (
    Invariant(
        "invalid_change",
        "the columns of a row contradict each other, or a row is out of order",
        f"""case when outcome not in {(*PAGE_OUTCOMES,)}
            or (old_page_id is not null) = (outcome in ('added', 'split'))
            or (new_page_id is not null) = (outcome = 'gone')
            or (origin_page_id is not null) <> (outcome = 'split')
            or (kept_share is not null) <> (old_page_id is not null) or kept_share not between 0 and 1
            or (text_changed is null) <> (outcome in ('added', 'split', 'gone'))
            or (title_changed is null) <> (outcome in ('added', 'split', 'gone'))
            or (outcome in ('unchanged', 'changed', 'renamed') and (
                matched_by is distinct from 'page_id' or old_page_id <> new_page_id
                or title_changed <> (outcome = 'renamed')
                or (outcome <> 'renamed' and text_changed <> (outcome = 'changed'))))
            then [{_ROW} || ': ' || outcome || ', which the other columns contradict'] end""",
        table="page_changes",
    ),
    Invariant(
        "invalid_change",
        "",
        f"""select _file, {_ROW} || ': out of order, or duplicated' from (
            select *, (old_page_id is null, coalesce(old_page_id, 0), coalesce(new_page_id, 0)) as place,
                lag(place) over (order by _file, _row) as before from page_changes
        ) where place <= before""",
    ),
    *(
        Invariant(
            "invalid_change", "", f"case when {is_broken} then ['page ' || {name} || ': ' || outcome] end", table=table
        )
        for table, name, is_broken in (
            (
                "section_changes",
                "old_page_id",
                f"outcome not in {(*SECTION_OUTCOMES,)} or kept_share not between 0 and 1",
            ),
            ("span_changes", "old_page_id", f"outcome not in {(*SPAN_OUTCOMES,)}"),
            ("redirect_changes", "title", f"outcome not in {(*REDIRECT_OUTCOMES,)}"),
        )
    ),
    *(
        Invariant(
            "page_row_count",
            "a page of a compared release does not have exactly one row",
            f"""select '{_PAGES}', '{side} page ' || {side}_page_id || ' has two rows' from page_changes
            where {side}_page_id is not null and ('{side}' = 'old' or outcome <> 'merged')
            group by {side}_page_id having count(*) > 1""",
        )
        for side in ("old", "new")
    ),
    *(
        Invariant(
            "page_row_count",
            "",
            f"""select '{_PAGES}', '{side} page ' || coalesce(page_id, named) from {side}.pages full join (
                select distinct {side}_page_id as named from page_changes
                where {side}_page_id is not null and ('{side}' = 'old' or outcome <> 'merged')
            ) on page_id = named where page_id is null or named is null""",
            needs=("page_changes", side),
        )
        for side in ("old", "new")
    ),
    Invariant(
        "change_differs",
        "a row does not match the pages that it compares",
        f"""select '{_PAGES}', 'page ' || old_page_id from page_changes
        join {_texts("old")} as old on old.page_id = old_page_id
        join {_texts("new")} as new on new.page_id = new_page_id
        where (title_changed, text_changed, old_chars, new_chars)
            is distinct from (old.title <> new.title, old.texts <> new.texts, old.chars, new.chars)""",
        needs=("old", "new"),
    ),
    Invariant(
        "invalid_segment",
        "the segments of an element do not cover it in order, or point nowhere",
        f"case when (new_page_id is null) <> (outcome = 'gone') or old_start > old_end then [{_SEGMENT}] end",
        table="span_changes",
    ),
    Invariant(
        "invalid_segment",
        "",
        f"""select _file, {_SEGMENT} from (
            select *, lag(old_page_id) over placed as page, lag(old_element) over placed as element,
                lag(old_end) over placed as place from span_changes window placed as (order by _file, _row)
        ) where old_start <> case when old_page_id = page and old_element = element then place else 0 end
            or (old_page_id = page and old_element < element) or old_page_id < page""",
    ),
    Invariant(
        "invalid_segment",
        "",
        """select span_changes._file, 'page ' || old_page_id || case when page.outcome is null then ' has no row'
            else ' is unchanged, but has segments' end
        from span_changes left join (select old_page_id, outcome from page_changes where old_page_id is not null)
            as page using (old_page_id)
        where coalesce(page.outcome, 'unchanged') = 'unchanged'""",
        needs=("page_changes",),
    ),
    Invariant(
        "invalid_segment",
        "",
        f"""select distinct '{_SPANS}', 'page ' || old_page_id || ': segments do not cover its elements' from (
            select old_page_id, number, length(text) as size from page_changes
            join {_elements("old")} as old on page_id = old_page_id
            where text_changed or outcome = 'gone' or (title_changed and number = 0)
        ) full join (
            select old_page_id, old_element as number, max(old_end) as covered from span_changes
            semi join old.pages on page_id = old_page_id group by all
        ) using (old_page_id, number) where size is distinct from covered""",
        needs=("page_changes", "span_changes", "old"),
    ),
    Invariant(
        "segment_differs",
        "the text of a segment is not at its stated position",
        f"""select _file, {_SEGMENT} || case when new.text is null then ': the new page has no such position' else
            ': ' || substring(old.text, old_start + 1, least(old_end - old_start, 80)) || ' is not there' end
        from (from span_changes where new_page_id is not null) as span
        join {_elements("old")} as old on old.page_id = old_page_id and old.number = old_element
        left join {_elements("new")} as new on new.page_id = new_page_id and new.number = new_element
        where new.text is null or not (0 <= new_start and new_start <= new_end and new_end <= length(new.text))
            or (outcome <> 'edited' and substring(new.text, new_start + 1, new_end - new_start)
                <> substring(old.text, old_start + 1, old_end - old_start))""",
        needs=("old", "new"),
    ),
)


class _Side(SourceFacts, total=False):
    """Facts about one of the two releases in a diff's manifest."""

    rejected: dict[str, Count]
    limits: dict[str, Any]


RELEASE_DIFF = ListingKind(
    name="diff of releases",
    format="kbsource-diff-2",
    made_by="kbsource diff",
    card=CardText(
        title="What changed between two snapshots of Wikipedia",
        summary="The outcome of every page, section and piece of text of an older release of pages in a newer one.",
        main="page_changes",
        holds=("wikipedia",),
        tags=("wikipedia", "revision-history"),
        limits=(
            (
                "Pages are matched by id, item, title and redirects; text is compared element by element, without "
                "tables and links."
            ),
        ),
    ),
    queries=(
        (
            "outcomes of pages",
            "select outcome, count(*) as pages from page_changes group by all order by pages desc",
        ),
        (
            "renamed pages",
            "select old_title, new_title, kept_share from page_changes where title_changed order by old_title limit 20",
        ),
    ),
    shown_by=(("page_changes", "old_qid"), ("page_changes", "new_qid"), ("redirect_changes", "title")),
    tables=TABLES,
    required=tuple(TABLES),
    files=(REPORT, TEXT_REPORT, TITLE_MAP_FILE),
    facts=shape("facts", old=_Side, new=_Side, counts=dict[str, dict[str, Count]]),
    counts=(
        *(
            TableCount(f"counts.{table}", f"select outcome, count(*) from {table} group by all", names=outcomes)
            for table, outcomes in OUTCOMES_OF.items()
        ),
        TableCount(None, "select count(old_page_id) from page_changes", summary="pages"),
    ),
    invariants=INVARIANTS,
    made_from={side: MadeFrom(PAGES_RELEASE, side, ("pages",)) for side in ("old", "new")},
    remarks=lambda manifest: [*doubts(manifest.facts)],
    measures=MEASURES,
)
