"""Describes a release of pages: counts and their invariant, contents of pages, text that was not extracted, and markup
left in texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from starlette.responses import RedirectResponse

from kbsource.errors import REASONS
from kbsource.release.pages.kind import PagesManifest, count_faults
from mapping.document import (
    Block,
    Chart,
    Charts,
    Facts,
    Link,
    Paragraph,
    Section,
    Table,
    bars,
    counts_table,
    flat_values,
    share,
    sql_table,
)
from mapping.inspector.about import about_sections
from mapping.inspector.frame import KindViews, Tab
from mapping.inspector.listing import Listing
from mapping.inspector.opened import Opened
from mapping.inspector.page_view import PAGE_VIEWS

MEASURES = ("elements", "characters", "anchors", "tables", "infoboxes")
MARKUP = re.compile(r"\{\{|\}\}|\[\[|\]\]|<ref|'''")
CONTEXT_CHARS = 40
SAMPLED = 1000
"""Number of pages that are searched for leaks."""
_WORST, _LEAKS, _AT_ONCE = 20, 20, 20
_LOSS = "loss_"
_SIZES = """
    create or replace temp table sizes as select
        len(elements) as elements, coalesce(list_sum([length(e.text) for e in elements]), 0)::bigint as characters,
        len(anchors) as anchors, len(tables) as tables, len(infoboxes) as infoboxes,
        len([1 for a in anchors if a.target_page_id is not null]) as resolved from pages"""


def about_pages(opened: Opened) -> Iterator[Section]:
    """Yields the sections from the manifest and the table of templates."""
    manifest = opened.manifest
    assert isinstance(manifest, PagesManifest)
    yield from about_sections(opened)
    yield Section("Counts and their law", tuple(_laws(opened, manifest)))
    yield Section("What was not carried over", tuple(_losses(manifest)))
    yield Section("Templates", tuple(_templates(opened)))
    findings = {name: n for name, n in sorted(manifest.findings.items()) if not name.startswith(_LOSS)}
    values = {**findings, "Wikidata items refused": len(manifest.qid_conflicts), "option": manifest.options}
    table = Table("Counts and options", ("name", "value"), tuple(flat_values(values)))
    yield Section("Other counts and options", (table,))


def _laws(opened: Opened, manifest: PagesManifest) -> Iterator[Block]:
    yield Paragraph(
        "Pages read = articles + redirects + other namespaces + rejected: each page that was read became one of them."
    )
    columns = ("file", "pages read", "articles", "redirects", "other namespaces", "rejected", "law")
    rows = []
    for name, counts in (*sorted(manifest.counts.items()), ("all files", manifest.totals)):
        parts = (counts.articles, counts.redirects, counts.other_namespaces, counts.n_rejected)
        rows.append((name, counts.pages_read, *parts, "holds" if counts.pages_read == sum(parts) else "is broken"))
    yield Table("Pages by input file", columns, tuple(rows))
    faults = count_faults(manifest)
    yield from (Paragraph(f"A law is broken: {fault}.", is_warning=True) for fault in faults)
    if not faults:
        yield Paragraph("All counts agree: files with their total, tables with the counts, parse statuses with both.")
    statuses = sorted(manifest.parse_statuses.items(), key=lambda status: (-status[1], status[0]))
    yield counts_table("How articles were parsed", "status", "articles", statuses, manifest.totals.articles).linked(
        status=lambda row: opened.url("tables/pages", parse_status=row["status"])
    )
    if rejected := manifest.totals.rejected:
        ordered = sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
        read = manifest.totals.pages_read
        yield Table(
            "Rejected, by reason",
            ("reason", "pages", "share of pages read", "meaning"),
            tuple((reason, n, share(n, read), REASONS.get(reason)) for reason, n in ordered),
        ).linked(reason=lambda row: opened.url("tables/rejected", reason=row["reason"]))


def _losses(manifest: PagesManifest) -> Iterator[Block]:
    losses = [(name.removeprefix(_LOSS), n) for name, n in manifest.findings.items() if name.startswith(_LOSS)]
    losses.sort(key=lambda loss: (-loss[1], loss[0]))
    if not losses:
        yield Paragraph("Nothing is counted as lost.")
        return
    most, total = losses[:_WORST], sum(n for _, n in losses)
    rows = tuple((name.replace("_", " "), n) for name, n in most)
    rest_said = f"; the {len(most)} most frequent kinds." if len(most) < len(losses) else "."
    said = f"How many pieces of each kind the text of the articles lacks{rest_said}"
    yield bars("Pieces that were not carried over, by kind", ("kind", "pieces"), rows, said)
    if rest := losses[_WORST:]:
        yield counts_table("Further kinds", "kind", "pieces", rest, total)


def _templates(opened: Opened) -> Iterator[Block]:
    yield Paragraph(
        "A use of a template is rendered: its value is in the text; dropped: it says nothing in running text; or "
        "unknown: there is no rule for it, and what it would show is missing."
    )
    if "templates" not in opened.tables:
        return
    db = opened.db
    yield sql_table(
        db,
        "Uses of templates by outcome",
        """select outcome, count(*) as names, sum(uses)::bigint as uses,
            sum(uses) / sum(sum(uses)) over () as "share of uses",
            sum(lost_chars)::bigint as "visible characters lost" from templates group by outcome order by outcome""",
    ).linked(outcome=lambda row: opened.url("tables/templates", outcome=row["outcome"]))
    worst = sql_table(
        db,
        "Templates that lose most visible characters",
        """select name as template, outcome, lost_chars as "characters lost", uses, pages,
            example_title || ': ' || example as example from templates where lost_chars > 0
            order by lost_chars desc, name, outcome limit ?""",
        [_WORST],
    )
    if worst.rows:
        yield worst.linked(template=lambda row: opened.url("tables/templates", name=row["template"]))


def measured_pages(opened: Opened) -> Iterator[Section]:
    """Yields the measures of the rows of pages. Memory: that of the database, and some sampled pages."""
    db = opened.db
    db.execute(_SIZES)
    yield Section("What pages hold", tuple(_distributions(db, opened.manifest.n_rows("pages"))))
    if "refs" in opened.tables:
        yield Section("References", tuple(_references(opened, opened.manifest.n_rows("pages"))))
    yield Section("Leaks", tuple(_leaks(opened)))


def _distributions(db: Any, n_pages: int) -> Iterator[Block]:
    sums = [f"select '{name}' as what, sum({name})::bigint, avg({name}), max({name}) from sizes" for name in MEASURES]
    found = {
        what: (total or 0, mean, most or 0)
        for what, total, mean, most in db.execute(" union all ".join(sums)).fetchall()
    }
    yield Table(
        "What pages hold",
        ("what", "in all", "a page", "most of a page"),
        tuple((name, *found[name]) for name in MEASURES),
    )
    n_anchors, resolved = found["anchors"][0], db.execute("select sum(resolved)::bigint from sizes").fetchone()[0] or 0
    yield Facts(
        (
            ("anchors", n_anchors),
            ("lead to an article of the release", resolved),
            ("share of them", share(resolved, n_anchors)),
        )
    )
    yield Charts(tuple(_distribution(db, name) for name in MEASURES))


_CITED = """
    with paragraphs as (
        select page_id, element.index as element from (select page_id, unnest(elements) as element from pages)
        where element.kind = 'paragraph')
    select (select count(*) from refs where source_number = 0), (select count(*) from refs where number is not null),
        (select count(*) from ref_uses where ref is not null), (select count(*) from ref_uses where doubt is not null),
        (select count(distinct page_id) from refs), (select count(*) from paragraphs),
        (select count(*) from paragraphs anti join (from ref_uses where ref is not null) using (page_id, element))"""
_DOMAIN = r"lower(regexp_extract(url, '^[A-Za-z]+://(?:[^/?#@]*@)?(?:www\.)?([^/?#:]+)', 1))"


def _references(opened: Opened, n_pages: int) -> Iterator[Block]:
    n_refs, marked, n_uses, n_doubts, noted, n_paragraphs, uncited = opened.db.execute(_CITED).fetchone() or ()
    yield Facts(
        (
            ("references", n_refs),
            ("references a page", n_refs / n_pages if n_pages else None),
            ("references with a mark", marked),
            ("their marks", n_uses),
            ("marks of doubt", n_doubts),
            ("pages with references", noted),
            ("paragraphs", n_paragraphs),
            ("paragraphs without a reference", uncited),
            ("share of them", share(uncited, n_paragraphs)),
        )
    )
    counted = 'count(*) as "references", count(*) / sum(count(*)) over () as "share of them"'
    for title, value, rest in (
        ("References by form", "form", "from refs where source_number = 0"),
        ("What is cited, by kind", "coalesce(kind, 'nothing that is told') as kind", "from refs"),
        ("Addresses by status", "coalesce(url_status, 'not stated') as status", "from refs where url is not null"),
        (f"The {_WORST} domains cited most", f"{_DOMAIN} as domain", "from refs where url is not null"),
    ):
        most = f"limit {_WORST}" if value.endswith("domain") else ""
        query = f"select {value}, {counted} {rest} group by 1 order by 2 desc, 1 {most}"
        yield sql_table(opened.db, title, query)
    doubts = "select doubt, count(*) as marks from ref_uses where doubt is not null group by 1 order by 2 desc, 1"
    yield sql_table(opened.db, "Marks of doubt", doubts)


def _distribution(db: Any, name: str) -> Chart:
    """Returns the chart of pages by a measure. Bins are 0, then from each power of two to below the next."""
    bins = f"case when {name} = 0 then 0 else 1 + floor(log2({name}))::integer end"
    counts = dict(db.execute(f"select {bins}, count(*) from sizes group by 1").fetchall())
    rows = tuple((bin_name(number), counts.get(number, 0)) for number in range(max(counts, default=0) + 1))
    return Chart(
        table=Table(f"{name.capitalize()} a page", (f"{name} a page", "articles"), rows),
        about=f"Articles by their number of {name}; each column covers twice as many as the one before it.",
    )


def bin_name(number: int) -> str:
    """Returns the values of a bin as text.

    >>> [bin_name(number) for number in (0, 1, 2, 3, 12)]
    ['0', '1', '2–3', '4–7', '2K–4K']
    """
    if number <= 1:
        return str(number)
    if number > 10:
        least = 1 << (number - 11)
        unit, size = ("K", 1) if least < 1024 else ("M", 1024)
        return f"{least // size}{unit}–{2 * least // size}{unit}"
    return f"{1 << (number - 1)}–{(1 << number) - 1}"


class Leak(NamedTuple):
    """A piece of markup left in an article."""

    title: str
    place: str  #: ``element 7``, ``table 2`` or ``infobox 0``
    kind: str  #: of the element, or ``cell``, ``caption``, ``field``
    markup: str
    context: str  #: up to 40 characters before and after it


def row_leaks(row: Mapping[str, Any]) -> Iterator[Leak]:
    """Yields the markup left in a row of the table of pages: in elements, then in tables and infoboxes.

    Markup that an article shows on purpose (in ``nowiki`` and similar tags) is included, because a release does not
    distinguish it.
    """
    for place, kind, text in _texts(row):
        for match in MARKUP.finditer(text):
            context = text[max(0, match.start() - CONTEXT_CHARS) : match.end() + CONTEXT_CHARS]
            yield Leak(row["title"], place, kind, match.group(), context.replace("\n", " "))


def _texts(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for number, element in enumerate(row["elements"]):
        yield f"element {number}", element["kind"], element["text"]
    for number, table in enumerate(row["tables"]):
        yield f"table {number}", "caption", table["caption"] or ""
        yield from ((f"table {number}", "cell", text) for text in table["header"])
        yield from ((f"table {number}", "cell", cell["text"]) for cells in table["rows"] for cell in cells)
    for number, infobox in enumerate(row["infoboxes"]):
        yield from ((f"infobox {number}", "field", field["text"]) for field in infobox["fields"])


def sampled_pages(opened: Opened, n_sampled: int = SAMPLED) -> Iterator[dict[str, Any]]:
    """Yields the rows of the pages whose ids have the smallest sha256, in the order of the release, read in batches."""
    db = opened.db
    least = "select page_id, _file_number, _row from pages order by sha256(page_id::text), page_id limit ?"
    asked = f"select page_id from ({least}) order by _file_number, _row"
    ids = [page_id for (page_id,) in db.execute(asked, [n_sampled]).fetchall()]
    for start in range(0, len(ids), _AT_ONCE):
        answer = db.execute(
            "select title, elements, tables, infoboxes from pages where list_contains(?::bigint[], page_id) "
            "order by _file_number, _row",
            [ids[start : start + _AT_ONCE]],
        )
        names = [column[0] for column in answer.description or ()]
        yield from (dict(zip(names, row, strict=True)) for row in answer.fetchall())


def _leaks(opened: Opened) -> Iterator[Block]:
    n_pages = in_elements = in_others = 0
    kinds: Counter[str] = Counter()
    listed: list[Leak] = []
    for row in sampled_pages(opened):
        leaks = list(row_leaks(row))
        n_pages += 1
        in_elements += any(leak.place.startswith("element") for leak in leaks)
        in_others += any(not leak.place.startswith("element") for leak in leaks)
        kinds.update(leak.markup for leak in leaks)
        listed += islice(leaks, max(0, _LEAKS - len(listed)))
    yield Paragraph(
        f"Wikitext that is left in the text of {n_pages:,} articles, those whose page ids have the least sha256. What "
        "an article shows as written, such as examples of code, counts too."
    )
    rows = [("elements", in_elements), ("tables and infoboxes", in_others)]
    yield counts_table("Articles with markup left", "in their", "articles", rows, n_pages)
    if kinds:
        found = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
        yield counts_table("What is left", "markup", "places", found, kinds.total())
        places = tuple(
            (Link(leak.title, opened.url("search", q=leak.title)), f"{leak.place}, {leak.kind}", leak.context)
            for leak in listed
        )
        yield Table("First places", ("article", "place", "text around it"), places)


PAGES_VIEWS = KindViews(
    about=about_pages,
    measured=measured_pages,
    listings={
        "pages": Listing(
            label="Pages",
            columns=("title", "page_id", "qid", "parse_status", "timestamp", "url"),
            facets=("parse_status", "is_disambiguation"),
            searched=("title",),
            led_by="title",
            card=lambda _, opened, card: RedirectResponse(opened.page_url(card.row["page_id"]), 303),
        ),
        "redirects": Listing(
            label="Redirects",
            facets=("status",),
            searched=("title", "final_title"),
            links={"page_id": lambda opened, row: None},  # the template's own page, which is not an article
        ),
        "templates": Listing(label="Templates", facets=("outcome",), searched=("name",)),
        "rejected": Listing(label="Rejected", facets=("stage", "reason")),
    },
    views=PAGE_VIEWS,
    tabs=(Tab("Random page", "random"),),
)
