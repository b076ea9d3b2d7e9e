"""The command that shows a page, or a row of another kind of release."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kbsource.errors import SetupError, counted
from kbsource.files import join
from kbsource.records import Element, Page, instant_text
from mapping.options import Release, Title
from pipelines.commands.look import opened_release
from pipelines.extras import missing_extra
from pipelines.terminal import Row, Summary, command_line, facts_table, styled, table_text, text_width

if TYPE_CHECKING:
    from kbsource.lookup import LookupResult
    from kbsource.release.kind import Kind
    from kbsource.release.manifest import FileEntry, Manifest
    from mapping.document import TextPiece

_LABEL = 18
"""Maximum number of characters before the value of a fact."""
_PARAGRAPHS = 3
_FIELDS = 12
_MISSES = {
    "unknown": "the release has no such page",
    "loop": "its redirects run in a circle",
    "missing_target": "it redirects to a page that is not in the dump",
    "cross_namespace": "it redirects to a page that is not an article",
    "not_released": "the article was rejected; see the table rejected/",
}


def show(
    release: Release,
    page: Annotated[Title | None, Parameter(metavar="PAGE")] = None,
    /,
    *,
    full: bool = False,
    old: Release | None = None,
    new: Release | None = None,
) -> Summary:
    """Show a page, or a row of another kind of release.

    For a page, prints facts, the beginning of the text, the sections and the infoboxes. If the release has no such
    page, prints similar titles, and the exit code is 1.

    For an alignment, prints the outcome of the record with this id. For AmbER sets, prints the entities that share a
    name. For a diff, prints the outcome of a page. For any other kind of release, prints the rows of all tables and the
    lines of all JSON Lines files with this id or name, such as an item (Q42) or a property of Wikidata, or a passage
    (12__0). kbsource info lists what a release contains.

    Args:
        release: Folder of a release of any kind.
        page: Title (redirects are followed), page id, URL or Wikidata item. For an alignment: the id of a record. For a
            diff: an old or new title or page id. For other kinds: an id or a name in a table.
        full: Print the whole text instead of its beginning; for a diff, also print unchanged text.
        old: Folder of the older release of a diff. With --new, the words that changed are printed.
        new: Folder of the newer release of a diff. With --old, the words that changed are printed.

    Examples:
        kbsource show releases/enwiki-20261001 "Alan Turing"
        kbsource show releases/enwiki-20261001 1208 --full
        kbsource show aligned/fever 75397
        kbsource show releases/enwiki-20261001 Q7251
        kbsource show releases/enwiki-20261001 https://en.wikipedia.org/wiki/Alan_Turing --json
        kbsource show diffs/enwiki-2019-2026 Turing --old releases/enwiki-20190801 --new releases/enwiki-20261001
    """
    from kbsource.diff.kind import RELEASE_DIFF
    from kbsource.lookup import KnowledgeSource
    from kbsource.release.pages.kind import PAGES_RELEASE

    kind, manifest = opened_release(release)
    if page is None:
        what = "a page" if kind in (PAGES_RELEASE, RELEASE_DIFF) else "the id or name of a row"
        raise SetupError(f"name {what}; kbsource info {shlex.quote(release)} shows what the release contains.")
    if (old is None) != (new is None) or (old is not None and kind is not RELEASE_DIFF):
        raise SetupError("--old and --new are the two releases of a diff; pass both or neither.")
    if kind is RELEASE_DIFF:
        return _change_summary(release, page, manifest, old, new, full=full)
    if kind is not PAGES_RELEASE:
        return _record_summary(release, kind, page, manifest)
    with KnowledgeSource.open(release) as source:
        found = source.resolve(page)
        shown = source.by_id(found.page_id) if found.page_id is not None else None
        if found.status == "unknown":
            shown = source.by_qid(page)
    if shown is not None:
        browse = command_line("inspect", release)
        return Summary(text=page_text(shown, found, full=full), values=shown.to_dict(), next=browse)
    faults = [f"kbsource show: no page for {page!r} in {release}: {_MISSES.get(found.status, found.status)}."]
    if found.status == "unknown" and found.by != "id":
        faults += _similar(release, found.requested)
    return Summary(faults=faults)


_MOST_FOUND = 1_000
_ROWS_SHOWN = 20
"""Maximum numbers of rows of a table that are looked up and that are shown. --json contains all rows that were looked
up.
"""


def _rows_summary(path: str, kind: Kind[Any], manifest: Manifest, asked: str) -> Summary:
    """Returns the rows of all tables with an id or a name."""
    from mapping.amber.kind import AMBER_SETS

    has_lines = any(map(_is_lines, manifest.files))
    if not kind.shown_by and not has_lines:
        raise SetupError(f"{path}: {kind.with_article} has no rows with ids; kbsource info shows what it contains.")
    found = {name: rows for name, rows in _matching_rows(path, kind, manifest, asked) if rows}
    if not found:
        names = ", ".join(
            dict.fromkeys(
                [f"{column} in {table}" for table, column in kind.shown_by]
                + ["an id in a file of JSON Lines"] * has_lines
            )
        )
        return Summary(faults=[f"kbsource show: {path} has no row for {asked!r}, which was searched for as {names}."])
    if kind is AMBER_SETS and "sets" in found:
        text = set_text(found["sets"], kind.rows_with(path, manifest, "set_queries", "name", asked))
        return Summary(text=text, values=found["sets"], next=command_line("inspect", path))
    parts = []
    for name, rows in found.items():
        shown = [facts_table(_row_facts(row)) for row in rows[:_ROWS_SHOWN]]
        more = f"\n\nand {len(rows) - _ROWS_SHOWN:,} more" if len(rows) > _ROWS_SHOWN else ""
        head = f"{styled(name, 'bold')}\n" if len(found) > 1 else ""
        parts.append(head + "\n\n".join(shown) + more)
    values = [row for rows in found.values() for row in rows]
    return Summary(text="\n\n".join(parts), values=values, next=command_line("inspect", path))


def _matching_rows(
    path: str, kind: Kind[Any], manifest: Manifest, name: str
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Finds the matching rows of each table, using the first column that has a match. If no table has a match, finds
    the matching lines of each file of JSON Lines.
    """
    from kbsource.numerals import read_int

    releases = [(kind, path, manifest), *_releases_in(path, kind, manifest)]
    tables = {**kind.tables, **(kind.parts.tables if kind.parts is not None else {})}
    done: set[str] = set()
    for table, column in kind.shown_by:
        if table in done:
            continue
        first, _, second = column.partition("__")
        value, _, number = name.partition("__") if second else (name, "", "")
        is_text = str(tables[table].field(first).type) == "string"
        wanted = value if is_text else read_int(value)
        if wanted is None or (second and read_int(number) is None):
            continue
        rows = (row for of, folder, own in releases for row in of.rows_with(folder, own, table, first, wanted))
        rows = (row for row in rows if not second or row[second] == read_int(number))
        if found := list(islice(rows, _MOST_FOUND)):
            done.add(table)
            yield table, found
    for of, folder, own in () if done else releases:
        for file in filter(_is_lines, own.files):
            lines = (line for line in of.lines(folder, own, file.file) if name in _ids(line))
            if found := list(islice(lines, _MOST_FOUND)):
                yield file.file, found


def _is_lines(file: FileEntry) -> bool:
    return file.file.endswith(".jsonl")


def _ids(row: Mapping[str, Any]) -> Iterator[str]:
    """Reads the fields that are ids: ``id``, ``qid``, ``passage_id``."""
    for name, value in row.items():
        if name.endswith("id") and isinstance(value, str | int):
            yield str(value)


def _releases_in(path: str, kind: Kind[Any], manifest: Manifest) -> Iterator[tuple[Kind[Any], str, Manifest]]:
    """Lists the releases in the folders of a release, each with its kind and manifest."""
    if kind.parts is not None:
        for part in manifest.parts:
            folder = join(path, part.folder)
            yield kind.parts, folder, kind.parts.read(folder)


def _row_facts(row: Mapping[str, Any]) -> Iterator[Row]:
    """Shortens the values of a row to fit a terminal; null and empty values are skipped."""
    for name, value in row.items():
        if isinstance(value, bytes):
            yield name, counted(len(value), "bytes")
        elif isinstance(value, list | dict):
            if value:
                said = json.dumps(value, ensure_ascii=False, default=str)
                yield name, textwrap.shorten(said, max(text_width() - _LABEL, 20))
        elif value is not None:
            yield name, value


def _change_summary(
    path: str, page: str, manifest: Manifest, old: str | None, new: str | None, *, full: bool
) -> Summary:
    from kbsource.diff.kind import PAGE_OUTCOMES, RELEASE_DIFF, doubts

    rows_with = partial(RELEASE_DIFF.rows_with, path, manifest)
    columns = ("old_title", "new_title", *(("old_page_id", "new_page_id") if page.isdecimal() else ()))
    wanted = {column: int(page) if column.endswith("id") else page for column in columns}
    rows = [row for column in columns for row in rows_with("page_changes", column, wanted[column])]
    rows = [row for number, row in enumerate(rows) if row not in rows[:number]]
    if not rows:
        return _rows_summary(path, RELEASE_DIFF, manifest, page)
    texts, values = list(doubts(manifest.to_json())), []
    for row in rows:
        found = {
            table: list(rows_with(table, "old_page_id", row["old_page_id"]))
            for table in ("section_changes", "span_changes")
            if row["old_page_id"] is not None
        }
        texts.append(facts_table(_change_facts(row, PAGE_OUTCOMES[row["outcome"]])))
        if changes := [change for change in found.get("section_changes", ()) if change["outcome"] != "same"]:
            texts.append("Sections\n" + table_text([("was", "is", "outcome"), *map(_section_cells, changes)]))
        if old is not None and new is not None:
            texts.append("\n".join(_changed_lines(row, found.get("span_changes", ()), manifest, old, new, full=full)))
        values.append({**row, **found})
    releases = () if old is None or new is None else (old, new)
    return Summary(text="\n\n".join(texts), values=values, next=command_line("inspect", path, *releases))


def _change_facts(row: Mapping[str, Any], meaning: str) -> Iterator[Row]:
    for side in ("old", "new"):
        if row[f"{side}_page_id"] is not None:
            facts = [row[f"{side}_title"], f"page {row[f'{side}_page_id']}", row[f"{side}_qid"]]
            facts.append(None if row[f"{side}_revision_id"] is None else f"revision {row[f'{side}_revision_id']}")
            facts.append(None if row[f"{side}_chars"] is None else f"{row[f'{side}_chars']:,} characters")
            yield side, ", ".join(filter(None, facts))
    yield "outcome", f"{row['outcome']}: {meaning}"
    if row["matched_by"]:
        yield "matched by", row["matched_by"]
    if row["kept_share"] is not None:
        yield "text kept", f"{100 * row['kept_share']:.1f} %"
    if row["qid_moved"]:
        yield "item", f"now the item of page {row['qid_page_id']}"


def _section_cells(change: Mapping[str, Any]) -> tuple[str, ...]:
    sides = (change["old_section"], change["new_section"])
    names = ("–" if side is None else " > ".join(side) or "introduction" for side in sides)
    return (*names, change["outcome"])


def _changed_lines(
    row: Mapping[str, Any], spans: Sequence[Mapping[str, Any]], manifest: Manifest, old: str, new: str, *, full: bool
) -> Iterator[str]:
    """Prints the text of both versions line by line, with changed words between [- -] and {+ +}."""
    from kbsource.lookup import KnowledgeSource
    from mapping.inspector.beside import collapsed_runs, lines_of

    pages: list[Page | None] = []
    for side, path in (("old", old), ("new", new)):
        with KnowledgeSource.open(path) as source:
            if source.manifest.sha256 != manifest.made_from(side):
                raise SetupError(f"--{side} {path}: not the release that the diff was made from.")
            page_id = None if side == "new" and row["outcome"] == "merged" else row[f"{side}_page_id"]
            pages.append(None if page_id is None else source.by_id(page_id))
    for is_far, lines in collapsed_runs(lines_of(pages[0], pages[1], spans)):
        if is_far and not full:
            yield f"  … {counted(len(lines), 'unchanged elements')}"
            continue
        for line in lines:
            if line.outcome == "same" and line.old is not None and line.new is not None:
                yield _wrapped(line.old.element.text, "  ")
                continue
            if line.old is not None:
                span = line.leads_to
                where = f" → page {span['new_page_id']}, element {span['new_element']}" if span else ""
                yield styled(_wrapped(_marked(line.old.pieces, "[-", "-]") + where, "- "), "red")
            if line.new is not None:
                where = "" if line.comes_from is None else f" ← element {line.comes_from}"
                yield styled(_wrapped(_marked(line.new.pieces, "{+", "+}") + where, "+ "), "green")


def _marked(pieces: Iterable[TextPiece], before: str, after: str) -> str:
    return "".join(f"{before}{piece.text}{after}" if piece.is_marked else piece.text for piece in pieces)


def set_text(rows: Iterable[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]) -> str:
    """Formats AmbER sets: for each entity its popularity, page and queries, the head entity first."""
    asked = list(queries)
    lines = []
    for row in rows:
        lines.append(f"{row['name']}, {row['collection']}")
        for entity in sorted(row["entities"], key=lambda entity: -entity["popularity"]):
            role = "head" if entity["is_head"] else "tail"
            titles = ", ".join(page["title"] for page in entity["wikipedia"])
            lines.append(f"  {role}  {entity['qid']}  {titles}, popularity {entity['popularity']:.2f}")
            own = (
                query for query in asked if (query["collection"], query["qid"]) == (row["collection"], entity["qid"])
            )
            lines += [f"    {query['task']}  {query['input']}  {', '.join(query['answers'])}" for query in own]
    return "\n".join(lines)


def _record_summary(path: str, kind: Kind[Any], record_id: str, manifest: Manifest) -> Summary:
    from mapping.write.kind import ALIGNMENT, ALIGNMENTS
    from mapping.write.report import record_fates

    if kind not in (ALIGNMENT, ALIGNMENTS):
        return _rows_summary(path, kind, manifest, record_id)
    folders = [*_releases_in(path, ALIGNMENTS, manifest)] if kind is ALIGNMENTS else [(ALIGNMENT, path, manifest)]
    fates = [fate for _, folder, own in folders for fate in record_fates(folder, own, record_id)]
    if not fates:
        return _rows_summary(path, ALIGNMENT if kind is ALIGNMENT else ALIGNMENTS, manifest, record_id)
    browse = command_line("inspect", path)
    return Summary(text="\n\n".join(map(record_text, fates)), values=fates, next=browse)


def record_text(fate: Mapping[str, Any]) -> str:
    """Formats the outcome of a record and of its evidence."""
    why = f": {fate['reason']}" if fate["reason"] else ""
    rows: list[Row] = [
        ("record", fate["example_id"]),
        ("read from", f"{fate['file']}, {fate['line']}"),
        ("outcome", fate["outcome"] + why),
    ]
    rows += [("", detail) for detail in (fate["meaning"], *fate["details"]) if detail]
    rows += [("question", fate["input"])] if fate["input"] else []
    if fate["ordinal"] is not None:
        rows.append(("outputs", f"{fate['n_outputs']}, {fate['n_outputs_written']} written"))
        rows.append(("evidence", f"{fate['n_evidences']}, {fate['n_evidences_written']} written"))
    return "\n\n".join(
        (facts_table(rows), *(facts_table(list(_evidence_facts(evidence))) for evidence in fate["evidences"]))
    )


def _evidence_facts(row: Mapping[str, Any]) -> Iterator[Row]:
    score = "" if row.get("score") is None else f", BLEU {row['score']:.4f}"
    yield f"output {row['output']}, {row['evidence']}", f"{row['outcome']}{score}"
    for side, where in (("old", row.get("crossing") or {}), ("new", row)):
        prefix = "old_" if side == "old" else ""
        place = [where.get(f"{prefix}{name}") for name in ("title", "section", "start_paragraph_id", "start_character")]
        if shown := ", ".join(str(value) for value in place if value is not None):
            yield f"{side} place", shown
    yield "asked for", row["page_value"]
    for name, text in (("old text", row["evidence_text"]), ("new text", row.get("text"))):
        if text is not None:
            yield name, textwrap.shorten(text, text_width() - _LABEL)


def _similar(release: str, title: str) -> Iterator[str]:
    try:
        from mapping.search.resolve import Resolver, suggest_titles

        similar = suggest_titles([title], Resolver.open(release).index).get(title, ())
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error, needs="diff")) is None:
            raise
        yield f"Similar titles were not searched for: {missing}"
        return
    if similar:
        yield "Similar titles:\n" + "\n".join(f"  {suggestion.title}" for suggestion in similar)


def page_text(page: Page, found: LookupResult, *, full: bool) -> str:
    """Formats a page: facts, then its outline and the beginning of the text, or the whole text."""
    parts = [f"{page.title}\n{'=' * min(len(page.title), text_width())}", facts_table(_page_facts(page, found))]
    if full:
        parts += [_element_text(element) for element in page.elements[1:]]
    else:
        paragraphs = [element for element in page.elements if element.kind == "paragraph"]
        parts += [_wrapped(element.text, "") for element in paragraphs[:_PARAGRAPHS]]
        if outline := [
            f"{'  ' * len(element.section)}{element.text}" for element in page.elements if element.kind == "heading"
        ]:
            parts.append("Sections\n" + "\n".join(outline))
    for infobox in page.infoboxes:
        fields = infobox.fields[:_FIELDS]
        n_left = text_width() - max((len(field.name) for field in fields), default=0) - 4  # two spaces on each side
        shown = [(f"  {field.name}", textwrap.shorten(field.text, max(n_left, 10))) for field in fields]
        more = len(infobox.fields) - len(shown)
        rest = f"\n  and {more} more" if more else ""
        parts.append(f"{infobox.name}\n{facts_table(shown)}{rest}")
    return "\n\n".join(parts)


def _page_facts(page: Page, found: LookupResult) -> list[Row]:
    n_resolved = sum(anchor.target_page_id is not None for anchor in page.anchors)
    rows: list[Row] = [
        ("page id", str(page.page_id)),
        ("Wikidata item", page.qid or "none"),
        ("revision", f"{page.revision_id} of {instant_text(page.timestamp)}"),
        ("permanent link", page.url),
        ("parsed", page.parse_status),
        ("elements", len(page.elements)),
        ("anchors", f"{len(page.anchors):,}, {n_resolved:,} of them to articles of the release"),
        ("tables", len(page.tables)),
        ("infoboxes", len(page.infoboxes)),
    ]
    if found.hops:
        rows.insert(0, ("found as", f"{found.requested}, over {found.hops} redirect{'s' if found.hops > 1 else ''}"))
    if page.is_disambiguation:
        rows.append(("disambiguation", "yes"))
    lists = (
        ("categories", page.categories),
        ("of them from templates", page.template_categories),
        ("redirects", page.redirects),
    )
    for name, values in lists:
        if values:
            rows.append((name, textwrap.shorten("; ".join(values), text_width() - _LABEL)))
    if page.losses:
        rows.append(("lost", ", ".join(f"{loss.kind} {loss.occurrences:,}" for loss in page.losses)))
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
