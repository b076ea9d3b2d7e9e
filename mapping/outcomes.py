"""What can become of an evidence."""

from __future__ import annotations

UNFINISHED = ("search_timeout", "search_crash", "search_error")
"""The search for it took too long, or ended the process that did it, twice: by a signal or for want of memory, or by an
exception. ``search_`` and the way in which it ended."""
OUTCOMES = ("exact", "near", "weak", "page_only", "page_missing", "page_ambiguous", "empty_evidence", *UNFINISHED)
"""Everything that can become of an evidence; each ends in exactly one."""
MISSED = frozenset(("page_missing", "page_ambiguous", "empty_evidence", *UNFINISHED))
"""Those of them that lead to nothing that could be named."""
