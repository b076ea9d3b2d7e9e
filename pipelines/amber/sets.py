"""Makes sets from names shared by several entities, and finds which values their pages mention and other signals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from kbsource.kilt import kilt_texts
from kbsource.records import Page
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_stored, rows_batch
from kbsource.runtime.regroup import ByNumber
from mapping.acceptance import read_rule
from mapping.amber.records import (
    ITEM,
    QUANTITY,
    AmberEntity,
    AmberOptions,
    AmberSet,
    AmberTuple,
    AmberValue,
    PageRef,
    SetEntity,
)
from mapping.amber.release import claim
from mapping.amber.sets import (
    BEARERS_OF_VALUES,
    INSTANCE_OF,
    Bearer,
    PageBeginning,
    align_entity,
    choose_members,
    distinguishing,
    lacking,
    make_set,
)
from mapping.entail.signal import Pair, Refused, Verdict
from mapping.entail.verification import span_premise
from mapping.qampari.classes import ItemSet
from mapping.search.page_search import align_evidence, matched_text
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser
from pipelines.amber.entities import (
    ANSWERS,
    BY_SET,
    OUTCOME_ROWS,
    SET_BITS,
    SET_ORDER,
    SETS,
    SIGNALS,
    TUPLES,
    WANTED,
    WANTED_ORDER,
    AmberPlan,
)
from pipelines.primitives.group_map import By, GroupWork, map_groups, value_rows
from pipelines.primitives.lookup import Lookup, read_item_set
from pipelines.primitives.page_texts import PageTexts
from pipelines.primitives.shuffle import OutputNames
from pipelines.runners.workers import do, wired
from pipelines.transforms.verify_entailment import VerifyEntailment

_ENTITIES_AT_ONCE = _ROWS_AT_ONCE = 4096
_UNIT = "http://www.wikidata.org/entity/"
_ENTITY = msgspec.json.Decoder(SetEntity)


def find_names(work: GroupWork, *, n_collections: int, options: AmberOptions) -> None:
    """Writes the names of a group that several entities share. Memory holds some rows, even if many entities share a
    name.

    Input: ``names``, in ``NAME_ORDER``. Outputs: ``members`` of names that are processed further; ``outcomes``.
    """
    n_sets = 0
    for number in range(n_collections):
        for _, rows in groupby(_shared_rows(work.rows("names")), key=itemgetter(0, 1)):
            run = _Run(rows, 1 << number)
            reason, members = choose_members(run, options)
            for member, is_head in members:
                work.add("members", (number, work.group << SET_BITS | n_sets, run.name, member.item, int(is_head)))
            for _ in run:
                pass  # to count all of them
            n_sets += reason is None
            if run.n_bearers > 1 and run.n_members:
                work.add("outcomes", (number, run.name, reason or "", run.n_bearers, run.n_members))


def _shared_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of names that occur in more than one row, and rows at the ends of batches, which may continue."""
    for batch in batches:
        is_next = np.ones(batch.num_rows + 1, np.bool_)
        is_next[1:-1] = True
        for name in ("first", "second"):
            values = batch[name].to_numpy()
            is_next[1:-1] &= values[1:] == values[:-1]
        shared = batch.filter(pa.array(is_next[1:] | is_next[:-1]))
        yield from value_rows(shared.slice(start, _ROWS_AT_ONCE) for start in range(0, shared.num_rows, _ROWS_AT_ONCE))


class _Run:
    """Iterates over the entities of a name, each once, and counts them."""

    def __init__(self, rows: Iterator[tuple[Any, ...]], bit: int) -> None:
        self.name, self.n_bearers, self.n_members = "", 0, 0
        self._bearers = self._read(rows, bit)

    def _read(self, rows: Iterator[tuple[Any, ...]], bit: int) -> Iterator[Bearer]:
        last = -1
        for _, _, order, item, members, self.name in rows:
            if item != last:
                self.n_bearers += 1
                self.n_members += bool(members & bit)
                yield Bearer(item, -order, bool(members & bit))
            last = item

    def __iter__(self) -> Iterator[Bearer]:
        return self._bearers


class KnownEntities:
    """Looks up entities."""

    def __init__(self, chunks: Sequence[tuple[ChunkKey, BatchRef]], items: ItemSet, n_groups: int) -> None:
        self._items = items
        self._lookup = Lookup(chunks, "item", ByNumber("item", n_groups).of)

    def take(self, qids: Iterable[str]) -> dict[str, tuple[AmberEntity, int]]:
        """Returns the existing entities of some items, with their pages, -1 for none."""
        numbers = np.unique(np.array([int(qid[1:]) for qid in qids], np.int64))
        numbers = numbers[self._items.has(numbers)]
        rows = self._lookup.take(numbers).to_pylist() if len(numbers) else []
        return {f"Q{row['item']}": (_entity(row), row["page_id"]) for row in rows}

    def known(self, qids: Iterable[str]) -> dict[str, AmberEntity]:
        """Returns the existing entities of some items."""
        return {qid: entity for qid, (entity, _) in self.take(qids).items()}


def _entity(row: dict[str, Any]) -> AmberEntity:
    properties: dict[str, list[AmberValue]] = {}
    for fact in row["facts"]:
        properties.setdefault(f"P{fact['property']}", []).append(_value(fact))
    types = tuple(value.value for value in properties.pop(INSTANCE_OF, ()) if value.kind == ITEM)
    own = {name: tuple(values) for name, values in properties.items()}
    return AmberEntity(f"Q{row['item']}", row["views"], tuple(row["aliases"]), types, own)


def _value(fact: dict[str, Any]) -> AmberValue:
    if fact["kind"] == 1:
        return AmberValue(ITEM, fact["value"])
    sign = "" if fact["value"].startswith("-") else "+"
    return AmberValue(QUANTITY, sign + fact["value"], "1" if fact["unit"] is None else _UNIT + fact["unit"])


def make_sets(
    work: GroupWork, chunks: Sequence[tuple[ChunkKey, BatchRef]], items_path: str, *, plan: AmberPlan
) -> None:
    """Writes the sets of a group whose entities are distinguishable and have pages.

    Input: ``members``. Outputs: ``wanted``, one row per entity; ``outcomes``.
    """
    known = KnownEntities(chunks, read_item_set(items_path), plan.n_groups)
    pending: list[list[tuple[Any, ...]]] = []
    for _, members in groupby(value_rows(work.rows("members")), key=itemgetter(1)):
        pending.append(list(members))
        if sum(map(len, pending)) >= _ENTITIES_AT_ONCE:
            _make_sets(work, pending, known, plan)
            pending = []
    _make_sets(work, pending, known, plan)


def _make_sets(work: GroupWork, sets: list[list[tuple[Any, ...]]], known: KnownEntities, plan: AmberPlan) -> None:
    pages, rules = plan.pages.of_items(), plan.options.rules
    entities = known.take(f"Q{row[3]}" for rows in sets for row in rows)
    told_apart: dict[str, None] = {}
    for rows in sets:
        own = [entities[f"Q{row[3]}"][0] for row in rows]
        for entity, names in zip(own, distinguishing(own, plan.collections[rows[0][0]], rules), strict=True):
            told_apart.update(
                (value.value, None) for name in names for value in entity.properties[name] if value.kind == ITEM
            )
    values = known.known(told_apart)
    further = (
        value.value
        for entity in values.values()
        for name in BEARERS_OF_VALUES
        for value in entity.properties.get(name, ())
    )
    of_values = {**known.known(further), **values}
    for rows in sets:
        number, set_number, name = rows[0][:3]
        members = [(entities[f"Q{row[3]}"][0], bool(row[4])) for row in rows]
        made = make_set(name, members, of_values, plan.collections[number], rules)
        outcome = lacking(made, "told_apart")
        if outcome is None:
            page_ids = np.array([entities[entity.qid][1] for entity in made.entities], np.int64)
            positions, is_there = pages.positions(page_ids)
            at = iter(positions.tolist())
            paged = [(entity, next(at)) for entity, there in zip(made.entities, is_there, strict=True) if there]
            outcome = lacking(made._replace(entities=tuple(entity for entity, _ in paged)), "with_page")
            for set_entity, position in () if outcome else paged:
                named = pages.page(int(set_entity.qid[1:]))
                assert named is not None
                others = [(page_id, pages.title(page_id)) for page_id in plan.further_pages.get(set_entity.qid, ())]
                refs = (PageRef(str(page_id), title) for page_id, title in sorted([named, *others]))
                full = replace(set_entity, wikipedia=tuple(refs))
                content = msgspec.json.encode(full)
                work.add("wanted", (position, set_number, int(set_entity.qid[1:]), number, name, content))
        if outcome is not None:
            work.add("outcomes", (number, name, outcome, 0, len(members)))


_JUDGED_TOGETHER = 512
_NO_SPAN: tuple[None, ...] = (None,) * 6


@wired
def align_sets(wanted: Any, plan: AmberPlan, step: OutputNames) -> Any:
    """Rows of WANTED -> ``sets``, ``tuples``, ``outcomes`` and ``counts``, as returned by ``map_groups``."""
    aligned = {"wanted": wanted} | "align" >> map_groups(
        partial(align_pages, plan=plan),
        plan.folder("aligned"),
        outputs={"aligned": WANTED, "signals": SIGNALS},
        by={"wanted": By(plan.pages.together, WANTED_ORDER)},
    )
    inputs = {name: aligned[name] for name in ("aligned", "signals")}
    if plan.options.verify is not None:
        inputs["answers"] = (
            aligned["signals"]
            | "spread" >> beam.Reshuffle()
            | "ask" >> do(_ask)
            | "judge" >> VerifyEntailment(plan.options.verify)
            | "take answers" >> beam.MapTuple(_answered)
        )
    return inputs | "settle" >> map_groups(
        partial(settle_sets, plan=plan),
        plan.folder("settled"),
        outputs={"sets": SETS, "tuples": TUPLES, "outcomes": OUTCOME_ROWS},
        by={**dict.fromkeys(inputs, By(BY_SET)), "aligned": By(BY_SET, SET_ORDER)},
        rows_at_once={"sets": 32, "tuples": 256},
        sorted_by={"sets": 2, "tuples": 3, "outcomes": 2},
        step=step,
    )


def align_pages(work: GroupWork, *, plan: AmberPlan) -> None:
    """Searches the pages of a group. Input: ``wanted``. Outputs: ``aligned``, the same rows; ``signals``."""
    texts, items = PageTexts(plan.pages), plan.pages.of_items()
    tokeniser = Tokeniser(plan.pages.lang)
    try:
        for position, rows in groupby(value_rows(work.rows("wanted")), key=itemgetter(0)):
            of_page = [(*row[1:5], _ENTITY.decode(row[5])) for row in rows]
            read: dict[PageRef, _ReadPage] = {}
            for set_number, item, number, name, entity in of_page:
                if entity.tuples:
                    if not read:
                        page_ids = np.array([int(ref.wikipedia_id) for ref in entity.wikipedia], np.int64)
                        positions = items.positions(page_ids)[0].tolist()
                        for ref, place in zip(entity.wikipedia, positions, strict=True):
                            read[ref] = _ReadPage.of(ref, texts.page(place), tokeniser)
                        main = next(read[ref] for ref, place in zip(read, positions, strict=True) if place == position)
                    aligned = align_entity(entity, [read_page.passage for read_page in read.values()])
                    found = {amber_tuple.property_id: read[amber_tuple.provenance[0]] for amber_tuple in aligned.tuples}
                    for amber_tuple in entity.tuples:
                        page = found.get(amber_tuple.property_id, main)
                        signals = _signals(name, entity, amber_tuple, aligned, page, plan.collections[number])
                        work.add("signals", (set_number, item, *signals))
                    entity = aligned
                content = msgspec.json.encode(entity)
                work.add("aligned", (position, set_number, item, number, name, content))
    finally:
        texts.close()


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


def _ask(element: tuple[ChunkKey, BatchRef]) -> Iterator[tuple[Any, tuple[Pair, ...]]]:
    """(key, ``BatchRef``) of rows of SIGNALS -> (their keys, pairs for a model), one list of pairs at a time."""
    (_, group), stored = element
    rows = (row for row in value_rows(read_stored(BatchRef(*stored))) if row[10] is not None)
    number = 0
    while together := tuple(islice(rows, _JUDGED_TOGETHER)):
        pairs = tuple(Pair(row[10], row[11], (row[12], row[13])) for row in together)
        yield (group, number, tuple(row[:3] for row in together)), pairs
        number += 1


def _answered(asked: tuple[int, int, Any], answers: Iterable[Verdict | Refused]) -> tuple[ChunkKey, pa.RecordBatch]:
    group, number, keys = asked
    rows = [
        (*key, *((None,) * 3 if isinstance(answer, Refused) else answer))
        for key, answer in zip(keys, answers, strict=True)
    ]
    return ChunkKey(group, number), rows_batch(rows, ANSWERS)


def settle_sets(work: GroupWork, *, plan: AmberPlan) -> None:
    """Reassembles the sets of a group. Inputs: ``aligned``, ``signals``, and ``answers`` if there is a model.

    Outputs: ``sets``; ``tuples``, with the signals of the pages; ``outcomes``. Counts: the tuples of each property, by
    whether they were found, BLEU and verdict.
    """
    rule = None if plan.options.accept is None else read_rule(plan.options.accept)
    said: dict[Any, dict[str, Any]] = {}
    numbers = {row[1]: row[3] for row in value_rows(work.rows("aligned"))}
    for batch in work.rows("signals"):
        for row in batch.drop_columns(["premise", "core_start", "core_end"]).to_pylist():
            said[row.pop("set"), row.pop("item"), row.pop("property")] = row
    for batch in work.rows("answers") if plan.options.verify is not None else ():
        for row in batch.to_pylist():
            said[row.pop("set"), row.pop("item"), row.pop("property")].update(row)
    for key, rows in groupby(value_rows(work.rows("aligned")), key=itemgetter(1)):
        of_set = list(rows)
        number, name = of_set[0][3:5]
        made = AmberSet(name, tuple(_ENTITY.decode(row[5]) for row in of_set))
        outcome = lacking(made, "found")
        if outcome is None and rule is not None:
            accepted = (
                replace(
                    entity,
                    tuples=tuple(
                        own
                        for own in entity.tuples
                        if rule.holds(said[key, int(entity.qid[1:]), int(own.property_id[1:])])
                    ),
                )
                for entity in made.entities
            )
            made = made._replace(entities=tuple(accepted))
            outcome = lacking(made, "accepted")
        work.add("outcomes", (number, name, outcome or "set", 0, len(made.entities)))
        if outcome is None:
            work.add("sets", (number, name, msgspec.json.encode(made.entities)))
            for entity in made.entities:
                for own in entity.tuples:
                    signals = said[key, int(entity.qid[1:]), int(own.property_id[1:])]
                    work.add("tuples", (number, name, own.amber_id, msgspec.json.encode(signals)))
    for (set_number, _, property_), tuple_signals in said.items():
        work.counts[f"{plan.collections[numbers[set_number]].name} P{property_} {_cell(tuple_signals)}"] += 1


def _cell(said: Mapping[str, Any]) -> str:
    """Returns the signals of a tuple as words for the counts."""
    found = "found" if said["is_found"] else "not_found"
    band = "no_span" if said["bleu"] is None else f"bleu_{int(said['bleu'] * 4) / 4:.2f}"
    if said.get("entailment") is None:
        return f"{found} {band} not_judged"
    return f"{found} {band} {Verdict(said['entailment'], said['neutral'], said['contradiction']).label}"
