"""Names for ways to run a pipeline, as flags of Beam."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbsource.errors import SetupError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

_LOCAL = ("--runner=FnApiRunner",)

PRESETS = {
    "local": "one working process on this machine",
    "local-multi": "as many working processes on this machine as it has cores, or --workers",
}
"""Names of the presets and what they mean."""


def beam_flags(runner: str, *, workers: int | None, beam_args: Sequence[str]) -> list[str]:
    """Gives the flags of Beam for a preset or for a runner that Beam itself knows.

    The heavy work is done by guarded processes of our own, one for each of Beam's workers, so that threads
    are all that Beam needs to keep every core of a machine at work.

    Args:
        runner: name of a preset, or of one of Beam's runners.
        workers: working processes, for ``local-multi`` only.
        beam_args: further flags, passed on as they are.

    Raises:
        SetupError: names what is wrong and the choices.
    """
    if workers is not None and runner != "local-multi":
        raise SetupError(
            f"--workers is for --runner local-multi, not for {runner}; give Beam's own flag for the number of workers."
        )
    if workers is not None and workers < 1:
        raise SetupError(f"--workers is {workers}; give at least 1, or leave it out for one per core.")
    if runner == "local":
        return [*_LOCAL, *beam_args]
    if runner == "local-multi":
        threads = [f"--direct_num_workers={workers or n_cores()}", "--direct_running_mode=multi_threading"]
        return [*_LOCAL, *threads, *beam_args]
    if runner not in known_runners():
        presets = ", ".join(PRESETS)
        raise SetupError(
            f"--runner {runner}: no preset ({presets}) and no runner of Beam ({', '.join(known_runners())})."
        )
    return [f"--runner={runner}", *beam_args]


def n_cores() -> int:
    """Gives the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def known_runners() -> list[str]:
    """Gives the names of the runners that Beam knows."""
    from apache_beam.options.pipeline_options import StandardOptions

    return sorted({*StandardOptions.KNOWN_RUNNER_NAMES, "FnApiRunner"})


def pipeline_options(flags: Sequence[str]) -> PipelineOptions:
    """Gives Beam's options for flags.

    Raises:
        SetupError: a flag that Beam does not know, which it would pass over in silence, or a bad value.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions(list(flags))
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        reason = complaint.getvalue().strip().rpartition("error: ")[2]
        raise SetupError(f"Beam does not take these options: {reason}") from error
    unknown = set(given) - set(known)
    for flag in flags:
        name = flag.partition("=")[0]
        if name.lstrip("-").replace("-", "_") not in unknown:
            continue
        raise SetupError(
            f"Neither kbsource nor Beam has an option {name}. See kbsource build --help, and Beam's pipeline "
            "options for the runner."
        )
    return options


def quiet_beam() -> None:
    """Silences what Beam's machinery logs below an error: none of it is for the user of a command."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    # What a worker raises reaches the driver too.
    for name in ("apache_beam.runners.common", "apache_beam.runners.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Parts of Beam log through the root logger.
    logging.getLogger().setLevel(logging.ERROR)
