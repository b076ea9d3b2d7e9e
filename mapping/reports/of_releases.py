"""The report on one or more releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kbsource.files import Storage
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.amber.kind import AMBER_SETS
from mapping.kinds import KINDS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.reports.alignment_report import alignment_document, alignments_document
from mapping.reports.amber_report import amber_document
from mapping.reports.any_report import any_document
from mapping.reports.document import Document, Section
from mapping.reports.pages_report import pages_document
from mapping.reports.qampari_report import qampari_document
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

_DOCUMENTS: dict[Kind[Any], Callable[[str, Any, Storage], Document]] = {
    PAGES_RELEASE: pages_document,
    ALIGNMENT: alignment_document,
    ALIGNMENTS: alignments_document,
    QAMPARI_RELEASE: qampari_document,
    AMBER_SETS: amber_document,
}
"""What is said of a release beside what is said of any."""


def report_on(paths: Sequence[str], storage: Storage) -> Document:
    """Gives the report on releases, a section each, in this order.

    Raises:
        SetupError: a folder holds no finished release of a known kind; a DataError for a damaged one.
    """
    reports = []
    for path in paths:
        kind = kind_of(read_content(path, storage), path, KINDS)
        manifest = kind.read(path, storage)
        known = _DOCUMENTS.get(kind)
        reports.append(known(path, manifest, storage) if known else any_document(kind, manifest))
    if len(reports) == 1:
        return reports[0]
    return Document(
        f"Report on {len(reports)} releases", tuple(Section(report.title, report.sections) for report in reports)
    )
