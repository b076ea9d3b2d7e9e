"""Commands that read the files that Wikimedia publishes, and make releases of pages, of Wikidata and of page views."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter
from msgspec import structs

from kbsource.errors import counted
from kbsource.files import base_name
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.kind import fallback_remarks
from mapping.options import FLAT, AtLeast1, Files, NewFile, Seconds, check_ending
from pipelines.options.build import BuildOptions
from pipelines.options.pageviews import PageviewsOptions
from pipelines.options.shared import USUAL_MEMORY, Memory, RunOptions
from pipelines.options.wikidata import WikidataOptions
from pipelines.progress import Progress, clock, size
from pipelines.terminal import Row, Style, Summary, command_line, harmless, on_one_line, styled, table_text

if TYPE_CHECKING:
    from kbsource.html.paired_pages import RecordCounts
    from pipelines.jobs.build import BuildSummary

Run = Annotated[RunOptions, Parameter(name="*", group=Group("How it is run", sort_key=8))]

_STEPS_SHOWN = 4
_REMEDIES = {
    "end_not_checked": "Check the whole content with --deep.",
    "truncated_dump": "Download the file again, or build from the readable part with --allow-truncated.",
}
"""Advice for each finding, by the code of the finding. It names options of the command."""
_WORDS_SHOWN = 12
_SKIPPED = {
    "no_html": "without HTML",
    "no_wikitext": "without wikitext",
    "other_namespace": "other namespaces",
    "redirect": "redirects",
}
_STYLES: dict[str, Style] = {"error": "red", "warning": "yellow", "info": "bold"}


def _release_name(dump: str) -> str:
    """Returns the name for a release of a dump: wiki and date if the file name contains them.

    >>> _release_name("dumps/enwiki-20261001-pages-articles1.xml-p1p41242.bz2"), _release_name("wiki.xml.gz")
    ('enwiki-20261001', 'wiki')

    """
    return base_name(dump).partition("-pages-")[0].partition(".")[0] or "wiki"


def check_dump(dump: Annotated[Files, Parameter(metavar="DUMP")], /, *, deep: bool = False) -> Summary:
    """Check that a dump is complete and undamaged.

    Checks sizes and checksums, the beginning and end of every file, and the index. Also checks that the files belong
    together and no part is missing. Builds nothing. Every finding explains what it means and what to do. The exit code
    is 1 if there are errors.

    Args:
        dump: The files of a single dump, or glob patterns that match them; put patterns in quotes.
        deep: Decompress and check the whole content: every page, and the index against the pages.

    Examples:
        kbsource check-dump 'dumps/enwiki-20261001-pages-articles-multistream*.xml*.bz2'
        kbsource check-dump dumps/ltgwiki-20261001-pages-articles.xml.gz --deep --json
    """
    from kbsource.dump.check import dump_findings as check
    from kbsource.dump.ranges import expand_inputs, size_of

    paths = expand_inputs(dump)
    with Progress().adding("check", size_of(paths) * (2 if deep else 1)) as add:
        report = check(paths, deep=deep, on_progress=add)
    # The remedies name options. With --deep, findings about unread content no longer apply.
    findings = [
        dataclasses.replace(finding, remedy=finding.remedy and _REMEDIES.get(finding.code, finding.remedy))
        for finding in report.findings
        if not (deep and finding.code == "end_not_checked")
    ]
    lines = []
    for finding in findings:
        place = f"{finding.file}: " if finding.file else ""
        severity = styled(f"{finding.severity.upper():7}", _STYLES[finding.severity])
        lines.append(on_one_line(f"{severity} {place}{finding.message}"))
        lines += [f"        {finding.remedy}"] if finding.remedy else []
    n_errors, n_warnings = (sum(finding.severity == level for finding in findings) for level in ("error", "warning"))
    verdict = styled("The dump has no errors", "green")
    if n_errors:
        verdict = styled("The dump has errors", "red")
    elif any(finding.code == "end_not_checked" for finding in findings):
        verdict = styled("The checked part of the dump has no errors", "yellow") + " (--deep checks the rest)"
    shown = {"files": len(paths), "errors": n_errors, "warnings": n_warnings}
    files = [
        {
            "path": input_file.path,
            "name": input_file.name,
            "n_bytes": input_file.hashed.n_bytes,
            "sha256": input_file.hashed.sha256,
        }
        for input_file in report.inputs
    ]
    return Summary(
        title=f"{verdict}: {', '.join(counted(n, name) for name, n in shown.items())}.",
        text="\n".join(lines),
        next="" if n_errors else command_line("build", *dump, "--output", f"releases/{_release_name(dump[0])}"),
        values={
            "ok": not report.has_errors,
            "files": files,
            "findings": [dataclasses.asdict(finding) for finding in findings],
        },
        is_ok=not report.has_errors,
    )


def check_text(
    snapshot: Annotated[Files, Parameter(metavar="SNAPSHOT")],
    /,
    *,
    limit: AtLeast1 = 20,
    html: NewFile | None = None,
    page_timeout_s: Annotated[Seconds, Parameter("--page-timeout")] = 60.0,
    worker_memory_bytes: Memory = USUAL_MEMORY,
) -> Summary:
    """Compare the text extracted from wikitext with the pages that readers see.

    Reads a snapshot that has both the HTML and the wikitext of each article. Extracts the text from the wikitext as a
    build does, and compares it with the page in the HTML. Counts the words of the page that the text contains in the
    same order, the words of the text that are not on the page, and the links that both have. Lists the pages that
    differ most, and the templates that most of the missing words come from. Templates are rendered only by rules,
    because the records contain no definitions. Titles, tables and infoboxes are not compared. The exit code is 1 if
    there is nothing to compare.

    Args:
        snapshot: The files of a single HTML snapshot, or glob patterns that match them; put patterns in quotes.
        limit: Maximum number of pages to list, and of templates.
        html: File for an HTML page, which needs no other files. It shows both texts of the listed pages side by side,
            with the differences marked.
        page_timeout_s: Maximum time for one page. A page that takes longer is rejected.

    Examples:
        kbsource check-text enwiki_namespace_0.tar.gz
        kbsource check-text 'snapshots/dewiki_namespace_0_*.ndjson' --limit 200 --json
        kbsource check-text dewiki_namespace_0_chunk_0.tar.gz --html differences.html
    """
    from kbsource.dump.ranges import expand_inputs, size_of
    from kbsource.html.comparing import COMPARED, TEXT
    from kbsource.html.comparing import check_text as check
    from kbsource.release.output import output_file
    from mapping.inspector.saved import environment, saved_page
    from mapping.inspector.text_check import text_check_document

    if html is not None:
        check_ending("--html", html, "HTML", fitting=["html"])
        environment()  # Fail here and not after the comparison.
    paths = expand_inputs(snapshot)
    with Progress().adding("compare", size_of(paths)) as add:
        report = check(
            paths,
            n_worst=limit,
            with_lines=html is not None,
            page_timeout_s=page_timeout_s,
            memory_bytes=worker_memory_bytes,
            on_progress=add,
        )
    sums, losses, counts, worst = report.sums, report.losses()[:limit], report.counts, report.worst()
    n_words, n_found, n_own = sums["words"], sums["found"], sums["own_words"]
    defined = n_words - sums["undefined_words"], n_found - sums["undefined_found"]
    rows: list[Row] = [
        *record_rows(counts, "compared"),
        ("words on the pages", n_words),
        ("  found in order", f"{n_found:,} ({_share(n_found, n_words)})"),
        ("  without undefined templates", f"{defined[1]:,} of {defined[0]:,} ({_share(defined[1], defined[0])})"),
        *(
            (f"  missing: {'outside of templates' if kind == TEXT else kind}", n)
            for kind, n in report.kinds.most_common()
        ),
        ("words extracted from the wikitext", n_own),
        ("  not on the pages", f"{n_own - n_found:,} ({_share(n_own - n_found, n_own)})"),
        ("links on the pages", sums["links"]),
        ("  found with their targets", f"{sums['links_found']:,} ({_share(sums['links_found'], sums['links'])})"),
    ]
    pages: list[tuple[str, ...]] = [("missing", "not there", "words", "links missing", "page", "first missing")]
    for page in worst:
        numbers = page.words - page.found, page.own_words - page.found, page.words, page.links - page.links_found
        first = " ".join(page.missing[0].words[:_WORDS_SHOWN]) if page.missing else ""
        pages.append((*(f"{number:,}" for number in numbers), page.title, first))
    templates: list[tuple[str, ...]] = [("missing", "pages", "kind", "template", "example")]
    for name, kind, loss in losses:
        templates.append((f"{loss.words:,}", f"{loss.pages:,}", kind, name or "-", f"{loss.title}: {loss.example}"))
    tables = [table_text(pages, right=range(4))] if worst else []
    tables += [table_text(templates, right=range(2))] if losses else []
    tables += rejected_text(counts)
    title = "No record has both the HTML and the wikitext of an article."
    if counts.pages:
        title = (
            f"{_share(n_found, n_words)} of the words on {counted(counts.pages, 'pages')} are found in order; "
            f"{_share(n_own - n_found, n_own)} of the words extracted from the wikitext are not on the pages."
        )
    if html is not None:
        rows.append(("page", html))
        document = text_check_document(report, [base_name(path) for path in paths], n_templates=limit)
        text = saved_page(document)
        with output_file(html) as file:
            file.write(text.encode())
    return Summary(
        title=styled(title, "green" if counts.pages else "red"),
        rows=rows,
        text="\n\n".join(tables),
        values={
            "compared": counts.pages,
            **record_values(counts),
            **{name: sums[name] for name in COMPARED},
            "missing_by_kind": dict(report.kinds.most_common()),
            "pages": [{"title": page.title, **{name: getattr(page, name) for name in COMPARED}} for page in worst],
            "templates": [{"template": name, "kind": kind, **dataclasses.asdict(loss)} for name, kind, loss in losses],
        },
        is_ok=counts.pages > 0,
    )


def record_rows(counts: RecordCounts, processed: str) -> list[Row]:
    """Returns the outcomes of a snapshot's records, for printing. ``processed`` is the label of the compared pages."""
    return [
        ("records read", counts.records + sum(counts.rejected.values())),
        (f"  {processed}", counts.pages),
        *((f"  {_SKIPPED[why]}", n) for why, n in sorted(counts.skipped.items())),
        *_rejected_rows(counts.rejected),
    ]


def rejected_text(counts: RecordCounts) -> list[str]:
    """Returns the first rejected records as a paragraph; an empty string if there are none."""
    from kbsource.dump.rejects import first_text

    n_rejected = sum(counts.rejected.values())
    return [f"{counted(n_rejected, 'records')} rejected.{first_text(counts.first_rejected)}"] if n_rejected else []


def record_values(counts: RecordCounts) -> dict[str, Any]:
    """Returns the outcomes of a snapshot's records, for programs."""
    return {
        "records": counts.records,
        "skipped": dict(sorted(counts.skipped.items())),
        "rejected": dict(sorted(counts.rejected.items())),
        "first_rejected": [structs.asdict(bad) for bad in counts.first_rejected],
    }


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def build(options: Annotated[BuildOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Build a release of pages from a wiki dump.

    Writes Parquet tables of pages, redirects, templates and rejected records, an index, and, last, manifest.json.
    Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource build 'dumps/enwiki-20261001-pages-articles-multistream*.xml*.bz2' \\
            --page-props dumps/enwiki-20261001-page_props.sql.gz --output releases/enwiki-20261001
        kbsource build dumps/enwiki-20261001-pages-articles.xml.bz2 --limit-pages 1000 --output releases/try
    """
    from pipelines.jobs.build import BadDumpError, finding_line
    from pipelines.jobs.build import build as make

    try:
        made = make(options, flags=run.flags(), progress=Progress())
    except BadDumpError as error:
        for finding in error.findings:
            sys.stderr.write(f"{harmless(on_one_line(finding_line(finding)))}\n")
        raise
    return build_summary(made)


def build_summary(made: BuildSummary) -> Summary:
    """Returns the summary of a build."""
    manifest = made.manifest
    totals, findings = manifest.totals, manifest.findings
    rows: list[Row] = [
        ("pages read", totals.pages_read),
        ("  articles", totals.articles),
        ("  redirects", totals.redirects),
        ("  other namespaces", totals.other_namespaces),
        *_rejected_rows(totals.rejected),
    ]
    rows += [("not selected", findings["not_selected"])] if findings.get("not_selected") else []
    rows += [
        *([("pages reused", made.taken_over)] if made.taken_over is not None else []),
        ("anchors", findings.get("anchors", 0)),
        ("  resolved", findings.get("anchors_resolved", 0)),
        ("disambiguation pages", findings.get("disambiguation_pages", 0)),
        ("with a Wikidata item", findings.get("pages_with_item", 0)),
    ]
    rows += [
        (f"  {title}", findings[name])
        for name, title in (
            ("items_same", "in both sitelinks and page_props"),
            ("items_only_wikidata", "only sitelinks"),
            ("items_only_page_props", "only page_props"),
            ("items_differ", "they differ"),
        )
        if name in findings
    ]
    rows += [(f"parsed as {name}", n) for name, n in manifest.parse_statuses.items() if name != "ok"]
    n_definitions, n_modules = findings.get("template_definitions"), findings.get("loss_module", 0)
    rows += [("template definitions", n_definitions)] if n_definitions else []
    rows += [("unknown templates", len(manifest.unknown_templates))] if manifest.unknown_templates else []
    rows += [("calls of Lua modules without a result", n_modules)] if n_modules else []
    rows += [("peak size of the output folder", size(made.peak_bytes))] if made.peak_bytes is not None else []
    remarks = []
    remarks += fallback_remarks(manifest)
    if missing := made.titles_not_found:
        remarks.append(f"{len(missing)} of the titles requested are not in the dump, the first: {missing[0]}")
    if manifest.dump.content == "wikitext" and manifest.options["templates"] != "rules" and not n_definitions:
        remarks.append(
            "The pages that were read define no templates (namespace 10), so templates without a rule are "
            "left out of the text."
        )
    if n_modules and manifest.options["templates"] == "definitions":
        remarks.append("Some definitions call Lua modules, which --templates definitions does not run.")
    return _release_summary(
        made,
        rows,
        text="\n".join(remarks),
        counts=dataclasses.asdict(totals),
        parse_statuses=manifest.parse_statuses,
        fallbacks=[dataclasses.asdict(page) for page in manifest.fallbacks],
        findings=findings,
        qid_conflicts=len(manifest.qid_conflicts),
        titles_not_found=list(missing),
        peak_bytes=made.peak_bytes,
    )


def wikidata(options: Annotated[WikidataOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Build a release of tables from a Wikidata dump.

    Writes Parquet tables of items, properties, sitelinks, statements and the class closure, and, last, manifest.json.
    Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource wikidata dumps/wikidata-20261001-all.json.bz2 --output releases/wikidata-20261001 \\
            --sites enwiki
        kbsource wikidata entities.ndjson --languages de,en --qualifiers all --output releases/try
    """
    from pipelines.jobs.wikidata import make_wikidata

    made = make_wikidata(options, flags=run.flags(), progress=Progress())
    manifest, totals = made.manifest, made.manifest.totals
    rows: list[Row] = [
        ("lines read", totals.lines_read),
        ("  items", totals.items),
        ("  properties", totals.properties),
        ("  other entities", totals.other_entities),
        *_rejected_rows(totals.rejected),
        *((f"rows of {name}", manifest.n_rows(name)) for name in ("sitelinks", "statements", "classes")),
    ]
    return _release_summary(
        made,
        rows,
        counts=dataclasses.asdict(totals),
        findings=manifest.findings,
        rows={name: manifest.n_rows(name) for name in manifest.tables},
    )


def pageviews(options: Annotated[PageviewsOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Sum page views over a period.

    Sums the views of one Wikipedia's articles over all input files, by title and page id. The files are
    pageview_complete or pagecounts dumps. Writes a Parquet table and, last, manifest.json. Options not listed here are
    passed to Beam unchanged.

    Examples:
        kbsource pageviews 'views/pageviews-202610*-user.bz2' --output releases/views-202610
        kbsource pageviews pagecounts-2019-10-views-ge-5-totals.bz2 --site dewiki --output releases/views
    """
    from pipelines.jobs.pageviews import make_pageviews

    made = make_pageviews(options, flags=run.flags(), progress=Progress())
    manifest, totals = made.manifest, made.manifest.totals
    rows: list[Row] = [
        (f"lines of {options.site}", totals.lines_read),
        ("  used", totals.used),
        ("  of other namespaces", totals.other_namespaces),
        ("  of no page", totals.no_page),
        *_rejected_rows(totals.rejected),
        ("titles and pages", manifest.n_rows("pageviews")),
        ("views", manifest.views),
    ]
    return _release_summary(made, rows, counts=dataclasses.asdict(totals), views=manifest.views)


def _rejected_rows(rejected: Mapping[str, int]) -> list[Row]:
    """Returns the number of rejected records, in total and by reason."""
    return [("  rejected", sum(rejected.values())), *((f"    {reason}", n) for reason, n in sorted(rejected.items()))]


def _release_summary(made: Any, rows: Sequence[Row], /, *, text: str = "", **values: Any) -> Summary:
    tables: Mapping[str, Sequence[FileEntry]] = made.manifest.tables
    sizes = {name: sum(entry.bytes for entry in entries) for name, entries in tables.items()}
    return made_summary(made, [*rows, ("tables", size(sum(sizes.values())))], text=text, bytes=sizes, **values)


def made_summary(
    made: Any, rows: Sequence[Row], /, *, text: str = "", against: Sequence[str] = (), **values: Any
) -> Summary:
    """Returns the summary of a job: its output, its duration, its longest steps, and the command that verifies the
    output. ``against`` has the arguments of that command for the sources.
    """
    longest = [
        (f"  work of {step}", clock(seconds))
        for step, seconds in list(made.steps.items())[:_STEPS_SHOWN]
        if seconds >= 1
    ]
    return Summary(
        title=f"The output is in {made.output}.",
        rows=[*rows, ("wall time", clock(made.seconds)), *longest],
        text=text,
        next=command_line("verify", made.output, *against),
        values={
            "output": made.output,
            "seconds": round(made.seconds, 1),
            "steps": {step: round(seconds, 3) for step, seconds in made.steps.items()},
            **values,
        },
    )
