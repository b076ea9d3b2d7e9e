"""The build: one pipeline turns a dump into a release.

The dump is scanned in ranges. One worker builds the index of all titles. Articles are parsed chunk by chunk with this
index, and are then joined into files. One worker writes the small tables and finally the manifest.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from kbsource.dump.check import CheckReport, DumpFinding, dump_findings
from kbsource.dump.compressed.damage import TRAILING_GARBAGE
from kbsource.dump.compressed.streams import DAMAGES
from kbsource.dump.dates import check_one_day, check_revision_days, day_of
from kbsource.dump.digests import HashedFile, hash_file, write_hashes
from kbsource.dump.ranges import DumpRange, expand_inputs, from_root, plan_ranges, range_size, size_of
from kbsource.dump.rejects import check_fallbacks, check_rejects
from kbsource.dump.siteinfo import merge_siteinfo_json, read_siteinfo_json
from kbsource.dump.sql import page_props_database
from kbsource.errors import DataError, SetupError
from kbsource.files import Folder, absolute, base_name, is_local, join
from kbsource.index.mapped_files import local_index
from kbsource.index.title_index import TitleIndex
from kbsource.pages.articles import HTML_PARSER
from kbsource.pages.assembly import Indexes, assemble, rejected_records
from kbsource.pages.page_items import check_site
from kbsource.pages.shards import FALLBACKS_NAMED, Shard, ShardReport, plan_shards, read_shard, write_page_shard
from kbsource.pages.staging import ScanReport, Selection, lost_pages, part_path, read_report
from kbsource.release.layout import INDEX, MANIFEST, check_output
from kbsource.release.manifest import InputFile, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_hashes, check_same_facts
from kbsource.runtime.chunks import ChunkKey
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.wikidata.kind import WikidataTables
from pipelines.disk_use import measured_disk_use
from pipelines.jobs.build_sample import sample_build
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.build import BuildOptions
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.presets import LOCAL, beam_flags
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import do, installation_facts
from pipelines.transforms.pages import ParseWikitext
from pipelines.transforms.wikipedia import (
    BuildDefinitions,
    BuildTitleIndex,
    FindChanges,
    Items,
    Scanning,
    index_to_work_on,
    scan_ranges,
)

_HASHES = "hashes.json"
STORE = "store"
_TAKEN = ("pages", "dependencies", "refs", "ref_uses", "definitions")
# Options that decide which pages are included, but do not affect how a page is parsed.
_FREE = frozenset(
    "as_of only_titles limit_pages max_rejects max_fallbacks allow_truncated range_bytes record_dependencies".split()
)


# Findings that are not errors if truncated dumps are allowed: every truncated file has them.
_SIGNS_OF_TRUNCATION = frozenset({"truncated_dump", "size_mismatch", "checksum_mismatch", "index_beyond_end"})
# Damage in the content is counted and recorded, and checked against ``--max-rejects``.
_DAMAGE = DAMAGES | {TRAILING_GARBAGE}


class BadDumpError(DataError):
    """The dump has errors; nothing was written."""

    def __init__(self, findings: Sequence[DumpFinding]) -> None:
        super().__init__("The dump has errors, so nothing was built.")
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """The inputs of a build."""

    site: Site  # facts of the wiki
    schema_version: str  # schema version of the dump's XML; empty if it is not stated
    content: str  # source of the pages: wikitext or html
    ranges: tuple[DumpRange, ...]  # the ranges of the dump
    titles: frozenset[str] | None  # normalised titles of the requested pages; None for all
    files: tuple[InputFile, ...]  # all input files for the manifest, the dump's first
    hashed: dict[str, HashedFile]  # files of the dump, and page_props, by path, to detect changes


def read_inputs(options: BuildOptions, *, progress: Progress) -> BuildInputs:
    """Checks and hashes everything that a build reads.

    Raises:
        BadDumpError: the dump has errors.
        SetupError: a file is missing, or does not belong to this dump.
    """
    for name in ("page_props", "wikidata", "siteinfo", "only_titles"):
        path = getattr(options, name)
        if path is not None and not Folder.of(path).exists():
            raise SetupError(f"{path} does not exist; check the path given with --{name.replace('_', '-')}.")
    props = options.page_props
    database = None if props is None else page_props_database(props)
    paths = from_root(expand_inputs(options.dump))
    n_bytes = size_of(paths)
    sidecars = [path for path in (props, options.siteinfo) if path is not None]
    for path in sidecars:
        check_one_day((*paths[:1], absolute(path)))
    report = _check(paths, n_bytes, options, progress)
    assert report.header is not None  # a dump without a readable header has an error
    site = report.header.site
    content = "wikitext" if report.header.form == "xml" else "html"
    _check_templates(options, content)
    _check_same_wiki("--page-props", props, database, site)
    if options.siteinfo is not None:
        siteinfo = read_siteinfo_json(options.siteinfo)
        _check_same_wiki("--siteinfo", options.siteinfo, siteinfo.general.wikiid, site)
        site = merge_siteinfo_json(site, siteinfo)
    wikidata = None if options.wikidata is None else WikidataTables.open(options.wikidata)
    if wikidata is not None:
        check_site(wikidata, site)
    titles = None if options.only_titles is None else _titles(options.only_titles, site)
    hashed = {input_.path: input_.hashed for input_ in report.inputs}
    if props is not None:
        hashed[absolute(props)] = hash_file(absolute(props))
    range_bytes = max(n_bytes, 1) if options.limit_pages is not None else range_size(n_bytes, options.range_bytes)
    return BuildInputs(
        site=site,
        schema_version=report.header.schema_version or "",
        content=content,
        ranges=tuple(plan_ranges(paths, range_bytes=range_bytes)),
        titles=titles,
        files=_files(report, options, wikidata, hashed),
        hashed=hashed,
    )


def _check_templates(options: BuildOptions, content: str) -> None:
    if content == "html":
        if options.templates != "lua":
            raise SetupError(
                "The dump is a snapshot of HTML, whose templates are already rendered; leave out --templates."
            )
    elif options.templates == "lua":
        try:
            importlib.import_module("lupa.lua51")  # fail here rather than when the first module is called
        except ImportError as error:
            raise SetupError(
                "Running the Lua modules of templates requires lupa with Lua 5.1, which is not installed: pip install "
                "'kbsource[build]', or build without Lua modules with --templates definitions."
            ) from error


def finding_line(finding: DumpFinding) -> str:
    """Returns a finding as readable text."""
    where = f"{finding.file}: " if finding.file else ""
    return f"{finding.severity}: {where}{finding.message} {finding.remedy}".rstrip()


def _check_same_wiki(flag: str, path: str | None, database: str | None, site: Site) -> None:
    if database and site.dbname and database != site.dbname:
        raise SetupError(
            f"{path} belongs to {database}, but the dump to {site.dbname}, so its ids mean other pages and "
            f"namespaces. Give the file of {site.dbname} with {flag}, or leave the option out."
        )


def _check(paths: Sequence[str], n_bytes: int, options: BuildOptions, progress: Progress) -> CheckReport:
    """Checks and hashes the dump."""
    with progress.adding("check", n_bytes) as add:
        report = dump_findings(paths, on_progress=add)
    passed = _DAMAGE | _SIGNS_OF_TRUNCATION if options.allow_truncated else _DAMAGE
    fatal = [finding for finding in report.findings if finding.severity == "error" and finding.code not in passed]
    for finding in report.findings:
        if finding.severity != "info" and finding not in fatal:
            progress.note(finding_line(finding))
    if fatal:
        raise BadDumpError(fatal)
    return report


def _titles(path: str, site: Site) -> frozenset[str]:
    with Folder.of(path).open() as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SetupError(f"{path} is not in UTF-8 ({error}); convert it to UTF-8.") from error
    titles = frozenset(normalise_title(line, site) for line in lines if line.strip())
    if not titles:
        raise SetupError(f"{path} contains no title; write one per line.")
    return titles


def _files(
    report: CheckReport, options: BuildOptions, wikidata: WikidataTables | None, hashed: Mapping[str, HashedFile]
) -> tuple[InputFile, ...]:
    files = [InputFile(input_.name, input_.hashed.n_bytes, input_.hashed.sha256) for input_ in report.inputs]
    if options.page_props is not None:
        props = hashed[absolute(options.page_props)]
        files.append(InputFile(base_name(options.page_props), props.n_bytes, props.sha256))
    given = [(base_name(path), path) for path in (options.siteinfo, options.only_titles) if path]
    if wikidata is not None:
        given.append((f"wikidata/{MANIFEST}", join(wikidata.path, MANIFEST)))
    for name, path in given:
        files.append(InputFile(name, Folder.of(path).size(), Folder.of(path).sha256()))
    return tuple(files)


@dataclass(frozen=True, slots=True)
class BuildSummary(MadeRelease[PagesManifest]):
    """The result of a build."""

    titles_not_found: tuple[str, ...] = ()  # titles of ``only_titles`` that are not in the dump, sorted
    taken_over: int | None = None  # pages copied from the base; None without a base or if the runner does not report it
    peak_bytes: int | None = None  # the most that the output folder took during this run; None in a bucket


def check_base(options: BuildOptions, site: Site) -> PagesManifest:
    """Returns the manifest of the base, whose pages will be reused.

    Raises:
        SetupError: its pages may differ from those that this build would produce.
    """
    base = str(options.base)
    manifest = PAGES_RELEASE.read(base)
    if "dependencies" not in manifest.tables:
        raise SetupError(
            f"{base} has no table of dependencies, so no page can be reused. Build that release with "
            f"--record-dependencies."
        )
    own = {name: value for name, value in options.data_options().items() if name not in _FREE}
    old = {
        "code": manifest.code,
        "wiki's": {**manifest.dump.site, "generator": ""},
        "option": {name: manifest.options.get(name) for name in own},
    }
    code = {**code_facts(), "sha256": installation_facts()["sha256"]}
    check_same_facts(base, old, {"code": code, "wiki's": {**site.to_json(), "generator": ""}, "option": own})
    # Nothing else checks reused pages.
    check_hashes(base, [*manifest.files, *(entry for name in _TAKEN for entry in manifest.tables.get(name, ()))])
    return manifest


def build(options: BuildOptions, *, flags: Sequence[str], progress: Progress) -> BuildSummary:
    """Builds a release.

    Raises:
        BadDumpError: the dump has errors.
        DataError: too much of the dump cannot be used, or an invariant is violated.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # before anything else, because the flags configure access to stores
    output = absolute(options.output.rstrip("/") or "/")
    check_paths(flags, *options.dump, options.output)
    check_output(output)
    inputs = read_inputs(options, progress=progress)
    job = {"inputs": [asdict(file) for file in inputs.files], "options": options.data_options()}
    if options.base is not None:
        job["base"] = check_base(options, inputs.site).facts()
    with ReleaseFolder(output, kind=PAGES_RELEASE, job=job) as out:
        _build(pipeline, options, inputs, output=output, staging=out.staging)
        watched = measured_disk_use(output) if is_local(output) else nullcontext()
        with progress.stage("build", _poll(inputs, out.staging)), watched as use:
            is_partial = options.limit_pages is not None or inputs.titles is not None or options.base is not None
            sample = None if is_partial else partial(sample_build, partial(_build_part, options, inputs), inputs.ranges)
            steps = run_pipeline(pipeline, "build", counts=(counts := Counter[str]()), sample=sample)
    missing: tuple[str, ...] = ()
    if inputs.titles is not None:
        titles = TitleIndex.open(local_index(join(output, INDEX)))
        missing = tuple(sorted(title for title in inputs.titles if titles.find(title) is None))
    taken_over = counts["taken_over"] if counts and options.base is not None else None
    manifest, seconds = PAGES_RELEASE.read(output), time.monotonic() - started
    return BuildSummary(
        options.output,
        manifest,
        seconds,
        steps,
        titles_not_found=missing,
        taken_over=taken_over,
        peak_bytes=None if use is None else use.peak_bytes,
    )


def has_definitions(options: BuildOptions, content: str) -> bool:
    """Returns whether templates are rendered by their definitions; in HTML, they are already rendered."""
    return options.templates != "rules" and content == "wikitext"


def _build(pipeline: Any, options: BuildOptions, inputs: BuildInputs, *, output: str, staging: str) -> None:
    """Constructs the pipeline that writes the release into a folder that is marked as unfinished."""
    beats = join(staging, "beats")
    hashes = join(staging, _HASHES)
    write_hashes(inputs.hashed, hashes)
    are_stated = inputs.content == "html"
    items = Items(inputs.site, _absolute(options.page_props), _absolute(options.wikidata), hashes, are_stated)
    selection = Selection(options.limit_pages, inputs.titles, has_definitions(options, inputs.content))
    dump = pipeline | "dump" >> scan_ranges(
        inputs.ranges, Scanning(inputs.site, options.as_of, selection, staging, hashes, beats)
    )
    rejects = {"options": options, "n_ranges": len(inputs.ranges), "staging": staging}
    paths = {part.path for part in inputs.ranges}
    undated = {base_name(path) for path in paths if day_of(path) is None} if options.as_of is None else set()
    checked = dump.counts | "checked" >> CollectSorted() | "ceiling" >> do(_check_scan, undated=undated, **rejects)
    index = dump.titles | "index" >> BuildTitleIndex(
        join(staging, INDEX), items=items, max_duplicates=options.max_rejects, after=checked
    )
    definitions = (
        dump.definitions | "definitions" >> BuildDefinitions(join(staging, STORE))
        if has_definitions(options, inputs.content)
        else None
    )
    base = _absolute(options.base)
    if base is not None:
        index |= "changes" >> FindChanges(base, generator=inputs.site.generator, definitions=definitions)
    pages = (
        dump.raw
        | "spread" >> beam.Reshuffle()
        | "pages"
        >> ParseWikitext(
            inputs.site,
            index,
            definitions=definitions,
            has_lua=options.templates == "lua",
            has_items=options.page_props is not None or options.wikidata is not None or are_stated,
            has_references=options.references,
            has_dependencies=options.record_dependencies,
            base=base,
            spreads_tables=options.spread_tables,
            parser=options.parser if inputs.content == "wikitext" else HTML_PARSER,
            folder=join(staging, "pages"),
            timeout_s=options.page_timeout_s,
            memory_bytes=options.worker_memory_bytes,
            beats=beats,
            removes_input=True,
        )
    )
    tables = {"has_references": options.references, "has_dependencies": options.record_dependencies}
    # The final step does not need the parts that grow with the dump.
    needed = replace(inputs, ranges=(), titles=None, hashed={})
    _ = (
        pages.chunks
        | "in order" >> CollectSorted()
        | "plan" >> do(plan_shards)
        | "spread files" >> beam.Reshuffle()
        | "write" >> do(_write_shard, output=output, staging=staging, **tables)
        | "written" >> CollectSorted()
        | "release" >> do(_commit, AsSingleton(index), inputs=needed, output=output, **rejects)
    )


def _build_part(
    options: BuildOptions, inputs: BuildInputs, ranges: Sequence[DumpRange], output: str, staging: str
) -> dict[str, float]:
    """Builds ranges with one worker, whatever is rejected, and returns the seconds of each step."""
    pipeline = new_pipeline(beam_flags(LOCAL, workers=1, beam_args=()))
    tolerant = replace(options, max_rejects=1.0, max_fallbacks=1.0)
    _build(pipeline, tolerant, replace(inputs, ranges=tuple(ranges)), output=output, staging=staging)
    return run_pipeline(pipeline, "sample")


def _check_scan(_: object, *, options: BuildOptions, undated: set[str], n_ranges: int, staging: str) -> Iterator[None]:
    """Ends the job before parsing if too much of the dump cannot be used or has another date."""
    scans = _scans(staging, n_ranges)
    _check_rejects(options, scans, (), staging=staging)
    if undated:
        days: dict[str, Counter[str]] = {}
        for report in scans:
            days.setdefault(report.file, Counter()).update(report.days)
        check_revision_days(days, undated)
    yield None


def _write_shard(shard: Shard, *, output: str, staging: str, **tables: bool) -> Iterator[tuple[ChunkKey, int]]:
    write_page_shard(shard, output=output, staging=staging, **tables)
    yield ChunkKey(shard.number, 0), shard.number


def _commit(
    element: list[tuple[ChunkKey, int]],
    index: str,
    *,
    options: BuildOptions,
    n_ranges: int,
    inputs: BuildInputs,
    output: str,
    staging: str,
) -> Iterator[str]:
    """Writes everything except the pages, the manifest last."""
    wikidata = _absolute(options.wikidata)
    with index_to_work_on(index) as (folder, scratch):
        scans = _scans(staging, n_ranges)
        shards = [read_shard(staging, number)[1] for _, number in element]
        _check_rejects(options, scans, shards, staging=staging)
        _check_fallbacks(options, shards)
        manifest = assemble(
            scans,
            shards,
            Indexes.read(folder),
            output=output,
            staging=staging,
            scratch=scratch,
            site=inputs.site,
            schema_version=inputs.schema_version,
            content=inputs.content,
            inputs=inputs.files,
            options=options.data_options(),
            wikidata=None if wikidata is None else WikidataTables.open(wikidata),
            code={**code_facts(), "sha256": installation_facts()["sha256"]} if options.record_dependencies else None,
            definitions=local_index(join(staging, STORE))
            if options.record_dependencies and has_definitions(options, inputs.content)
            else None,
        )
        commit(PAGES_RELEASE, manifest, output)
    yield output


def _scans(staging: str, n_ranges: int) -> list[ScanReport]:
    return [read_report(staging, part) for part in range(n_ranges)]


def _check_rejects(
    options: BuildOptions, scans: Sequence[ScanReport], shards: Sequence[ShardReport], *, staging: str
) -> None:
    rejected: Counter[str] = Counter()
    for report in scans:
        rejected.update(report.rejected)
    for shard in shards:
        for reasons in shard.rejected.values():
            rejected.update(reasons)
    check_rejects(
        rejected,
        sum(report.n_pages for report in scans),
        max_share=options.max_rejects,
        allow_truncated=options.allow_truncated,
        loss=lost_pages(scans),
        first=rejected_records(scans, shards, (), staging),
    )


def _check_fallbacks(options: BuildOptions, shards: Sequence[ShardReport]) -> None:
    statuses: Counter[str] = Counter()
    for report in shards:
        statuses.update(report.statuses)
    first = [page for report in shards for page in report.fallbacks][:FALLBACKS_NAMED]
    check_fallbacks(statuses, first, max_share=options.max_fallbacks)


def _absolute(path: str | None) -> str | None:
    return None if path is None else absolute(path)


def _poll(inputs: BuildInputs, staging: str) -> Callable[[], Done]:
    """Returns a function that reports the progress, such as how much of the dump has been read."""
    n_bytes = sum(part.end - part.start for part in inputs.ranges)
    scanned, parsed = beats_in(join(staging, "beats"), "scan-"), beats_in(join(staging, "beats"), "chunks-")
    text_bytes = 0

    def poll() -> Done:
        nonlocal text_bytes
        scan = scanned()
        if scan.amount_done < n_bytes:
            return Done(scan.amount_done, n_bytes, scan.pages_done, step="reading the dump")
        if not text_bytes and Folder.of(part_path(staging, "scan", len(inputs.ranges) - 1)).exists():
            text_bytes = sum(chunk.n_bytes for report in _scans(staging, len(inputs.ranges)) for chunk in report.chunks)
        if not text_bytes:
            return Done(0, 0, step="indexing titles")
        pages = parsed()
        step = "parsing articles" if pages.amount_done < text_bytes else "writing tables"
        return Done(pages.amount_done, text_bytes, pages.pages_done, step=step)

    return poll
