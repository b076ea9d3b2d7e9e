"""Measures of a release of pages: outcomes of the pages read, contents of pages, and text that was lost."""

from __future__ import annotations

from typing import Any

from kbsource.errors import REASONS
from kbsource.release.measures import Measure, ToRows, literals
from kbsource.runtime.database import quoted

MARKUP = r"\{\{|\}\}|\[\[|\]\]|<ref|'''"
"""Pattern of wikitext markup, which should not occur in the text of pages."""
CONTEXT_CHARS = 40
SAMPLED = 1000
"""Number of pages searched for leaked markup."""
_WORST, _LEAKS = 20, 20

_COUNTS, _LOST, _TEMPLATES = "Counts", "What was not carried over", "Templates"
_REASONS = literals("reasons", ("reason", "meaning"), REASONS.items())
_FINDINGS = "json_each(json($manifest), '$.findings')"
_LOSSES = f"""losses as (
    select replace(key[6:], '_', ' ') as kind, value::bigint as n,
        row_number() over (order by n desc, key) as place, sum(n) over () as total
    from {_FINDINGS} where starts_with(key, 'loss_'))"""
_REJECTED = "coalesce(list_sum((counts->>'$.rejected.*')::bigint[]), 0)::bigint"
_TOTALS = "json($manifest)->'totals'"
_OVERVIEW = (
    Measure(
        "What was read",
        f"""select coalesce((counts->>'pages_read')::bigint, 0) as "pages read",
            coalesce((counts->>'articles')::bigint, 0) as articles,
            coalesce((counts->>'redirects')::bigint, 0) as redirects,
            coalesce((counts->>'other_namespaces')::bigint, 0) as "other namespaces", {_REJECTED} as rejected
        from (select {_TOTALS} as counts)""",
        section=_COUNTS,
        form="facts",
    ),
    Measure(
        "Pages by input file",
        f"""select file, pages_read as "pages read", articles, redirects, other_namespaces as "other namespaces",
            rejected, if(pages_read = articles + redirects + other_namespaces + rejected, 'yes', 'no') as adds_up
        from (
            select file, place, coalesce((counts->>'pages_read')::bigint, 0) as pages_read,
                coalesce((counts->>'articles')::bigint, 0) as articles,
                coalesce((counts->>'redirects')::bigint, 0) as redirects,
                coalesce((counts->>'other_namespaces')::bigint, 0) as other_namespaces, {_REJECTED} as rejected
            from (
                select key as file, value as counts, 0 as place from json_each(json($manifest), '$.counts')
                union all select 'all files', {_TOTALS}, 1)
        ) order by place, file""",
        section=_COUNTS,
        about="Pages read = articles + redirects + other namespaces + rejected: each page that was read became one of "
        "them.",
    ),
    Measure(
        "How articles were parsed",
        """select key as status, value::bigint as articles, articles / sum(articles) over () as share
        from json_each(json($manifest), '$.parse_statuses') order by articles desc, status""",
        section=_COUNTS,
        links={"status": ToRows("pages", {"parse_status": "status"})},
    ),
    Measure(
        "Rejected, by reason",
        f"""select key as reason, value::bigint as pages,
            pages / nullif(({_TOTALS}->>'pages_read')::bigint, 0) as "share of pages read", meaning
        from json_each(json($manifest), '$.totals.rejected') left join {_REASONS} on reason = key
        order by pages desc, key""",
        section=_COUNTS,
        links={"reason": ToRows("rejected", {"reason": "reason"})},
    ),
    Measure(
        "Content that was not carried over, by kind",
        f"with {_LOSSES} select kind, n as occurrences from losses where place <= {_WORST} order by place",
        section=_LOST,
        chart="bars",
        about="How often content of each kind is missing in the text of the articles. "
        f"At most {_WORST} kinds are shown.",
        if_empty="No losses were counted.",
    ),
    Measure(
        "Further kinds",
        f"""with {_LOSSES} select kind, n as occurrences, n / nullif(total, 0) as share from losses
        where place > {_WORST} order by place""",
        section=_LOST,
    ),
    Measure(
        "Uses of templates by outcome",
        """select outcome, count(*) as names, sum(uses)::bigint as uses,
            sum(uses) / sum(sum(uses)) over () as "share of uses",
            sum(lost_chars)::bigint as "visible characters lost" from templates group by outcome order by outcome""",
        section=_TEMPLATES,
        about="A use of a template is rendered: its value is in the text; dropped: it shows no text; or "
        "unknown: there is no rule for it, and what it would show is missing.",
        links={"outcome": ToRows("templates", {"outcome": "outcome"})},
        needs=("templates",),
    ),
    Measure(
        "Templates that lose the most visible characters",
        f"""select name as template, outcome, lost_chars as "characters lost", uses, pages,
            example_title || ': ' || example as example from templates where lost_chars > 0
        order by lost_chars desc, name, outcome limit {_WORST}""",
        section=_TEMPLATES,
        links={"template": ToRows("templates", {"name": "template"})},
        needs=("templates",),
    ),
    Measure(
        "Other counts",
        f"""select name, n as value from (
            select key as name, value::bigint as n, 0 as place from {_FINDINGS} where not starts_with(key, 'loss_')
            union all
            select 'Wikidata items also claimed by another page',
                coalesce(json_array_length(json($manifest)->'qid_conflicts'), 0)::bigint, 1
        ) order by place, name""",
        is_folded=True,
    ),
)

_HELD = ("elements", "characters", "anchors", "tables", "infoboxes")
_SIZES = {
    "sizes": """select
        len(elements) as elements, coalesce(list_sum([length(e.text) for e in elements]), 0)::bigint as characters,
        len(anchors) as anchors, len(tables) as tables, len(infoboxes) as infoboxes,
        len([1 for a in anchors if a.target_page_id is not null]) as resolved from pages"""
}
_PAGES_HOLD = "Contents of the pages"
_BIN = "case when bin <= 1 then bin::varchar when bin <= 10 then least || '–' || (2 * least - 1)"
_BIN += " when bin <= 20 then (least // 1024) || 'K–' || (least // 512) || 'K'"
_BIN += " else (least // 1048576) || 'M–' || (least // 524288) || 'M' end"


def _distribution(name: str) -> Measure:
    """Returns a measure with the number of pages in each bin of a count. The first bin is 0; each other bin begins at a
    power of two.
    """
    return Measure(
        f"{name.capitalize()} per page",
        f"""with counted as (
            select case when {name} = 0 then 0 else 1 + floor(log2({name}))::integer end as bin, count(*) as n
            from sizes group by all
        ), bins as (
            select bin, if(bin > 0, 1::bigint << (bin - 1), 0) as least
            from (select unnest(range((select coalesce(max(bin), 0) + 1 from counted))) as bin))
        select {_BIN} as "{name} per page", coalesce(n, 0) as articles from bins left join counted using (bin)
        order by bin""",
        section=_PAGES_HOLD,
        page="measures",
        chart="columns",
        about=f"Articles by their number of {name}. Each column covers a range twice as wide as the previous one.",
        needs=("pages",),
        derived=_SIZES,
    )


_DOMAIN = r"lower(regexp_extract(url, '^[A-Za-z]+://(?:[^/?#@]*@)?(?:www\.)?([^/?#:]+)', 1))"


def _cited(caption: str, value: str, rest: str, limit: str = "") -> Measure:
    counted = 'count(*) as "references", count(*) / sum(count(*)) over () as "share of them"'
    return Measure(
        caption,
        f"select {value}, {counted} {rest} group by 1 order by 2 desc, 1 {limit}",
        section="References",
        page="measures",
        needs=("refs",),
    )


_MARKUP = quoted(MARKUP)
_CELLS = """(select page, title, number, "table".header || flatten([[cell.text for cell in cells]
                for cells in "table".rows]) as texts from tables_of)"""
_FIELDS = "(select page, title, number, [field.text for field in infobox.fields] as texts from infoboxes_of)"
_LEAKY = {
    "sampled": f"""select page_id, row_number() over (order by _file_number, _row) as page from (
        select page_id, _file_number, _row from pages order by sha256(page_id::varchar), page_id limit {SAMPLED})""",
    "leaky": f"""with tables_of as (
            select page, title, unnest(tables) as "table", unnest(range(len(tables))) as number
            from pages join sampled using (page_id)
        ), infoboxes_of as (
            select page, title, unnest(infoboxes) as infobox, unnest(range(len(infoboxes))) as number
            from pages join sampled using (page_id)
        ), texts as (
            select page, title, 'element' as what, unnest(range(len(elements))) as number, 0 as place,
                unnest([item.kind for item in elements]) as kind, unnest([item.text for item in elements]) as text
            from pages join sampled using (page_id)
            union all select page, title, 'table', number, 0, 'caption', "table".caption from tables_of
            union all select page, title, 'table', number, 1 + unnest(range(len(texts))), 'cell', unnest(texts)
            from {_CELLS}
            union all select page, title, 'infobox', number, unnest(range(len(texts))), 'field', unnest(texts)
            from {_FIELDS})
        select *, regexp_extract_all(text, {_MARKUP}) as markup from texts where regexp_matches(text, {_MARKUP})""",
}
"""Subqueries: the sample (the pages whose ids have the lowest SHA-256), and those of its texts that contain markup."""
_AFTER = "list_sum([length(piece) for piece in pieces[:turn + 1]])"
_BEFORE = "coalesce(list_sum([length(piece) for piece in markup[:turn]]), 0)"
_LEAK_OPTIONS: dict[str, Any] = {"section": "Leaks", "page": "measures", "needs": ("pages",), "derived": _LEAKY}
_MEASURED = (
    Measure(
        _PAGES_HOLD,
        " union all ".join(
            f'select \'{name}\' as what, coalesce(sum({name}), 0)::bigint as "in all", avg({name}) as "per page", '
            f'coalesce(max({name}), 0) as "maximum of a page", {place} as _place from sizes'
            for place, name in enumerate(_HELD)
        )
        + " order by _place",
        section=_PAGES_HOLD,
        page="measures",
        needs=("pages",),
        derived=_SIZES,
    ),
    Measure(
        "Anchors",
        """select coalesce(sum(anchors), 0)::bigint as anchors,
            coalesce(sum(resolved), 0)::bigint as "lead to an article of the release",
            sum(resolved) / nullif(sum(anchors), 0) as "share of them" from sizes""",
        section=_PAGES_HOLD,
        page="measures",
        form="facts",
        needs=("pages",),
        derived=_SIZES,
    ),
    *map(_distribution, _HELD),
    Measure(
        "References",
        """with paragraphs as (
            select page_id, element.index as element from (select page_id, unnest(elements) as element from pages)
            where element.kind = 'paragraph'
        ), counts as (
            select (select count(*) from refs where source_number = 0) as refs, (select count(*) from pages) as pages,
                (select count(*) from refs where number is not null) as marked,
                (select count(*) from ref_uses where ref is not null) as uses,
                (select count(*) from ref_uses where cleanup_tag is not null) as cleanup_tags,
                (select count(distinct page_id) from refs) as noted, (select count(*) from paragraphs) as paragraphs,
                (select count(*) from paragraphs
                    anti join (from ref_uses where ref is not null) using (page_id, element))
                    as uncited)
        select refs as "references", refs / nullif(pages, 0) as "references per page",
            marked as "references with a mark", uses as "their marks", cleanup_tags as "cleanup tags",
            noted as "pages with references", paragraphs, uncited as "paragraphs without a reference",
            uncited / nullif(paragraphs, 0) as "share of them" from counts""",
        section="References",
        page="measures",
        form="facts",
        needs=("pages", "refs", "ref_uses"),
    ),
    _cited("References by form", "form", "from refs where source_number = 0"),
    _cited("What is cited, by kind", "coalesce(kind, 'not stated') as kind", "from refs"),
    _cited(
        "URLs by status",
        "coalesce(url_status, 'not stated') as status",
        "from refs where url is not null",
    ),
    _cited(
        f"The {_WORST} most cited domains",
        f"{_DOMAIN} as domain",
        "from refs where url is not null",
        f"limit {_WORST}",
    ),
    Measure(
        "Cleanup tags",
        """select cleanup_tag as "cleanup tag", count(*) as uses from ref_uses where cleanup_tag is not null
        group by 1 order by 2 desc, 1""",
        section="References",
        page="measures",
        needs=("refs", "ref_uses"),
    ),
    Measure(
        "Sample",
        """select format('Wikitext that is left in the text of {:,} articles, those whose page ids have the lowest '
            'sha256. What an article shows as written, such as examples of code, counts too.', count(*))
        from sampled""",
        form="text",
        **_LEAK_OPTIONS,
    ),
    Measure(
        "Articles with markup in the text",
        """select "in their", count(distinct page) as articles,
            articles / nullif((select count(*) from sampled), 0) as share
        from (values (true, 'elements'), (false, 'tables and infoboxes')) as parts(is_element, "in their")
            left join leaky on is_element = (what = 'element')
        group by is_element, "in their" order by is_element desc""",
        **_LEAK_OPTIONS,
    ),
    Measure(
        "Kinds of markup",
        """select markup, count(*) as places, places / sum(places) over () as share
        from (select unnest(markup) as markup from leaky) group by markup order by places desc, markup""",
        **_LEAK_OPTIONS,
    ),
    Measure(
        "First occurrences",
        f"""select title as article, format('{{}} {{}}, {{}}', what, number, kind) as place, replace(
            substring(text, greatest(start - {CONTEXT_CHARS}, 0) + 1,
                least(start, {CONTEXT_CHARS}) + length(markup[turn + 1]) + {CONTEXT_CHARS}), e'\\n', ' '
        ) as "text around it" from (
            select *, ({_AFTER} + {_BEFORE})::bigint as start from (
                select *, unnest(range(least(len(markup), {_LEAKS}))) as turn from (
                    select *, string_split_regex(text, {_MARKUP}) as pieces from leaky
                    order by page, what = 'infobox', what = 'table', number, place limit {_LEAKS}))
        ) order by page, what = 'infobox', what = 'table', number, place, turn limit {_LEAKS}""",
        links={"article": "title"},
        **_LEAK_OPTIONS,
    ),
)
MEASURES = (*_OVERVIEW, *_MEASURED)
"""All measures of a release of pages."""
