"""``kbsource locate``: where a text stands in a page of a release."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from mapping.options import Checked, between, option, path_option
from pipelines.commands.flags.common import Command, facts_table, input_lines, text_width
from pipelines.options.fields import add_flags, from_flags

if TYPE_CHECKING:
    from mapping.records import Alignment, PageKey
    from mapping.search.locator import Locator

_KINDS = ("title", "url", "page_id", "qid")
_FORMS = {
    "url": (re.compile(r".*/.*"), "--url", "give an address, like https://en.wikipedia.org/wiki/Alan_Turing"),
    "page_id": (re.compile(r"[0-9]+"), "--id", "give a page id, a number like 1208; a title is for --title"),
    "qid": (re.compile(r"[Qq][0-9]+"), "--qid", "give a Wikidata item, like Q7251"),
}
"""What a name of a page looks like, the option that gives it, and what to write instead."""
_MEANINGS = {
    "exact": "the text stands in the page",
    "near": "a similar text stands in the page",
    "weak": "nothing in the page is similar enough; this is the likeliest place",
    "page_only": "the page is there; no text was asked for",
    "page_missing": "the release has no such page",
    "page_ambiguous": "that is a disambiguation page",
    "empty_evidence": "there is no text to look for",
}


@dataclass(frozen=True, slots=True)
class _LocateOptions(Checked):
    """What is looked for, and how."""

    evidence: str | None = path_option("the text to look for; without it only the page is", "TEXT")
    max_elements: int = option(1, "paragraphs or list items that the found text may reach over", lowest=1)
    threshold: float = between(0, 1, 0.5, "lowest score of a near match", of="a score", metavar="BLEU")
    numbering: Literal["elements", "kilt"] = option(
        "elements",
        "how places are given, and what is searched: elements of the release, or paragraphs as export-kilt numbers "
        "them",
    )
    title_map: str | None = path_option("known moves: a line each, old title, tab, new title or page id")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("release", metavar="RELEASE", help="folder of a release")
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--title", help="title of the page; redirects are followed")
    page.add_argument("--url", help="address of the page in its wiki")
    page.add_argument("--id", dest="page_id", metavar="ID", help="its page id, a number")
    page.add_argument("--qid", metavar="QID", help="its Wikidata item, like Q7251")
    page.add_argument(
        "--input",
        metavar="FILE",
        help="many at once: JSON Lines with title, url, page_id or qid, and evidence; - for the standard input",
    )
    add_flags(parser, _LocateOptions)
    add("--json", action="store_true", help="one JSON object for each")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.records import PageKey
    from mapping.search.locator import Locator
    from mapping.search.resolve import read_moves
    from pipelines.stores.storage import storage_for

    options = from_flags(vars(args), _LocateOptions)
    for kind, (form, flag, remedy) in _FORMS.items():
        value = getattr(args, kind)
        if value is not None and form.fullmatch(value) is None:
            raise SetupError(f"{flag} is {value!r}; {remedy}.")
    moves = read_moves(options.title_map, storage_for(options.title_map)) if options.title_map else None
    with Locator.open(
        args.release,
        threshold=options.threshold,
        max_elements=options.max_elements,
        numbering=options.numbering,
        moves=moves,
        storage=storage_for(args.release),
    ) as locator:
        if args.input is not None:
            return _locate_many(args.input, locator)
        key = next((PageKey(kind, getattr(args, kind)) for kind in _KINDS if getattr(args, kind) is not None), None)
        if key is None:
            raise SetupError("name the page by --title, --url, --id or --qid, or give --input.")
        alignment = locator.locate(key, options.evidence)
    if args.json:
        print(json.dumps(_as_json(alignment), ensure_ascii=False))
    else:
        print(alignment_text(alignment, unit="paragraph" if options.numbering == "kilt" else "element"))
    return 0 if alignment.outcome in ("exact", "near", "page_only") else 1


def _locate_many(path: str, locator: Locator) -> int:
    """Prints an object for each line of a file; a line that cannot be used is reported and passed over."""
    from kbsource.errors import RecordError

    n_bad = 0
    for number, line in input_lines(path):
        try:
            key, evidence, record_id = _request(line)
        except RecordError as error:
            n_bad += 1
            print(f"kbsource locate: {path}, line {number}: {error}", file=sys.stderr)
            continue
        shown = _as_json(locator.locate(key, evidence))
        print(
            json.dumps(
                {"line": number, **({} if record_id is None else {"id": record_id}), **shown}, ensure_ascii=False
            )
        )
    return 1 if n_bad else 0


def _request(line: str) -> tuple[PageKey, str | None, Any]:
    from kbsource.errors import RecordError
    from mapping.records import PageKey
    from mapping.sources.reading.fields import is_integer, only_known, optional_text, parse_object, text_at

    record = parse_object(line)
    only_known(record, frozenset({*_KINDS, "evidence", "id"}))
    kinds = [kind for kind in _KINDS if kind in record]
    if len(kinds) != 1:
        raise RecordError("missing_field", f"name the page by one of {', '.join(_KINDS)}")
    (kind,) = kinds
    value = str(record[kind]) if kind == "page_id" and is_integer(record[kind]) else text_at(record, kind)
    return PageKey(kind, value), optional_text(record, "evidence"), record.get("id")


def _as_json(alignment: Alignment) -> dict[str, Any]:
    value = asdict(alignment)
    value["suggestions"] = [{"title": title, "score": score} for title, score in alignment.suggestions]
    return value


def alignment_text(alignment: Alignment, *, unit: str) -> str:
    """Gives an alignment for reading; ``unit`` is what the numbers of its places count."""
    rows: list[tuple[str, object]] = [("outcome", f"{alignment.outcome}: {_MEANINGS[alignment.outcome]}")]
    if alignment.page_id is not None:
        over = f", over {alignment.hops} redirect{'s' if alignment.hops > 1 else ''}" if alignment.hops else ""
        rows.append(("page", f"{alignment.title} (page id {alignment.page_id}), found by {alignment.found_by}{over}"))
    if (span := alignment.span) is not None:
        where = f"{unit} {span.start_element}, characters {span.start_char} to {span.end_char}"
        if span.end_element != span.start_element:
            where = (
                f"{unit} {span.start_element}, character {span.start_char}, to {unit} {span.end_element}, "
                f"character {span.end_char}"
            )
        rows += [("section", alignment.section), ("place", where), ("BLEU", f"{span.score:.4f} ({span.match})")]
    lines = [facts_table(rows)]
    if alignment.text is not None:
        lines.append(textwrap.indent(textwrap.fill(alignment.text, text_width() - 2), "  "))
    if alignment.suggestions:
        lines.append(
            "similar titles\n" + facts_table((f"  {title}", f"{score:.1f}") for title, score in alignment.suggestions)
        )
    return "\n\n".join(lines)


COMMAND = Command(
    name="locate",
    summary="find where a text stands in a page of a release",
    description="Finds the span of a page that matches a text best: as it is, else as the same words, else where BLEU\n"
    "is highest. Exit code 1 when the page is missing or nothing in it reaches the threshold.",
    examples=(
        'kbsource locate releases/enwiki-20261001 --title "Abraham Lincoln" --evidence "Born in Hodgenville, Kentucky"',
        "kbsource locate releases/enwiki-20261001 --input evidences.jsonl",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
