"""Facts that changed between two dates, as questions with an old and a new proof.

Statements of both dates are joined by subject and property. Each answer is searched for in the subject's page of the
same date.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace as with_values

from kbsource.columns import rows_of, schema_of
from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, join
from kbsource.kilt import kilt_texts, section_name
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.rows import Columns, Row
from kbsource.runtime.chunks import ChunkKey
from kbsource.runtime.regroup import ByNumber, merge_group
from kbsource.wikidata.kind import WikidataTables
from mapping.entail.model import model_facts
from mapping.entail.statements import SEPARATOR, state_triple
from mapping.facts import (
    FACTS,
    SIDES,
    Fact,
    FactAnswer,
    FactProof,
    Side,
    commit_facts,
    compared,
    load_templates,
    problem_of,
    score,
    with_common,
)
from mapping.qampari.classes import ItemSet, Numbers, item_numbers, required
from mapping.qampari.evidence import CandidateSentence, PageSentences, Sought
from mapping.qampari.names import Name, ValueKind, ValueNames, answer_key, property_kinds, types_of_values
from mapping.qampari.statements import STATEMENT_COLUMNS, VALUES, values_of
from mapping.search.tokens import Tokeniser, tokeniser_name
from mapping.write.kind import REPORT
from pipelines.jobs.age import in_order_of_dates
from pipelines.jobs.qampari import check_source_release, check_tables
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.facts import FactsOptions
from pipelines.primitives.group_map import TOLD, By, GroupWork, groups_for, map_groups, value_rows
from pipelines.primitives.lookup import MapRows
from pipelines.primitives.page_texts import GroupedPagesPlan, PageTexts, ReleasePages
from pipelines.primitives.shuffle import Collected, CollectSorted, StepCollector, StepOutputs
from pipelines.progress import Done, Progress
from pipelines.qampari.facts import find_proofs
from pipelines.qampari.lookups import find_item_names, open_item_names
from pipelines.qampari.plan import BY_FACT, FACT_BITS, ITEMS, TRIED
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import wired
from pipelines.transforms.tables import find_places, read_places

Given, AllOf = beam.pvalue.AsSingleton, beam.pvalue.AsList


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPlan(GroupedPagesPlan):
    """Settings shared by all steps; ``pages`` is the newer release, or the one given to ``of``."""

    options: FactsOptions
    old: ReleasePages
    new: ReleasePages
    kinds: Mapping[str, ValueKind]  # kinds of values, by property
    labels: Mapping[str, str]  # labels of these properties
    templates: Mapping[str, str]  # their questions

    def of(self, side: Side) -> FactsPlan:
        """Returns the same plan for one release, with a separate folder."""
        return replace(self, pages=self.old if side == "old" else self.new, staging=join(self.staging, side))


OWN_VALUES = pa.schema([*VALUES, *required("own")])
"""Values of subjects, by the subject's number in the newer release; ``own`` is its number in its own release."""
PAIRS = pa.schema(
    [*required("subject", "property", "old", "new"), *required("old_values", "new_values", of=pa.list_(pa.string()))]
)
"""Statements about a subject in two releases of Wikidata, with its number in each."""
WANTED = pa.schema(
    [
        *required("position", "fact"),
        *required("names", of=pa.list_(pa.string())),
        pa.field("page_id", pa.int64()),
        *required("hypothesis", of=pa.string()),
    ]
)
"""Answers, numbered by ``fact``, and the pages to search; ``page_id`` is the target of links that mention an answer."""
WANTED_ORDER = ("position", "fact")
PLACED = pa.schema(
    [
        *required("fact", "n_found", "element", "paragraph_id", "before", "revision_id"),
        *required("section", of=pa.string()),
    ]
)
"""Positions, in KILT's form of the page, of the elements that mention an answer."""
ORDER = ("subject", "number")
_Tallies = tuple[dict[int, int], dict[int, int]]


class OrderedFact(Row):
    """A fact with its sort key."""

    subject: int
    number: int
    fact: Annotated[Fact, Columns()]


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


def take_values(batch: pa.RecordBatch, *, plan: FactsPlan, side: Side) -> pa.RecordBatch:
    """Returns the best-ranked valid values of items with a page, as rows of OWN_VALUES."""
    asked = sorted(plan.templates)
    types = types_of_values(plan.kinds, asked)
    values = values_of(batch, _subjects(plan.old, plan.new), asked, value_types=types, is_best=True)
    own = values["subject"].to_numpy()
    subjects = same_items(own, plan) if side == "old" else own
    columns = [pa.array(subjects), values["property"], values["value"], pa.array(own)]
    return pa.RecordBatch.from_arrays(columns, schema=OWN_VALUES)


def count_statements(chunk: tuple[ChunkKey, pa.RecordBatch], plan: FactsPlan) -> tuple[ChunkKey, _Tallies]:
    """Counts the statements about items by property number, and those about items without a page."""
    key, batch = chunk
    of_items = batch.filter(pc.starts_with(batch["entity_id"], "Q"))
    items, properties = item_numbers(of_items["entity_id"]), item_numbers(of_items["property_id"])
    is_pageless = ~_subjects(plan.old, plan.new).has(items)
    tallies = (np.unique(ids, return_counts=True) for ids in (properties, properties[is_pageless]))
    every, pageless = (dict(zip(*map(np.ndarray.tolist, tally), strict=True)) for tally in tallies)
    return key, (every, pageless)


def _sum(counted: Sequence[tuple[ChunkKey, _Tallies]]) -> Iterator[_Tallies]:
    every, pageless = Counter[int](), Counter[int]()
    for _, (own, own_pageless) in counted:
        every.update(own)
        pageless.update(own_pageless)
    yield dict(every), dict(pageless)


def pair_values(work: GroupWork, *, plan: FactsPlan) -> None:
    """Joins the statements of two releases about each subject. Inputs: ``old``, ``new``. Outputs: ``pairs``, by subject
    and property; ``old_items`` and ``new_items``, whose names are needed."""
    pairs: dict[tuple[int, int], tuple[dict[str, int], dict[str, int]]] = {}
    for at, side in enumerate(SIDES):
        for subject, number, value, own in value_rows(work.rows(side)):
            pairs.setdefault((subject, number), ({}, {}))[at].setdefault(value, own)
    for (subject, number), both in sorted(pairs.items()):
        subjects = [min(values.values(), default=subject) for values in both]
        work.add("pairs", (subject, number, *subjects, *(list(values) for values in both)))
        for side, own, values in zip(SIDES, subjects, both, strict=True):
            is_item = plan.kinds[f"P{number}"] == "item"
            for item in {own, *(int(value[1:]) for value in values if is_item)}:
                work.add(f"{side}_items", (item,))


_NO_PAGE = Name(None, ())


class _Found(NamedTuple):
    """A release's data about the subjects of a group, one entry each, and about their values."""

    subjects: list[Name]
    positions: list[int]  # positions of their pages; -1 for none
    values: list[list[tuple[str, Name]]]  # comparison key and name of each value


def _look_up(pairs: Sequence[Mapping[str, Any]], named: Any, plan: FactsPlan, side: Side) -> _Found:
    plan = plan.of(side)
    names, pages = open_item_names(named, plan), plan.pages.of_items()
    numbers = np.array([pair[side] for pair in pairs], np.int64)
    rows = names.rows(numbers)
    subjects = [rows[number] for number in numbers.tolist()]
    page_ids = np.array([-1 if subject.page_id is None else subject.page_id for subject in subjects], np.int64)
    positions, is_there = pages.positions(page_ids)
    places = np.full(len(pairs), -1, np.int64)
    places[is_there] = positions
    values = [(f"P{pair['property']}", value) for pair in pairs for value in pair[f"{side}_values"]]
    items = np.array([int(value[1:]) for name, value in values if plan.kinds[name] == "item"], np.int64)
    same = iter((same_items(items, plan) if side == "old" else items).tolist())
    kinds = ((plan.kinds[name], value) for name, value in values)
    keys = [f"Q{next(same)}" if kind == "item" else answer_key(kind, value) for kind, value in kinds]
    found = zip(keys, ValueNames(names, plan.kinds).take(values), strict=True)
    return _Found(subjects, places.tolist(), [list(islice(found, len(pair[f"{side}_values"]))) for pair in pairs])


def make_changed_facts(work: GroupWork, *named: Any, plan: FactsPlan) -> None:
    """Writes the facts of a group, without proofs. Input: ``pairs``. Outputs: ``facts``; ``old_wanted`` and
    ``new_wanted``."""
    pairs = work.table("pairs", PAIRS).to_pylist()
    found = {side: _look_up(pairs, names, plan, side) for side, names in zip(SIDES, named, strict=True)}
    next_fact = work.group << FACT_BITS
    for at, pair in enumerate(pairs):
        property_id = f"P{pair['property']}"
        has_page = {side: found[side].positions[at] >= 0 for side in SIDES}
        of_entity: Side = "old" if has_page["old"] and not has_page["new"] else "new"
        entity = _called(found[of_entity].subjects[at], plan.of(of_entity), pair[of_entity])
        answers: dict[Side, list[FactAnswer]] = {}
        for side in SIDES:
            answers[side] = []
            for value, name in found[side].values[at]:
                if any(value == answer.value for answer in answers[side]):
                    continue
                said = state_triple(f"{entity}{SEPARATOR}{plan.labels[property_id]}", next(iter(name.names), ""))
                names = () if said is None else name.names
                answers[side].append(FactAnswer(value, name.item_id, next(iter(names), None), names, name.title))
                if names and has_page[side]:
                    position = found[side].positions[at]
                    work.add(f"{side}_wanted", (position, next_fact, names, name.page_id, said))
                next_fact += 1
        pages = {side: found[side].subjects[at] if has_page[side] else _NO_PAGE for side in SIDES}
        fact = Fact(
            f"Q{pair['subject']}",
            f"Q{pair['old']}",
            property_id,
            plan.labels[property_id],
            entity,
            plan.templates[property_id].replace("{entity}", entity),
            compared(answers["old"], answers["new"]),
            None,
            pages["old"].page_id,
            pages["old"].title,
            pages["new"].page_id,
            pages["new"].title,
            *with_common(answers["old"], answers["new"]),
        )
        work.add("facts", OrderedFact(pair["subject"], pair["property"], fact))


def _called(subject: Name, plan: FactsPlan, number: int) -> str:
    """Returns the name of a subject: a label or title that leads to its page; without a page, its label or else its
    id."""
    label = next(iter(subject.names), f"Q{number}")
    if subject.title is None or plan.pages.of_items().resolve(label) == subject.page_id:
        return label
    return subject.title


def look_in_pages(work: GroupWork, *, plan: FactsPlan) -> None:
    """Searches the pages of a group for answers. Input: ``wanted``. Outputs: ``tried``, sentences that mention an
    answer, those most similar to the statement first; ``placed``."""
    texts, tokeniser = PageTexts(plan.pages, further=("anchors", "revision_id")), Tokeniser("en")
    try:
        for position, rows in groupby(value_rows(work.rows("wanted")), key=itemgetter(0)):
            page = texts.page(position)
            if page.is_disambiguation:
                continue
            sentences = PageSentences(page, n_before=plan.options.sentences_before)
            places = kilt_texts(page)[1]
            for _, fact, names, page_id, said in rows:
                sought = Sought(tuple(names), page_id)
                named = [candidate for candidate in sentences.find(sought) if candidate.element in places]
                named.sort(key=lambda candidate: _score(said, candidate, tokeniser), reverse=True)
                for number, candidate in enumerate(named):
                    work.add("tried", (fact, 0, number, *candidate, said))
                for element in sorted({candidate.element for candidate in named}):
                    section = section_name(page.elements[element].section)
                    work.add("placed", (fact, len(named), element, *places[element], page.revision_id, section))
    finally:
        texts.close()


def _score(hypothesis: str, candidate: CandidateSentence, tokeniser: Tokeniser) -> tuple[float, float]:
    return score(hypothesis, candidate.text, candidate.sentence_char - candidate.start_char, tokeniser)


def settle_facts(work: GroupWork, *, plan: FactsPlan) -> None:
    """Adds proofs to facts. Inputs: ``facts``; ``…_proofs`` and ``…_placed`` of each release. Output: ``facts``."""
    tokeniser = Tokeniser("en")
    placed = {(row[0], row[2]): row for side in SIDES for row in value_rows(work.rows(f"{side}_placed"))}
    n_found = {fact: row[1] for (fact, _), row in placed.items()}
    proofs = {row[0]: row for side in SIDES for row in value_rows(work.rows(f"{side}_proofs"))}

    def proof_of(number: int) -> FactProof | None:
        if number not in proofs:
            return None
        _, said, entailment, *values = proofs[number]
        candidate = CandidateSentence(*values)
        _, _, _, paragraph_id, before, revision_id, section = placed[number, candidate.element]
        place = (section, candidate.element, candidate.start_char, candidate.end_char, candidate.sentence_char)
        paragraph = (paragraph_id, before + candidate.start_char)
        signals = (_score(said, candidate, tokeniser)[0], entailment)
        return FactProof(
            candidate.text,
            candidate.page_id,
            candidate.title,
            revision_id,
            *place,
            *paragraph,
            candidate.found,
            said,
            *signals,
        )

    number = work.group << FACT_BITS
    for batch in work.rows("facts"):
        for row in rows_of(batch, OrderedFact):
            sides = []
            for side in SIDES:
                answers = row.fact.answers(side)
                proved = (
                    with_values(answer, n_found=n_found.get(at, 0), proof=proof_of(at))
                    for at, answer in enumerate(answers, number)
                )
                sides.append(tuple(proved))
                number += len(answers)
            fact = with_values(row.fact, old_answers=sides[0], new_answers=sides[1])
            work.add("facts", with_values(row, fact=with_values(fact, problem=problem_of(fact))))


def finish_facts(
    collected: Collected, *counted: _Tallies, plan: FactsPlan, labels: Mapping[str, str], values: dict[str, Any]
) -> list[str]:
    """Writes all files, the manifest last, and returns the folder of the release.

    Args:
        collected: see ``StepCollector``.
        counted: numbers of statements in the older and in the newer release of Wikidata.
        labels: labels of properties.
        values: values of the manifest.
    """
    found, schema = StepOutputs(collected), schema_of(Fact)

    def batches() -> Iterable[pa.RecordBatch]:
        for chunks in found.steps("facts"):
            for batch in merge_group(chunks, ORDER):
                yield pa.RecordBatch.from_arrays(batch.select(schema.names).columns, schema=schema)

    properties: dict[str, dict[str, Any]] = {}
    for number in sorted({number for every, _ in counted for number in every}):
        of_property: dict[str, Any] = {"label": labels.get(f"P{number}"), "question": plan.templates.get(f"P{number}")}
        for side, (every, pageless) in zip(SIDES, counted, strict=True):
            of_property[side] = {"statements": every.get(number, 0), "without_page": pageless.get(number, 0)}
        properties[f"P{number}"] = of_property
    commit_facts(batches, properties, output=plan.output, facts=values)
    return [plan.output]


@wired
def prove_answers(wanted: Any, plan: FactsPlan) -> dict[str, Any]:
    """(key, ``BatchRef``) of rows of WANTED -> ``proofs`` and ``placed`` of a release."""
    looked = {"wanted": wanted} | "look" >> map_groups(
        partial(look_in_pages, plan=plan),
        plan.folder("looked"),
        outputs={"tried": TRIED, "placed": PLACED},
        by={"wanted": By(plan.pages.together, WANTED_ORDER)},
    )
    proofs = looked["tried"] | "prove" >> find_proofs(plan.options, plan.folder("proofs"))
    return {"proofs": proofs, "placed": looked["placed"]}


def make_facts_release(
    pipeline: Any, plan: FactsPlan, paths: Mapping[Side, Mapping[str, tuple[str, ...]]], finish: Any
) -> None:
    """Makes a release of changed facts.

    Args:
        paths: paths of the files of ``items`` and ``statements`` of both releases of Wikidata.
        finish: writes the release from the collected results and the numbers of statements.
    """
    by_subject = By(ByNumber("subject", plan.n_groups))
    values, counted, places = {}, {}, {}
    for side in SIDES:
        statements, items = paths[side]["statements"], paths[side]["items"]
        begin = pipeline | f"{side} statements to read" >> find_places(statements)
        places[side] = pipeline | f"{side} items to read" >> find_places(items)
        values[side] = (
            begin
            | f"read {side} statements" >> read_places(statements, STATEMENT_COLUMNS, together="entity_id")
            | f"take {side} values" >> beam.ParDo(MapRows(partial(take_values, plan=plan, side=side)))
        )
        counted[side] = (
            begin
            | f"read {side} properties" >> read_places(statements, ("entity_id", "property_id"))
            | f"count {side} statements" >> beam.Map(count_statements, plan)
            | f"sum {side} statements" >> CollectSorted(_sum)
        )
    pairs = dict(values) | "pair" >> map_groups(
        partial(pair_values, plan=plan),
        plan.folder("pairs"),
        outputs={"pairs": PAIRS, "old_items": ITEMS, "new_items": ITEMS},
        by=dict.fromkeys(SIDES, by_subject),
    )
    named = [
        AllOf(
            pairs[f"{side}_items"]
            | f"{side} names" >> find_item_names(plan.of(side), "names", paths[side]["items"], places[side])
        )
        for side in SIDES
    ]
    facts = {"pairs": pairs["pairs"]} | "make" >> map_groups(
        partial(make_changed_facts, plan=plan),
        plan.folder("made"),
        outputs={"facts": schema_of(OrderedFact), "old_wanted": WANTED, "new_wanted": WANTED},
        given=tuple(named),
        rows_at_once={"facts": 256},
    )
    proved = {"facts": facts["facts"]}
    for side in SIDES:
        of_side = facts[f"{side}_wanted"] | f"prove {side}" >> prove_answers(plan.of(side))
        proved |= {f"{side}_{name}": rows for name, rows in of_side.items()}
    made = StepCollector()
    settled_facts = proved | "settle" >> map_groups(
        partial(settle_facts, plan=plan),
        plan.folder("settled"),
        outputs={"facts": schema_of(OrderedFact)},
        by=dict.fromkeys([name for name in proved if name != "facts"], By(BY_FACT)),
        rows_at_once={"facts": 256},
        step=made.step(facts="facts"),
    )
    made.take(settled_facts[TOLD])
    made.finish(finish, *(Given(counted[side]) for side in SIDES))


def moved_facts(options: FactsOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Makes a release of changed facts.

    Raises:
        DataError: the data are wrong.
        SetupError: a file, an option, a release or the output folder is wrong, or the job failed.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # first, because the flags configure access to stores
    output = output_folder(options.output)
    templates = load_templates(options.questions)
    ordered = in_order_of_dates((options.old, options.new))
    if ordered[0][0] != absolute(options.old):
        raise SetupError(f"{options.old} is of a later day than {options.new}; name the older release first.")
    releases = dict(zip(SIDES, ordered, strict=True))
    tables = dict(zip(SIDES, map(WikidataTables.open, map(absolute, options.wikidata)), strict=True))
    days = [table.manifest.date for table in tables.values()]
    if None not in days and str(days[0]) > str(days[1]):
        raise SetupError(f"--wikidata: {options.wikidata[0]} is of a later day than {options.wikidata[1]}.")
    kinds: dict[str, ValueKind] = {}
    labels: dict[str, str] = {}
    for side in SIDES:
        check_source_release(*releases[side])
        check_tables(tables[side])
        kinds |= property_kinds(tables[side])
        for batch in tables[side].batches("properties", ("property_id", "label")):
            named = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            labels |= {property_id: label for property_id, label in named if label is not None}
    asked = {name: text for name, text in templates.items() if name in kinds and name in labels}
    paths = {
        side: {name: checked_paths(table.path, table.manifest.tables[name]) for name in ("items", "statements")}
        for side, table in tables.items()
    }
    values: dict[str, Any] = {
        **{side: releases[side][1].facts() for side in SIDES},
        "inputs": {
            **{f"{side}_wikidata": list(map(asdict, input_files([table.path]))) for side, table in tables.items()},
            **named_inputs(options, "questions"),
        },
        "options": options.data_options(),
        "code": {**code_facts(), "tokeniser": tokeniser_name("en")},
        "model": None if options.model is None else model_facts(options.model),
    }
    with ReleaseFolder(output, kind=FACTS, job=values) as made_in:
        old, new = (ReleasePages.of(*releases[side]) for side in SIDES)
        plan = FactsPlan(
            options=options,
            old=old,
            new=new,
            kinds={name: kinds[name] for name in asked},
            labels={name: labels[name] for name in asked},
            templates=asked,
            staging=made_in.staging,
            output=output,
            n_groups=groups_for(max(table.n_rows("statements") for table in tables.values())),
            pages=new,
        )
        make_facts_release(pipeline, plan, paths, partial(finish_facts, plan=plan, labels=labels, values=values))
        with progress.stage("facts", lambda: Done(0, 0)):
            steps = run_pipeline(pipeline, "facts")
    report = Folder.of(join(output, REPORT)).read_json()
    return MadeRelease(options.output, FACTS.read(output), time.monotonic() - started, steps, report)
