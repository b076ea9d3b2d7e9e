"""``kbsource amber``: names that several entities share, with queries about each."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.commands.flags.common import Command, add_run_arguments, facts_table, run_flags, summary_json
from pipelines.options.fields import add_flags, flags_of, from_flags, place
from pipelines.progress import clock
from pipelines.terminal import print_text


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.entail.signal import ModelOptions
    from pipelines.options.amber import AmberJobOptions

    add_flags(parser, AmberJobOptions)
    meaning = "ask an NLI model about every tuple: folder of a cross-encoder, or hub name"
    parser.add_argument("--verify", metavar="MODEL", help=meaning)
    add_flags(parser, ModelOptions)
    add_run_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.entail.signal import ModelOptions
    from pipelines.jobs.amber import make_amber
    from pipelines.options.amber import AmberJobOptions
    from pipelines.progress import Progress

    given = vars(args)
    for one in flags_of(ModelOptions) if args.verify is None else ():
        if given[place(one.flag)] is not None:
            raise SetupError(f"{one.flag} is for --verify MODEL; give it, or leave this out.")
    model = None if args.verify is None else from_flags(given, ModelOptions, model=args.verify)
    options = from_flags(given, AmberJobOptions, verify=model)
    summary = make_amber(options, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, **summary.report))
        return 0
    for name, one in summary.report["collections"].items():
        print_text(f"{name}\n{facts_table(_rows(one))}\n")
    print(f"wall time {clock(summary.seconds)}")
    print(f"The release is in {summary.output}. Check it: kbsource verify {shlex.quote(summary.output)}")
    return 0


def _rows(report: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Gives what became of the names of a collection, and its measures beside those of the paper."""
    yield from ((f"names: {outcome}", n) for outcome, n in report["names"].items() if n)
    for name, one in report["statistics"].items():
        if name != "shares":
            published = "" if one["published"] is None else f"  (published: {one['published']:,})"
            yield name, f"{one['made']:,}{published}"


def set_text(rows: Iterable[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]) -> str:
    """Gives sets for reading: of each entity popularity, page and queries, the head first.

    Args:
        rows: of the table ``sets``.
        queries: rows of the table ``set_queries`` of the same names.
    """
    asked = list(queries)
    lines = []
    for row in rows:
        lines.append(f"{row['name']}, {row['collection']}")
        for one in sorted(row["entities"], key=lambda entity: -entity["popularity"]):
            role = "head" if one["is_head"] else "tail"
            titles = ", ".join(page["title"] for page in one["wikipedia"])
            lines.append(f"  {role}  {one['qid']}  {titles}, popularity {one['popularity']:.2f}")
            own = (each for each in asked if (each["collection"], each["qid"]) == (row["collection"], one["qid"]))
            lines += [f"    {each['task']}  {each['input']}  {', '.join(each['answers'])}" for each in own]
    return "\n".join(lines)


COMMAND = Command(
    name="amber",
    summary="make sets of entities that share a name, with queries about each",
    description="Finds names that several entities of Wikidata share, properties that one of these alone has, and\n"
    "values that its page names, and writes AmbER sets: questions, slots and claims about each entity, with\n"
    "every name that was considered and what became of it. Any option that is not listed here is passed to Beam.",
    examples=(
        "kbsource amber --kb releases/enwiki-20261001 --wikidata releases/wikidata-20261001 \\\n"
        "      --pageviews releases/views-202610 --output releases/amber-20261001 --collection human,nonhuman",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
