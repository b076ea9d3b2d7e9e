"""What the options of several jobs may be. Each check raises SetupError, which names option, value and remedy."""

from __future__ import annotations

from kbsource.errors import SetupError

_LEAST_MEMORY_BYTES = 1 << 28


def check_worker_memory(n_bytes: int) -> None:
    """Checks the memory that a working process may allocate."""
    if n_bytes < _LEAST_MEMORY_BYTES:
        raise SetupError(f"--worker-memory is {n_bytes >> 20} MB; a worker needs at least 256 MB.")


def check_max_rejects(share: float, *, of: str) -> None:
    """Checks the highest share of records that may be rejected."""
    if not 0 <= share <= 1:
        raise SetupError(f"--max-rejects is {share:g}; give a share of the {of} between 0 and 1.")


def check_range_bytes(n_bytes: int | None) -> None:
    """Checks the size of the pieces that a dump is read in; None is always right."""
    if n_bytes is not None and n_bytes < 1:
        raise SetupError(f"--range-bytes is {n_bytes}; give at least 1.")
