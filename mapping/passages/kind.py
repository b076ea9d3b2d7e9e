"""The kind of release that a corpus of passages is."""

from __future__ import annotations

from kbsource.release.kind import ListingKind
from mapping.passages.check_corpus import RULES, check_corpus
from mapping.passages.forms import FORMS, line_forms
from mapping.passages.schema import TABLES

PASSAGES_CORPUS = ListingKind(
    name="corpus of passages",
    format="kbsource-passages-2",
    made_by="kbsource passages",
    tables=TABLES,
    required=tuple(TABLES),
    files=tuple(dict.fromkeys(form.folder for form in line_forms(FORMS))),
    rules=RULES,
    check=check_corpus,
    made_from=("kb",),
)
