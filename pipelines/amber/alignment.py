"""Sets and the pages of their entities: which values these name, and what else they say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import apache_beam as beam
import orjson
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.kilt import kilt_texts
from kbsource.records import Page
from kbsource.runtime.chunks import Key, Stored, read_stored, rows_batch
from mapping.amber.documents import align_entity
from mapping.amber.queries import claim
from mapping.amber.records import AmberSet, Document, SetEntity
from mapping.amber.released import entity_of, entity_record, tuples_record
from mapping.amber.sets import lacking
from mapping.decide.acceptance import read_rule
from mapping.entail.premises import span_premise
from mapping.entail.signal import Pair, Refused, Verdict
from mapping.search.best_span import align_evidence, matched_text
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser
from pipelines.amber.plan import (
    ANSWERS,
    OUTCOMES,
    SET_ORDER,
    SETS,
    SIGNALS,
    TUPLES,
    WANTED,
    WANTED_ORDER,
    Plan,
    buckets_of_pages,
    groups_of_sets,
)
from pipelines.primitives.group_map import GroupMap, GroupWork
from pipelines.primitives.page_texts import PageTexts
from pipelines.primitives.regroup import Regroup
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for
from pipelines.transforms.verify_entailment import VerifyEntailment

_JUDGED_TOGETHER = 512
_NO_SPAN: tuple[None, ...] = (None,) * 6


class AlignSets(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``Stored``) of rows of WANTED -> ``sets``, ``tuples``, ``outcomes`` and ``counts``, as a ``GroupMap``.

    Args:
        plan: of the job.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def expand(self, wanted: Any) -> Any:
        plan = self._plan
        buckets = partial(buckets_of_pages, n_pages=sum(plan.page_rows))
        by_page = wanted | "by page" >> Regroup(plan.folder("wanted"), buckets, order=WANTED_ORDER)
        aligned = {"wanted": by_page} | "align" >> GroupMap(
            partial(align_pages, plan=plan),
            plan.folder("aligned"),
            outputs={"aligned": WANTED, "signals": SIGNALS},
            orders={"wanted": WANTED_ORDER},
        )
        inputs = {
            name: aligned[name]
            | f"{name} by set" >> Regroup(plan.folder(f"{name}_of_sets"), groups_of_sets, order=SET_ORDER)
            for name in ("aligned", "signals")
        }
        if plan.options.verify is not None:
            inputs["answers"] = (
                aligned["signals"]
                | "spread" >> beam.Reshuffle()
                | "ask" >> beam.ParDo(_Ask())
                | "judge" >> VerifyEntailment(plan.options.verify)
                | "take answers" >> beam.MapTuple(_answered)
                | "answers by set" >> Regroup(plan.folder("answers"), groups_of_sets)
            )
        return inputs | "settle" >> GroupMap(
            partial(settle_sets, plan=plan),
            plan.folder("settled"),
            outputs={"sets": SETS, "tuples": TUPLES, "outcomes": OUTCOMES},
            orders={"aligned": SET_ORDER},
            rows_at_once={"sets": 32, "tuples": 256},
            sorted_by={"sets": 2, "tuples": 3, "outcomes": 2},
        )


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def align_pages(work: GroupWork, *, plan: Plan) -> None:
    """Looks into the pages of a group. Input: ``wanted``. Outputs: ``aligned``, the same rows; ``signals``."""
    texts = PageTexts(plan.kb, plan.pages, plan.page_rows)
    tokeniser = Tokeniser(plan.lang)
    try:
        for position, rows in groupby(_rows(work.rows("wanted")), key=itemgetter(0)):
            of_page = [(*row[1:5], entity_of(f"Q{row[2]}", orjson.loads(row[5]))) for row in rows]
            document = None
            for set_number, item, number, name, entity in of_page:
                if entity.tuples:
                    if document is None:
                        page = texts.page(position)
                        document = Document(entity.pages[0], " ".join(kilt_texts(page)[0]))
                        tokenised = TokenisedPage(page.elements, tokeniser)
                    aligned = align_entity(entity, [document])
                    for signals in _signals(name, entity, aligned, page, tokenised, plan.collections[number]):
                        work.add("signals", (set_number, item, *signals))
                    entity = aligned
                content = orjson.dumps(entity_record(entity))
                work.add("aligned", (position, set_number, item, number, name, content))
    finally:
        texts.close()


def _signals(
    name: str, entity: SetEntity, aligned: SetEntity, page: Page, tokenised: TokenisedPage, collection: Any
) -> Iterator[tuple[Any, ...]]:
    """Gives of each tuple where the page says it best: rows of SIGNALS without set and item."""
    found = {one.property_id: one for one in aligned.tuples}
    for one in entity.tuples:
        stated = found.get(one.property_id)
        value = one.values[0] if stated is None else next(value for value in stated.values if value.is_found)
        span = align_evidence(f"{name} {one.property} {value.aliases[0]}", tokenised)
        place: tuple[Any, ...] = _NO_SPAN
        core, premise = (0, 0), None
        if span is not None:
            premise, core = span_premise(page, span)
            place = (
                span.score,
                span.start_element,
                span.start_char,
                span.end_element,
                span.end_char,
                matched_text(span, tokenised),
            )
        hypothesis = claim(name, entity.qid, one, value, collection)
        yield (int(one.property_id[1:]), int(stated is not None), *place, premise, hypothesis, *core)


class _Ask(WorkerDoFn):
    """(Key, ``Stored``) of rows of SIGNALS -> (their keys, pairs for a model), in lists."""

    def process(self, element: tuple[Key, Stored]) -> Iterator[tuple[Any, tuple[Pair, ...]]]:
        (_, group), stored = element
        with named_faults():
            rows = (row for row in _rows(read_stored(Stored(*stored), storage_for(stored[0]))) if row[10] is not None)
            number = 0
            while together := tuple(islice(rows, _JUDGED_TOGETHER)):
                pairs = tuple(Pair(row[10], row[11], (row[12], row[13])) for row in together)
                yield (group, number, tuple(row[:3] for row in together)), pairs
                number += 1


def _answered(asked: tuple[int, int, Any], answers: Iterable[Verdict | Refused]) -> tuple[Key, pa.RecordBatch]:
    group, number, keys = asked
    rows = [
        (*key, *((None,) * 3 if isinstance(answer, Refused) else answer))
        for key, answer in zip(keys, answers, strict=True)
    ]
    return Key(group, number), rows_batch(rows, ANSWERS)


def settle_sets(work: GroupWork, *, plan: Plan) -> None:
    """Puts the sets of a group together again. Inputs: ``aligned``, ``signals``, perhaps ``answers``.

    Outputs: ``sets``; ``tuples``, what the pages say of theirs; ``outcomes``. Counts: of the tuples of each property
    how many were found, by BLEU and verdict.
    """
    rule = None if plan.options.accept is None else read_rule(plan.options.accept)
    said: dict[Any, dict[str, Any]] = {}
    numbers = {row[1]: row[3] for row in _rows(work.rows("aligned"))}
    for batch in work.rows("signals"):
        for one in batch.drop_columns(["premise", "core_start", "core_end"]).to_pylist():
            said[one.pop("set"), one.pop("item"), one.pop("property")] = one
    for batch in work.rows("answers") if plan.options.verify is not None else ():
        for one in batch.to_pylist():
            said[one.pop("set"), one.pop("item"), one.pop("property")].update(one)
    for key, rows in groupby(_rows(work.rows("aligned")), key=itemgetter(1)):
        of_set = list(rows)
        number, name = of_set[0][3:5]
        made = AmberSet(name, tuple(entity_of(f"Q{row[2]}", orjson.loads(row[5])) for row in of_set))
        outcome = lacking(made, "found")
        if outcome is None and rule is not None:
            accepted = (
                one._replace(
                    tuples=tuple(
                        own for own in one.tuples if rule.holds(said[key, int(one.qid[1:]), int(own.property_id[1:])])
                    )
                )
                for one in made.entities
            )
            made = made._replace(entities=tuple(accepted))
            outcome = lacking(made, "accepted")
        work.add("outcomes", (number, name, outcome or "set", 0, len(made.entities)))
        if outcome is None:
            work.add("sets", (number, name, orjson.dumps(tuples_record(made)["qids"])))
            for entity in made.entities:
                for own in entity.tuples:
                    signals = said[key, int(entity.qid[1:]), int(own.property_id[1:])]
                    work.add("tuples", (number, name, own.amber_id, orjson.dumps(signals)))
    for (set_number, _, property_), one in said.items():
        work.counts[f"{plan.collections[numbers[set_number]].name} P{property_} {_cell(one)}"] += 1


def _cell(said: Mapping[str, Any]) -> str:
    """Gives what the signals of a tuple say, in words that are counted by."""
    found = "found" if said["is_found"] else "not_found"
    band = "no_span" if said["bleu"] is None else f"bleu_{int(said['bleu'] * 4) / 4:.2f}"
    if said.get("entailment") is None:
        return f"{found} {band} not_judged"
    return f"{found} {band} {Verdict(said['entailment'], said['neutral'], said['contradiction']).label}"
