"""``kbsource show``: a page of a release, or a row of another kind, for reading."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, facts_table, text_width
from pipelines.extras import missing_extra

if TYPE_CHECKING:
    from kbsource.files import Storage
    from kbsource.lookup import Found
    from kbsource.records import Element, Page
    from kbsource.release.kind import Kind
    from kbsource.release.manifest import Manifest

Row = tuple[str, object]
_LABEL = 18
"""Characters before the value of a fact, at most."""
_PARAGRAPHS = 3
_FIELDS = 12
_MISSES = {
    "unknown": "the dump has no such page",
    "loop": "its redirects run in a circle",
    "missing_target": "it redirects to a page that the dump does not have",
    "cross_namespace": "it redirects to a page outside of the articles",
    "not_released": "the article was rejected; see the table rejected/",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of any kind")
    parser.add_argument(
        "page",
        metavar="PAGE",
        nargs="?",
        help="title, page id, URL or Wikidata item; of an alignment the id of a record, of page views a title, "
        "of AmbER sets a name",
    )
    parser.add_argument("--full", action="store_true", help="all of the text instead of its beginning")
    parser.add_argument("--json", action="store_true", help="the whole row as JSON")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.lookup import KnowledgeSource
    from kbsource.release.kind import kind_of, read_content
    from mapping.kinds import KINDS
    from mapping.write.kind import ALIGNMENT, ALIGNMENTS
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.release)
    kind = kind_of(read_content(args.release, storage), args.release, KINDS)
    if args.page is None:
        raise SetupError(f"name a page; kbsource info {shlex.quote(args.release)} says what the release holds.")
    if kind.shown_by is not None:
        return _show_rows(args.release, kind, args.page, storage, as_json=args.json)
    if kind in (ALIGNMENT, ALIGNMENTS):
        return _show_record(args.release, args.page, kind.read(args.release, storage), storage, as_json=args.json)
    with KnowledgeSource.open(args.release, storage) as source:
        found = source.resolve(args.page)
        page = source.by_id(found.page_id) if found.page_id is not None else None
        if found.status == "unknown":
            page = source.by_qid(args.page)
    if page is None:
        reason = _MISSES.get(found.status, found.status)
        print(f"kbsource show: no page for {args.page!r} in {args.release}: {reason}.", file=sys.stderr)
        if found.status == "unknown" and found.by != "id":
            _print_similar(args.release, found.asked, storage)
        return 1
    if args.json:
        print(json.dumps(_as_json(page), ensure_ascii=False, indent=2))
    else:
        print(page_text(page, found, full=args.full))
    return 0


def _show_rows(path: str, kind: Kind[Any], text: str, storage: Storage, *, as_json: bool) -> int:
    from kbsource.release.reader import rows_with
    from mapping.amber.kind import AMBER_SETS
    from pipelines.commands.amber import set_text

    table, column = kind.shown_by or ("", "")
    kind.read(path, storage)
    found = list(rows_with(path, table, column, text, storage))
    if found and kind is AMBER_SETS and not as_json:
        print(set_text(found, rows_with(path, "set_queries", "name", text, storage)))
        return 0
    for row in found:
        print(json.dumps(row, ensure_ascii=False) if as_json else facts_table(row.items()) + "\n")
    if not found:
        print(f"kbsource show: {path} has no row whose {column} is {text!r}.", file=sys.stderr)
    return int(not found)


def _show_record(path: str, record_id: str, manifest: Manifest, storage: Storage, *, as_json: bool) -> int:
    from kbsource.files import join
    from mapping.write.fates import record_fates

    folders = [join(path, part.folder) for part in manifest.parts] or [path]
    fates = [fate for folder in folders for fate in record_fates(folder, record_id, storage)]
    if as_json:
        print(json.dumps(fates, ensure_ascii=False, indent=2))
    elif fates:
        print("\n\n".join(map(record_text, fates)))
    else:
        print(f"kbsource show: no record with id {record_id!r} was read for {path}.", file=sys.stderr)
    return 0 if fates else 1


def record_text(fate: Mapping[str, Any]) -> str:
    """Gives what became of a record and of its evidence, for reading."""
    why = f": {fate['reason']}" if fate["reason"] else ""
    rows: list[Row] = [
        ("record", fate["example_id"]),
        ("read from", f"{fate['file']}, {fate['line']}"),
        ("outcome", fate["outcome"] + why),
    ]
    rows += [("", one) for one in (fate["meaning"], *fate["details"]) if one]
    if fate["ordinal"] is not None:
        rows.append(("outputs", f"{fate['n_outputs']}, {fate['n_outputs_written']} written"))
        rows.append(("evidence", f"{fate['n_evidences']}, {fate['n_evidences_written']} written"))
    return "\n\n".join((facts_table(rows), *(facts_table(list(_evidence_facts(one))) for one in fate["evidences"])))


def _evidence_facts(row: Mapping[str, Any]) -> Iterator[Row]:
    score = "" if row.get("score") is None else f", BLEU {row['score']:.4f}"
    yield f"output {row['output']}, {row['evidence']}", f"{row['outcome']}{score}"
    for side, where in (("old", row.get("crossing") or {}), ("new", row)):
        prefix = "old_" if side == "old" else ""
        place = [where.get(f"{prefix}{name}") for name in ("title", "section", "start_paragraph_id", "start_character")]
        if shown := ", ".join(str(one) for one in place if one is not None):
            yield f"{side} place", shown
    yield "asked for", row["page_value"]
    for name, text in (("old text", row["evidence_text"]), ("new text", row.get("text"))):
        if text is not None:
            yield name, textwrap.shorten(text, text_width() - _LABEL)


def _print_similar(release: str, title: str, storage: Storage) -> None:
    try:
        from mapping.search.resolve import Resolver
        from mapping.search.suggest import suggest_titles
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error, needs="align")) is None:
            raise
        print(f"Similar titles are not looked for: {missing}", file=sys.stderr)
        return
    if similar := suggest_titles([title], Resolver.open(release, storage=storage).index).get(title, ()):
        print("Similar titles:\n" + "\n".join(f"  {one}" for one, _ in similar), file=sys.stderr)


def _as_json(page: Page) -> object:
    """Gives the row as the table has it: records as objects, sequences as arrays."""

    def plain(value: object) -> object:
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return {name: plain(one) for name, one in value._asdict().items()}
        return [plain(part) for part in value] if isinstance(value, tuple) else value

    return {field.name: plain(getattr(page, field.name)) for field in dataclasses.fields(page)}


def page_text(page: Page, found: Found, *, full: bool) -> str:
    """Gives a page for reading: facts, then its outline and the beginning of the text, or all of it."""
    parts = [f"{page.title}\n{'=' * min(len(page.title), text_width())}", facts_table(_facts(page, found))]
    if full:
        parts += [_element_text(element) for element in page.elements[1:]]
    else:
        paragraphs = [element for element in page.elements if element.kind == "paragraph"]
        parts += [_wrapped(element.text, "") for element in paragraphs[:_PARAGRAPHS]]
        if outline := [f"{'  ' * len(one.section)}{one.text}" for one in page.elements if one.kind == "heading"]:
            parts.append("Sections\n" + "\n".join(outline))
    for infobox in page.infoboxes:
        fields = infobox.fields[:_FIELDS]
        n_left = text_width() - max((len(field.name) for field in fields), default=0) - 4  # two blanks on either side
        shown = [(f"  {field.name}", textwrap.shorten(field.text, max(n_left, 10))) for field in fields]
        more = len(infobox.fields) - len(shown)
        rest = f"\n  and {more} more" if more else ""
        parts.append(f"{infobox.name}\n{facts_table(shown)}{rest}")
    return "\n\n".join(parts)


def _facts(page: Page, found: Found) -> list[Row]:
    n_resolved = sum(anchor.target_page_id is not None for anchor in page.anchors)
    rows: list[Row] = [
        ("page id", str(page.page_id)),
        ("Wikidata item", page.qid or "none"),
        ("revision", f"{page.revision_id} of {page.timestamp}"),
        ("permanent link", page.url),
        ("parsed", page.parse_status),
        ("elements", len(page.elements)),
        ("anchors", f"{len(page.anchors):,}, {n_resolved:,} of them to articles of the release"),
        ("tables", len(page.tables)),
        ("infoboxes", len(page.infoboxes)),
    ]
    if found.hops:
        rows.insert(0, ("found as", f"{found.asked}, over {found.hops} redirect{'s' if found.hops > 1 else ''}"))
    if page.is_disambiguation:
        rows.append(("disambiguation", "yes"))
    lists = (
        ("categories", page.categories),
        ("of them by templates", page.template_categories),
        ("redirects", page.redirects),
    )
    for name, values in lists:
        if values:
            rows.append((name, textwrap.shorten("; ".join(values), text_width() - _LABEL)))
    if page.losses:
        rows.append(("not carried over", ", ".join(f"{kind} {count:,}" for kind, count in page.losses)))
    return rows


def _element_text(element: Element) -> str:
    if element.kind == "heading":
        return f"{'#' * element.level} {element.text}"
    if element.kind == "list_item":
        mark = f"{element.ordinal}." if element.ordinal is not None else "-"
        return _wrapped(element.text, f"{'  ' * (element.level - 1)}{mark} ")
    return _wrapped(element.text, "")


def _wrapped(text: str, start: str) -> str:
    return textwrap.fill(text, text_width(), initial_indent=start, subsequent_indent=" " * len(start))


COMMAND = Command(
    name="show",
    summary="show a page of a release",
    description="Shows a page of a release: facts, the beginning of the text, the sections, infoboxes. It is named by\n"
    "its title (redirects are followed), its page id, its URL or its Wikidata item. Exit code 1 when there is none;\n"
    "titles like the one asked for are then named. Of an alignment shows what became of a record, by its id,\n"
    "of page views the views of a title, of AmbER sets a name. What a release holds is said by kbsource info.",
    examples=(
        'kbsource show releases/enwiki-20261001 "Alan Turing"',
        "kbsource show releases/enwiki-20261001 1208 --full",
        "kbsource show aligned/fever 75397",
        "kbsource show releases/enwiki-20261001 Q7251",
        "kbsource show releases/enwiki-20261001 https://en.wikipedia.org/wiki/Alan_Turing --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="",
)
