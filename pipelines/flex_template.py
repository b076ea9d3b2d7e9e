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
from pipelines.runners.presets import beam_flags


def build_options(argv: Sequence[str]) -> tuple[BuildOptions, list[str]]:
    """What the parameters ask for, and the flags of Beam: those of the preset for Dataflow, or another runner that is
    named, and the options of Beam among the parameters.

    >>> options, flags = build_options(["--dump=gs://b/1,gs://b/2", "--output=gs://b/r", "--as_of=", "--runner=local"])
    >>> options.dump, options.as_of, flags
    (('gs://b/1', 'gs://b/2'), None, ['--runner=FnApiRunner'])
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
    runner = bound.arguments["run"].runner if "run" in bound.arguments else DATAFLOW_RUNNER
    preset = "dataflow" if runner == DATAFLOW_RUNNER else runner
    return options, beam_flags(preset, workers=None, beam_args=rest)


def main(argv: Sequence[str] | None = None) -> None:
    """Starts the job and does not wait for it: what launches templates must not."""
    options, flags = build_options(sys.argv[1:] if argv is None else argv)
    with prepared_build(options, flags=flags, progress=Progress()) as (pipeline, _, _):
        pipeline.run()


if __name__ == "__main__":
    main()
