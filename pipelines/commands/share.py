"""Commands that prepare releases for others: for a dataset hub, as text, and in KILT's format."""

from __future__ import annotations

import dataclasses
import datetime
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from kbsource.errors import SetupError, counted
from kbsource.files import absolute
from kbsource.parts import KINDS, split_names
from mapping.options import (
    LARGEST,
    LONGEST_NAME,
    FolderPath,
    Like,
    NewFileOrPipe,
    Release,
    Short,
    Title,
    check_ending,
    ending_of,
    whole_number,
)
from mapping.publish.subject import LICENCES, rights_of
from pipelines.progress import Progress, size
from pipelines.terminal import Summary, command_line, nearest, table_text

AtLeast8 = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=8, lte=LARGEST))]


def _part_names(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Parses the names of page parts from lists with commas.

    Raises:
        ValueError: a list cannot be split, or contains no name.
    """
    try:
        names = tuple(name for token in tokens for name in split_names(token.value))
    except SetupError as error:
        raise ValueError(str(error)) from error
    if not names:
        raise ValueError(f"It contains no name. Give {', '.join(KINDS)}, or headings of sections.")
    return names


PartNames = Annotated[
    tuple[str, ...],
    Parameter(metavar="A,B", converter=_part_names, n_tokens=1, accepts_keys=False, validator=Short(LONGEST_NAME)),
]


def _day(type_: Any, day: str | None) -> None:
    try:
        datetime.date.fromisoformat(day or "2026-12-01")
    except ValueError:
        raise ValueError("Write it like 2026-12-01.") from None


def publish(
    release: Release,
    /,
    *,
    output: FolderPath,
    link: bool = False,
    copy: bool = False,
    licence: Annotated[
        str | None,
        Parameter(
            metavar="ID",
            choices=tuple(LICENCES),
            help="Licence of the text. Give it if the text is not Wikipedia's, or if no manifest contains the date of "
            "the dump.",
        ),
    ] = None,
    repo_id: Annotated[
        str | None,
        Parameter(metavar="OWNER/NAME", validator=Like(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", "OWNER/NAME")),
    ] = None,
    date: Annotated[str | None, Parameter(metavar="DATE", validator=_day)] = None,
) -> Summary:
    """Prepare a release for upload to a dataset hub.

    Makes a folder with the unchanged files of a release of any kind and with files that describe the release: a dataset
    card, croissant.json, LICENSE, ATTRIBUTION.md, CITATION.cff and prov.json. The release itself is not changed.

    Args:
        release: Folder of a release of any kind.
        output: New or empty folder.
        link: Make hard links to the files of the release; fail if that is not possible.
        copy: Copy the files; by default they are hard-linked if possible, else copied.
        repo_id: Name of the repository on the hub, for the links and commands in the dataset card.
        date: Day of publication, like 2026-12-01.

    Examples:
        kbsource publish releases/enwiki-20261001 --output published/enwiki-20261001
        kbsource publish aligned --output published/aligned --copy --repo-id lab/aligned --date 2026-12-01
    """
    from mapping.kinds import KINDS
    from mapping.publish.folder import publish_release as prepare

    if link and copy:
        raise SetupError("--link and --copy exclude each other; leave one out.")
    with Progress().counting("publish") as see:
        subject = prepare(
            release,
            absolute(output),
            KINDS,
            link_mode="link" if link else "copy" if copy else "auto",
            licence=licence,
            repo_id=repo_id,
            day=date,
            on_progress=see,
        )
    upload = shlex.join(("hf", "upload", repo_id or "OWNER/NAME", output, "--repo-type", "dataset"))
    notes = [right.note for right in rights_of(subject) if right.note]
    return Summary(
        text="\n".join((*notes, f"The command hf of huggingface_hub uploads it: {upload}")),
        title=f"{output}: {subject.title}, ready to be uploaded.",
        values={"output": output, "title": subject.title},
        next=command_line("verify", output),
    )


def catalogue(folder: FolderPath, /) -> Summary:
    """List the releases in a folder, and what each was made from.

    Lists every release in a folder and up to three folder levels below it: name, kind, rows, size, and which of the
    other releases it was made from. All of this comes from the manifests; a source is recognised by the hash of its
    manifest. If the environment variable KBSOURCE_RELEASES is set to the folder, every command accepts these names.

    Args:
        folder: Folder with releases of any kind.

    Examples:
        kbsource catalogue releases
        KBSOURCE_RELEASES=releases kbsource show enwiki@20261001 "Alan Turing"
    """
    from kbsource.catalogue import entries_in

    entries = list(entries_in(folder))
    if not entries:
        raise SetupError(
            f"{folder}: no release was found here or in up to three folder levels below; name the folder "
            f"that contains your releases."
        )
    paths = {entry.sha256: entry.path for entry in entries}
    rows: list[tuple[str, ...]] = [("folder", "name", "kind", "rows", "size", "made from")]
    values = []
    for entry in entries:
        origins = {what: paths.get(sha256) or f"{sha256[:12]}, not here" for what, sha256 in entry.made_from}
        kind = "pages" if entry.form == "release" else entry.form
        made_from = ", ".join(dict.fromkeys(origins.values()))
        rows.append(
            (entry.path, entry.name or "", kind, f"{entry.rows:,}" if entry.rows else "", size(entry.bytes), made_from)
        )
        values.append({**dataclasses.asdict(entry), "name": entry.name, "made_from": dict(entry.made_from)})
    first = next((entry.path for entry in entries if entry.form == "release"), entries[0].path)
    return Summary(
        text=table_text(rows, right=(3, 4)), values=values, next=command_line("info", os.path.join(folder, first))
    )


def export(
    release: Release,
    pages: Annotated[tuple[Title, ...], Parameter(metavar="PAGE")] = (),
    /,
    *,
    output: NewFileOrPipe = "-",
    format: Literal["text", "markdown", "html", "jsonl"] | None = None,
    text: Literal["plain", "body", "markdown"] | None = None,
    without: PartNames = (),
    links: bool = False,
    by: Literal["page", "section"] = "page",
    max_tokens: AtLeast8 | None = None,
) -> Summary:
    """Write the pages of a release as text, Markdown, HTML or JSON Lines.

    Writes whole pages, with formulas as TeX between dollar signs. In JSON Lines, each line is a page, a section, or a
    chunk with a maximum number of tokens. It has id, url, title and text, as loaders of Wikipedia text expect, and in
    Markdown also item, revision and time. The command needs little memory, whatever the size of the release.

    Args:
        release: Folder of a release of pages.
        pages: Titles, page ids, URLs or Wikidata items; by default all pages, in the order of the release.
        output: File; appears when it is complete, and is compressed if its name ends in .gz, .zst or .bz2. If the name
            contains a *, one file is written for each file of pages in the release, with its number instead of the *. -
            writes to the standard output.
        format: Format of the output; by default chosen by the extension of --output (.txt, .md, .html, .jsonl), else
            text.
        text: How much of a page is written, for text and JSON Lines. plain: paragraphs and headings, starting at the
            first sentence (default for text). body: also lists, indented lines and tables. markdown: also the title and
            infoboxes (default for JSON Lines).
        without: Parts to leave out: infoboxes, tables, lists, headings, or sections. Name sections by their headings in
            the wiki's language, such as "references, see also, external links". Case does not matter. Subsections are
            left out with their section. Put a heading that contains a comma in double quotes.
        links: Include links to other pages of the wiki, in HTML and in Markdown, also in the Markdown inside JSON
            Lines.
        by: What a line of JSON Lines contains.
        max_tokens: Split each line into chunks of at most N tokens (words and other signs). Chunks end after a
            paragraph if possible, else after a sentence.

    Examples:
        kbsource export releases/enwiki-20261001 --text plain --output 'enwiki/part-*.jsonl.zst'
        kbsource export releases/enwiki-20261001 --without 'references, see also, external links' --output enwiki.txt
        kbsource export releases/enwiki-20261001 'Alan Turing' --format markdown --links
        kbsource export releases/enwiki-20261001 --by section --max-tokens 400 --output s3://lake/enwiki.jsonl.gz
    """
    from kbsource.export import COMPRESSIONS, ExportOptions, export_pages
    from kbsource.lookup import KnowledgeSource

    if os.path.isdir(output):
        raise SetupError(f"--output {output} is a folder; name a file, like {output.rstrip('/')}/part-*.jsonl.gz.")
    known: dict[str, Any] = {name: name for name in ("text", "markdown", "html", "jsonl")}
    form = format or known.get(ending_of(output, COMPRESSIONS), "text")
    check_ending("--output", output, form, fitting=[form], compressions=COMPRESSIONS)
    options = ExportOptions(form, text=text, without=without, has_links=links, by=by, max_tokens=max_tokens)
    with KnowledgeSource.open(release) as source, Progress().counting("export", "pages") as see:
        made = export_pages(source, output, options, titles=pages, on_progress=see)
    where = "the standard output" if (is_piped := output in ("-", "/dev/stdout")) else output
    said = f"{counted(made.n_pages, 'pages')} written to {where}, {counted(made.n_records, 'records')}."
    if is_piped:
        sys.stderr.write(f"{said}\n")
    for name in (name for name, n in made.n_sections.items() if not n):
        sys.stderr.write(
            f"kbsource export: warning: --without {shlex.quote(name)}: no section was left out, because no written "
            f"page has this heading.{nearest(name, KINDS)}\n"
        )
    if is_piped:
        return Summary()
    counts = {"pages": made.n_pages, "records": made.n_records, "bytes": made.n_bytes}
    return Summary(
        said,
        rows=[(f"sections left out: {name}", n) for name, n in made.n_sections.items()],
        values={"output": list(made.files), **counts, "sections_left_out": made.n_sections},
        next=command_line("inspect", release),
    )


def export_kilt(
    release: Release,
    /,
    *,
    output: NewFileOrPipe,
    form: Annotated[Literal["kilt", "hub"], Parameter("--format")] = "kilt",
    unresolved_redirects: bool = False,
    pre_dump: bool = False,
) -> Summary:
    """Write a release in the format of KILT's knowledge source.

    Writes one JSON record per line, in the order of the release, with the fields of the KILT knowledge source. If the
    release was built with --wikidata, wikidata_info has label, description and aliases. mongoimport and the datasets
    library load the file without changes.

    Args:
        release: Folder of a release of pages.
        output: JSON Lines file; appears when it is complete, and is compressed if its name ends in .gz, .zst or .bz2. -
            writes to the standard output.
        form: Format of the records. kilt: the published records; hub: rows of kilt_wikipedia, their copy on the Hugging
            Face hub. These rows have a value for every field, even if it is absent in the record.
        unresolved_redirects: Write links to redirects without wikipedia_title and wikipedia_id, as in the published
            records.
        pre_dump: Write history.pre_dump. KILT's documentation describes this field, but the published records lack it.

    Examples:
        kbsource export-kilt releases/enwiki-20261001 --output kilt_knowledgesource.jsonl
        kbsource export-kilt releases/enwiki-20261001 --output kilt_knowledgesource.jsonl.gz
    """
    from kbsource.export import COMPRESSIONS, opened_output
    from kbsource.kilt import KiltForm, write_kilt
    from kbsource.lookup import KnowledgeSource
    from kbsource.release.pages.reading import TABLE, PageItemsReader

    if os.path.isdir(output):
        raise SetupError(f"--output {output} is a folder; name a file, like {output.rstrip('/')}/kilt.jsonl.")
    check_ending("--output", output, "JSON Lines", fitting=["jsonl"], compressions=COMPRESSIONS)
    is_piped = output in ("-", "/dev/stdout")
    with (
        KnowledgeSource.open(release) as source,
        Progress().counting("export", "pages") as see,
        opened_output(output) as sink,
    ):
        n_pages, has_terms = len(source), TABLE in source.manifest.tables
        terms = PageItemsReader(release, source.manifest).terms if has_terms else None
        n_written = write_kilt(
            source,
            sink,
            terms=terms,
            form=KiltForm(pre_dump, resolves_redirects=not unresolved_redirects, is_hub=form == "hub"),
            on_progress=lambda n_done: see(n_done, n_pages),
        )
    called = "" if has_terms else " Items have only ids; to include their names, build the release with --wikidata."
    said = f"{counted(n_written, 'pages')} written to {'the standard output' if is_piped else output}.{called}"
    if is_piped:
        sys.stderr.write(f"{said}\n")
        return Summary()
    return Summary(
        said,
        values={"output": output, "pages": n_written},
        next=command_line("inspect", release),
    )
