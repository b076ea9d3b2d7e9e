"""The maximum share of a dump that may be unusable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from kbsource.errors import DataError
from kbsource.records import BadRecord

LEAST_FALLBACKS = 10
"""Number of articles that the fallback may always extract. A thousandth of the articles of a small wiki would be less
than one.
"""
TRUNCATED = "truncated_dump"
SHOWN = 3
"""Number of rejected records shown if a ceiling is exceeded."""
_DETAIL_CHARS = 300
_CUT = ("page_cut", "line_cut")
DUPLICATE = "duplicate_page_id"
DAMAGED_BYTES, ESTIMATED_LOST = "damaged_bytes", "estimated_lost"
"""Names of two findings: the number of stored bytes that cannot be read, and an estimate of the number of records in
them.
"""


def loss_findings(n_read: int, *, n_bytes: int, damaged_bytes: int) -> dict[str, int]:
    """Returns the findings about damaged blocks, with an estimate of the number of records lost; empty without damage.

    >>> loss_findings(980, n_bytes=10_000, damaged_bytes=200)
    {'damaged_bytes': 200, 'estimated_lost': 20}
    """
    if not damaged_bytes:
        return {}
    lost = round(n_read * damaged_bytes / max(1, n_bytes - damaged_bytes))
    return {DAMAGED_BYTES: damaged_bytes, ESTIMATED_LOST: lost}


def check_rejects(
    n_rejected: Counter[str],
    n_pages: int,
    *,
    max_share: float,
    allow_truncated: bool,
    what: str = "pages",
    loss: Mapping[str, int] | None = None,
    first: Iterable[BadRecord] = (),
) -> None:
    """Checks that the rejected share of a dump is not too large.

    ``n_rejected`` is the number of pages and damaged parts by reason. ``max_share`` is the maximum share of the
    ``n_pages`` read that may be rejected. With ``allow_truncated``, a truncated dump is accepted, with one rejected
    page or line per file, which the truncation cuts. ``loss`` is the result of ``loss_findings``. ``first`` contains
    rejected records, of which three are shown.

    Raises:
        DataError: the share is too large. The message contains the reasons, and the option that accepts them.
    """
    if n_rejected[TRUNCATED] and not allow_truncated:
        raise DataError(
            f"Truncated files of the dump: {n_rejected[TRUNCATED]}. Download them again, or give --allow-truncated to "
            f"build from the readable part."
        )
    total = sum(n_rejected.values())
    if allow_truncated:
        n_breaks = n_rejected[TRUNCATED]
        total -= n_breaks + min(n_breaks, sum(n_rejected[reason] for reason in _CUT))
    n_lost = loss[ESTIMATED_LOST] if loss else 0
    share = (total + n_lost) / max(1, n_pages + n_lost)
    if share > max_share:
        reasons = ", ".join(f"{count} {reason}" for reason, count in n_rejected.most_common())
        lost = f", and about {n_lost} more lost in {loss[DAMAGED_BYTES]} damaged bytes" if loss else ""
        raise DataError(
            f"{total} of {n_pages} {what} rejected{lost}, {share:.3%}; the ceiling is {max_share:.3%} "
            f"(by reason: {reasons}). If this is acceptable, raise --max-rejects to at least "
            f"{rounded_up(share)}.{first_text(first)}"
        )


def first_text(rejected: Iterable[BadRecord]) -> str:
    """Returns the first three rejected records as lines of a message, with reason, position and detail; empty without
    rejected records.

    >>> print(first_text([BadRecord("read", "12", "text_missing", "no text", "ltgwiki.xml", 700)]).strip())
    The first of them:
      text_missing: ltgwiki.xml, 12: no text
    """
    lines = []
    for bad in islice(rejected, SHOWN):
        # The key is not repeated if the detail begins with it.
        key = "" if not bad.key or bad.detail.startswith(f"{bad.key}: ") else f", {bad.key}"
        lines.append(f"\n  {bad.reason}: {bad.file}{key}: {bad.detail[:_DETAIL_CHARS]}")
    return f" The first of them:{''.join(lines)}" if lines else ""


def check_fallbacks(statuses: Mapping[str, int], first: Iterable[tuple[int, str, str]], *, max_share: float) -> None:
    """Checks that not too many articles were extracted by the fallback.

    Args:
        statuses: number of articles by ``parse_status``.
        first: page id, title and status of some of them.
        max_share: highest share of the articles; ``LEAST_FALLBACKS`` articles are always allowed.

    Raises:
        DataError: there are too many. The message contains the first ones, and the option that accepts them.
    """
    n_articles = sum(statuses.values())
    n_fallbacks = n_articles - statuses.get("ok", 0)
    if n_fallbacks <= max(LEAST_FALLBACKS, max_share * n_articles):
        return
    share = n_fallbacks / n_articles
    reasons = ", ".join(f"{n} {status}" for status, n in statuses.items() if status != "ok")
    raise DataError(
        f"{n_fallbacks} of {n_articles} articles were extracted by a simpler method because the parser failed "
        f"({reasons}): {share:.3%}; the ceiling is {max_share:.3%}. The first are {named_fallbacks(first)}. If this "
        f"is acceptable, raise "
        f"--max-fallbacks to at least {rounded_up(share)}."
    )


def named_fallbacks(first: Iterable[tuple[int, str, str]]) -> str:
    """Formats the first pages that the fallback extracted, for people to read.

    >>> named_fallbacks([(12, "Anarchism", "fallback_error")])
    'Anarchism (page 12, fallback_error)'
    """
    return ", ".join(f"{title} (page {page_id}, {status})" for page_id, title, status in first)


def rounded_up(share: float) -> str:
    """Returns the next higher share with one significant digit, at most 1, as text.

    >>> rounded_up(0.25), rounded_up(0.00123), rounded_up(1.0)
    ('0.3', '0.002', '1.0')
    """
    digits = next(digits for digits in range(1, 12) if round(share, digits) > 0)
    step = 10.0**-digits
    return f"{min((int(share / step) + 1) * step, 1):.{digits}f}"
