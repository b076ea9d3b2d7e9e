"""Two releases of pages -> a diff: what became of every page, section and span, and a report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.diff.comparing import COMPARED_SCHEMA, STAGED, Compared, compare_pages
from kbsource.diff.fingerprints import write_fingerprints
from kbsource.diff.joins import COMPARED, PAGE_ROWS, REDIRECT_ROWS, SECTION_ROWS, SPAN_ROWS, TITLE_MAP, Joins
from kbsource.diff.kind import RELEASE_DIFF, REPORT, TEXT_REPORT, TITLE_MAP_FILE
from kbsource.diff.page_texts import PageTexts
from kbsource.diff.report import FLAGS, MOST_CHANGED_PAGES, report_text, share
from kbsource.diff.schema import PAGE_OUTCOMES, REDIRECT_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES, TABLES
from kbsource.errors import SetupError
from kbsource.files import LocalStorage, Storage, is_local
from kbsource.release.intact import check_hashes
from kbsource.release.manifest import ListingManifest, canonical_json, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_batches, write_lines

_READ = ("pages", "redirects")
_QUERIES = {
    "page_changes": (PAGE_ROWS, PAGE_OUTCOMES),
    "section_changes": (SECTION_ROWS, SECTION_OUTCOMES),
    "span_changes": (SPAN_ROWS, SPAN_OUTCOMES),
    "redirect_changes": (REDIRECT_ROWS, REDIRECT_OUTCOMES),
}


class DiffOptions(NamedTuple):
    """What a diff may take; no option changes what is written.

    Attributes:
        memory_mb: that joins take at most, in MB (10^6 bytes).
        threads: of joins.
    """

    memory_mb: int = 1000
    threads: int = 2


DEFAULTS = DiffOptions()


class DiffSummary(NamedTuple):
    """What was made.

    Attributes:
        manifest: of the diff.
        report: JSON values of its report.
    """

    manifest: ListingManifest
    report: dict[str, Any]


def make_diff(
    old: str,
    new: str,
    output: str,
    storage: Storage,
    *,
    options: DiffOptions = DEFAULTS,
    on_step: Callable[[str, int, int], None] = lambda unit, done, total: None,
) -> DiffSummary:
    """Compares two releases of one wiki.

    Memory: one row group, and of the joins what ``options`` allow. The staging takes 100 bytes a page, and the texts'
    places of the pages that changed.

    Args:
        old, new: folders of the releases, whose files are hashed first.
        output: local folder, which is made.
        storage: of both releases.
        options: for the joins.
        on_step: told what is worked on, how many are done, and of how many.

    Raises:
        SetupError: a release is not what it was, the two are not of one wiki, or the folder cannot be written.
    """
    if not is_local(output):
        raise SetupError(f"--output {output}: joins need a local disk; name a folder of one, and copy it afterwards.")
    local = LocalStorage()
    with PageTexts(old, storage) as before, PageTexts(new, storage) as after:
        sides = {"old": (old, before), "new": (new, after)}
        facts = {name: texts.manifest.facts() for name, (_, texts) in sides.items()}
        if (first := facts["old"]["wiki"]) != (second := facts["new"]["wiki"]):
            raise SetupError(f"{old} is of {first}, {new} of {second}; name two releases of one wiki.")
        with ReleaseFolder(os.path.abspath(output), local, kind=RELEASE_DIFF) as out:
            os.makedirs(out.staging, exist_ok=True)
            with Joins(out.staging, memory_mb=options.memory_mb, threads=options.threads) as joins:
                for number, (name, (path, texts)) in enumerate(sides.items()):
                    on_step("releases", number, len(sides))
                    for table in _READ:
                        check_hashes(path, texts.manifest.tables[table], storage)
                    write_fingerprints(path, texts.manifest, storage, output=out.staging, name=name)
                    for table in _READ:
                        joins.add(f"{name}_{table}", os.path.join(out.staging, f"{name}_{table}.parquet"))
                joins.match()
                _compare(joins, before, after, out.staging, on_step)
                counts: dict[str, Counter[str]] = {table: Counter() for table in TABLES}
                entries = [
                    write_batches(
                        _counted(joins.batches(query, TABLES[table]), counts[table]),
                        table,
                        TABLES[table],
                        output=out.folder,
                        storage=local,
                    )
                    for table, (query, _) in _QUERIES.items()
                ]
                by_outcome = {
                    table: {outcome: counts[table][outcome] for outcome in outcomes}
                    for table, (_, outcomes) in _QUERIES.items()
                }
                moved = (f"{old_title}\t{new_title}\n".encode() for old_title, new_title in joins.rows(TITLE_MAP))
                entries.append(write_lines(moved, TITLE_MAP_FILE, output=out.folder, storage=local))
                report = {**facts, "counts": by_outcome, **_figures(joins)}
            for file, content in ((REPORT, canonical_json(report)), (TEXT_REPORT, report_text(report).encode())):
                entries.append(write_lines(content.splitlines(keepends=True), file, output=out.folder, storage=local))
            said = {**facts, "counts": by_outcome, "code": asdict(code_facts())}
            manifest = RELEASE_DIFF.listing(entries, said)
            commit(RELEASE_DIFF, manifest, out.folder, local)
    return DiffSummary(manifest, report)


def _compare(
    joins: Joins, before: PageTexts, after: PageTexts, folder: str, on_step: Callable[[str, int, int], None]
) -> None:
    [(n_pages,)] = joins.rows(f"select count(*) from ({COMPARED})")
    n_done = 0

    def see() -> None:
        nonlocal n_done
        n_done += 1
        on_step("pages", n_done, n_pages)

    rows = (
        Compared(*values)
        for batch in joins.batches(COMPARED, COMPARED_SCHEMA)
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    compare_pages(rows, before, after, folder=folder, on_page=see)
    for table in STAGED:
        joins.add(table, os.path.join(folder, f"{table}.parquet"))


def _counted(batches: Iterator[pa.RecordBatch], counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        counts.update(batch["outcome"].to_pylist())
        yield batch


def _figures(joins: Joins) -> dict[str, Any]:
    """Gives what a report says beside the counts by outcome."""
    [(text_changed, title_changed, qid_moved, old_chars, kept_chars)] = joins.rows(FLAGS)
    names = ("title", "old_page_id", "outcome", "old_chars", "new_chars", "kept_chars")
    most_changed = [dict(zip(names, row, strict=True)) for row in joins.rows(MOST_CHANGED_PAGES)]
    return {
        "flags": {"text_changed": text_changed, "title_changed": title_changed, "qid_moved": qid_moved},
        "text": {"old_chars": old_chars, "kept_chars": kept_chars, "kept_share": share(kept_chars, old_chars)},
        "most_changed": [{**row, "kept": share(row["kept_chars"], row["old_chars"])} for row in most_changed],
    }
