"""The release of pages: its manifest, its kind and its invariants."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from kbsource.columns import rebatched, schema_of
from kbsource.dump.rejects import named_fallbacks
from kbsource.errors import DataError, SetupError, counted
from kbsource.files import join
from kbsource.index.mapped_files import CHECKSUMS_FILE
from kbsource.index.title_index import (
    ARTICLE,
    ARTICLES_FILE,
    ARTICLES_SCHEMA,
    BATCH_ROWS,
    STATUSES,
    TITLES_FILE,
    TITLES_SCHEMA,
)
from kbsource.records import (
    BadRecord,
    Conflict,
    DefinitionHash,
    Fallback,
    Page,
    PageDependencies,
    PageItem,
    RedirectRow,
    TemplateRow,
)
from kbsource.release.counts import Sum, TableCount
from kbsource.release.invariants import Checking, Findings, Invariant, check, invariants
from kbsource.release.kind import CardText, Kind
from kbsource.release.layout import INDEX, MANIFEST, index_path
from kbsource.release.manifest import DAMAGED, Count, InputCounts, TypedManifest, row_faults, sum_faults
from kbsource.release.pages.locations import PAGES_FILE, PAGES_SCHEMA, QIDS_FILE, QIDS_SCHEMA, Locations, index_folder
from kbsource.release.pages.measures import MEASURES
from kbsource.rows import SCHEMA_VERSION
from kbsource.site import Site
from kbsource.wikitext.reference_rows import Reference, ReferenceUse

FORMAT = "kbsource-release-5"
TABLES: dict[str, pa.Schema] = {
    "pages": schema_of(Page),
    "redirects": schema_of(RedirectRow),
    "rejected": schema_of(BadRecord),
    "templates": schema_of(TemplateRow),
}
OPTIONAL_TABLES: dict[str, pa.Schema] = {
    "page_items": schema_of(PageItem),
    "refs": schema_of(Reference),
    "ref_uses": schema_of(ReferenceUse),
    "dependencies": schema_of(PageDependencies),
    "definitions": schema_of(DefinitionHash),
}
"""Tables that a release contains only with certain options or inputs."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f]")
"""Characters that XML, and therefore a dump, cannot contain. If a page contains one, it is a marker that the parser has
left in the text by mistake.
"""


@dataclass(frozen=True, slots=True)
class Counts(InputCounts):
    """The number of pages read, and of pages with each outcome. The invariant is pages_read = articles + redirects +
    other_namespaces + rejected.
    """

    pages_read: Count = 0
    articles: Count = 0
    redirects: Count = 0
    other_namespaces: Count = 0
    rejected: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dump:
    """Facts about the dump. ``date`` is the value of ``--as-of``, else the date in the files' names, else None."""

    date: str | None
    export_version: str
    site: dict[str, Any]
    content: str = "wikitext"  #: form of the pages in the dump: ``wikitext`` or ``html``


@dataclass(frozen=True, slots=True)
class TemplateCount:
    """The number of uses of an unknown template, and of pages that use it."""

    name: str
    uses: Count
    pages: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesManifest(TypedManifest):
    """The manifest of a release of pages. The index of a file in the table ``pages`` is its shard number."""

    dump: Dump
    counts: dict[str, Counts]  #: by base name of the input file
    totals: Counts
    parse_statuses: dict[str, Count]  #: number of articles per ``parse_status``
    unknown_templates: tuple[TemplateCount, ...]  #: the most used ones; the table ``templates`` has all of them
    qid_conflicts: tuple[Conflict, ...]  #: all pages that did not get an item, see ``Conflict``
    findings: dict[str, Count]  #: other counts that readers should know: ``duplicate_titles``, ``invalid_qids``, …
    page_order: str  #: ``by_page_id`` if ids ascend within each shard, else ``as_dumped``
    fallbacks: tuple[Fallback, ...] = ()  #: the first few articles that were extracted by the fallback
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> Self:
        manifest = super(PagesManifest, cls).from_json(values, where)
        try:
            _ = manifest.site
        except ValueError as error:  # the base class of msgspec's error
            raise DataError(f"{where}: dump.site: {error}; {DAMAGED}") from error
        return manifest

    @property
    def site(self) -> Site:
        """The facts about the wiki."""
        return Site.from_json(self.dump.site)

    def facts(self) -> dict[str, Any]:
        """Returns the facts by which releases made from this one identify it in their manifests."""
        return {
            "manifest": MANIFEST,
            "manifest_sha256": self.sha256,
            "wiki": self.site.dbname,
            "dump_date": self.dump.date,
        }


def _count_faults(manifest: PagesManifest) -> list[str]:
    """Returns a message for each contradiction among the counts, or between counts and numbers of rows."""
    totals = manifest.totals
    faults = sum_faults(manifest.counts, totals, Counts())
    expected = {"pages": totals.articles, "redirects": totals.redirects, "rejected": totals.n_rejected}
    return faults + row_faults(manifest, expected)


def fallback_remarks(manifest: PagesManifest) -> list[str]:
    """Returns a message with the number of articles that the fallback extracted, and the first of them; empty if there
    are none.
    """
    n_fallbacks = sum(n for status, n in manifest.parse_statuses.items() if status != "ok")
    if not n_fallbacks:
        return []
    first = named_fallbacks(dataclasses.astuple(page) for page in manifest.fallbacks)
    return [
        f"{counted(n_fallbacks, 'articles')} of {manifest.totals.articles:,} were extracted by a simpler method, "
        f"without links, tables and references. The first are {first}."
    ]


_CELLS = "flatten(flatten([t.rows for t in tables]))"
_FIELDS = "flatten([box.fields for box in infoboxes])"


def _texts(type_: pa.DataType, value: str, name: str) -> Iterator[tuple[str, str, bool]]:
    """Yields the text columns in a value: the name, an expression for the text or list of texts, and whether it is a
    list.
    """
    if pa.types.is_string(type_):
        yield name, value, False
    elif pa.types.is_struct(type_):
        for inner in type_:
            yield from _texts(inner.type, f'{value}."{inner.name}"', f"{name}.{inner.name}")
    elif pa.types.is_list(type_):
        variable = f"in_{len(value)}"
        for inside, texts, is_list in _texts(type_.value_type, variable, name):
            yield inside, f"{'flatten' * is_list}([{texts} for {variable} in {value}])", True


def _outside(cells: str) -> str:
    """Returns an expression for the links that are not inside the text of their cell or field."""
    links = 'not (0 <= a.start and a.start <= a."end" and a."end" <= length(cell.text))'
    found = f"['page ' || page_id || ': a link to ' || a.target_title for a in cell.links if {links}]"
    return f"flatten([{found} for cell in {cells}])"


_TITLES, _ARTICLES = index_path(TITLES_FILE), index_path(ARTICLES_FILE)
_SPAN = "a span does not match its text"
_DISAGREES, _REDIRECTS = (
    "the index does not match the tables",
    "the tables pages and redirects and the index have different redirects",
)
_ITEMS = "the tables pages and page_items have different Wikidata items"
_TEMPLATES = (
    "the uses in pages do not add up to the table templates, or a template that shows nothing has visible characters"
)
_REFS = "the tables refs and ref_uses contradict each other, or their pages"
_USE = "'page ' || page_id || ': a use of reference ' || coalesce(ref::text, cleanup_tag)"
_ELEMENT = "elements[element + 1].text"
_REFERENCE_INVARIANTS = (
    Invariant(
        "refs_disagree",
        _REFS,
        "case when sha256(markup) <> markup_sha256 "
        "then ['page ' || page_id || ': markup_sha256 is not the hash of markup'] end",
        table="refs",
    ),
    Invariant(
        "refs_disagree", _REFS, f"case when (ref is null) = (cleanup_tag is null) then [{_USE}] end", table="ref_uses"
    ),
    Invariant(
        "span_mismatch",
        _SPAN,
        f"""select ref_uses._file, {_USE} from ref_uses left join pages using (page_id)
        where pages.page_id is null or "table" not between 0 and len(tables) - 1
            or infobox not between 0 and len(infoboxes) - 1 or element not between 0 and len(elements) - 1
            or "offset" not between 0 and length({_ELEMENT}) or ("offset" is null) <> (element is null)
            or regexp_matches(substring({_ELEMENT}, "offset", 1), '\\s')
            or not (0 <= sentence_start and sentence_start < "offset" and sentence_end <= length({_ELEMENT}))""",
        needs=("pages", "ref_uses"),
    ),
    *invariants(
        "refs_disagree",
        _REFS,
        *(
            f"select _file, 'page ' || page_id || ': no reference ' || {column} from (select _file, page_id, {column} "
            f"from {table} where {column} is not null) as own anti join refs on own.page_id = refs.page_id "
            f"and own.{column} = refs.ref"
            for table, column in (("ref_uses", "ref"), ("ref_uses", "within"), ("refs", "source"))
        ),
        "select _file, 'page ' || page_id || ': nothing uses reference ' || ref from refs "
        "anti join ref_uses using (page_id, ref) where number is not null",
        needs=("refs", "ref_uses"),
    ),
    Invariant(
        "refs_disagree",
        _REFS,
        """select _file, 'page ' || page_id || ': reference ' || ref || ' is out of order' from (
            select _file, page_id, ref, number,
                lag(ref, 1, -1) over (partition by page_id order by _file, _row) as last,
                lag(number, 1, 0) over (partition by page_id, "group", number is null order by ref) as before from refs
            where source_number = 0
        ) where ref <> last + 1 or (number <> before + 1 and number <> 1)""",
    ),
    Invariant(
        "refs_disagree",
        _REFS,
        """select _file,
            'page ' || page_id || ': source ' || source_number || ' of reference ' || ref || ' is out of order'
        from (
            select _file, page_id, ref, source_number, number, _row,
                lag(source_number, 1, -1) over (partition by page_id, ref order by _file, _row) as before,
                max(_row) filter (where source_number = 0) over (partition by page_id) as last_row from refs
        ) where source_number <> before + 1 or (source_number > 0 and (number is not null or _row < last_row))""",
    ),
)
INVARIANTS = (
    *invariants(
        "span_mismatch",
        _SPAN,
        """['page ' || page_id || ': an anchor whose text is not at its offsets: ' || a.text for a in anchors if not (
            a.element between 0 and len(elements) - 1 and a.start >= 0 and length(a.text) = a."end" - a.start
            and substring(elements[a.element + 1].text, a.start + 1, a."end" - a.start) = a.text
            and (a.text <> '' or a."end" <= length(elements[a.element + 1].text)))]""",
        _outside(_CELLS),
        _outside(_FIELDS),
        table="pages",
    ),
    *invariants(
        "invalid_page",
        "a page is malformed",
        "case when len(elements) = 0 then ['page ' || page_id || ': no elements'] end",
        "['page ' || page_id || ': element 0 must be the title, and no other element' "
        "for element, number in elements if (element.kind = 'title') <> (number = 1)]",
        r"['page ' || page_id || ': a newline or a control character in an element' "
        r"for element in elements if regexp_matches(element.text, '[\x00-\x08\x0a-\x1f]')]",
        *(
            rf"case when regexp_matches(concat_ws('', {texts}), '{CONTROLS.pattern}') "
            rf"then ['page ' || page_id || ': a control character in {name}'] end"
            for field in TABLES["pages"]
            for name, texts, _ in _texts(field.type, f'"{field.name}"', field.name)
            if name != "elements.text"
        ),
        "['page ' || page_id || ': a category from a template is not among the categories: ' || name "
        "for name in template_categories if not list_contains(categories, name)]",
        "case when len(category_sort_keys) <> len(categories) then ['page ' || page_id || ': '"
        " || len(category_sort_keys) || ' sort keys of ' || len(categories) || ' categories'] end",
        *(
            f"['page ' || page_id || ': {name} after an element that does not exist' "
            f"for item in {name} if item.element not between 0 and len(elements) - 1]"
            for name in ("tables", "infoboxes")
        ),
        *(
            f"['page ' || page_id || ': {name} are not numbered in order' "
            f"for item, number in {name} if item.index <> number - 1]"
            for name in ("elements", "anchors")
        ),
        "case when list_sort([a.element::bigint * 4294967296 + a.start for a in anchors]) "
        "<> [a.element::bigint * 4294967296 + a.start for a in anchors] "
        "then ['page ' || page_id || ': anchors out of order'] end",
        table="pages",
    ),
    *(
        Invariant(
            slug,
            meaning,
            f"""select _file, '{what}' || {column} from (
                select _file, {column}, row_number() over (partition by {column} order by _file, _row) as n
                from pages where {column} is not null
            ) where n > 1""",
        )
        for slug, meaning, what, column in (
            ("duplicate_page_id", "two pages have the same page id", "page id ", "page_id"),
            ("duplicate_qid", "two pages have the same Wikidata item", "Wikidata item ", "qid"),
        )
    ),
    Invariant(
        "pages_out_of_order",
        "page ids do not ascend, although page_order in the manifest is by_page_id",
        """select _file, 'page ' || page_id from (
            select _file, page_id, lag(page_id) over (partition by _file order by _row) as before from pages
        ) where page_id <= before and exists (from settings where name = 'ordered' and n = 1)""",
    ),
    Invariant(
        "dangling_target",
        "a link points to a page that is missing",
        "select _file, 'page ' || page_id || ' is linked to, but is not an article' from astray where own is null",
        needs=("links",),
    ),
    Invariant(
        "wrong_target_title",
        "the title in a link is not the title of the page with its id",
        "select _file, 'page ' || page_id || ' is linked to as ' || title from astray where own is not null",
        needs=("links",),
    ),
    Invariant(
        "redirects_disagree",
        _REDIRECTS,
        """select _file, 'page ' || page_id || ': its redirects differ from those in the title index'
        from pages left join (
            select listed.page_id, list(title order by title) as titles
            from (select page_id, unnest(redirects) as row from articles) as listed join titles using (row) group by all
        ) using (page_id) where redirects is distinct from coalesce(titles, [])""",
        needs=("index",),
    ),
    *invariants(
        "redirects_disagree",
        _REDIRECTS,
        f"""with expected as (
            select greatest(own.page_id, 0) as page_id, own.title, {{
                'target_title': coalesce(own.target_title, ''), 'fragment': own.fragment,
                'final_title': final.title, 'final_page_id': final.page_id, 'hops': own.hops,
                'status': {[*STATUSES]}[own.status + 1]}} as leads
            from titles as own left join titles as final on final.row = own.final_row where own.status <> {ARTICLE}
        ), stored as (
            select _file, coalesce(page_id, 0) as page_id, title, {{'target_title': target_title, 'fragment': fragment,
                'final_title': final_title, 'final_page_id': final_page_id, 'hops': hops, 'status': status}} as leads
            from redirects
        )
        select coalesce(_file, (select max(_file) from redirects)), coalesce(stored.title, expected.title)
        from stored full join expected using (page_id, title) where stored.leads is distinct from expected.leads""",
        """select _file, title || ' is out of order' from (
            select _file, title, page_id, lag(title) over placed as other, lag(page_id) over placed as other_id
            from redirects window placed as (order by _file, _row)
        ) where title < other or (title = other and page_id <= other_id)""",
        needs=("index", "redirects"),
    ),
    Invariant(
        "items_disagree",
        _ITEMS,
        """select item._file, 'page ' || page_id from (
            select _file, page_id, qid, lag(page_id) over (order by _file, _row) as before from page_items
        ) as item left join pages using (page_id)
        where pages.page_id is null or item.qid is distinct from pages.qid or page_id <= before""",
        needs=("pages",),
    ),
    Invariant(
        "items_disagree",
        _ITEMS,
        """select last, format('page_items has {} pages with an item, pages has {}', found, own)
        from (select max(_file) as last, count(qid) as found from page_items), (select count(qid) as own from pages)
        where found <> own and last is not null""",
        needs=("pages", "page_items"),
    ),
    Invariant(
        "templates_disagree",
        _TEMPLATES,
        "case when outcome not in ('rendered', 'expanded', 'invoked') and shown_chars <> 0 "
        "then [name || ': shown_chars is not 0'] end",
        table="templates",
    ),
    Invariant(
        "templates_disagree",
        _TEMPLATES,
        """select (select max(_file) from templates),
            format('{} uses: {} in templates, {} in pages', outcome, coalesce(told.n, 0), coalesce(own.n, 0))
        from (select outcome, sum(uses) as n from templates group by all) as told
        full join (
            select use.outcome, sum(use.uses) as n from (select unnest(templates) as use from pages) group by all
        ) as own using (outcome) where told.n is distinct from own.n""",
        needs=("pages", "templates"),
    ),
    Invariant(
        "index_disagrees",
        _DISAGREES,
        """select _file, case when known.title is null then 'page ' || page_id || ' is not in the title index'
            else 'page ' || page_id || ' has another title in the title index' end
        from pages left join known using (page_id) where pages.title is distinct from known.title""",
        needs=("index",),
    ),
    Invariant(
        "index_disagrees",
        _DISAGREES,
        # A page that was rejected after the index was built is still in it, and links may point to it.
        f"""select '{_ARTICLES}', 'page ' || page_id || ' is in the index, but neither in pages nor in rejected'
        from known anti join pages using (page_id)
        where page_id not in (select try_cast(key as bigint) as late from rejected
            where stage in ('parse', 'resolve') and late is not null)""",
        needs=("index", "pages", "rejected"),
    ),
    Invariant(
        "dependencies_disagree",
        "a row of dependencies does not belong to the page at its position",
        """select coalesce(recorded._file, own._file), 'page ' || coalesce(recorded.page_id, own.page_id)
        from (select *, replace(_file, 'dependencies', 'pages') as page_file from dependencies) as recorded
        full join pages as own on recorded.page_file = own._file and recorded._row = own._row
        where (recorded.page_id is distinct from own.page_id or len(recorded.uses) <> len(own.templates))
            and exists (from dependencies)""",
        needs=("pages", "dependencies"),
    ),
    *_REFERENCE_INVARIANTS,
)
INDEX_INVARIANTS = tuple(
    Invariant("index_disagrees", _DISAGREES, f"select '{file}', '{what}' from ({query})")
    for file, what, query in (
        (_TITLES, "an unknown status", f"from titles where status not between 0 and {len(STATUSES) - 1}"),
        (_TITLES, "keys that do not match their titles", "from titles where key <> title_key(title)"),
        (
            _TITLES,
            "keys out of order",
            "from (select key, lag(key) over (order by row) as before from titles) where key < before",
        ),
        (
            _TITLES,
            "a redirect that ends at no article, or an article elsewhere",
            f"""from titles as own left join titles as final on final.row = own.final_row
            where (own.final_row <> -1 and final.status is distinct from {ARTICLE})
                or own.target_row not between -1 and (select max(row) from titles)
                or (own.status = {ARTICLE} and own.final_row <> own.row)""",
        ),
        (
            _ARTICLES,
            "other articles than the titles have",
            f"""from articles full join (select row from titles where status = {ARTICLE}) as own using (row)
            where articles.row is null or own.row is null""",
        ),
        (
            _ARTICLES,
            "articles out of order",
            "from (select page_id, lag(page_id) over (order by number) as last from articles) where page_id <= last",
        ),
        (_ARTICLES, "an article twice", "select row from articles group by row having count(*) > 1"),
        (
            _ARTICLES,
            "a redirect that is in no row",
            """from (select unnest(redirects) as row from articles)
            where row not between 0 and (select max(row) from titles)""",
        ),
    )
)
"""Invariants of a title index by itself, which are checked before anything is looked up in it."""


def index_views(checking: Checking[PagesManifest]) -> Iterator[str]:
    """Adds views of the title index if it is complete. The views are titles, articles, known (articles with titles) and
    astray (links to no article, or to an article under a wrong title).
    """
    import numpy as np
    from duckdb.func import PythonUDFType

    from kbsource.index.mapped_files import MappedFile, title_keys

    folder, db = _index_files(checking, TITLES_FILE, ARTICLES_FILE), checking.db
    if folder is None:
        return
    for view, file, schema, number in (
        ("titles", TITLES_FILE, TITLES_SCHEMA, "row"),
        ("articles", ARTICLES_FILE, ARTICLES_SCHEMA, "number"),
    ):
        try:
            table = pa.Table.from_batches(MappedFile(join(folder, file), schema).whole(), schema)
        except SetupError as error:
            checking.found.add(index_path(file), "unreadable", str(error))
            return
        db.register(view, table.append_column(number, pa.array(np.arange(len(table), dtype=np.int32))))
    db.create_function("title_key", _hashed(title_keys), ["varchar"], "ubigint", type=PythonUDFType.ARROW)
    faults = Findings(INVARIANTS)
    check(db, INDEX_INVARIANTS, (), faults)
    for fault in faults.sorted():
        checking.found.add(fault.file, fault.rule, fault.example, fault.n_cases)
    if faults.sorted():
        return
    db.execute("create table known as select articles.page_id, title from articles join titles using (row)")
    if "pages" in checking.given:
        db.register("links", pa.RecordBatchReader.from_batches(_LINKS, _links(checking)))
        db.execute(
            "create table astray as select _file, target_page_id as page_id, target_title as title, known.title as own "
            "from links left join known on page_id = target_page_id "
            "where target_page_id is not null and title is distinct from target_title"
        )
        db.unregister("links")
        yield "links"
    yield "index"


_LINKS = pa.schema([("_file", pa.string()), ("target_page_id", pa.int64()), ("target_title", pa.string())])
_ITEM = "list.element."
_TARGETS = tuple(
    f"{path}.{_ITEM}{name}"
    for path in ("anchors", f"tables.{_ITEM}rows.{_ITEM}{_ITEM}links", f"infoboxes.{_ITEM}fields.{_ITEM}links")
    for name in _LINKS.names[1:]
)


def _links(checking: Checking[PagesManifest]) -> Iterator[pa.RecordBatch]:
    """Reads the targets of all links from single Parquet leaves. DuckDB would read all of anchors, tables and
    infoboxes, which takes three times as long.
    """
    for file, batch in checking.batches("pages", _TARGETS):
        for column in batch.columns:
            links = _innermost(column)
            targets = (links.field(name) for name in _LINKS.names[1:])
            yield pa.RecordBatch.from_arrays([pa.repeat(file, len(links)), *targets], schema=_LINKS)


def _innermost(array: pa.Array) -> pa.Array:
    """Returns the structs that contain the leaves, from an array of nested lists and single-field structs."""
    if pa.types.is_list(array.type):
        return _innermost(array.flatten())
    return array if array.type.num_fields > 1 else _innermost(array.field(0))


def _hashed(title_keys: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda titles: pa.array(
        title_keys(titles.combine_chunks() if isinstance(titles, pa.ChunkedArray) else titles)
    )


def _index_files(checking: Checking[PagesManifest], *names: str) -> str | None:
    """Returns a local folder with the files of the index. If one of them is damaged, reports it and returns None."""
    checksums = {index_path(CHECKSUMS_FILE)} & {entry.file for entry in checking.manifest.files}
    if not {*map(index_path, names), *checksums} <= checking.sound:
        return None
    return index_folder(checking.path, checking.manifest, files=names)


def check_locations(checking: Checking[PagesManifest]) -> Mapping[str, int]:
    """Recomputes the locations of pages and items, compares them with the index, and counts anchors."""
    if "pages" not in checking.given:
        return {}
    elements = (batch["anchors"].flatten() for _, batch in checking.batches("pages", [f"anchors.{_ITEM}element"]))
    counts = {"anchors": sum(map(len, elements))}
    folder = _index_files(checking, PAGES_FILE, QIDS_FILE)
    if folder is None:
        return counts
    try:
        _compare_locations(checking, Locations(folder))
    except SetupError as error:
        checking.found.add(index_path(PAGES_FILE), "unreadable", str(error))
    return counts


def _compare_locations(checking: Checking[PagesManifest], locations: Locations) -> None:
    for file, stored, query, schema in (
        (
            PAGES_FILE,
            locations.pages(),
            r"""select page_id, regexp_extract(_file, '-(\d+)-of-', 1)::int as shard, _row::int as row from pages
            order by all""",
            PAGES_SCHEMA,
        ),
        (
            QIDS_FILE,
            locations.qids(),
            "select try_cast(qid[2:] as bigint) as number, page_id from pages where qid is not null order by all",
            QIDS_SCHEMA,
        ),
    ):
        rows = checking.db.sql(query).to_arrow_reader(BATCH_ROWS)
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
        made = rebatched(batches, BATCH_ROWS)
        checking.same(index_path(file), "index_disagrees", stored, made, lambda batch: batch[0][0])


PAGES_RELEASE: Kind[PagesManifest] = Kind(
    name="release of pages",
    format=FORMAT,
    made_by="kbsource build",
    card=CardText(
        title="Pages of Wikipedia",
        summary=(
            "Every article of a Wikipedia as a person reads it: elements of text with their sections, links with "
            "their positions and resolved targets, tables, infoboxes and categories, and counts of the parts that "
            "were left out."
        ),
        main="pages",
        holds=("wikipedia",),
        tasks=("text-generation", "text-retrieval"),
        tags=("wikipedia", "knowledge-source"),
        limits=(
            (
                "Images and the output of scripts are left out. References are left out of the text; if the release "
                "has them, they are in the tables `refs` and `ref_uses`."
            ),
            "A page that could not be parsed in full has a `parse_status` other than `ok`.",
            ("Wikipedia covers people and topics unevenly. This release does not correct its gaps, biases and errors."),
        ),
        template_limits={
            "html": (
                "The pages were rendered by MediaWiki, so templates have their output of the day of the snapshot. "
                "Boxes beside the text are left out. Of infoboxes, only rows with a label and a value are included."
            ),
            "rules": (
                "Templates without a rule are left out, and Lua modules are not run. The columns `templates` and "
                "`losses` count both for each page."
            ),
            "definitions": (
                "Templates without a rule are expanded from their definitions in the dump, without Lua modules. "
                "Templates with neither a rule nor a definition are left out. The columns `templates` and `losses` "
                "count both for each page."
            ),
            "lua": (
                "Templates without a rule are expanded from their definitions and Lua modules in the dump. Templates "
                "with neither a rule nor a definition are left out. The columns `templates` and `losses` count both "
                "for each page."
            ),
        },
    ),
    queries=(
        ("text of a page", "from kb_text() where title = (select min(title) from pages)"),
        (
            "most linked pages",
            "select target_title, count(distinct page_id) as pages from kb_links() where target_page_id is not "
            "null group by all order by pages desc, target_title limit 10",
        ),
        (
            "links with the text around them",
            "select title, text, target_title, context from kb_links() order by page_id, element, start limit 10",
        ),
        ("values of infoboxes", "select title, name, value from kb_infobox_values() order by title, name limit 20"),
        (
            "paragraphs with a word",
            "select title, section, text from kb_paragraphs() where text ilike '%the%' order by page_id, "
            "element limit 10",
        ),
        (
            "largest categories",
            "select category, count(*) as pages from (select unnest(categories) as category from pages) group "
            "by all order by pages desc, category limit 10",
        ),
        (
            "sentences with their sources",
            "select page, sentence, reference, url from kb_cited_sentences() order by all limit 10",
        ),
    ),
    manifest=PagesManifest,
    tables={**TABLES, **OPTIONAL_TABLES},
    required=tuple(TABLES),
    schema_version=SCHEMA_VERSION,
    files=(INDEX,),
    counts=(
        TableCount("totals.articles", "select count(*) from pages", summary="pages"),
        TableCount("totals.redirects", "select count(*) from redirects", summary="redirects"),
        TableCount("parse_statuses", "select parse_status, count(*) from pages group by all", names=()),
        TableCount("totals.rejected", "select reason, count(*) from rejected group by all", names=()),
    ),
    sums=(Sum("totals.articles", ("parse_statuses",)),),
    further_faults=_count_faults,
    invariants=INVARIANTS,
    settings=lambda manifest: {"ordered": manifest.page_order == "by_page_id"},
    remarks=fallback_remarks,
    views=index_views,
    check=check_locations,
    measures=MEASURES,
)
