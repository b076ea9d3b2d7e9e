"""The build as a job of Dataflow that anybody can start from a form: the entry point of the Flex Template.

The launcher looks at the dump and hashes it, puts the pipeline together and hands it over; it does not wait. The
parameters are described in docker/flex-template.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pipelines.jobs.build import prepared_build
from pipelines.options.build import BuildOptions
from pipelines.progress import Progress

FILES = ("page_props", "siteinfo", "only_titles")
VALUES = {"limit_pages": int, "as_of": str, "max_rejects": float}


def template_parser() -> argparse.ArgumentParser:
    """Gives the parser of the template's parameters; options of Beam may follow."""
    parser = argparse.ArgumentParser(prog="flex_template", description=__doc__, allow_abbrev=False)
    parser.add_argument("--dump", required=True, help="the dump's files, separated by commas; patterns allowed")
    parser.add_argument("--output", required=True)
    for name in (*FILES, *VALUES):
        parser.add_argument(f"--{name}")
    parser.add_argument("--allow_truncated", choices=("true", "false"), default="false")
    return parser


def build_options(args: argparse.Namespace) -> BuildOptions:
    """Gives what the parameters ask for.

    >>> build_options(template_parser().parse_args(["--dump=gs://b/1,gs://b/2", "--output=gs://b/r", "--as_of="])).dump
    ('gs://b/1', 'gs://b/2')
    """
    # An optional parameter that is left empty in the form arrives as an empty string.
    given = {name: getattr(args, name) for name in FILES if getattr(args, name)}
    given |= {name: kind(getattr(args, name)) for name, kind in VALUES.items() if getattr(args, name)}
    dump = tuple(args.dump.split(","))
    return BuildOptions(dump, args.output, allow_truncated=args.allow_truncated == "true", **given)


def main(argv: Sequence[str] | None = None) -> None:
    """Starts the job and does not wait for it: what launches templates must not."""
    args, beam_args = template_parser().parse_known_args(argv)
    with prepared_build(build_options(args), flags=beam_args, progress=Progress()) as (pipeline, _, _):
        pipeline.run()


if __name__ == "__main__":
    main()
