"""Joins the statements of two dates by subject and property, and searches the subjects' pages for the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace as with_values

from kbsource.columns import batch_of, required, rows_of, schema_of, value_rows
from kbsource.files import Folder, join
from kbsource.kilt import kilt_texts, section_name
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_batches,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from kbsource.runtime.database import insert, ordered_batches
from kbsource.runtime.warehouse import ranges_of, warehouse
from mapping.entail.statements import SEPARATOR, state_triple
from mapping.facts import (
    SIDES,
    Fact,
    FactAnswer,
    FactProof,
    Side,
    commit_facts,
    compared,
    problem_of,
    score,
    with_common,
)
from mapping.qampari.classes import ItemSet, Numbers, item_numbers
from mapping.qampari.evidence import CandidateSentence, PageSentences, SearchTarget
from mapping.qampari.names import (
    NAMES,
    TERMS,
    Name,
    ValueKind,
    answer_key,
    item_terms,
    name_items,
    names_of_value,
    types_of_values,
)
from mapping.qampari.statements import values_of
from mapping.search.tokens import Tokeniser
from pipelines.options.facts import FactsOptions
from pipelines.primitives.join_tables import (
    ONLY,
    Chunks,
    row_batches,
    stored_page_groups,
    stored_table,
    write_by_pages,
)
from pipelines.primitives.page_texts import PagesPlan, PageTexts, ReleasePages
from pipelines.primitives.shuffle import write_batch
from pipelines.qampari.plan import PROOFS, TRIED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPlan(PagesPlan):
    """Settings shared by all steps; ``pages`` is the newer release, or the one given to ``of``."""

    options: FactsOptions
    old: ReleasePages
    new: ReleasePages
    kinds: Mapping[str, ValueKind]  # kind of the values of each property
    labels: Mapping[str, str]  # label of each property
    templates: Mapping[str, str]  # templates of the questions, by property

    def of(self, side: Side) -> FactsPlan:
        """Returns a copy of the plan for one of the releases, with a separate folder."""
        return replace(self, pages=self.old if side == "old" else self.new, staging=join(self.staging, side))


OWN_VALUES = pa.schema(
    [*required("row_id", "subject", "property"), *required("value", "key", of=pa.string()), *required("item", "own")]
)
"""Values of subjects, numbered in the order of the statements, by the subject's number in the newer release.

``own`` is the item's number in its own release; ``item`` is the item that is the value, or -1; ``key`` is the value
that is compared.
"""
NAMED = pa.schema([*NAMES, *required("position")])
"""Names of items, with the position of their page (-1 if the item has no page)."""
WANTED = pa.schema(
    [
        *required("position", "fact"),
        *required("names", of=pa.list_(pa.string())),
        pa.field("page_id", pa.int64()),
        *required("hypothesis", of=pa.string()),
    ]
)
"""Answers, each with the number of its ``fact`` and the page to search. A link to ``page_id`` counts as a mention of
the answer.
"""
PLACED = pa.schema(
    [
        *required("fact", "n_found", "element", "paragraph_id", "before", "revision_id"),
        *required("section", of=pa.string()),
    ]
)
"""Positions, in KILT's form of the page, of the elements that mention an answer."""
OF_PLACES = "placed"
"""Name of an output."""
StatementCounts = tuple[dict[int, int], dict[int, int]]
"""Numbers of statements by property number: of all items, and of those without a page."""

_ANSWERS = """
create or replace table answers as
with all_values as (select 0 as side, * from old_values union all select 1 as side, * from new_values)
select side, subject, property, value, min(key) as key, min(item) as item, min(row_id) as row_id,
    arg_min(own, row_id) as own
from all_values where subject between {first} and {last} group by side, subject, property, value
"""
"""Distinct values of a range of subjects, in the order of their first statements."""
_NAME_COLUMNS = [
    pa.field("names", pa.list_(pa.string())),
    pa.field("page_id", pa.int64()),
    pa.field("title", pa.string()),
]
_POSITION = pa.field("position", pa.int64())
_PAIR_ROWS = pa.schema(
    [
        *required("subject", "property"),
        *(
            field.with_name(f"{side}_{field.name}")
            for side in SIDES
            for field in (pa.field("item", pa.int64()), *_NAME_COLUMNS, _POSITION)
        ),
    ]
)
_PAIRS_IN_ORDER = """
with pairs as (
    select subject, property, coalesce(min(own) filter (side = 0), subject) as old,
        coalesce(min(own) filter (side = 1), subject) as new
    from answers group by subject, property
)
select subject, property,
    old as old_item, old_named.names as old_names, old_named.page_id as old_page_id, old_named.title as old_title,
    old_named.position as old_position,
    new as new_item, new_named.names as new_names, new_named.page_id as new_page_id, new_named.title as new_title,
    new_named.position as new_position
from pairs left join old_named on old_named.item = old left join new_named on new_named.item = new
order by subject, property
"""
"""Statements about a subject in two releases of Wikidata, with its number and names in each."""
_ANSWER_ROWS = pa.schema(
    [
        *required("subject", "property", "side"),
        *required("key", "value", of=pa.string()),
        *required("item"),
        *_NAME_COLUMNS,
    ]
)
_ANSWERS_IN_ORDER = """
with named as (select 0 as side, * from old_named union all select 1 as side, * from new_named)
select subject, property, side, key, value, item, names, page_id, title
from answers left join named using (side, item) order by subject, property, side, row_id
"""
_FOUND_IN_ORDER = """
with own_placed as (from placed where fact between {first} and {last}),
    own_proofs as (from proofs where fact between {first} and {last}),
    counted as (select fact, max(n_found) as n_found from own_placed group by fact)
select counted.fact, counted.n_found, proofs.* exclude (fact), paragraph_id, before, revision_id, section
from counted left join own_proofs as proofs on proofs.fact = counted.fact
    left join own_placed as placed on placed.fact = proofs.fact and placed.element = proofs.element
order by counted.fact
"""
_FOUND_ROWS = pa.schema(
    [field.with_nullable(True) for field in (*list(PLACED)[:2], *list(PROOFS)[1:], *list(PLACED)[3:])]
)
_FACTS_AT_ONCE, _ROWS_AT_ONCE = 256, 4096
_CHUNK_BITS, _ROW_BITS = 20, 28


@lru_cache(maxsize=1)
def _subjects(old: ReleasePages, new: ReleasePages) -> ItemSet:
    """Returns the items that have a page in either release."""
    items = ItemSet()
    for pages in (old, new):
        items.add(pages.of_items().items())
    return items


def same_items(items: Numbers, plan: FactsPlan) -> Numbers:
    """Maps items of the older release to items of the newer one. Merged items are matched by their page."""
    old, new = plan.old.of_items(), plan.new.of_items()
    page_ids = old.page_ids(items)
    is_lost = (page_ids >= 0) & (new.page_ids(items) < 0)
    found = items.copy()
    successors = new.items_of(page_ids[is_lost])
    found[is_lost] = np.where(successors >= 0, successors, items[is_lost])
    return found


def take_values(
    element: tuple[ChunkKey, pa.RecordBatch], *, plan: FactsPlan, side: Side
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Takes the values of statements about items with a page: the valid values with the best rank.

    (key, batch of statements) -> (key, ``BatchRef`` of OWN_VALUES).
    """
    key, batch = ChunkKey(*element[0]), element[1]

    def make(path: str) -> None:
        write_batch(_own_values(key, batch, plan, side), path=path)

    yield key, keep_chunk(plan.of(side).folder("values"), key, make)


def _own_values(key: ChunkKey, batch: pa.RecordBatch, plan: FactsPlan, side: Side) -> pa.RecordBatch:
    asked = sorted(plan.templates)
    types = types_of_values(plan.kinds, asked)
    values = values_of(batch, _subjects(plan.old, plan.new), asked, value_types=types, is_best=True)
    own, properties = values["subject"].to_numpy(), values["property"].to_numpy()
    is_item = np.isin(properties, [int(name[1:]) for name in asked if plan.kinds[name] == "item"])
    items = np.full(len(own), -1)
    items[is_item] = item_numbers(values["value"].filter(pa.array(is_item)))
    subjects, same = (same_items(own, plan), same_items(items, plan)) if side == "old" else (own, items)
    keys = [
        f"Q{item}" if item >= 0 else answer_key(plan.kinds[f"P{number}"], value)
        for item, number, value in zip(same.tolist(), properties.tolist(), values["value"].to_pylist(), strict=True)
    ]
    row_ids = (key.part << _CHUNK_BITS | key.chunk) << _ROW_BITS | np.arange(len(own))
    columns = [row_ids, subjects, properties, values["value"], pa.array(keys, pa.string()), items, own]
    return pa.RecordBatch.from_arrays(list(map(_array, columns)), schema=OWN_VALUES)


def _array(column: Any) -> pa.Array:
    return pa.array(column) if isinstance(column, np.ndarray) else column


def count_statements(chunk: tuple[ChunkKey, pa.RecordBatch], plan: FactsPlan) -> tuple[ChunkKey, StatementCounts]:
    """Counts the statements about items by property number, and those about items without a page."""
    key, batch = chunk
    of_items = batch.filter(pc.starts_with(batch["entity_id"], "Q"))
    items, properties = item_numbers(of_items["entity_id"]), item_numbers(of_items["property_id"])
    is_pageless = ~_subjects(plan.old, plan.new).has(items)
    tallies = (np.unique(ids, return_counts=True) for ids in (properties, properties[is_pageless]))
    every, pageless = (dict(zip(*map(np.ndarray.tolist, tally), strict=True)) for tally in tallies)
    return key, (every, pageless)


def sum_statements(counted: Sequence[tuple[ChunkKey, StatementCounts]]) -> Iterator[StatementCounts]:
    """Sums the results of ``count_statements``."""
    every, pageless = Counter[int](), Counter[int]()
    for _, (own, own_pageless) in counted:
        every.update(own)
        pageless.update(own_pageless)
    yield dict(every), dict(pageless)


def find_needed(old: Chunks, new: Chunks, *, plan: FactsPlan) -> Iterator[dict[Side, str]]:
    """Finds the items whose names are needed, in each release.

    All OWN_VALUES of both releases -> the paths of the sets of items, by release.
    """
    needed = {side: ItemSet() for side in SIDES}
    for side, chunks in zip(SIDES, (old, new), strict=True):
        for _, chunk in chunks:
            for batch in read_batches(BatchRef(*chunk)):
                items = batch["item"].to_numpy()
                needed[side].add(items[items >= 0])
                needed[side].add(batch["own"].to_numpy())
                for subjects in needed.values():
                    subjects.add(batch["subject"].to_numpy())
    paths = {side: join(plan.of(side).folder("needed.npy")) for side in SIDES}
    for side, path in paths.items():
        with Folder.of(path).create() as file:
            np.save(file, needed[side].bits, allow_pickle=False)
    yield paths


def take_names(batch: pa.RecordBatch, needed: ItemSet, *, plan: FactsPlan) -> pa.RecordBatch:
    """Returns the names of the needed items of a batch, as rows of NAMED."""
    terms = item_terms(batch, needed)
    return _named(np.sort(terms["item"].to_numpy()), pa.Table.from_batches([terms]), plan)


def _named(items: Numbers, terms: pa.Table, plan: FactsPlan) -> pa.RecordBatch:
    pages = plan.pages.of_items()
    named = pa.Table.from_batches(name_items(items, terms, pages), NAMES)
    page_ids = pc.fill_null(named["page_id"], -1).to_numpy()
    found, is_there = pages.positions(page_ids)
    positions = np.full(len(page_ids), -1)
    positions[is_there] = found
    batches = named.append_column(NAMED.field("position"), pa.array(positions)).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], NAMED)


def make_changed_facts(
    old: Chunks, new: Chunks, old_named: Chunks, new_named: Chunks, *, plan: FactsPlan
) -> Iterator[Any]:
    """Makes the facts, without proofs, and lists the texts to search for in the pages of each release.

    All OWN_VALUES and NAMED of both releases -> (key, ``BatchRef`` of facts). An output named after each release has
    (key, ``BatchRef`` of WANTED) for each group of pages that are read together.
    """
    facts_path = chunk_path(plan.folder("made"), ONLY)
    wanted = {side: chunk_path(plan.of(side).folder("wanted"), ONLY) for side in SIDES}

    def make(path: str) -> None:
        values = {"old_values": stored_table(OWN_VALUES, old), "new_values": stored_table(OWN_VALUES, new)}
        named = {"old_named": stored_table(NAMED, old_named), "new_named": stored_table(NAMED, new_named)}
        with warehouse({**values, **named}, memory_mb=plan.options.memory) as db:
            write_chunk(_fact_batches(db, plan), schema_of(Fact), Report(), path=facts_path)
            for side in SIDES:  # the last chunk shows that the step is done
                write_by_pages(_ordered_wanted(db, f"{side}_wanted"), WANTED, plan.of(side).pages, path=wanted[side])

    keep_chunk(plan.of(SIDES[-1]).folder("wanted"), ONLY, make)
    yield ONLY, read_chunk_report(facts_path)[0]
    for side in SIDES:
        for group in stored_page_groups(read_chunk_report(wanted[side])[0], plan.of(side).pages):
            yield beam.pvalue.TaggedOutput(side, group)


def _ordered_wanted(db: DuckDBPyConnection, table: str) -> Iterator[pa.RecordBatch]:
    for first, last in ranges_of(db, [table], "position"):
        query = f"select * from {table} where position between {first} and {last} order by position, fact"
        yield from ordered_batches(db, query, WANTED)


def _joined_pairs(db: DuckDBPyConnection) -> Iterator[tuple[tuple[Any, ...], Iterator[tuple[Any, ...]]]]:
    """Iterates over the rows of _PAIR_ROWS, each with its rows of _ANSWER_ROWS, by subject and property."""
    for first, last in ranges_of(db, [f"{side}_values" for side in SIDES], "subject"):
        db.execute(_ANSWERS.format(first=first, last=last))
        pairs, answers = (
            value_rows(ordered_batches(db.cursor(), query, schema, n_rows=_ROWS_AT_ONCE))
            for query, schema in ((_PAIRS_IN_ORDER, _PAIR_ROWS), (_ANSWERS_IN_ORDER, _ANSWER_ROWS))
        )
        for pair, (_, rows) in zip(pairs, groupby(answers, key=itemgetter(0, 1)), strict=True):
            yield pair, rows


def _fact_batches(db: DuckDBPyConnection, plan: FactsPlan) -> Iterator[pa.RecordBatch]:
    """Iterates over the facts without proofs, and inserts rows of WANTED into ``old_wanted`` and ``new_wanted``."""
    plans: dict[Side, FactsPlan] = {side: plan.of(side) for side in SIDES}
    facts: list[Fact] = []
    wanted: dict[Side, list[tuple[Any, ...]]] = {side: [] for side in SIDES}
    number = 0

    def insert_wanted(side: Side) -> None:
        insert(db, f"{side}_wanted", [rows_batch(wanted[side], WANTED)], WANTED)
        wanted[side].clear()

    for (subject, property_, *of_sides), rows in _joined_pairs(db):
        subjects: dict[Side, _Subject] = {
            "old": _subject(of_sides[:5], plans["old"]),
            "new": _subject(of_sides[5:], plans["new"]),
        }
        fact = _fact_without_answers(subject, f"P{property_}", subjects, plans)
        found: dict[Side, list[FactAnswer]] = {side: [] for side in SIDES}
        for _, _, at, key, *named in rows:
            side = SIDES[at]
            if any(key == answer.value for answer in found[side]):
                continue
            name = _value_name(fact.property_id, named, plans[side])
            said = state_triple(f"{fact.entity}{SEPARATOR}{fact.property}", next(iter(name.names), ""))
            names = () if said is None else name.names
            found[side].append(FactAnswer(key, name.item_id, next(iter(names), None), names, name.title))
            if names and subjects[side].position >= 0:
                wanted[side].append((subjects[side].position, number, names, name.page_id, said))
                if len(wanted[side]) == _ROWS_AT_ONCE:
                    insert_wanted(side)
            number += 1
        old, new = with_common(found["old"], found["new"])
        outcome = compared(old, new)
        facts.append(with_values(fact, outcome=outcome, old_answers=old, new_answers=new))
        if len(facts) == _FACTS_AT_ONCE:
            yield batch_of(facts, Fact)
            facts.clear()
    yield batch_of(facts, Fact)
    for side in SIDES:
        insert_wanted(side)


class _Subject(NamedTuple):
    """The subject of a fact in a release."""

    name: Name
    position: int  # position of its page, or -1


def _subject(row: Sequence[Any], plan: FactsPlan) -> _Subject:
    """Returns the subject of a fact in a release, from its columns in a row of ``_PAIR_ROWS``."""
    item, names, page_id, title, position = row
    return _unlisted(item, plan) if names is None else _Subject(Name(item, tuple(names), page_id, title), position)


def _unlisted(item: int, plan: FactsPlan) -> _Subject:
    """Returns the name of an item that the release of Wikidata lacks, and the position of its page, or -1."""
    (named,) = _named(np.array([item]), TERMS.empty_table(), plan).to_pylist()
    position = named.pop("position")
    return _Subject(Name(**{**named, "names": tuple(named["names"])}), position)


def _fact_without_answers(
    subject: int, property_id: str, subjects: Mapping[Side, _Subject], plans: Mapping[Side, FactsPlan]
) -> Fact:
    has_page = {side: own.position >= 0 for side, own in subjects.items()}
    of_entity: Side = "old" if has_page["old"] and not has_page["new"] else "new"
    plan = plans[of_entity]
    entity = _called(subjects[of_entity].name, plan)
    old, new = (subjects[side].name if has_page[side] else Name(None, ()) for side in SIDES)
    return Fact(
        item_id=f"Q{subject}",
        old_item_id=f"Q{subjects['old'].name.item}",
        property_id=property_id,
        property=plan.labels[property_id],
        entity=entity,
        question=plan.templates[property_id].replace("{entity}", entity),
        outcome="",
        problem=None,
        old_page_id=old.page_id,
        old_title=old.title,
        new_page_id=new.page_id,
        new_title=new.title,
        old_answers=(),
        new_answers=(),
    )


def _called(subject: Name, plan: FactsPlan) -> str:
    """Returns the name of a subject: a label or title that resolves to its page. Without a page, it is the label, or
    else the id."""
    label = next(iter(subject.names), f"Q{subject.item}")
    if subject.title is None or plan.pages.of_items().resolve(label) == subject.page_id:
        return label
    return subject.title


def _value_name(property_id: str, row: Sequence[Any], plan: FactsPlan) -> Name:
    """Returns the name of a value, given its columns of _ANSWER_ROWS from ``value``."""
    value, item, names, page_id, title = row
    of_value = names_of_value(plan.kinds[property_id], value)
    if of_value is not None:
        return Name(None, of_value)
    return _unlisted(item, plan).name if names is None else Name(item, tuple(names), page_id, title)


def look_in_pages(element: tuple[ChunkKey, BatchRef], *, plan: FactsPlan) -> Iterator[Any]:
    """Finds the sentences that mention an answer, the most similar to the statement first.

    (key, ``BatchRef`` of WANTED) -> (key, ``BatchRef`` of TRIED). A named output has (key, ``BatchRef`` of PLACED).
    """
    key, wanted = ChunkKey(*element[0]), BatchRef(*element[1])
    placed_path = chunk_path(plan.folder(OF_PLACES), key)

    def make(path: str) -> None:
        tried: list[tuple[Any, ...]] = []
        placed: list[tuple[Any, ...]] = []
        _look(read_stored(wanted), tried, placed, plan)
        write_batch(rows_batch(placed, PLACED), path=placed_path)
        # last, because it shows that the pages are done
        write_chunk(row_batches(tried, TRIED), TRIED, Report(), path=path)

    yield key, keep_chunk(plan.folder("tried"), key, make)
    yield beam.pvalue.TaggedOutput(OF_PLACES, (key, read_chunk_report(placed_path)[0]))


def _look(
    wanted: Iterable[pa.RecordBatch], tried: list[tuple[Any, ...]], placed: list[tuple[Any, ...]], plan: FactsPlan
) -> None:
    texts, tokeniser = PageTexts(plan.pages, further=("anchors", "revision_id")), Tokeniser("en")
    try:
        for position, rows in groupby(value_rows(wanted), key=itemgetter(0)):
            page = texts.page(position)
            if page.is_disambiguation:
                continue
            sentences = PageSentences(page, n_before=plan.options.sentences_before)
            places = kilt_texts(page)[1]
            for _, fact, names, page_id, said in rows:
                sought = SearchTarget(tuple(names), page_id)
                named = [candidate for candidate in sentences.find(sought) if candidate.element in places]
                named.sort(key=lambda candidate: _score(said, candidate, tokeniser), reverse=True)
                tried.extend((fact, 0, number, *candidate, said) for number, candidate in enumerate(named))
                for element in sorted({candidate.element for candidate in named}):
                    section = section_name(page.elements[element].section)
                    placed.append((fact, len(named), element, *places[element], page.revision_id, section))
    finally:
        texts.close()


def _score(hypothesis: str, candidate: CandidateSentence, tokeniser: Tokeniser) -> tuple[float, float]:
    return score(hypothesis, candidate.text, candidate.sentence_char - candidate.start_char, tokeniser)


def settle_facts(
    element: tuple[ChunkKey, BatchRef],
    old_proofs: Chunks,
    new_proofs: Chunks,
    old_placed: Chunks,
    new_placed: Chunks,
    *,
    plan: FactsPlan,
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Adds the proofs and their positions to the facts.

    (key, ``BatchRef`` of facts without proofs), and all PROOFS and PLACED -> (key, ``BatchRef`` of facts).
    """
    facts = BatchRef(*element[1])

    def make(path: str) -> None:
        given = {
            "proofs": stored_table(PROOFS, old_proofs, new_proofs),
            "placed": stored_table(PLACED, old_placed, new_placed),
        }
        with warehouse(given, memory_mb=plan.options.memory) as db:
            write_chunk(_settled(db, facts), schema_of(Fact), Report(), path=path)

    yield ONLY, keep_chunk(plan.folder("settled"), ONLY, make)


def _found_in_order(db: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    for first, last in ranges_of(db, ["placed"], "fact"):
        query = _FOUND_IN_ORDER.format(first=first, last=last)
        yield from value_rows(ordered_batches(db, query, _FOUND_ROWS, n_rows=_ROWS_AT_ONCE))


def _settled(db: DuckDBPyConnection, facts: BatchRef) -> Iterator[pa.RecordBatch]:
    tokeniser = Tokeniser("en")
    found = _found_in_order(db)
    number, next_found = 0, next(found, None)
    for batch in read_stored(facts):
        settled = []
        for fact in rows_of(batch, Fact):
            sides = []
            for side in SIDES:
                answers = []
                for answer in fact.answers(side):
                    if next_found is not None and next_found[0] == number:
                        _, n_found, *proof = next_found
                        answer = with_values(answer, n_sentences=n_found, proof=_proof(*proof, tokeniser=tokeniser))
                        next_found = next(found, None)
                    answers.append(answer)
                    number += 1
                sides.append(tuple(answers))
            proved = with_values(fact, old_answers=sides[0], new_answers=sides[1])
            settled.append(with_values(proved, problem=problem_of(proved)))
        yield batch_of(settled, Fact)


def _proof(said: str | None, entailment: float | None, *values: Any, tokeniser: Tokeniser) -> FactProof | None:
    if said is None:
        return None
    *of_candidate, paragraph_id, before, revision_id, section = values
    candidate = CandidateSentence(*of_candidate)
    return FactProof(
        candidate.text,
        candidate.page_id,
        candidate.title,
        revision_id,
        section,
        candidate.element,
        candidate.start_char,
        candidate.end_char,
        candidate.sentence_char,
        paragraph_id,
        before + candidate.start_char,
        candidate.found,
        said,
        _score(said, candidate, tokeniser)[0],
        entailment,
    )


def finish_facts(
    element: tuple[ChunkKey, BatchRef],
    *counted: StatementCounts,
    plan: FactsPlan,
    labels: Mapping[str, str],
    values: dict[str, Any],
) -> Iterator[str]:
    """Writes all files of the release, the manifest last.

    (key, ``BatchRef`` of facts) -> the folder of the release.

    Args:
        counted: numbers of statements in the older and in the newer release of Wikidata.
        labels: labels of properties.
        values: values of the manifest.
    """
    properties: dict[str, dict[str, Any]] = {}
    for number in sorted({number for every, _ in counted for number in every}):
        of_property: dict[str, Any] = {"label": labels.get(f"P{number}"), "question": plan.templates.get(f"P{number}")}
        for side, (every, pageless) in zip(SIDES, counted, strict=True):
            of_property[side] = {"statements": every.get(number, 0), "without_page": pageless.get(number, 0)}
        properties[f"P{number}"] = of_property
    settled = BatchRef(*element[1])
    commit_facts(lambda: read_stored(settled), properties, output=plan.output, facts=values)
    yield plan.output
