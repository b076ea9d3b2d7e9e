"""What can become of an evidence."""

from __future__ import annotations

OUTCOMES = ("exact", "near", "weak", "page_only", "page_missing", "page_ambiguous", "empty_evidence")
"""Everything that can become of an evidence; each ends in exactly one."""
MISSED = frozenset(("page_missing", "page_ambiguous", "empty_evidence"))
"""Those of them that lead to no page that could be named."""
