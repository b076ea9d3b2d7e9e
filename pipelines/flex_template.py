"""The build as a job of Dataflow that anybody can start from a form: the entry point of the Flex Template.

A Flex Template launches one pipeline, and a build runs several with work of the driver between them. So the pipeline is
a single task, and the worker that it comes to does the whole build with all its cores. The parameters are described in
docker/flex-template.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence

import apache_beam as beam

from kbsource.errors import SetupError
from pipelines.runners import pipeline_options

FILES = ("page_props", "siteinfo", "only_titles")
VALUES = ("limit_pages", "as_of", "max_rejects")
_TAIL_CHARS = 4000


def template_parser() -> argparse.ArgumentParser:
    """Gives the parser of the template's parameters; options of Beam may follow."""
    parser = argparse.ArgumentParser(prog="flex_template", description=__doc__, allow_abbrev=False)
    parser.add_argument("--dump", required=True, help="the dump's files, separated by commas; patterns allowed")
    parser.add_argument("--output", required=True)
    for name in (*FILES, *VALUES):
        parser.add_argument(f"--{name}")
    parser.add_argument("--allow_truncated", choices=("true", "false"), default="false")
    return parser


def build_command(args: argparse.Namespace) -> list[str]:
    """Gives the arguments of ``kbsource`` that build what the parameters ask for.

    >>> build_command(template_parser().parse_args(["--dump=gs://b/*.bz2", "--output=gs://b/r", "--max_rejects=0.01"]))
    ['build', '--dump', 'gs://b/*.bz2', '--output', 'gs://b/r', '--runner', 'local-multi', '--max-rejects', '0.01']
    """
    command = ["build"]
    for pattern in args.dump.split(","):
        command += ["--dump", pattern]
    command += ["--output", args.output, "--runner", "local-multi"]
    for name in (*FILES, *VALUES):
        # An optional parameter that is left empty in the form arrives as an empty string.
        if value := getattr(args, name):
            command += [f"--{name.replace('_', '-')}", value]
    return [*command, "--allow-truncated"] if args.allow_truncated == "true" else command


class _RunCommand(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """Runs ``kbsource`` with arguments; gives the last line that it printed."""

    def process(self, element: list[str]) -> Iterator[str]:
        command = [sys.executable, "-m", "pipelines.cli", *element]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise SetupError(f"kbsource ended with {ended.returncode}: {ended.stderr[-_TAIL_CHARS:]}")
        yield ended.stdout.strip().rpartition("\n")[2]


def main(argv: Sequence[str] | None = None) -> None:
    """Starts the job and does not wait for it: what launches templates must not."""
    args, beam_args = template_parser().parse_known_args(argv)
    pipeline = beam.Pipeline(options=pipeline_options(beam_args))
    _ = pipeline | "command" >> beam.Create([build_command(args)]) | "build" >> beam.ParDo(_RunCommand())
    pipeline.run()


if __name__ == "__main__":
    main()
