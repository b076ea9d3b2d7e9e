"""``kbsource link``: the pages that the mentions of a text mean most often."""

from __future__ import annotations

import argparse
import json

from pipelines.commands.flags.common import Command
from pipelines.options.fields import add_flags, from_flags
from pipelines.terminal import print_text, table_text


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.entity_linking.options import LinkerOptions

    parser.add_argument("release", metavar="RELEASE", help="folder that kbsource entity-linking wrote")
    parser.add_argument("text", metavar="TEXT", help="the text")
    add_flags(parser, LinkerOptions)
    parser.add_argument("--json", action="store_true", help="one JSON object for each mention")


def _run(args: argparse.Namespace) -> int:
    from contextlib import closing
    from dataclasses import asdict

    from mapping.entity_linking.linker import AliasTable, link_text
    from mapping.entity_linking.options import LinkerOptions
    from pipelines.stores.storage import storage_for

    options = from_flags(vars(args), LinkerOptions)
    with closing(AliasTable(args.release, storage_for(args.release))) as table:
        found = list(link_text(args.text, table, options))
    if args.json:
        for item in found:
            span = {"start_char": item.start_char, "end_char": item.end_char}
            print(json.dumps({**span, **asdict(item.alias)}, ensure_ascii=False))
        return 0 if found else 1
    rows = [("mention", "page", "page id", "prior", "links", "link probability")]
    rows += [
        (one.mention, one.title, str(one.page_id), f"{one.prior:.3f}", f"{one.count:,}", f"{one.link_probability:.3f}")
        for one in (linked.alias for linked in found)
    ]
    print_text(table_text(rows) if found else "No mention of the alias table stands in the text.")
    return 0 if found else 1


COMMAND = Command(
    name="link",
    summary="link the mentions of a text to pages, by an alias table alone",
    description="Finds the longest mentions of a text that the alias table of entity-linking data knows, whole words,\n"
    "and gives each the page that it leads to most often. Exit code 1 when there is none.",
    examples=('kbsource link linking/enwiki-20261001 "Ada Lovelace worked with Charles Babbage in London."',),
    add_arguments=_add_arguments,
    run=_run,
)
