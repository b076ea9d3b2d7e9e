"""The kind of release for AmbER sets, and its invariants."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from itertools import chain, zip_longest
from typing import Annotated, Any

import msgspec
import orjson

from kbsource.errors import DataError
from kbsource.kilt import kilt_texts
from kbsource.lookup import KnowledgeSource
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import Count, ListingManifest, shape
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from mapping.amber.measures import MEASURES
from mapping.amber.records import TASKS, AmberOptions, AmberSet, SetEntity
from mapping.amber.records import Collection as TypesCollection
from mapping.amber.release import (
    TABLES,
    TUPLES_FILE,
    ValueCounts,
    amber_line,
    set_of,
    set_queries,
    set_record,
    sets_path,
    tuples_record,
)
from mapping.amber.sets import PageBeginning, align_entity, amber_id, lacking
from mapping.write.kind import FROM_PAGES, REPORT

INVARIANTS = (
    Invariant("invalid_set", "a set is malformed, or out of order"),
    Invariant("queries_differ", "the queries of a set are not those made from its tuples"),
    Invariant("rows_differ", "the rows of a table differ from the files"),
    Invariant("page_differs", "a tuple contradicts its page in the release of pages"),
)


def further_pages(release: PagesManifest) -> dict[str, tuple[int, ...]]:
    """Returns the pages of a release that claim the item of another page, by item, ascending."""
    pages: dict[str, set[int]] = {}
    for conflict in release.qid_conflicts:
        pages.setdefault(conflict.qid, set()).add(conflict.other_page_id)
    return {qid: tuple(sorted(own)) for qid, own in pages.items()}


def check_sets(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks all invariants of AmbER sets and returns how much was checked; None if files are missing or damaged."""
    facts = checking.manifest.facts
    try:
        options, names = AmberOptions(**facts["options"]["rules"]), list(facts["collections"])
    except (KeyError, TypeError):
        checking.found.add(MANIFEST, "manifest", "rules and collections are not in the form of AmbER sets")
        return None
    paths = {name: [f"{name}/{TUPLES_FILE}", *(sets_path(name, task) for task in TASKS)] for name in names}
    words = [f"{name}/{kind}_templates.json" for name in names for kind in ("qa", "fc")]
    if not checking.has_files({*chain(*paths.values()), *words, *(shard_path(table, 0, 1) for table in TABLES)}):
        return None
    counts, kb = {"sets": 0, "tuples": 0, "set_queries": 0}, checking.sources.get("kb")
    takes_all = options.pages_per_item == "all"
    further = further_pages(PAGES_RELEASE.read(kb)) if takes_all and kb is not None else {}
    with nullcontext() if kb is None else KnowledgeSource.open(kb) as source:
        for name in names:
            try:
                _check_collection(checking, name, options, source, further, counts)
            except _LineError as error:
                checking.found.add(error.file, "unreadable", str(error))
    for table, n_rows in counts.items():
        if checking.manifest.n_rows(table) != n_rows:
            checking.found.add(shard_path(table, 0, 1), "rows_differ", f"the files have {n_rows} {table}")
    return counts


def _check_collection(
    checking: Checking[ListingManifest],
    name: str,
    options: AmberOptions,
    source: KnowledgeSource | None,
    further: Mapping[str, tuple[int, ...]],
    counts: dict[str, int],
) -> None:
    file = f"{name}/{TUPLES_FILE}"
    values, before, faulty = ValueCounts(), "", set[str]()
    for amber_set in _sets(checking, file):
        values.add(amber_set)
        for fault in _faults(amber_set, before):
            checking.found.add(file, "invalid_set", f"{amber_set.name}: {fault}")
            faulty.add(amber_set.name)
        for entity in amber_set.entities:
            if source is not None and (wrong := _page_fault(entity, source, further.get(entity.qid, ()))) is not None:
                checking.found.add(file, "page_differs", f"{amber_set.name}, {entity.qid}: {wrong}")
        before = amber_set.name
        counts["sets"] += 1
        counts["tuples"] += sum(len(entity.tuples) for entity in amber_set.entities)
    forms: dict[str, Any] = {"qa": dict[str, dict[str, _Texts]], "fc": dict[str, _Texts]}
    templates = [_templates(checking, f"{name}/{kind}_templates.json", wanted) for kind, wanted in forms.items()]
    collection, objects = TypesCollection(name, {}, {}, *templates), values.ranked()
    for task in TASKS:
        path = sets_path(name, task)
        for amber_set, found in zip_longest(_sets(checking, file), _records(checking, path, _QueriesRecord)):
            line, record = found or (None, None)
            if amber_set is not None and amber_set.name in faulty:  # no queries can be made for it
                continue
            try:
                queries = [] if amber_set is None else set_queries(amber_set, task, collection, options, objects)
            except KeyError as error:
                checking.found.add(path, "queries_differ", f"{amber_set.name}: no template for {error}")
                continue
            stored = {} if record is None else record["qids"]
            counts["set_queries"] += sum(len(stored_set["queries"]) for stored_set in stored.values())
            # If the objects of false claims were chosen from all of Wikidata, the release does not contain them.
            is_known = task != "fc" or options.false_objects == "code"
            wanted = None if amber_set is None else amber_line(set_record(amber_set.name, queries))
            if amber_set is None or line is None or (is_known and line != wanted):
                checking.found.add(path, "queries_differ", "no set" if amber_set is None else amber_set.name)


def _sets(checking: Checking[ListingManifest], file: str) -> Iterator[AmberSet]:
    for number, (_, record) in enumerate(_records(checking, file, _TuplesRecord), start=1):
        try:
            yield set_of(record)
        except msgspec.ValidationError as error:
            raise _LineError(file, f"line {number}: {error}") from error


class _LineError(DataError):
    """A line of a file is not a valid record."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(message)
        self.file = file


_ITEM_ID, _PROPERTY_ID, _NUMBER = (re.compile(f"{letter}[0-9]{{1,18}}") for letter in ("Q", "P", ""))
_Texts = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class _EntityRecord(msgspec.Struct):
    """The keys that ``set_of`` reads of an entity in a set's record."""

    pids: dict[str, dict[str, Any]]


class _TuplesRecord(msgspec.Struct):
    """A record of a set."""

    name: str
    qids: dict[str, _EntityRecord]


class _Queries(msgspec.Struct):
    """An entity in a record of queries."""

    queries: list[Any]


class _QueriesRecord(msgspec.Struct):
    """A record of the queries of a set."""

    name: str
    qids: dict[str, _Queries]


def _records(
    checking: Checking[ListingManifest], file: str, wanted: type[msgspec.Struct]
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Reads the lines of a file, each with its record."""
    for number, line in enumerate(checking.lines(file), start=1):
        try:
            record = orjson.loads(line)
            msgspec.convert(record, wanted)
        except (ValueError, msgspec.ValidationError) as error:
            raise _LineError(file, f"line {number}: {error}") from error
        yield line, record


def _templates(checking: Checking[ListingManifest], file: str, wanted: Any) -> Any:
    try:
        return msgspec.json.decode(b"".join(checking.lines(file)), type=wanted)
    except msgspec.DecodeError as error:
        raise _LineError(file, str(error)) from error


def _faults(amber_set: AmberSet, before: str) -> Iterator[str]:
    if amber_set.name <= before:
        yield f"it comes after {before!r}, which sorts later"
    if (lack := lacking(amber_set, "found")) is not None:
        yield lack
    if amber_set != set_of(tuples_record(amber_set)):
        yield "its record is malformed"
    property_ids = [amber_tuple.property_id for entity in amber_set.entities for amber_tuple in entity.tuples]
    if len(set(property_ids)) < len(property_ids):
        yield "two of its entities have a property in common"
    for entity in amber_set.entities:
        if _ITEM_ID.fullmatch(entity.qid) is None:
            yield f"{entity.qid} is not an item"
        for amber_tuple in entity.tuples:
            if _PROPERTY_ID.fullmatch(amber_tuple.property_id) is None:
                yield f"{entity.qid}, {amber_tuple.property_id} is not a property"
            if not all(value.aliases for value in amber_tuple.values):
                yield f"{entity.qid}, {amber_tuple.property_id} has a value without names"
            if amber_tuple.amber_id != amber_id(amber_set.name, entity.qid, amber_tuple.property_id):
                yield f"{amber_tuple.amber_id} is not the id of {entity.qid}, {amber_tuple.property_id}"
            if (
                not amber_tuple.provenance
                or not {*amber_tuple.provenance} <= {*entity.wikipedia}
                or not any(value.found_in_passage for value in amber_tuple.values)
            ):
                yield f"{entity.qid}, {amber_tuple.property_id} has no page that names a value"


def _page_fault(entity: SetEntity, source: KnowledgeSource, further: Collection[int]) -> str | None:
    passages = []
    named = [int(ref.wikipedia_id) if _NUMBER.fullmatch(ref.wikipedia_id) else None for ref in entity.wikipedia]
    if missing := sorted({*further} - {*named}):
        return f"page {missing[0]} claims the item, but is missing"
    for ref, page_id in zip(entity.wikipedia, named, strict=True):
        page = None if page_id is None else source.by_id(page_id)
        if page is None or page.title != ref.title or (page.qid != entity.qid and page_id not in further):
            return f"page {ref.wikipedia_id} is not {ref.title!r}"
        passages.append(PageBeginning(ref, " ".join(kilt_texts(page)[0])))
    return None if align_entity(entity, passages) == entity else "its pages name other values"


class _Share(msgspec.Struct):
    """A figure next to the paper's figure."""

    made: float
    published: float | None


class _Statistics(msgspec.Struct):
    """Statistics of the sets of a collection."""

    sets: _Share
    entities_per_set: _Share
    distinguished_per_set: _Share
    properties_per_set: _Share
    queries: _Share
    qa: _Share
    sf: _Share
    fc: _Share
    shares: dict[str, _Share]  # share of the tuples, by type and property


class _CollectionReport(msgspec.Struct):
    """A collection in the report."""

    names: dict[str, Count]
    signals: dict[str, dict[str, dict[str, dict[str, Count]]]]
    statistics: _Statistics


AMBER_SETS = ListingKind(
    name="release of AmbER sets",
    format="kbsource-amber-2",
    facts=shape("facts", collections=list[str], options=shape("options", rules=AmberOptions)),
    made_by="kbsource amber",
    card=CardText(
        title="AmbER sets",
        summary=(
            "Entities that share a name, with queries that each fit only one of them. In each set, the most popular "
            "entity is the head; the others are the tail."
        ),
        main="sets",
        holds=("wikipedia", "wikidata"),
        tasks=("text-retrieval", "question-answering"),
        tags=("wikipedia", "wikidata", "AmbER", "entity-ambiguity"),
        limits=("Queries are made from templates, and answers are taken from Wikidata.",),
    ),
    queries=(
        (
            "names with their heads and tails",
            "select collection, name, entity.qid, entity.is_head from (select *, unnest(entities) as entity "
            "from sets) order by collection, name limit 20",
        ),
        ("queries by task", "select collection, task, count(*) as n from set_queries group by all order by all"),
    ),
    tables=TABLES,
    files=(REPORT,),
    documents={REPORT: shape("report", collections=dict[str, _CollectionReport], entities=dict[str, Any])},
    invariants=INVARIANTS,
    check=check_sets,
    made_from=FROM_PAGES,
    shown_by=(
        ("sets", "name"),
        *(("tuples", name) for name in ("amber_id", "qid")),
        *(("set_queries", name) for name in ("query_id", "qid")),
        ("names", "name"),
    ),
    measures=MEASURES,
)
