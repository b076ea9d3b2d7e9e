"""Options that several jobs share: where they run, their output and their memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from mapping.options import As, AtLeast1, Checked, FolderPath, Megabytes, Name, Threads

_MEBIBYTE = 1 << 20
_MOST_MEMORY = 1 << 46
PLACES = frozenset("dump kb base wikidata pageviews output page_props siteinfo relations key_columns types".split())
"""Options that locate inputs and outputs. They do not change the bytes of the output."""


def _mebibytes(type_: Any, tokens: Sequence[Token]) -> int:
    try:
        n_bytes = int(tokens[0].value) * _MEBIBYTE
    except ValueError:
        raise ValueError("Give a whole number of MB.") from None
    _enough(type_, n_bytes)
    return n_bytes


def _enough(type_: Any, n_bytes: int) -> None:
    if n_bytes < 256 * _MEBIBYTE:
        raise ValueError("A worker needs at least 256 MB.")
    if n_bytes > _MOST_MEMORY:
        raise ValueError(f"No machine has that much memory; give at most {_MOST_MEMORY // _MEBIBYTE} MB.")


Output = Annotated[FolderPath, Parameter(help="New output folder, or the folder of a killed run to resume.")]
Memory = Annotated[
    int,
    Parameter(
        "--worker-memory",
        metavar="MB",
        help="Maximum memory that one worker process may allocate.",
        converter=_mebibytes,
        validator=_enough,
        show_default=lambda n_bytes: str(n_bytes // _MEBIBYTE),
    ),
]
RangeBytes = Annotated[
    AtLeast1 | None,
    Parameter(
        "--range-bytes",
        help="Bytes per range of the dump; by default 1 to 32 MiB, depending on its size.",
    ),
]
Truncated = Annotated[bool, Parameter("--allow-truncated", help="Read a truncated dump as far as possible.")]
TakenAs = Annotated[
    As,
    Parameter(
        "--as",
        help="Use the settings of the paper, or those of the code and files that its authors released. This sets "
        "every option whose value differs between the paper, the released code and the default.",
    ),
]
USUAL_MEMORY = 4 << 30
JoinMemory = Annotated[
    Megabytes,
    Parameter(
        metavar="MB",
        validator=Number(gte=100, lte=1 << 26),
        help="Maximum memory for joining tables, in MB; data beyond it is written to disk.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Checked):
    """Where a job runs. All other options are passed to Beam unchanged."""

    runner: Name = "local"
    """Where the job runs. local: on this machine; spark, flink or dataflow: on a cluster, see docs/running.md; or any
    other Beam runner.
    """
    workers: Threads | None = None
    """Number of worker processes on this machine; by default one per core for large inputs, and one in total for small
    inputs.
    """
    dry_run: bool = False
    """Check the inputs and the output location, construct the pipeline, print its size, and stop. For kbsource
    build on this machine, also estimate time and disk space.
    """
    beam_args: Annotated[tuple[str, ...], Parameter(parse=False)] = ()

    def flags(self) -> list[str]:
        """Returns the Beam flags for these options."""
        from pipelines.runners.presets import beam_flags

        # With this flag, Beam does not contact the cloud when it validates its options.
        beam_args = (*self.beam_args, "--dry_run=True") if self.dry_run else self.beam_args
        return beam_flags(self.runner, workers=self.workers, beam_args=beam_args)
