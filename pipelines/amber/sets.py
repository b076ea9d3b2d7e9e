"""Makes sets from names shared by several entities, and finds which values their pages mention and other signals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import required, value_rows
from kbsource.kilt import kilt_texts
from kbsource.records import Page
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from kbsource.runtime.database import insert, ordered_batches
from kbsource.runtime.warehouse import warehouse
from mapping.acceptance import read_rule
from mapping.amber.names import FACTS, NAMES, TERMS, VIEWED, NamedSet, find_names, named_sets, used_values
from mapping.amber.records import AmberSet, AmberTuple, PageRef, SetEntity
from mapping.amber.release import claim
from mapping.amber.sets import PageBeginning, align_entity, lacking, make_set
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from mapping.entail.verification import span_premise
from mapping.search.page_search import align_evidence, matched_text
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser
from pipelines.amber.entities import AmberPlan
from pipelines.primitives.join_tables import (
    ONLY,
    Chunks,
    row_batches,
    stored_page_groups,
    stored_table,
    write_by_pages,
)
from pipelines.primitives.page_texts import PageTexts
from pipelines.primitives.shuffle import write_batch
from pipelines.runners.counters import count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WANTED = pa.schema(
    [
        *required("position", "set", "item", "collection"),
        *required("name", of=pa.string()),
        pa.field("entity", pa.binary()),
    ]
)
"""Entities of sets, with the positions of their pages."""
SIGNALS = pa.schema(
    [
        *required("set", "item", "property", "is_found"),
        pa.field("bleu", pa.float64()),
        *(pa.field(name, pa.int64()) for name in ("start_element", "start_char", "end_element", "end_char")),
        *(pa.field(name, pa.string()) for name in ("text", "premise", "hypothesis")),
        *required("core_start", "core_end"),
    ]
)
"""Signals that a page supports a tuple, in addition to mentioning one of its values."""
ANSWERS = pa.schema(
    [
        *required("set", "item", "property"),
        *(pa.field(name, pa.float64()) for name in ("entailment", "neutral", "contradiction")),
    ]
)
"""Verdicts of the model about tuples; null if it could not judge them."""
SETTLED = pa.schema(
    [
        *required("collection"),
        *required("name", "outcome", of=pa.string()),
        pa.field("entities", pa.binary()),
        pa.field("signals", pa.binary()),
    ]
)
"""Sets that were searched: the entities as JSON, and the signals of their tuples in the order of the tuples' ids; null
if the set is rejected."""
OF_PAGES, OF_SIGNALS = "pages", "signals"
"""Names of outputs."""
_OUTCOMES = pa.schema([*required("collection"), *required("name", "outcome", of=pa.string())])
_ROWS_AT_ONCE, _INSERTED_AT_ONCE, _SETS_AT_ONCE = 1024, 4096, 32
_ENTITY = msgspec.json.Decoder(SetEntity)
_TERM_COUNTS = "select count(distinct item) as entities, count(*) as names from terms"
_ALL_NAMES = """
select collection, name, coalesce(names.outcome, outcomes.outcome) as outcome, n_entities, n_members
from names left join outcomes using (collection, name) where n_entities > 1 order by collection, name
"""
_WANTED_ORDER = "select * from wanted order by position, set, item"


def choose_sets(terms: Chunks, facts: Chunks, viewed: Chunks, *, plan: AmberPlan) -> Iterator[Any]:
    """Chooses the sets, and the entities whose pages are searched.

    All TERMS, FACTS and VIEWED -> (key, ``BatchRef`` of WANTED), one for each group of pages that are read together.

    The folder of the step also has NAMES, whose report has the counts and the most used values.
    """
    rules = plan.options.rules

    def make(path: str) -> None:
        tables = {
            "viewed": stored_table(VIEWED, viewed),
            "terms": stored_table(TERMS, terms),
            "facts": stored_table(FACTS, facts),
        }
        with warehouse(tables, memory_mb=plan.options.memory) as db:
            find_names(db, plan.collections, rules)
            insert(db, "outcomes", [], _OUTCOMES)
            rejected: list[tuple[int, str, str]] = []
            wanted = _wanted(named_sets(db), rejected, plan)
            insert(db, "wanted", row_batches(wanted, WANTED, n_rows=_INSERTED_AT_ONCE), WANTED)
            insert(db, "outcomes", row_batches(rejected, _OUTCOMES), _OUTCOMES)
            report = Report(Counter(db.sql(_TERM_COUNTS).to_arrow_table().to_pylist()[0]))
            if rules.false_objects == "wikidata":
                report.facts["used"] = used_values(db, plan.collections)
            write_chunk(ordered_batches(db, _ALL_NAMES, NAMES), NAMES, report, path=names_path(plan))
            ordered = ordered_batches(db, _WANTED_ORDER, WANTED, n_rows=_ROWS_AT_ONCE)
            write_by_pages(ordered, WANTED, plan.pages, path=path)  # last, because it shows that the step is done

    of_pages = keep_chunk(plan.folder("wanted"), ONLY, make)
    count(read_chunk_report(names_path(plan))[1].counts)
    yield from stored_page_groups(of_pages, plan.pages)


def names_path(plan: AmberPlan) -> str:
    """Returns the path of the NAMES of ``choose_sets``."""
    return chunk_path(plan.folder("names"), ONLY)


def _wanted(
    named: Iterable[NamedSet], rejected: list[tuple[int, str, str]], plan: AmberPlan
) -> Iterator[tuple[Any, ...]]:
    """Iterates over the entities that have a page and a property that no other entity of the name has, as rows of
    WANTED. Adds the outcomes of the other names to ``rejected``.
    """
    pages, rules = plan.pages.of_items(), plan.options.rules
    for number, collection, name, members, page_ids, known in named:
        made = make_set(name, members, known, plan.collections[collection], rules)
        outcome = lacking(made, "distinguished")
        if outcome is None:
            positions, is_there = pages.positions(np.array(page_ids, np.int64))
            at = iter(positions.tolist())
            paged = [(entity, next(at)) for entity, there in zip(made.entities, is_there, strict=True) if there]
            outcome = lacking(made._replace(entities=tuple(entity for entity, _ in paged)), "with_page")
        if outcome is not None:
            rejected.append((collection, name, outcome))
            continue
        for entity, position in paged:
            own = pages.page(int(entity.qid[1:]))
            assert own is not None
            others = [(page_id, pages.title(page_id)) for page_id in plan.further_pages.get(entity.qid, ())]
            refs = (PageRef(str(page_id), title) for page_id, title in sorted([own, *others]))
            content = msgspec.json.encode(replace(entity, wikipedia=tuple(refs)))
            yield position, number, int(entity.qid[1:]), collection, name, content


def align_pages(element: tuple[ChunkKey, BatchRef], *, plan: AmberPlan) -> Iterator[Any]:
    """Searches the pages of entities for the values of their tuples. The output ``OF_SIGNALS`` has the signals of all
    tuples.

    (key, ``BatchRef`` of WANTED) -> (key, ``BatchRef`` of WANTED), and as ``OF_SIGNALS`` (key, ``BatchRef`` of
    SIGNALS).
    """
    key, wanted = ChunkKey(*element[0]), BatchRef(*element[1])
    signals_path = chunk_path(plan.folder(OF_SIGNALS), key)

    def make(path: str) -> None:
        aligned: list[tuple[Any, ...]] = []
        signals: list[tuple[Any, ...]] = []
        _align(value_rows(read_stored(wanted)), aligned, signals, plan)
        for rows, schema, own_path in (
            (signals, SIGNALS, signals_path),
            (aligned, WANTED, path),  # last, because it shows that the pages are done
        ):
            write_batch(rows_batch(rows, schema), path=own_path)

    yield key, keep_chunk(plan.folder(OF_PAGES), key, make)
    yield beam.pvalue.TaggedOutput(OF_SIGNALS, (key, read_chunk_report(signals_path)[0]))


def _align(
    wanted: Iterable[tuple[Any, ...]],
    aligned: list[tuple[Any, ...]],
    signals: list[tuple[Any, ...]],
    plan: AmberPlan,
) -> None:
    texts, items = PageTexts(plan.pages), plan.pages.of_items()
    tokeniser = Tokeniser(plan.pages.lang)
    try:
        for position, rows in groupby(wanted, key=itemgetter(0)):
            read: dict[PageRef, _ReadPage] = {}
            for _, set_number, item, number, name, content in rows:
                entity = _ENTITY.decode(content)
                if entity.tuples:
                    if not read:
                        page_ids = np.array([int(ref.wikipedia_id) for ref in entity.wikipedia], np.int64)
                        positions = items.positions(page_ids)[0].tolist()
                        for ref, place in zip(entity.wikipedia, positions, strict=True):
                            read[ref] = _ReadPage.of(ref, texts.page(place), tokeniser)
                        main = next(read[ref] for ref, place in zip(read, positions, strict=True) if place == position)
                    found = align_entity(entity, [read_page.passage for read_page in read.values()])
                    pages = {own.property_id: read[own.provenance[0]] for own in found.tuples}
                    for own in entity.tuples:
                        page = pages.get(own.property_id, main)
                        stated = _signals(name, entity, own, found, page, plan.collections[number])
                        signals.append((set_number, item, *stated))
                    entity = found
                aligned.append((position, set_number, item, number, name, msgspec.json.encode(entity)))
    finally:
        texts.close()


_NO_SPAN: tuple[None, ...] = (None,) * 6


class _ReadPage(NamedTuple):
    """A page that is searched."""

    page: Page
    passage: PageBeginning
    tokenised: TokenisedPage

    @classmethod
    def of(cls, ref: PageRef, page: Page, tokeniser: Tokeniser) -> _ReadPage:
        return cls(page, PageBeginning(ref, " ".join(kilt_texts(page)[0])), TokenisedPage(page.elements, tokeniser))


def _signals(
    name: str, entity: SetEntity, amber_tuple: AmberTuple, aligned: SetEntity, read: _ReadPage, collection: Any
) -> tuple[Any, ...]:
    """Returns the best match of a tuple in a page: a row of SIGNALS without set and item."""
    stated = next((found for found in aligned.tuples if found.property_id == amber_tuple.property_id), None)
    value = (
        amber_tuple.values[0] if stated is None else next(value for value in stated.values if value.found_in_passage)
    )
    span = align_evidence(f"{name} {amber_tuple.property} {value.aliases[0]}", read.tokenised)
    place: tuple[Any, ...] = _NO_SPAN
    core, premise = (0, 0), None
    if span is not None:
        premise, core = span_premise(read.page, span)
        place = (
            span.score,
            span.start_element,
            span.start_char,
            span.end_element,
            span.end_char,
            matched_text(span, read.tokenised.elements),
        )
    hypothesis = claim(name, entity.qid, amber_tuple, value, collection)
    return (int(amber_tuple.property_id[1:]), int(stated is not None), *place, premise, hypothesis, *core)


_JUDGED_TOGETHER = 512


def pairs_of(element: tuple[ChunkKey, BatchRef]) -> Iterator[tuple[Any, tuple[Pair, ...]]]:
    """Makes the pairs of texts that a model judges, one list of pairs at a time.

    (key, ``BatchRef`` of SIGNALS) -> (their keys, pairs).
    """
    (_, group), signals = element
    rows = (row for row in value_rows(read_stored(BatchRef(*signals))) if row[10] is not None)
    number = 0
    while together := tuple(islice(rows, _JUDGED_TOGETHER)):
        pairs = tuple(Pair(row[10], row[11], (row[12], row[13])) for row in together)
        yield (group, number, tuple(row[:3] for row in together)), pairs
        number += 1


def answers_of(
    asked: tuple[int, int, Any], answers: Iterable[Verdict | UnjudgedPair]
) -> tuple[ChunkKey, pa.RecordBatch]:
    """Returns the answers to the questions of ``pairs_of``, as rows of ANSWERS."""
    group, number, keys = asked
    rows = [
        (*key, *((None,) * 3 if isinstance(answer, UnjudgedPair) else answer))
        for key, answer in zip(keys, answers, strict=True)
    ]
    return ChunkKey(group, number), rows_batch(rows, ANSWERS)


_SEARCHED_ORDER = "select * from searched order by set, item"
_SIGNALS_ORDER = """
select * from signals left join answers using (set, item, property) order by set, item, property
"""
_OWN_SIGNALS = pa.schema([field for field in SIGNALS if field.name not in ("premise", "core_start", "core_end")])
_SAID = pa.schema([*_OWN_SIGNALS, *list(ANSWERS)[3:]])


def settle_sets(searched: Chunks, signals: Chunks, answers: Chunks = (), *, plan: AmberPlan) -> Iterator[Any]:
    """Decides the sets: joins the searched entities with the signals of their tuples and a model's answers, if there
    are any.

    All WANTED, SIGNALS and ANSWERS -> (key, ``BatchRef`` of SETTLED).

    Counts: the tuples of each property, by whether they were found, BLEU and verdict.
    """

    def make(path: str) -> None:
        given = {"searched": (WANTED, searched), "signals": (_OWN_SIGNALS, signals), "answers": (ANSWERS, answers)}
        report = Report()
        tables = {name: stored_table(*table) for name, table in given.items()}
        with warehouse(tables, memory_mb=plan.options.memory) as db:
            write_chunk(
                row_batches(_settled(db, report, plan), SETTLED, n_rows=_SETS_AT_ONCE), SETTLED, report, path=path
            )

    yield ONLY, keep_chunk(plan.folder("settled"), ONLY, make)


def _settled(db: DuckDBPyConnection, report: Report, plan: AmberPlan) -> Iterator[tuple[Any, ...]]:
    rule = None if plan.options.accept is None else read_rule(plan.options.accept)
    searched = value_rows(ordered_batches(db.cursor(), _SEARCHED_ORDER, WANTED, n_rows=_ROWS_AT_ONCE))
    signals = ordered_batches(db.cursor(), _SIGNALS_ORDER, _SAID, n_rows=_ROWS_AT_ONCE)
    of_sets = groupby((row for batch in signals for row in batch.to_pylist()), key=itemgetter("set"))
    for (_, rows), (_, own_signals) in zip(groupby(searched, key=itemgetter(1)), of_sets, strict=True):
        of_set, said = list(rows), {}
        for signal in own_signals:
            del signal["set"]
            said[f"Q{signal.pop('item')}", f"P{signal.pop('property')}"] = signal
        collection, name = of_set[0][3:5]
        for (_, property_id), signal in said.items():
            report.counts[f"{plan.collections[collection].name} {property_id} {_cell(signal)}"] += 1
        made = AmberSet(name, tuple(_ENTITY.decode(row[5]) for row in of_set))
        outcome = lacking(made, "found")
        if outcome is None and rule is not None:
            accepted = (
                replace(
                    entity, tuples=tuple(own for own in entity.tuples if rule.holds(said[entity.qid, own.property_id]))
                )
                for entity in made.entities
            )
            made = made._replace(entities=tuple(accepted))
            outcome = lacking(made, "accepted")
        if outcome is not None:
            yield collection, name, outcome, None, None
            continue
        by_id = {own.amber_id: said[entity.qid, own.property_id] for entity in made.entities for own in entity.tuples}
        of_tuples = [by_id[amber_id] for amber_id in sorted(by_id)]
        yield collection, name, "set", msgspec.json.encode(made.entities), msgspec.json.encode(of_tuples)


def _cell(said: Mapping[str, Any]) -> str:
    """Returns the signals of a tuple as words for the counts."""
    found = "found" if said["is_found"] else "not_found"
    band = "no_span" if said["bleu"] is None else f"bleu_{int(said['bleu'] * 4) / 4:.2f}"
    if said["entailment"] is None:
        return f"{found} {band} not_judged"
    return f"{found} {band} {Verdict(said['entailment'], said['neutral'], said['contradiction']).label}"
