"""Commands that describe, check or compare whole releases: info, verify, report, templates, diff."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import SetupError, counted
from mapping.options import (
    AtLeast1,
    FolderPath,
    Megabytes,
    NewFile,
    Release,
    Releases,
    Threads,
    check_ending,
    ending_of,
)
from pipelines.progress import Done, Progress, size
from pipelines.terminal import Summary, command_line, facts_table, on_one_line, show_line, styled, table_text

if TYPE_CHECKING:
    from kbsource.release.kind import Kind
    from kbsource.release.manifest import Manifest

_SHA_CHARS = 12
_MOST_ROWS = 24
"""Maximum number of tables, files or inputs that are printed; the manifest lists all of them."""


def info(release: Release, /) -> Summary:
    """Describe a release and how to open it.

    Works for a release of any kind. Prints the wiki and date of its snapshot, the counts, the number of rows of each
    table, the inputs, the version of kbsource that made it, how to open it in Python, and what to do next. All of this
    comes from the manifest, which --json prints. To check that the manifest is correct, run kbsource verify.

    Args:
        release: Folder of a release of any kind.

    Examples:
        kbsource info releases/enwiki-20261001
        kbsource info aligned/fever --json
    """
    kind, manifest = opened_release(release)
    return Summary(
        text=info_text(release, kind, manifest),
        values=json.loads(manifest.to_bytes()),
        next=command_line("inspect", release),
    )


def opened_release(release: str) -> tuple[Kind[Any], Manifest]:
    """Returns the kind and the manifest of a release."""
    from kbsource.release.kind import kind_of, parse_content, read_content
    from kbsource.release.pages.kind import PAGES_RELEASE

    content = read_content(release)
    kinds: tuple[Kind[Any], ...] = (PAGES_RELEASE,)
    if parse_content(content, release).get("format") != PAGES_RELEASE.format:
        from mapping.kinds import KINDS as kinds  # noqa: N811  # a slow import
    kind = kind_of(content, release, kinds)
    return kind, kind.read(release)


def info_text(path: str, kind: Kind[Any], manifest: Manifest) -> str:
    """Describes a release for reading: facts, counts, contents, and the commands that accept it."""
    from kbsource.release.manifest import input_files_of
    from mapping.inspector.about import next_commands, python_lines, release_counts, release_facts

    values = manifest.to_json()
    parts = [facts_table(release_facts(kind, manifest))]
    if counts := list(release_counts(values)):
        parts.append(_part("counts", facts_table(counts)))
    parts.append(_part("holds", _table([("rows", "size", "files", "place"), *_contents(manifest)], right=range(3))))
    if inputs := [(size(file.bytes), file.name) for _, file in input_files_of(values.get("inputs"))]:
        parts.append(_part("made of", _table(inputs, right=[0])))
    parts.append(_part("in Python", "\n".join(python_lines(path.rstrip("/"), kind, manifest))))
    parts.append(_part("commands", table_text(next_commands(shlex.quote(path), kind))))
    return "\n\n".join(parts)


def _contents(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    for name, entries in manifest.tables.items():
        n_bytes = sum(entry.bytes for entry in entries)
        yield f"{manifest.n_rows(name):,}", size(n_bytes), f"{len(entries):,}", f"{name}/"
    for file in manifest.files:
        yield "" if file.rows is None else f"{file.rows:,}", size(file.bytes), "1", file.file
    for part in manifest.parts:
        yield "", "", "", f"{part.folder}/ (release {part.manifest_sha256[:_SHA_CHARS]})"


def _table(rows: Sequence[Sequence[str]], *, right: Iterable[int]) -> str:
    """Formats the first rows as a table; the manifest has all of them."""
    rest = f"\nand {len(rows) - _MOST_ROWS:,} more; --json names all" if len(rows) > _MOST_ROWS else ""
    return table_text(rows[:_MOST_ROWS], right=right) + rest


def _part(name: str, text: str) -> str:
    return styled(name, "bold") + "".join(f"\n  {line}" for line in text.split("\n"))


def verify(
    release: Release,
    /,
    *,
    kb: Release | None = None,
    qampari: Release | None = None,
    passages: Release | None = None,
    old: Release | None = None,
    new: Release | None = None,
    memory: Annotated[Megabytes, Parameter(metavar="MB")] = 1000,
) -> Summary:
    """Check a release: recompute its hashes, counts and invariants.

    Recomputes the hashes, counts, schemas and invariants of a release of any kind from its files. The exit code is 1 if
    anything differs from the manifest. Files that were added at the top of the folder, by the command kbsource publish
    or by hand, such as README.md, LICENSE and croissant.json, are listed but not checked.

    Args:
        release: Folder of a release of any kind.
        kb: For passages, entity-linking data or a QAMPARI release: the release of pages that it was made from. Passages
            are cut again from its pages; proofs are compared with its texts.
        qampari: For questions with passages, together with --passages: the QAMPARI release that they were made from.
            The passages of each question are selected again.
        passages: For questions with passages, together with --qampari: the passages that they were made from. The
            passages of each question are selected again.
        old: For a diff, together with --new: the older release, whose pages and texts are compared with the diff.
        new: For a diff, together with --old: the newer release, whose pages and texts are compared with the diff.
        memory: Maximum memory for checking the invariants; data beyond it is written to disk.

    Examples:
        kbsource verify releases/enwiki-20261001
        kbsource verify qampari/enwiki-20261001 --kb releases/enwiki-20261001
        kbsource verify passages/enwiki-20261001 --kb releases/enwiki-20261001
        kbsource verify contexts --qampari qampari/enwiki-20261001 --passages passages/enwiki-20261001
    """
    from kbsource.release.verify import verify as check
    from mapping.kinds import KINDS

    given = {"kb": kb, "qampari": qampari, "passages": passages, "old": old, "new": new}
    sources = {name: path for name, path in given.items() if path is not None}
    seen = Done(0, 0, step="hashing files")

    def see(n_done: int, n_total: int) -> None:
        nonlocal seen
        hashing = Done(n_done, n_total, step="hashing files")
        seen = hashing if n_done < n_total else Done(0, 0, step="checking invariants")

    with Progress().stage("verify", lambda: seen):
        report = check(release, KINDS, sources=sources, memory_mb=memory, on_progress=see)
    lines = [
        f"{finding.file}: {finding.meaning} ({finding.rule}, {counted(finding.n_cases, 'cases')}): {finding.example}"
        for finding in report.findings
    ]
    lines = [*map(on_one_line, lines)]
    sizes = {"files": report.n_files, "bytes": report.n_bytes, "rows": report.n_rows, **report.counts}
    against = " with their texts" if report.has_texts else ""
    verdict = styled("Sound", "green") if report.is_sound else styled("NOT sound", "red")
    lines.append(f"{verdict}: {', '.join(counted(n, name) for name, n in sizes.items())}{against} checked.")
    lines += report.remarks
    if report.extra:
        lines.append(on_one_line(f"Other files in the folder, not checked: {', '.join(report.extra)}."))
    values = dataclasses.asdict(report)
    counts = {f"n_{name.rpartition(' ')[2]}": n for name, n in values.pop("counts").items()}
    return Summary(
        text="\n".join(lines),
        next=command_line("inspect", release) if report.is_sound else "",
        values={"ok": report.is_sound, **values, **counts},
        is_ok=report.is_sound,
    )


def report(
    releases: Releases,
    /,
    *,
    output: NewFile | None = None,
    format: Literal["html", "markdown"] | None = None,
) -> Summary:
    """Write a report on releases as one HTML or Markdown file.

    Writes what kbsource inspect shows about releases of any kind, as Markdown or as one HTML file that loads nothing
    from elsewhere. The same releases always give the same bytes. For pages, the report has inputs, counts and their
    invariant, sizes, losses, templates, distributions, and markup left in 1,000 sampled articles. For alignments, it
    compares BLEU and outcomes with the figures of the KILT paper, and shows how far evidence moved, the worst spans,
    and a table that crosses both signals. For QAMPARI and AmbER sets, it has the counts of each step, and compares the
    statistics with the papers' figures.

    Args:
        releases: Folders of releases of any kind; each gets a section.
        output: File for the report; by default the standard output.
        format: Format of the report: html (one file that needs no others) or markdown. By default chosen by the
            extension of --output, else html.

    Examples:
        kbsource report releases/enwiki-20261001 --output enwiki.html
        kbsource report releases/enwiki-20261001 aligned --output report.html
        kbsource report aligned/fever --format markdown
    """
    from mapping.document import to_markdown
    from mapping.inspector.app import report_on
    from mapping.inspector.opened import close_releases, open_releases
    from mapping.inspector.saved import saved_page

    form = format or ("markdown" if ending_of(output or "") == "markdown" else "html")
    check_ending("--output", output or "", form, fitting=[form])
    is_markdown = form == "markdown"
    write = to_markdown if is_markdown else saved_page
    opened = open_releases(releases)
    try:
        text = write(report_on(opened))
    finally:
        close_releases(opened)
    if output is None:
        return Summary(stream=[text.removesuffix("\n")])
    from kbsource.release.output import output_file

    with output_file(output) as file:
        file.write(text.encode())
    browse = command_line("inspect", *releases)
    return Summary(rows=[("report", output)], values={"output": output}, next=browse)


_NAME_CHARS = 30


def templates(
    release: Release,
    /,
    *,
    limit: AtLeast1 = 50,
    all: bool = False,
    pairs: bool = False,
    calls: AtLeast1 | None = None,
) -> Summary:
    """Show how templates were rendered, and which lose the most text.

    First prints how much visible text of templates each outcome accounts for. rendered and dropped: by a rule; expanded
    and invoked: by the template's definition in the dump, without or with Lua; limit_exceeded: a limit was reached;
    unknown: no rule and no definition. Then lists the templates whose arguments lose the most visible characters, each
    with the first use that loses some. A new rule for these templates helps most. Templates that a rule drops lose
    their text on purpose, and are listed only with --all. Lines are cut to the width of a terminal, but not in a file
    or a pipe.

    With --pairs, reads a snapshot of HTML instead. For each use of a template in running text, compares the text that
    the rules make with the text on the page. Lists templates and uses that differ first, the most frequent first. You
    can write a rule for a template from its listed uses.

    Args:
        release: Folder of a release of pages; with --pairs, a file of a snapshot of HTML, or a quoted pattern.
        limit: Maximum number of templates to list.
        all: Also list templates that are dropped on purpose.
        pairs: Compare the templates of a snapshot with the text that its pages show.
        calls: Maximum number of different uses to list for each template, with --pairs; by default 3.

    Examples:
        kbsource templates releases/enwiki-20261001
        kbsource templates releases/enwiki-20261001 --limit 500 --json
        kbsource templates ptwiki_namespace_0_chunk_0.tar.gz --pairs --limit 200 --calls 10 --json
    """
    if pairs:
        if all:
            raise SetupError("--all works only for a release; leave it out with --pairs.")
        return _template_pairs(release, limit=limit, calls=calls or 3)
    if calls is not None:
        raise SetupError("--calls works only with --pairs; add --pairs, or leave --calls out.")
    from kbsource.release.pages.kind import PAGES_RELEASE
    from kbsource.release.pages.reading import sums_by_outcome, worst_templates

    manifest = PAGES_RELEASE.read(release)
    worst = worst_templates(release, manifest, limit=limit, with_dropped=all)
    sums = sorted(sums_by_outcome(release, manifest).items(), key=lambda entry: (-entry[1]["shown_chars"], entry[0]))
    n_shown = sum(own["shown_chars"] for _, own in sums) or 1
    outcomes: list[tuple[str, ...]] = [("outcome", "uses", "shown", "share", "lost")]
    for outcome, own in sums:
        shown, lost = own["shown_chars"], own["lost_chars"]
        outcomes.append((outcome, f"{own['uses']:,}", f"{shown:,}", f"{shown / n_shown:.1%}", f"{lost:,}"))
    losing: list[tuple[str, ...]] = [("lost", "uses", "pages", "outcome", "template", "example")]
    for row in worst:
        numbers = (f"{row[name]:,}" for name in ("lost_chars", "uses", "pages"))
        example = f"{row['example_title']}: {row['example']}"
        losing.append((*numbers, row["outcome"], row["name"][:_NAME_CHARS], example))
    title = worst[0]["example_title"] if worst else None
    return Summary(
        text=f"{table_text(outcomes, right=range(1, 5))}\n\n{table_text(losing, right=range(3))}",
        values={"by_outcome": [{"outcome": outcome, **own} for outcome, own in sums], "templates": worst},
        next=command_line("inspect", release) if title is None else show_line(release, title),
    )


_TEXT_CHARS = 50


def _shortened(text: str) -> str:
    return (text if len(text) <= _TEXT_CHARS else f"{text[: _TEXT_CHARS - 1]}…") or "-"


def _template_pairs(snapshot: str, *, limit: int, calls: int) -> Summary:
    from kbsource.dump.ranges import expand_inputs, size_of
    from kbsource.html.template_pairs import pair_templates
    from pipelines.commands.dumps import record_rows, record_values, rejected_text

    paths = expand_inputs([snapshot])
    with Progress().adding("compare", size_of(paths)) as add:
        found = pair_templates(paths, n_templates=limit, n_calls=calls, on_progress=add)
    listed: list[tuple[str, ...]] = [("differ", "uses", "pages", "template")]
    uses: list[tuple[str, ...]] = [("uses", "outcome", "the page shows", "made of it", "use")]
    for row in found.templates:
        numbers = (f"{row[name]:,}" for name in ("differing", "uses", "pages"))
        listed.append((*numbers, row["template"]))
        uses += [
            (f"{call['uses']:,}", call["outcome"], *(_shortened(call[name]) for name in ("shown", "own")), call["call"])
            for call in row["calls"]
            if not call["is_same"]
        ]
    tables = [table_text(listed, right=range(3))] if found.templates else []
    tables += [table_text(uses, right=[0])] if len(uses) > 1 else []
    title = "The running text of the articles uses no templates."
    if found.uses:
        title = (
            f"{found.differing:,} of {counted(found.uses, 'uses')} differ from the page. They belong to "
            f"{found.n_differing_templates:,} of {counted(found.n_templates, 'templates')}."
        )
    return Summary(
        title=styled(title, "green" if found.uses else "red"),
        rows=record_rows(found.counts, "compared"),
        text="\n\n".join([*tables, *rejected_text(found.counts)]),
        values={
            **record_values(found.counts),
            "pages": found.counts.pages,
            "uses": found.uses,
            "differing": found.differing,
            "n_templates": found.n_templates,
            "n_differing_templates": found.n_differing_templates,
            "templates": found.templates,
        },
        is_ok=found.uses > 0,
    )


def diff(
    old: Release,
    new: Release,
    /,
    *,
    output: FolderPath,
    memory: Annotated[Megabytes, Parameter(metavar="MB", validator=Number(gte=100, lte=1 << 26))] = 1000,
    threads: Threads | None = None,
    reverse: bool = False,
) -> Summary:
    """Compare two releases page by page.

    Compares two releases of one wiki. Finds pages that changed, pages that were renamed, merged, split or recreated,
    pages that are gone or new, and the same for sections. Also finds the new position of each part of an old page's
    text. Writes tables and a report. Needs pip install 'kbsource[diff]'.

    Args:
        old: Folder of the older release.
        new: Folder of the newer release, of the same wiki.
        output: New local folder for the diff.
        memory: Maximum memory for joining the two releases, in MB; data beyond it is written to disk.
        threads: Number of threads for joining the two releases; by default one per core.
        reverse: Compare backwards: OLD is the later release, and NEW the earlier one.

    Examples:
        kbsource diff releases/enwiki-20190801 releases/enwiki-20261001 --output diffs/enwiki-2019-2026
        kbsource verify diffs/enwiki-2019-2026 --old releases/enwiki-20190801 --new releases/enwiki-20261001
    """
    from kbsource.diff.kind import doubts
    from kbsource.diff.making import make_diff

    seen = Done(0, 1, unit="releases")

    def see(unit: str, n_done: int, n_total: int) -> None:
        nonlocal seen
        seen = Done(n_done, n_total, unit=unit)

    with Progress().stage("diff", lambda: seen):
        n_threads = threads or os.cpu_count() or 1
        made = make_diff(old, new, output, memory_mb=memory, threads=n_threads, reverse=reverse, on_step=see)
    counts, text = made["counts"], made["text"]
    return Summary(
        rows=[
            *((f"pages {outcome}", n) for outcome, n in counts["page_changes"].items()),
            ("text kept", f"{100 * text['kept_share']:.2f} %"),
            ("items moved", made["flags"]["qid_moved"]),
            *((f"redirects {outcome}", n) for outcome, n in counts["redirect_changes"].items()),
        ],
        text="\n".join(doubts(made)),
        next=command_line("verify", output, "--old", old, "--new", new),
        values={"output": output, **made},
    )
