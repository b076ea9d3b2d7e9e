"""The build as a job of Dataflow that anybody can start from a form: the entry point of the Flex Template.

The launcher looks at the dump and hashes it, puts the pipeline together and hands it over; it does not wait. The
parameters are options of ``kbsource build``: docker/flex-template.json names those that the form has.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App

from mapping.options import DEFAULTS, without_unknown
from pipelines.commands import dumps
from pipelines.jobs.build import prepared_build
from pipelines.options import BuildOptions
from pipelines.progress import Progress
from pipelines.runners.clusters import DATAFLOW_RUNNER
from pipelines.runners.presets import beam_flags, flags_given


def build_options(argv: Sequence[str]) -> tuple[BuildOptions, list[str]]:
    """What the parameters ask for, and the options of Beam among them.

    >>> options, rest = build_options(["--dump=gs://b/1,gs://b/2", "--output=gs://b/r", "--as_of=", "--region=r"])
    >>> options.dump, options.as_of, rest
    (('gs://b/1', 'gs://b/2'), None, ['--region=r'])
    """
    app = App(default_parameter=DEFAULTS)
    app.default(dumps.build)
    known = {name: name for one in app.assemble_argument_collection() for name in one.names}
    tokens = []
    for argument in argv:
        name, _, value = argument.partition("=")
        # The form's names have underscores; an optional parameter that is left empty arrives as an empty string.
        flag = known.get(name.replace("_", "-"))
        if flag is None:
            tokens.append(argument)
        elif value:
            tokens += [f"{flag}={part}" for part in (value.split(",") if flag == "--dump" else [value])]
    own, rest = without_unknown(tokens, known)
    _, bound, _ = app.parse_args(own, exit_on_error=False, print_error=False)
    options: BuildOptions = bound.arguments["options"]
    return options, rest


def job_flags(beam_args: Sequence[str]) -> list[str]:
    """Beam's flags of a job, with those of the preset that the command line has for the same runner.

    >>> job_flags(["--runner=FnApiRunner", "--job_name=j"])
    ['--runner=FnApiRunner', '--job_name=j']
    """
    runner = flags_given(beam_args).get("runner", DATAFLOW_RUNNER)
    if runner != DATAFLOW_RUNNER:
        return list(beam_args)
    return beam_flags("dataflow", workers=None, beam_args=beam_args)


def main(argv: Sequence[str] | None = None) -> None:
    """Starts the job and does not wait for it: what launches templates must not."""
    options, beam_args = build_options(sys.argv[1:] if argv is None else argv)
    with prepared_build(options, flags=job_flags(beam_args), progress=Progress()) as (pipeline, _, _):
        pipeline.run()


if __name__ == "__main__":
    main()
