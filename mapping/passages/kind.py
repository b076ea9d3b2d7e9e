"""The kind of release that a corpus of passages is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbsource.release.kind import ListingKind
from kbsource.release.manifest import ListingManifest
from mapping.passages.forms import FORMS, line_forms
from mapping.passages.schema import TABLES

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

RULES = {
    "passage_law": "a passage is not built as such, or not in its place",
    "duplicate_page": "the passages of a page stand in two places",
    "passage_differs": "a passage is not what its page gives",
    "line_differs": "a line is not what the table says",
}
"""Every law and what it means that it is broken."""


def _check(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    from mapping.passages.check_corpus import check_corpus  # needs numpy, which reading does not

    return check_corpus(checking)


PASSAGES_CORPUS = ListingKind(
    name="corpus of passages",
    format="kbsource-passages-2",
    made_by="kbsource passages",
    tables=TABLES,
    required=tuple(TABLES),
    files=tuple(dict.fromkeys(form.folder for form in line_forms(FORMS))),
    rules=RULES,
    check=_check,
    made_from=("kb",),
)
