"""What a build is made from: the dump, looked at and hashed, and the files beside it. Nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbsource.dump.check import CheckReport, DumpFinding, check_dump
from kbsource.dump.digests import HashedFile, hash_file
from kbsource.dump.ranges import DumpRange, expand_inputs, plan_ranges
from kbsource.dump.siteinfo import merge_siteinfo_json, read_siteinfo_json, siteinfo_database
from kbsource.dump.sql import page_props_database
from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, base_name, sha256_of
from kbsource.pages.page_items import check_site
from kbsource.release.manifest import InputFile
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.wikidata.reader import WikidataTables
from pipelines.options.build import BuildOptions
from pipelines.progress import Done, Progress
from pipelines.stores.dump_files import check_names, range_size
from pipelines.stores.storage import absolute, storage_for

# What allowing a truncated dump makes no error of: all that a file that breaks off is bound to show.
_SIGNS_OF_TRUNCATION = frozenset({"truncated_dump", "size_mismatch", "checksum_mismatch", "index_beyond_end"})
# Damage in the content is counted, recorded, and judged by the ceiling.
_DAMAGE = frozenset({"damaged_block", "damaged_gzip", "trailing_garbage"})


class BadDumpError(DataError):
    """The check of the dump found errors; nothing was written."""

    def __init__(self, findings: Sequence[DumpFinding]) -> None:
        super().__init__("The dump is not in order, nothing was built.")
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """What a build is made from.

    Attributes:
        site: facts of the wiki.
        schema_version: of the dump's XML; empty where it does not say.
        ranges: that the dump is read in.
        wikidata: release of Wikidata; None without.
        titles: of the pages that are wanted, in normal form; None for all.
        files: all files that are read, the dump's first, for the manifest.
        hashed: the files of the dump, and page_props, by path, to be read as what they were.
    """

    site: Site
    schema_version: str
    ranges: tuple[DumpRange, ...]
    wikidata: WikidataTables | None
    titles: frozenset[str] | None
    files: tuple[InputFile, ...]
    hashed: dict[str, HashedFile]


def read_inputs(options: BuildOptions, *, storage: Storage, progress: Progress) -> BuildInputs:
    """Checks and hashes everything that a build reads.

    Args:
        options: what to build.
        storage: of the dump.
        progress: shows how far the check has come, and what it found.

    Raises:
        BadDumpError: the dump has errors.
        SetupError: a file is missing or not what it should be.
    """
    _check_paths(options)
    props = options.page_props
    database = None if props is None else page_props_database(props, storage_for(props))
    paths = [absolute(path) for path in expand_inputs(options.dump, storage)]
    check_names(paths)
    n_bytes = sum(storage.size(path) for path in paths)
    report = _check(paths, n_bytes, options, storage, progress)
    assert report.header is not None  # a dump without a readable head has an error
    site = report.header.site
    _check_same_wiki("--page-props", props, database, site)
    if options.siteinfo is not None:
        siteinfo = read_siteinfo_json(options.siteinfo, storage_for(options.siteinfo))
        _check_same_wiki("--siteinfo", options.siteinfo, siteinfo_database(siteinfo), site)
        site = merge_siteinfo_json(site, siteinfo)
    wikidata = None if options.wikidata is None else _wikidata(options.wikidata, site)
    titles = None if options.only_titles is None else _titles(options.only_titles, site)
    hashed = {input_.path: input_.hashed for input_ in report.inputs}
    if props is not None:
        hashed[absolute(props)] = hash_file(absolute(props), storage_for(props))
    range_bytes = options.range_bytes or range_size(n_bytes)
    if options.limit_pages is not None:
        range_bytes = max(n_bytes, 1)
    return BuildInputs(
        site=site,
        schema_version=report.header.schema_version or "",
        ranges=tuple(plan_ranges(paths, storage, range_bytes=range_bytes)),
        wikidata=wikidata,
        titles=titles,
        files=_files(report, options, wikidata, hashed),
        hashed=hashed,
    )


def fatal_findings(report: CheckReport, *, allow_truncated: bool) -> list[DumpFinding]:
    """Gives the findings that forbid a build."""
    passed = _DAMAGE | _SIGNS_OF_TRUNCATION if allow_truncated else _DAMAGE
    return [finding for finding in report.findings if finding.severity == "error" and finding.code not in passed]


def finding_line(finding: DumpFinding) -> str:
    """Gives a finding for reading."""
    where = f"{finding.file}: " if finding.file else ""
    return f"{finding.severity}: {where}{finding.message} {finding.remedy}".rstrip()


def _check_paths(options: BuildOptions) -> None:
    for name, path in (
        ("--page-props", options.page_props),
        ("--wikidata", options.wikidata),
        ("--siteinfo", options.siteinfo),
        ("--only-titles", options.only_titles),
    ):
        if path is not None and not storage_for(path).exists(path):
            raise SetupError(f"{path} does not exist; check the path given with {name}.")


def _check_same_wiki(flag: str, path: str | None, database: str | None, site: Site) -> None:
    if database and site.dbname and database != site.dbname:
        raise SetupError(
            f"{path} is of {database}, the dump of {site.dbname}: its numbers mean other pages and namespaces. Give "
            f"the file of {site.dbname} with {flag}, or leave it out."
        )


def _check(
    paths: Sequence[str], n_bytes: int, options: BuildOptions, storage: Storage, progress: Progress
) -> CheckReport:
    """Checks and hashes the dump."""
    done = 0

    def add(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes

    with progress.stage("check", lambda: Done(done, n_bytes)):
        report = check_dump(paths, storage, on_progress=add)
    fatal = fatal_findings(report, allow_truncated=options.allow_truncated)
    for finding in report.findings:
        if finding.severity != "info" and finding not in fatal:
            progress.note(finding_line(finding))
    if fatal:
        raise BadDumpError(fatal)
    return report


def _wikidata(path: str, site: Site) -> WikidataTables:
    tables = WikidataTables.open(path, storage_for(path))
    check_site(tables, site)
    return tables


def _titles(path: str, site: Site) -> frozenset[str]:
    with storage_for(path).open_read(path) as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SetupError(f"{path} is not in UTF-8 ({error}); convert it.") from error
    titles = frozenset(normalise_title(line, site) for line in lines if line.strip())
    if not titles:
        raise SetupError(f"{path} holds no title; write one a line.")
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
        given.append(("wikidata/manifest.json", wikidata.manifest_path))
    for name, path in given:
        storage = storage_for(path)
        files.append(InputFile(name, storage.size(path), sha256_of(storage, path)))
    return tuple(files)
