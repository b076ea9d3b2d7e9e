"""What a report says of a release of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from kbsource.files import Storage
from kbsource.reasons import REASONS
from kbsource.release.pages.kind import PAGES_RELEASE, Counts, PagesManifest, count_faults
from kbsource.release.pages.template_losses import worst_templates
from kbsource.release.reader import row_groups
from mapping.charts import Chart, Series
from mapping.reports.any_report import about_section, flat_values, table_files
from mapping.reports.document import Block, Charts, Document, Facts, Paragraph, Section, Table, counts_table, share
from mapping.reports.leaks import Leak, row_leaks
from mapping.reports.page_counts import MEASURES, PageCounts, count_pages, sampled_rows

SAMPLED = 1000
"""Pages in which leaks are looked for."""
_WORST, _LEAKS = 20, 20
_LOSS = "loss_"


def pages_document(path: str, manifest: PagesManifest, storage: Storage) -> Document:
    """Gives the report on a release of pages. Memory: one row group of one table."""
    files = table_files(path, manifest, "pages")
    counts = count_pages(files, storage, n_sampled=SAMPLED)
    site = manifest.site
    wiki = (
        ("wiki", site.dbname),
        ("name", site.name),
        ("language", site.lang),
        ("snapshot", manifest.dump.date),
        ("export schema", manifest.dump.export_version),
        ("order of pages", manifest.page_order.replace("_", " ")),
    )
    return Document(
        f"Release of pages, {site.dbname}, {manifest.dump.date or 'no date'}",
        (
            about_section(PAGES_RELEASE, manifest, wiki),
            Section("Counts and their law", tuple(_laws(manifest))),
            Section("What pages hold", _distributions(counts, manifest.totals.articles)),
            Section("What was not carried over", tuple(_losses(manifest))),
            Section("Templates", tuple(_templates(path, manifest, storage))),
            Section("Leaks", tuple(_leaks(files, counts, storage))),
            Section("Other counts and options", (_others(manifest),)),
        ),
    )


def _laws(manifest: PagesManifest) -> Iterator[Block]:
    yield Paragraph(
        "Pages read = articles + redirects + other namespaces + rejected: each page that was read became one of them."
    )
    rows = [*sorted(manifest.counts.items()), ("all files", manifest.totals)]
    columns = ("file", "pages read", "articles", "redirects", "other namespaces", "rejected", "law")
    yield Table("Pages by input file", columns, tuple(_law_row(name, counts) for name, counts in rows))
    faults = count_faults(manifest)
    yield from (Paragraph(f"A law is broken: {fault}.", is_warning=True) for fault in faults)
    if not faults:
        yield Paragraph("All counts agree: files with their total, tables with the counts, parse statuses with both.")
    statuses = sorted(manifest.parse_statuses.items(), key=lambda status: (-status[1], status[0]))
    yield counts_table("How articles were parsed", "status", "articles", statuses, manifest.totals.articles)
    rejected = manifest.totals.rejected
    if rejected:
        yield Table(
            "Rejected, by reason",
            ("reason", "pages", "share of pages read", "meaning"),
            tuple(
                (reason, n, share(n, manifest.totals.pages_read), REASONS.get(reason))
                for reason, n in sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
            ),
        )


def _law_row(name: str, counts: Counts) -> tuple[str | int, ...]:
    parts = (counts.articles, counts.redirects, counts.other_namespaces, counts.n_rejected)
    return (name, counts.pages_read, *parts, "holds" if counts.pages_read == sum(parts) else "is broken")


def _distributions(counts: PageCounts, n_pages: int) -> tuple[Block, ...]:
    found = counts.distributions
    n_anchors = found["anchors"].total
    measures = tuple(
        (name, found[name].total, found[name].total / n_pages if n_pages else None, found[name].most)
        for name in MEASURES
    )
    charts = tuple(
        Chart(
            title=f"{name.capitalize()} a page",
            about=f"Articles by their number of {name}; each column covers twice as many as the one before it.",
            label_name=f"{name} a page",
            labels=tuple(label for label, _ in found[name].shown()),
            series=(Series("articles", tuple(n for _, n in found[name].shown())),),
        )
        for name in MEASURES
    )
    resolved = Facts(
        (
            ("anchors", n_anchors),
            ("lead to an article of the release", counts.resolved),
            ("share of them", share(counts.resolved, n_anchors)),
        )
    )
    return (
        Table("What pages hold", ("what", "in all", "a page", "most of a page"), measures),
        resolved,
        Charts(charts),
    )


def _losses(manifest: PagesManifest) -> Iterator[Block]:
    losses = [(name.removeprefix(_LOSS), n) for name, n in manifest.findings.items() if name.startswith(_LOSS)]
    losses.sort(key=lambda loss: (-loss[1], loss[0]))
    if not losses:
        yield Paragraph("Nothing is counted as lost.")
        return
    most = losses[:_WORST]
    yield Charts(
        (
            Chart(
                title="Pieces that were not carried over, by kind",
                about="How many pieces of each kind the text of the articles lacks"
                + (f"; the {len(most)} most frequent kinds." if len(most) < len(losses) else "."),
                label_name="kind",
                labels=tuple(name.replace("_", " ") for name, _ in most),
                series=(Series("pieces", tuple(n for _, n in most)),),
                style="bars",
            ),
        )
    )
    if rest := losses[_WORST:]:
        yield counts_table("Further kinds", "kind", "pieces", rest, sum(n for _, n in losses))


def _templates(path: str, manifest: PagesManifest, storage: Storage) -> Iterator[Block]:
    uses: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for file in table_files(path, manifest, "templates"):
        for group in row_groups(file, storage, ["outcome", "uses", "lost_chars"]):
            sums = group.group_by("outcome").aggregate([("uses", "sum"), ("lost_chars", "sum"), ([], "count_all")])
            for row in sums.to_pylist():
                uses[row["outcome"]] += row["uses_sum"]
                lost[row["outcome"]] += row["lost_chars_sum"]
                names[row["outcome"]] += row["count_all"]
    yield Paragraph(
        "A use of a template is rendered: its value is in the text; dropped: it says nothing in running text; or "
        "unknown: there is no rule for it, and what it would show is missing."
    )
    yield Table(
        "Uses of templates by outcome",
        ("outcome", "names", "uses", "share of uses", "visible characters lost"),
        tuple((name, names[name], n, share(n, uses.total()), lost[name]) for name, n in sorted(uses.items())),
    )
    if worst := worst_templates(path, storage, limit=_WORST):
        columns = ("template", "outcome", "characters lost", "uses", "pages", "example")
        rows = tuple(
            (row["name"], row["outcome"], row["lost_chars"], row["uses"], row["pages"],
             f"{row['example_title']}: {row['example']}")
            for row in worst
        )  # fmt: skip
        yield Table("Templates that lose most visible characters", columns, rows)


def _leaks(files: Sequence[str], counts: PageCounts, storage: Storage) -> Iterator[Block]:
    in_elements = in_others = 0
    kinds: Counter[str] = Counter()
    listed: list[Leak] = []
    for row in sampled_rows(files, counts.sample, storage):
        leaks = list(row_leaks(row))
        in_elements += any(leak.place.startswith("element") for leak in leaks)
        in_others += any(not leak.place.startswith("element") for leak in leaks)
        kinds.update(leak.markup for leak in leaks)
        listed += islice(leaks, max(0, _LEAKS - len(listed)))
    n_pages = len(counts.sample)
    yield Paragraph(
        f"Wikitext that is left in the text of {n_pages:,} articles, those whose page ids have the least sha256. What "
        "an article shows as written, such as examples of code, counts too."
    )
    rows = [("elements", in_elements), ("tables and infoboxes", in_others)]
    yield counts_table("Articles with markup left", "in their", "articles", rows, n_pages)
    if kinds:
        found = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
        yield counts_table("What is left", "markup", "places", found, kinds.total())
        places = tuple((leak.title, f"{leak.place}, {leak.kind}", leak.context) for leak in listed)
        yield Table("First places", ("article", "place", "text around it"), places)


def _others(manifest: PagesManifest) -> Table:
    findings = {name: n for name, n in sorted(manifest.findings.items()) if not name.startswith(_LOSS)}
    values = {**findings, "Wikidata items refused": len(manifest.qid_conflicts), "option": manifest.options}
    return Table("Counts and options", ("name", "value"), tuple(flat_values(values)))
