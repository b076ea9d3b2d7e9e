"""The ceiling on what of a dump may be unusable."""

from __future__ import annotations

from collections import Counter

from kbsource.errors import DataError

TRUNCATED = "truncated_dump"
DUPLICATE = "duplicate_page_id"


def check_rejects(
    n_rejected: Counter[str], n_pages: int, *, max_share: float, allow_truncated: bool, what: str = "pages"
) -> None:
    """Raises where too much of a dump could not be used.

    Args:
        n_rejected: pages and places of damage, by reason.
        n_pages: pages read.
        max_share: highest share of the pages that may be rejected.
        allow_truncated: a dump that breaks off is no fault.
        what: what is counted, for the message.

    Raises:
        DataError: names the reasons and the option that lets them pass.
    """
    if n_rejected[TRUNCATED] and not allow_truncated:
        raise DataError(
            f"{n_rejected[TRUNCATED]} of the dump's files break off before their end. Fetch them again, or give "
            "--allow-truncated to build from what can be read."
        )
    total = sum(n_rejected.values()) - (n_rejected[TRUNCATED] if allow_truncated else 0)
    if n_pages and total / n_pages > max_share:
        reasons = ", ".join(f"{count} {reason}" for reason, count in n_rejected.most_common())
        raise DataError(
            f"{total} of {n_pages} {what} rejected, {total / n_pages:.3%}; the ceiling is {max_share:.3%} "
            f"(by reason: {reasons}). If the dump is as it should be, raise --max-rejects to at least "
            f"{rounded_up(total / n_pages)}."
        )


def rounded_up(share: float) -> str:
    """Gives the next share above with as many digits as it needs.

    >>> rounded_up(0.25), rounded_up(0.00123)
    ('0.3', '0.002')
    """
    digits = next(digits for digits in range(1, 12) if round(share, digits) > 0)
    step = 10.0**-digits
    return f"{(int(share / step) + 1) * step:.{digits}f}"
