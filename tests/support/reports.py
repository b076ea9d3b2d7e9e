"""Small releases of rows written by hand, for reports; and what an HTML report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

from kbsource.release.kind import ListingKind
from kbsource.release.manifest import InnerRelease
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.document import Document, to_markdown
from mapping.inspector.app import report_on
from mapping.inspector.opened import close_releases, open_releases
from mapping.schema import ALIGNMENTS as ALIGNMENT_ROWS
from mapping.schema import TABLES, VERIFICATION
from mapping.sources.source import Split, Tally
from mapping.write.kind import ALIGNMENT, write_report
from mapping.write.report import report_values

RELEASE = {"wiki": "enwiki", "dump_date": "20260101", "manifest_sha256": "0" * 64}
JUDGED = pa.schema([*ALIGNMENT_ROWS, *VERIFICATION])


def write_listing(
    folder: Path,
    kind: ListingKind,
    tables: Mapping[str, tuple[pa.Schema, Iterable[Mapping[str, Any]]]],
    *,
    report: Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]],
    facts: Mapping[str, Any],
    parts: Sequence[InnerRelease] = (),
) -> Path:
    """Writes a finished release of some kind; columns that a row lacks are null.

    Args:
        report: its report, or a function that makes it from the facts with the counts.
        parts: releases that lie in it.
    """
    output = str(folder)
    kept = [part.folder for part in parts]
    with ReleaseFolder(output, kind=kind, kept=kept):
        pass
    files = [
        write_rows(([row.get(name) for name in schema.names] for row in rows), table, schema, output=output)
        for table, (schema, rows) in tables.items()
    ]
    facts = with_counts(kind, files, facts, output)
    files.append(write_report(report(facts) if callable(report) else report, output=output))
    commit(kind, kind.listing(files, facts), output, kept=kept)
    return folder


def span_row(ordinal: int, score: float | None, **values: Any) -> dict[str, Any]:
    """A row of the table of alignments."""
    return {
        "ordinal": ordinal, "example_id": f"r{ordinal}", "output": 0, "evidence": 0, "file": "f", "line": 1,
        "page_kind": "title", "page_value": "Brack", "evidence_text": "It has 5 isles.", "outcome": "near",
        "page_id": 1, "title": "Brack", "hops": 0, "score": score, "text": "It has 6 isles.", "is_written": True,
        **values,
    }  # fmt: skip


def write_alignment(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    schema: pa.Schema = ALIGNMENT_ROWS,
    dataset: str = "fever",
    split: Split = "dev",
    **tables: tuple[pa.Schema, Iterable[Mapping[str, Any]]],
) -> Path:
    """Writes an alignment of records of one evidence each."""
    records = [
        {
            "ordinal": row["ordinal"],
            "example_id": row["example_id"],
            "file": "f",
            "line": 1,
            "outcome": "written",
            "n_spans": 1,
            "outputs": [{"form": "whole", "reason": None, "n_spans": 1}],
        }
        for row in rows
    ]
    tables = {
        "records": (TABLES["records"], records),
        "alignments": (schema, rows),
        "misses": (TABLES["misses"], ()),
        **tables,
    }
    n_read = len([*tables["records"][1]])
    facts = {
        "dataset": dataset,
        "split": split,
        "release": RELEASE,
        "options": {"threshold": 0.5},
        "records": {"read": n_read},
    }
    report = partial(report_values, Tally(), dataset=dataset, split=split)
    return write_listing(folder, ALIGNMENT, tables, report=report, facts=facts)


class Shown(HTMLParser):
    """What a page shows: its texts, and its tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def text(self) -> str:
        """All of it, blanks as one."""
        return " ".join("".join(self.texts).split())


def report_of_releases(*paths: Path) -> Document:
    """What is said of releases."""
    releases = open_releases([str(path) for path in paths])
    try:
        return report_on(releases)
    finally:
        close_releases(releases)


def report_text(*paths: Path) -> str:
    """The same as Markdown."""
    return to_markdown(report_of_releases(*paths))
